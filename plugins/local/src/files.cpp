#include "files.hpp"

#include <utility>

#include "file_stream.hpp"
#include "process.hpp"
#include "sandbox_object.hpp"

namespace sandforge::local {
namespace {

using guest::FrameType;

// Of a watch, ahead of what the host takes.
constexpr std::uint64_t kEventWindow = 64 * 1024;

std::string text_of(sf_bytes bytes) {
  return std::string(view(bytes));
}

// Why nothing can be asked; nothing: it can.
std::optional<Failure> unable(const SandboxObject& sandbox) {
  if (sandbox.link() && !folder_exists(sandbox.place())) return folder_gone();
  if (!sandbox.link() || !sandbox.link()->up()) return guest_stopped();
  return std::nullopt;
}

// Opens the channel of one operation; `make` makes its object of the link.
template <class Make>
auto begin(SandboxObject& sandbox, FrameType operation, const guest::FileRequest& request,
           sf_status& status, const sf_error_sink* err, Make make)
    -> decltype(make(sandbox.link(), std::function<bool()>())) {
  if (const auto failure = unable(sandbox)) {
    status = report(err, *failure);
    return nullptr;
  }
  const auto& link = sandbox.link();
  std::string why;
  const auto channel = link->ask().file(operation, request, &why);
  if (!channel) {
    status = report(err, Failure{SF_INVALID, "file.invalid", why, {}, 0, false});
    return nullptr;
  }
  auto object = make(link, [place = sandbox.place()] { return !folder_exists(place); });
  object->bind(*channel);
  link->listen(*channel, object);
  link->flush();
  status = SF_OK;
  return object;
}

template <class Done>
sf_status operate(sf_sandbox* self, FrameType operation, const guest::FileRequest& request,
                  Done done, sf_op** op, const sf_error_sink* err) {
  sf_status status = SF_OK;
  const auto object = begin(SandboxObject::of(self), operation, request, status, err,
                            [&](const std::shared_ptr<GuestLink>& link, auto missing) {
                              return std::make_shared<FileOp>(link, missing, done);
                            });
  if (object != nullptr && op != nullptr) *op = object->handle();
  return status;
}

sf_status stream(sf_sandbox* self, FrameType operation, guest::FileRequest request,
                 std::uint64_t window, const sf_stream_events* events, sf_stream** out,
                 const sf_error_sink* err) {
  request.window = operation == FrameType::file_watch ? kEventWindow : window;
  sf_status status = SF_OK;
  const auto object =
      begin(SandboxObject::of(self), operation, request, status, err,
            [&](const std::shared_ptr<GuestLink>& link, auto missing) {
              return std::make_shared<FileStream>(link, missing, operation, *events, window);
            });
  if (object != nullptr) *out = object->handle();
  return status;
}

guest::FileRequest about(sf_bytes path, std::uint32_t flags = 0) {
  guest::FileRequest request;
  request.path = text_of(path);
  request.parents = (flags & SF_FILE_CREATE_PARENTS) != 0;
  request.tree = (flags & SF_FILE_REMOVE_TREE) != 0;
  request.replace = (flags & SF_FILE_REPLACE) != 0;
  return request;
}

}  // namespace

const sf_files_ext* files_extension() noexcept {
  static const sf_files_ext ext = {
      sizeof(sf_files_ext),
      [](sf_sandbox* self, sf_bytes path, sf_file_list_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fenced(
            err, [&] { return operate(self, FrameType::file_stat, about(path), done, op, err); });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t depth, sf_file_list_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about(path);
          request.depth = depth;
          return operate(self, FrameType::file_list, request, done, op, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint64_t offset, uint64_t length, uint64_t window,
         const sf_stream_events* events, sf_stream** out, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about(path);
          request.offset = offset;
          request.length = length;
          return stream(self, FrameType::file_read, std::move(request), window, events, out, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t mode, uint32_t flags,
         const sf_stream_events* events, sf_stream** out, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about(path, flags);
          request.mode = mode;
          return stream(self, FrameType::file_write, std::move(request), 0, events, out, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t mode, uint32_t flags, sf_completion done,
         sf_op** op, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about(path, flags);
          request.mode = mode;
          return operate(self, FrameType::file_make_directory, request, done, op, err);
        });
      },
      [](sf_sandbox* self, sf_bytes from, sf_bytes to, uint32_t flags, sf_completion done,
         sf_op** op, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about(from, flags);
          request.target = text_of(to);
          return operate(self, FrameType::file_move, request, done, op, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t flags, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          return operate(self, FrameType::file_remove, about(path, flags), done, op, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t flags, uint64_t window,
         const sf_stream_events* events, sf_stream** out, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about(path);
          request.recursive = (flags & SF_WATCH_RECURSIVE) != 0;
          return stream(self, FrameType::file_watch, std::move(request), window, events, out, err);
        });
      },
      nullptr,
      nullptr,
  };
  return &ext;
}

}  // namespace sandforge::local

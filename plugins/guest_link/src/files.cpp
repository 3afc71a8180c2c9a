#include "sandforge/guest_link/files.hpp"

#include <utility>

#include "file_stream.hpp"
#include "sandforge/guest_link/guest_process.hpp"

namespace sandforge::guest_link {
namespace {

using guest::FrameType;

// Of a watch, ahead of what the host takes.
constexpr std::uint64_t kEventWindow = 64 * 1024;

std::string text_of(sf_bytes bytes) {
  return std::string(view(bytes));
}

// Opens the channel of one operation; `make` makes its object of the link.
template <class Make>
auto begin(GuestOwner& sandbox, FrameType operation, const guest::FileRequest& request,
           sf_status& status, const sf_error_sink* err, Make make)
    -> decltype(make(sandbox.guest(), std::function<bool()>())) {
  if (const auto failure = sandbox.unable()) {
    status = report(err, *failure);
    return nullptr;
  }
  const auto& link = sandbox.guest();
  std::string why;
  const auto channel = link->ask().file(operation, request, &why);
  if (!channel) {
    status = report(err, Failure{SF_INVALID, "file.invalid", why, {}, 0, false});
    return nullptr;
  }
  auto object = make(link, sandbox.missing_root());
  object->bind(*channel);
  link->listen(*channel, object);
  link->flush();
  status = SF_OK;
  return object;
}

template <class Done>
sf_status operate(GuestOwner& self, FrameType operation, const guest::FileRequest& request,
                  Done done, sf_op** op, const sf_error_sink* err) {
  sf_status status = SF_OK;
  const auto object = begin(self, operation, request, status, err,
                            [&](const std::shared_ptr<GuestLink>& link, auto missing) {
                              return std::make_shared<FileOp>(link, missing, done);
                            });
  if (object != nullptr && op != nullptr) *op = object->handle();
  return status;
}

}  // namespace

sf_status stream_file(GuestOwner& self, FrameType operation, guest::FileRequest request,
                      std::uint64_t window, const sf_stream_events* events, sf_stream** out,
                      const sf_error_sink* err) {
  request.window = operation == FrameType::file_watch ? kEventWindow : window;
  sf_status status = SF_OK;
  const auto object =
      begin(self, operation, request, status, err,
            [&](const std::shared_ptr<GuestLink>& link, auto missing) {
              return std::make_shared<FileStream>(link, missing, operation, *events, window);
            });
  if (object != nullptr) *out = object->handle();
  return status;
}

guest::FileRequest about_file(sf_bytes path, std::uint32_t flags) {
  guest::FileRequest request;
  request.path = text_of(path);
  request.parents = (flags & SF_FILE_CREATE_PARENTS) != 0;
  request.tree = (flags & SF_FILE_REMOVE_TREE) != 0;
  request.replace = (flags & SF_FILE_REPLACE) != 0;
  return request;
}

sf_status operate_file(GuestOwner& self, FrameType operation, const guest::FileRequest& request,
                       sf_file_list_completion done, sf_op** op, const sf_error_sink* err) {
  return operate(self, operation, request, done, op, err);
}

sf_status operate_file(GuestOwner& self, FrameType operation, const guest::FileRequest& request,
                       sf_completion done, sf_op** op, const sf_error_sink* err) {
  return operate(self, operation, request, done, op, err);
}

}  // namespace sandforge::guest_link

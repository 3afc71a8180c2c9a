#include "plugin/abi_files.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plugin/abi_call.hpp"
#include "plugin/file_events.hpp"
#include "plugin/members.hpp"
#include "plugin/read_list.hpp"

namespace sandforge::plugin {
namespace {

constexpr std::size_t kMostPath = 16 * 1024;
constexpr std::size_t kMostFiles = 1U << 18;
constexpr std::size_t kMostListed = std::size_t{64} << 20;  // bytes of their paths and targets

Error no_files(const char* name) {
  return Error(Status::unsupported, std::string("this provider does not serve ") + name,
               std::string("feature.") + name);
}

std::optional<Error> check_path(const std::string& path) {
  if (!path.empty() && path.find('\0') == std::string::npos) return std::nullopt;
  return Error(Status::invalid, path.empty() ? "the path is empty" : "the path contains a NUL byte",
               "file.invalid");
}

FileInfo read_file_info(const sf_file_info& raw) {
  FileInfo out;
  out.path = std::string(view(raw.path).substr(0, kMostPath));
  if (raw.kind <= SF_FILE_SYMLINK) out.kind = static_cast<FileKind>(raw.kind);
  out.mode = raw.mode & 07777;
  out.size = raw.size;
  out.modified_at_ns = raw.modified_at;
  if (raw.link_target.ptr != nullptr)
    out.link_target = std::string(view(raw.link_target).substr(0, kMostPath));
  return out;
}

// A list comes in pieces: only the last ends the call.
class ListCall final : public Call<std::vector<FileInfo>> {
 public:
  using Call<std::vector<FileInfo>>::Call;

  // Called by the plugin. Nothing: more follow.
  std::optional<Result<std::vector<FileInfo>>> add(const sf_file_info* first, std::size_t count,
                                                   std::size_t stride, bool more) {
    const std::lock_guard lock(mutex_);
    if (!failure_) {
      auto piece = read_list(
          plugin(), "files", first, count, stride, kMostFiles - files_.size(),
          [](const sf_file_info* item) { return SF_HAS(item, link_target); },
          [this](const sf_file_info& item) {
            bytes_ +=
                std::min(item.path.len, kMostPath) + std::min(item.link_target.len, kMostPath);
            return bytes_ > kMostListed ? FileInfo() : read_file_info(item);
          });
      if (piece && bytes_ > kMostListed)
        piece = Error(Status::invalid,
                      fmt::format("the list of files has more than {} bytes", kMostListed),
                      "file.too_large");
      if (piece) {
        files_.insert(files_.end(), std::make_move_iterator(piece->begin()),
                      std::make_move_iterator(piece->end()));
      } else {
        failure_ = std::move(piece).error();
        files_ = {};
        cancel();
      }
    }
    if (more) return std::nullopt;
    if (failure_) return Result<std::vector<FileInfo>>(*failure_);
    return Result<std::vector<FileInfo>>(std::move(files_));
  }

 private:
  std::mutex mutex_;
  std::vector<FileInfo> files_;
  std::size_t bytes_ = 0;
  std::optional<Error> failure_;
};

void done_files(void* ctx, const sf_error* error, const sf_file_info* first, std::size_t count,
                std::size_t stride, std::uint32_t more) noexcept {
  using Files = std::vector<FileInfo>;
  const bool last = error != nullptr || more == 0;
  const auto object = object_of(ctx, &Call<Files>::kKind, last, "files.list.done");
  if (!object) return;
  const auto call = std::static_pointer_cast<Call<Files>>(object);
  try {
    if (error != nullptr) return call->finish(copy_error(call->plugin(), error, call->what()));
    auto whole = static_cast<ListCall&>(*call).add(first, count, stride, !last);
    if (whole) call->finish(std::move(*whole));
  } catch (...) {
    call->plugin().faults.report(Fault::bad_value, "a list of files could not be copied");
    if (last)
      call->finish(
          Error(Status::internal, "a list of files could not be copied: " + describe_exception()));
  }
}

template <class F>
void with_file(void* ctx, bool last, const char* what, F&& f) noexcept {
  const auto events =
      std::static_pointer_cast<FileEvents>(object_of(ctx, &FileEvents::kKind, last, what));
  if (!events) return;
  try {
    f(*events);
  } catch (...) {
    events->oops();
  }
}

class AbiFileStream final : public FileStreamBackend {
 public:
  AbiFileStream(std::shared_ptr<SandboxCore> core, std::shared_ptr<FileEvents> events,
                sf_stream* stream)
      : core_(std::move(core)), events_(std::move(events)), stream_(stream) {}
  // On the lane, like all that is released; whoever drops it may be anywhere.
  ~AbiFileStream() override {
    core_->lane.post([core = core_, events = events_, stream = stream_] {
      events->let_go();
      if (!events->over()) call_value(core->plugin, "stream.cancel", stream->vtbl->cancel, stream);
      events->set_stream(nullptr);
      call_value(core->plugin, "stream.release", stream->vtbl->release, stream);
    });
  }
  AbiFileStream(const AbiFileStream&) = delete;
  AbiFileStream& operator=(const AbiFileStream&) = delete;

  void grant(std::uint64_t bytes) noexcept override {
    events_->add_credit(bytes);
    call_value(core_->plugin, "stream.grant", stream_->vtbl->grant, stream_, bytes);
  }
  Result<std::size_t> write(Bytes data) override {
    if (auto good = need_lane(core_->lane, "stream.write"); !good) return std::move(good).error();
    std::size_t accepted = 0;
    const sf_bytes bytes{reinterpret_cast<const std::uint8_t*>(data.data()), data.size()};
    auto written = call_status(core_->plugin, "stream.write", stream_->vtbl->write, stream_, bytes,
                               std::uint32_t{0}, &accepted);
    if (!written) return std::move(written).error();
    if (accepted <= data.size()) return accepted;
    core_->plugin.faults.report(Fault::bad_value, "write accepted more than it was given");
    return crashed(core_->plugin, "write accepted more than it was given");
  }
  Result<void> shutdown_write() override {
    if (auto good = need_lane(core_->lane, "stream.shutdown_write"); !good) return good;
    return call_status(core_->plugin, "stream.shutdown_write", stream_->vtbl->shutdown_write,
                       stream_);
  }
  void cancel() noexcept override {
    call_value(core_->plugin, "stream.cancel", stream_->vtbl->cancel, stream_);
  }

 private:
  const std::shared_ptr<SandboxCore> core_;
  const std::shared_ptr<FileEvents> events_;
  sf_stream* const stream_;
};

class AbiFiles final : public FilesBackend {
 public:
  explicit AbiFiles(std::shared_ptr<SandboxCore> core) : core_(std::move(core)) {}

  std::shared_ptr<Pending> stat(std::string path, Handler<FileInfo> done) override {
    Handler<std::vector<FileInfo>> one =
        [core = core_, done = std::move(done)](Result<std::vector<FileInfo>> all) mutable {
          if (!all) return std::move(done)(std::move(all).error());
          if (all->size() == 1) return std::move(done)(std::move(all->front()));
          core->plugin.faults.report(Fault::bad_value, "one file was asked for");
          std::move(done)(
              crashed(core->plugin, fmt::format("it described {} files, not one", all->size())));
        };
    return start_list("files.stat", path, std::move(one), [&](void* ctx, sf_op** op) {
      return call_status(core_->plugin, "files.stat", table().stat, core_->raw, to_bytes(path),
                         sf_file_list_completion{ctx, &done_files}, op);
    });
  }
  std::shared_ptr<Pending> list(std::string path, std::uint32_t depth,
                                Handler<std::vector<FileInfo>> done) override {
    return start_list("files.list", path, std::move(done), [&](void* ctx, sf_op** op) {
      return call_status(core_->plugin, "files.list", table().list, core_->raw, to_bytes(path),
                         depth, sf_file_list_completion{ctx, &done_files}, op);
    });
  }

  Stream read(std::string path, const ReadOptions& options,
              std::shared_ptr<FileSink> sink) override {
    return open("files.read", path, FileEvents::Content::bytes, options.window, std::move(sink),
                [&](const sf_stream_events* events, sf_stream** stream) {
                  return call_status(core_->plugin, "files.read", table().read, core_->raw,
                                     to_bytes(path), options.offset,
                                     options.length.value_or(SF_NONE), options.window, events,
                                     stream);
                });
  }
  Stream write(std::string path, const WriteOptions& options,
               std::shared_ptr<FileSink> sink) override {
    return open("files.write", path, FileEvents::Content::none, 0, std::move(sink),
                [&](const sf_stream_events* events, sf_stream** stream) {
                  return call_status(core_->plugin, "files.write", table().write, core_->raw,
                                     to_bytes(path), options.mode,
                                     options.create_parents ? SF_FILE_CREATE_PARENTS : 0U, events,
                                     stream);
                });
  }
  Stream watch(std::string path, bool recursive, std::uint64_t window,
               std::shared_ptr<FileSink> sink) override {
    if (!SF_HAS_FN(&table(), watch)) return no_files("files.watch");
    return open("files.watch", path, FileEvents::Content::messages, window, std::move(sink),
                [&](const sf_stream_events* events, sf_stream** stream) {
                  return call_status(core_->plugin, "files.watch", table().watch, core_->raw,
                                     to_bytes(path), recursive ? SF_WATCH_RECURSIVE : 0U, window,
                                     events, stream);
                });
  }

  std::shared_ptr<Pending> make_directory(std::string path, MakeDirectoryOptions options,
                                          Handler<void> done) override {
    return start("files.make_directory", path, std::move(done), [&](void* ctx, sf_op** op) {
      return call_status(core_->plugin, "files.make_directory", table().make_directory, core_->raw,
                         to_bytes(path), options.mode,
                         options.create_parents ? SF_FILE_CREATE_PARENTS : 0U,
                         sf_completion{ctx, &done_void}, op);
    });
  }
  std::shared_ptr<Pending> move(std::string from, std::string to, bool replace,
                                Handler<void> done) override {
    return start("files.move", from, std::move(done), [&](void* ctx, sf_op** op) -> Result<void> {
      if (auto bad = check_path(to)) return *std::move(bad);
      return call_status(core_->plugin, "files.move", table().move, core_->raw, to_bytes(from),
                         to_bytes(to), replace ? SF_FILE_REPLACE : 0U,
                         sf_completion{ctx, &done_void}, op);
    });
  }
  std::shared_ptr<Pending> remove(std::string path, bool tree, Handler<void> done) override {
    return start("files.remove", path, std::move(done), [&](void* ctx, sf_op** op) {
      return call_status(core_->plugin, "files.remove", table().remove, core_->raw, to_bytes(path),
                         tree ? SF_FILE_REMOVE_TREE : 0U, sf_completion{ctx, &done_void}, op);
    });
  }

 private:
  const sf_files_ext& table() const noexcept { return *core_->files; }

  template <class Begin>
  std::shared_ptr<Pending> start(const char* what, const std::string& path, Handler<void> done,
                                 Begin&& begin) {
    return run(
        std::make_shared<Call<void>>(core_->plugin, core_->lane, what, core_, std::move(done)),
        path, begin);
  }
  template <class Begin>
  std::shared_ptr<Pending> start_list(const char* what, const std::string& path,
                                      Handler<std::vector<FileInfo>> done, Begin&& begin) {
    std::shared_ptr<Call<std::vector<FileInfo>>> call =
        std::make_shared<ListCall>(core_->plugin, core_->lane, what, core_, std::move(done));
    return run(std::move(call), path, begin);
  }
  template <class T, class Begin>
  std::shared_ptr<Pending> run(std::shared_ptr<Call<T>> call, const std::string& path,
                               Begin&& begin) {
    const char* const what = call->what();
    return run_call(std::move(call), [&](void* ctx, sf_op** op) -> Result<void> {
      if (auto bad = check_path(path)) return *std::move(bad);
      if (auto good = need_lane(core_->lane, what); !good) return good;
      return begin(ctx, op);
    });
  }

  template <class Begin>
  Stream open(const char* what, const std::string& path, FileEvents::Content content,
              std::uint64_t window, std::shared_ptr<FileSink> sink, Begin&& begin) {
    if (auto bad = check_path(path)) return *std::move(bad);
    if (auto good = need_lane(core_->lane, what); !good) return std::move(good).error();
    Plugin& plugin = core_->plugin;
    auto events = std::make_shared<FileEvents>(core_, what, content, window, std::move(sink));
    void* ctx = plugin.tokens.add(events, &FileEvents::kKind);
    if (ctx == nullptr)
      return Error(Status::unavailable, "too many operations of one plugin are running");
    const sf_stream_events raw{
        sizeof(raw), ctx,
        [](void* c, std::uint32_t, std::uint32_t flags, sf_bytes bytes) noexcept {
          with_file(c, false, "files.on_data", [&](FileEvents& e) { e.data(flags, bytes); });
        },
        [](void* c) noexcept {
          with_file(c, false, "files.on_writable", [](FileEvents& e) { e.writable(); });
        },
        [](void* c, const sf_error* error, const sf_stream_end* end) noexcept {
          with_file(c, true, "files.done", [&](FileEvents& e) { e.done(error, end); });
        }};
    sf_stream* stream = nullptr;
    Result<void> outcome = begin(&raw, &stream);
    if (outcome.ok()) {
      if (const char* missing = missing_member(stream)) {
        plugin.faults.report(Fault::missing_value, fmt::format("{}: stream: {}", what, missing));
        outcome = crashed(plugin, fmt::format("the stream lacks {}", missing), "missing_member");
      }
    }
    if (!outcome.ok()) {
      events->refuse();
      plugin.tokens.drop(ctx);
      return std::move(outcome).error();
    }
    events->set_stream(stream);
    return std::shared_ptr<FileStreamBackend>(
        std::make_shared<AbiFileStream>(core_, std::move(events), stream));
  }

  const std::shared_ptr<SandboxCore> core_;
};

}  // namespace

const char* missing_member(const sf_files_ext* table) noexcept {
  if (!SF_HAS_FN(table, stat)) return "stat";
  if (!SF_HAS_FN(table, list)) return "list";
  if (!SF_HAS_FN(table, read)) return "read";
  if (!SF_HAS_FN(table, write)) return "write";
  if (!SF_HAS_FN(table, make_directory)) return "make_directory";
  if (!SF_HAS_FN(table, move)) return "move";
  if (!SF_HAS_FN(table, remove)) return "remove";
  return nullptr;
}

std::unique_ptr<FilesBackend> make_files(std::shared_ptr<SandboxCore> core) {
  return std::make_unique<AbiFiles>(std::move(core));
}

}  // namespace sandforge::plugin

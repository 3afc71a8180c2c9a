#include "sandbox/files_impl.hpp"

#include <utility>

#include "sandbox/lane_handler.hpp"
#include "sandbox/sandbox_impl.hpp"

namespace sandforge {
namespace sandbox {
namespace {

// An operation with one answer, over its tries.
template <class T, class Ask>
class Operation : public std::enable_shared_from_this<Operation<T, Ask>> {
 public:
  Operation(FileAttempts attempts, Handler<T> done, Ask ask)
      : attempts_(std::move(attempts)), done_(std::move(done)), ask_(std::move(ask)) {}

  void start() {
    attempts_.next([self = this->shared_from_this()](Result<FilesBackend*> files) {
      if (!files) return self->finish(std::move(files).error());
      self->ask_(**files,
                 Handler<T>([self](Result<T> result) { self->answer(std::move(result)); }));
    });
  }

 private:
  void answer(Result<T> result) {
    if (result) return finish(std::move(result));
    Error error = std::move(result).error();
    if (attempts_.again(error)) return start();
    finish(std::move(error));
  }
  void finish(Result<T> result) {
    attempts_.end();
    auto done = std::move(done_);
    std::move(done)(std::move(result));
  }

  FileAttempts attempts_;
  Handler<T> done_;
  Ask ask_;
};

}  // namespace

template <class T, class Ask>
void FilesImpl::run(Handler<T> done, Ask ask) {
  auto operation = std::make_shared<Operation<T, Ask>>(attempts(), std::move(done), std::move(ask));
  post(lane_, [operation] { operation->start(); });
}

void FilesImpl::async_stat(std::string path, Handler<FileInfo> done) {
  run(std::move(done), [path = std::move(path)](FilesBackend& files, Handler<FileInfo> next) {
    files.stat(path, std::move(next));
  });
}

void FilesImpl::async_list(std::string path, std::uint32_t depth,
                           Handler<std::vector<FileInfo>> done) {
  run(std::move(done),
      [path = std::move(path), depth](FilesBackend& files, Handler<std::vector<FileInfo>> next) {
        files.list(path, depth, std::move(next));
      });
}

void FilesImpl::async_make_directory(std::string path, MakeDirectoryOptions options,
                                     Handler<void> done) {
  run(std::move(done), [path = std::move(path), options](FilesBackend& files, Handler<void> next) {
    files.make_directory(path, options, std::move(next));
  });
}

void FilesImpl::async_move(std::string from, std::string to, bool replace, Handler<void> done) {
  run(std::move(done), [from = std::move(from), to = std::move(to), replace](FilesBackend& files,
                                                                             Handler<void> next) {
    files.move(from, to, replace, std::move(next));
  });
}

void FilesImpl::async_remove(std::string path, bool tree, Handler<void> done) {
  run(std::move(done), [path = std::move(path), tree](FilesBackend& files, Handler<void> next) {
    files.remove(path, tree, std::move(next));
  });
}

void FilesImpl::async_open(std::string path, ReadOptions options,
                           Handler<std::shared_ptr<FileReader>> done) {
  if (options.window == 0) options.window = 1;
  auto state =
      std::make_shared<ReadState>(lane_, attempts(), std::move(path), options, std::move(done));
  post(lane_, [state] { state->begin(); });
}

void FilesImpl::async_create(std::string path, WriteOptions options,
                             Handler<std::shared_ptr<FileWriter>> done) {
  auto state =
      std::make_shared<WriteState>(lane_, attempts(), std::move(path), options, std::move(done));
  post(lane_, [state] { state->begin(); });
}

void FilesImpl::async_watch(std::string path, bool recursive,
                            std::function<void(const FileEvent&)> on_event,
                            Handler<std::shared_ptr<FileWatch>> done) {
  auto state = std::make_shared<WatchState>(
      lane_, FileAttempts(host_, feature::kFilesWatch, "watching files"), std::move(path),
      recursive, std::move(on_event), std::move(done));
  post(lane_, [state] { state->begin(); });
}

std::shared_ptr<Files> SandboxImpl::files() {
  return std::make_shared<FilesImpl>(lane_, self());
}

}  // namespace sandbox

// ---- Whole files, and the blocking forms

namespace {

struct WholeRead : std::enable_shared_from_this<WholeRead> {
  std::shared_ptr<FileReader> reader;
  std::uint64_t limit = 0;
  std::string bytes;
  Handler<std::string> done;

  void next() {
    reader->async_read([self = shared_from_this()](Result<std::string> piece) {
      if (!piece) return std::move(self->done)(std::move(piece).error());
      if (piece->empty()) return std::move(self->done)(std::move(self->bytes));
      if (piece->size() > self->limit - self->bytes.size())
        return std::move(self->done)(Error(
            Status::no_space, "the file has more than " + std::to_string(self->limit) + " bytes",
            "file.too_large"));
      self->bytes += *piece;
      self->next();
    });
  }
};

}  // namespace

std::string_view to_string(FileKind kind) noexcept {
  switch (kind) {
    case FileKind::regular:
      return "file";
    case FileKind::directory:
      return "directory";
    case FileKind::symlink:
      return "symlink";
    case FileKind::other:
      break;
  }
  return "other";
}

void Files::async_read_file(std::string path, std::uint64_t limit, Handler<std::string> done) {
  auto whole = std::make_shared<WholeRead>();
  whole->limit = limit;
  whole->done = std::move(done);
  async_open(std::move(path), {}, [whole](Result<std::shared_ptr<FileReader>> reader) {
    if (!reader) return std::move(whole->done)(std::move(reader).error());
    whole->reader = *std::move(reader);
    whole->next();
  });
}

void Files::async_write_file(std::string path, std::string data, WriteOptions options,
                             Handler<void> done) {
  async_create(std::move(path), options,
               [data = std::move(data),
                done = std::move(done)](Result<std::shared_ptr<FileWriter>> made) mutable {
                 if (!made) return std::move(done)(std::move(made).error());
                 const auto writer = *std::move(made);
                 writer->async_write(std::move(data), [writer, done = std::move(done)](
                                                          Result<void> written) mutable {
                   if (written)
                     return writer->async_commit(
                         [writer, done = std::move(done)](Result<void> result) mutable {
                           std::move(done)(std::move(result));
                         });
                   // What was not written must not take the old file's place.
                   writer->cancel();
                   std::move(done)(std::move(written));
                 });
               });
}

FileInfo Files::stat(std::string path) {
  return await_result<FileInfo>([&](auto done) { async_stat(std::move(path), std::move(done)); });
}

std::vector<FileInfo> Files::list(std::string path, std::uint32_t depth) {
  return await_result<std::vector<FileInfo>>(
      [&](auto done) { async_list(std::move(path), depth, std::move(done)); });
}

std::shared_ptr<FileReader> Files::open(std::string path, ReadOptions options) {
  return await_result<std::shared_ptr<FileReader>>(
      [&](auto done) { async_open(std::move(path), options, std::move(done)); });
}

std::shared_ptr<FileWriter> Files::create(std::string path, WriteOptions options) {
  return await_result<std::shared_ptr<FileWriter>>(
      [&](auto done) { async_create(std::move(path), options, std::move(done)); });
}

void Files::make_directory(std::string path, MakeDirectoryOptions options) {
  await_result<void>(
      [&](auto done) { async_make_directory(std::move(path), options, std::move(done)); });
}

void Files::move(std::string from, std::string to, bool replace) {
  await_result<void>(
      [&](auto done) { async_move(std::move(from), std::move(to), replace, std::move(done)); });
}

void Files::remove(std::string path, bool tree) {
  await_result<void>([&](auto done) { async_remove(std::move(path), tree, std::move(done)); });
}

std::shared_ptr<FileWatch> Files::watch(std::string path, bool recursive,
                                        std::function<void(const FileEvent&)> on_event) {
  return await_result<std::shared_ptr<FileWatch>>([&](auto done) {
    async_watch(std::move(path), recursive, std::move(on_event), std::move(done));
  });
}

std::string Files::read_file(std::string path, std::uint64_t limit) {
  return await_result<std::string>(
      [&](auto done) { async_read_file(std::move(path), limit, std::move(done)); });
}

void Files::write_file(std::string path, std::string data, WriteOptions options) {
  await_result<void>([&](auto done) {
    async_write_file(std::move(path), std::move(data), options, std::move(done));
  });
}

std::string FileReader::read() {
  return await_result<std::string>([&](auto done) { async_read(std::move(done)); });
}

void FileWriter::write(std::string data) {
  await_result<void>([&](auto done) { async_write(std::move(data), std::move(done)); });
}

void FileWriter::commit() {
  await_result<void>([&](auto done) { async_commit(std::move(done)); });
}

}  // namespace sandforge

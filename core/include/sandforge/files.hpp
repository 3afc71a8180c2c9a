// The files of a sandbox, where its provider serves them (features "files", "files.watch").
//
//   auto files = sandbox->files();
//   files->write_file("notes/today", "hello\n", with_parents);
//   std::string text = files->read_file("notes/today");
//
// Paths are bytes without NUL: relative ones start at the sandbox's working directory, absolute
// ones are the sandbox's own. What leads outside of what the provider serves, by `..` or by a
// symbolic link, is refused as forbidden, "file.outside".
// Source: sandforge/ext/files.h: the same in C++.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/backend.hpp"

namespace sandforge {

enum class FileKind : std::uint32_t { other = 0, regular = 1, directory = 2, symlink = 3 };
std::string_view to_string(FileKind kind) noexcept;

struct FileInfo {
  std::string path;
  FileKind kind = FileKind::other;
  std::uint32_t mode = 0;  // permission bits
  std::uint64_t size = 0;
  std::int64_t modified_at_ns = 0;         // since the Unix epoch
  std::optional<std::string> link_target;  // of a symbolic link
};

// A change, as a watch tells it.
struct FileEvent {
  // "create" (also what was moved there), "write", "remove", "rename" (moved away), "attribute",
  // "overflow" (others happened that are not told); a provider may have more.
  std::string event;
  std::string path;  // as it was asked for, with the way from there
};

struct ReadOptions {
  ReadOptions() = default;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;  // absent: to the end
  std::uint64_t window = 1U << 20;      // bytes that are fetched ahead, at least 1
};

struct WriteOptions {
  WriteOptions() = default;
  std::uint32_t mode = 0;       // 0: 0644, or the old file's without the bits that lend rights
  bool create_parents = false;  // the directories on the way, with mode 0755
};

struct MakeDirectoryOptions {
  MakeDirectoryOptions() = default;
  std::uint32_t mode = 0;       // 0: 0755
  bool create_parents = false;  // and a directory that is there is fine
};

// A file that is read. Dropping it ends that.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // The next bytes; none: the end of the file, or of the length. One call at a time: conflict.
  virtual void async_read(Handler<std::string> done) = 0;
  virtual void cancel() = 0;
  std::string read();
};

// A file that is written, and takes its place in one step. Dropping it before it was committed
// leaves the old one, and nothing else.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  // All of data was taken: waits for room. Calls are taken one after the other. no_space,
  // "file.queue": others wait already, and with this one they were more than 64 MiB; it was not
  // taken, and a commit would leave it out.
  virtual void async_write(std::string data, Handler<void> done) = 0;
  // After what was written: the file is in its place. An error leaves the old one, unless it says
  // may_have_started.
  virtual void async_commit(Handler<void> done) = 0;
  virtual void cancel() = 0;
  void write(std::string data);
  void commit();
};

// Changes that are told. Dropping it ends that.
class FileWatch {
 public:
  virtual ~FileWatch() = default;
  // The end: an error, or none where what was watched is gone. At most one call.
  virtual void async_wait(Handler<void> done) = 0;
};

// Thread rule: every function from any thread, the blocking ones not on a thread of the Runtime;
// handlers run on the sandbox's lane. Every operation starts the sandbox as a command does, counts
// as its use, and fails with gone when the machine no longer exists.
//
// Errors: not_found, already_exists, forbidden (also "file.outside"), no_space, invalid
// ("file.no_directory", "file.is_directory", "file.not_empty", "file.too_large", …), unsupported
// ("feature.files").
class Files {
 public:
  virtual ~Files() = default;

  // A symbolic link is described, not followed.
  virtual void async_stat(std::string path, Handler<FileInfo> done) = 0;
  // Entries of a directory, to a depth (1: its own), a directory before what is in it.
  // "file.too_large": of more than 262144 entries, or more than 64 MiB of them.
  virtual void async_list(std::string path, std::uint32_t depth,
                          Handler<std::vector<FileInfo>> done) = 0;
  // Answers with the first bytes: a file that cannot be read is an error here.
  virtual void async_open(std::string path, ReadOptions options,
                          Handler<std::shared_ptr<FileReader>> done) = 0;
  // A symbolic link at the path is replaced. A file that cannot be written is an error here, or of
  // a write or of the commit.
  virtual void async_create(std::string path, WriteOptions options,
                            Handler<std::shared_ptr<FileWriter>> done) = 0;
  virtual void async_make_directory(std::string path, MakeDirectoryOptions options,
                                    Handler<void> done) = 0;
  // already_exists: something is at `to`, and it was not said to replace it.
  virtual void async_move(std::string from, std::string to, bool replace, Handler<void> done) = 0;
  // A file, a link or an empty directory; tree: a directory with all that is in it. After an error
  // a part of the tree may be gone.
  virtual void async_remove(std::string path, bool tree, Handler<void> done) = 0;
  // Answers when all is watched. on_event: on the lane, never two at once; it must not block.
  virtual void async_watch(std::string path, bool recursive,
                           std::function<void(const FileEvent&)> on_event,
                           Handler<std::shared_ptr<FileWatch>> done) = 0;

  // The whole of a file, in memory. no_space: it has more than `limit` bytes.
  void async_read_file(std::string path, std::uint64_t limit, Handler<std::string> done);
  // Of any size. An error leaves the old file, as FileWriter::async_commit.
  void async_write_file(std::string path, std::string data, WriteOptions options,
                        Handler<void> done);

  // Blocking forms: throw the Error.
  FileInfo stat(std::string path);
  std::vector<FileInfo> list(std::string path, std::uint32_t depth = 1);
  std::shared_ptr<FileReader> open(std::string path, ReadOptions options = {});
  std::shared_ptr<FileWriter> create(std::string path, WriteOptions options = {});
  void make_directory(std::string path, MakeDirectoryOptions options = {});
  void move(std::string from, std::string to, bool replace = false);
  void remove(std::string path, bool tree = false);
  std::shared_ptr<FileWatch> watch(std::string path, bool recursive,
                                   std::function<void(const FileEvent&)> on_event);
  std::string read_file(std::string path, std::uint64_t limit = std::uint64_t{64} << 20);
  void write_file(std::string path, std::string data, WriteOptions options = {});
};

// ---- What core needs of a provider: see backend.hpp

// Events of one stream. Held by the backend until done returned.
class FileSink {
 public:
  virtual ~FileSink() = default;
  virtual void on_data(Bytes data) = 0;                   // of read; borrowed for the call
  virtual void on_message(std::string_view message) = 0;  // of watch, whole; borrowed
  virtual void on_writable() = 0;                         // there is room again after a short write
  virtual void done(std::optional<Error> error, StreamEnd end) = 0;  // the last call
};

// Dropping it before its done cancels it.
class FileStreamBackend {
 public:
  virtual ~FileStreamBackend() = default;
  virtual void grant(std::uint64_t bytes) noexcept = 0;  // [any]
  virtual Result<std::size_t> write(Bytes data) = 0;     // how many bytes were taken
  virtual Result<void> shutdown_write() = 0;             // all was written; idempotent
  virtual void cancel() noexcept = 0;                    // [any]
};

// gone: the machine no longer exists and nothing happened. conflict: it is stopped and nothing
// happened. What a provider lacks is unsupported, "feature.NAME".
class FilesBackend {
 public:
  using Stream = Result<std::shared_ptr<FileStreamBackend>>;
  virtual ~FilesBackend() = default;
  virtual std::shared_ptr<Pending> stat(std::string path, Handler<FileInfo> done) = 0;
  virtual std::shared_ptr<Pending> list(std::string path, std::uint32_t depth,
                                        Handler<std::vector<FileInfo>> done) = 0;
  virtual Stream read(std::string path, const ReadOptions& options,
                      std::shared_ptr<FileSink> sink) = 0;
  virtual Stream write(std::string path, const WriteOptions& options,
                       std::shared_ptr<FileSink> sink) = 0;
  virtual std::shared_ptr<Pending> make_directory(std::string path, MakeDirectoryOptions options,
                                                  Handler<void> done) = 0;
  virtual std::shared_ptr<Pending> move(std::string from, std::string to, bool replace,
                                        Handler<void> done) = 0;
  virtual std::shared_ptr<Pending> remove(std::string path, bool tree, Handler<void> done) = 0;
  // Messages are JSON objects {"event","path"}, the first one {"event":"start"}.
  virtual Stream watch(std::string path, bool recursive, std::uint64_t window,
                       std::shared_ptr<FileSink> sink) = 0;
};

namespace feature {
inline constexpr std::string_view kFiles = "files";             // Sandbox::files
inline constexpr std::string_view kFilesWatch = "files.watch";  // Files::async_watch
}  // namespace feature

}  // namespace sandforge

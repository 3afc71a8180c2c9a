// Reading a file, and writing one that takes its place when it is whole.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "connection.hpp"
#include "files.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::guest {
namespace {

constexpr int kStepReads = 4;
constexpr std::uint64_t kWriteWindow = 1024 * 1024;
constexpr std::uint64_t kGrant = kWriteWindow / 4;
constexpr mode_t kFileMode = 0644;
constexpr int kNameTries = 16;

class ReadTask final : public FileTask {
 public:
  ReadTask(Connection& connection, std::uint64_t channel, posix::Fd file,
           const wire::FileRequest& request)
      : FileTask(connection, channel),
        file_(std::move(file)),
        path_(request.path),
        at_(request.offset),
        left_(std::min(request.length, wire::kToEnd - request.offset)),
        credit_(request.window) {}

  Step step() override {
    static char bytes[wire::kMaxPayload];
    for (int i = 0; i < kStepReads; ++i) {
      if (left_ == 0) return end(moved_);
      const auto want =
          static_cast<std::size_t>(std::min({left_, credit_, wire::kMaxPayload + 0UL}));
      // An end of the file is told also where nothing may be sent.
      const ssize_t n =
          ::pread(file_.get(), bytes, std::max<std::size_t>(want, 1), static_cast<off_t>(at_));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(errno, "cannot read", path_);
      if (n == 0) return end(moved_);
      if (want == 0) return Step::wait;
      const auto size = static_cast<std::uint64_t>(n);
      connection().send(wire::FrameType::file_bytes, channel(), at_, {bytes, size});
      at_ += size;
      moved_ += size;
      left_ -= size;
      credit_ -= size;
    }
    return Step::more;
  }

  void add_credit(std::uint64_t bytes) override {
    credit_ += std::min(bytes, wire::kToEnd - credit_);
    wake();
  }

 private:
  const posix::Fd file_;
  const std::string path_;
  std::uint64_t at_;
  std::uint64_t left_;
  std::uint64_t credit_;
  std::uint64_t moved_ = 0;
};

// The file has no name until it is whole, where the file system can do that; else one of its own,
// beside its place.
class WriteTask final : public FileTask {
 public:
  WriteTask(Connection& connection, std::uint64_t channel, posix::Fd folder, std::string name,
            const wire::FileRequest& request)
      : FileTask(connection, channel),
        folder_(std::move(folder)),
        name_(std::move(name)),
        path_(request.path),
        mode_(static_cast<mode_t>(request.mode)) {}
  ~WriteTask() override { WriteTask::drop(); }
  void drop() override {
    if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
    temporary_.clear();
    file_.reset();
  }

  // False: that was told.
  bool start() {
    struct stat st = {};
    const bool there = ::fstatat(folder_.get(), name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && S_ISDIR(st.st_mode)) {
      fail(EISDIR, "cannot write", path_);
      return false;
    }
    // Other bytes do not inherit the rights that the old ones lent.
    if (mode_ == 0) mode_ = there && S_ISREG(st.st_mode) ? st.st_mode & 0777 : kFileMode;
    file_.reset(::openat(folder_.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (!file_ && !make_named()) {
      fail(errno, "cannot write", path_);
      return false;
    }
    grant(kWriteWindow);
    return true;
  }

  bool data(std::string_view bytes) override {
    if (bytes.size() > credit_) return false;
    credit_ -= bytes.size();
    written_ += bytes.size();
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        fail(errno, "cannot write", path_);
        return true;
      }
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    if (credit_ <= kWriteWindow - kGrant) grant(kWriteWindow - credit_);
    return true;
  }

  bool commit() override {
    if (::fchmod(file_.get(), mode_) != 0 || !(temporary_.empty() ? give_name() : true) ||
        ::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0) {
      fail(errno, "cannot write", path_);
      return true;
    }
    temporary_.clear();
    end(written_);
    return true;
  }

 private:
  bool make_named() {
    for (int tries = 0; tries < kNameTries; ++tries) {
      const std::string name = ".sandforge-" + posix::random_hex(8);
      file_.reset(::openat(folder_.get(), name.c_str(),
                           O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (file_) temporary_ = name;
      if (file_ || errno != EEXIST) break;
    }
    return static_cast<bool>(file_);
  }

  // A link cannot take the place of something: it gets a name beside it for a moment.
  bool give_name() {
    const std::string self = "/proc/self/fd/" + std::to_string(file_.get());
    for (int tries = 0; tries < kNameTries; ++tries) {
      const std::string name = ".sandforge-" + posix::random_hex(8);
      if (::linkat(AT_FDCWD, self.c_str(), folder_.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        temporary_ = name;
        return true;
      }
      if (errno != EEXIST) break;
    }
    return false;
  }

  void grant(std::uint64_t bytes) {
    credit_ += bytes;
    connection().send(wire::FrameType::file_credit, channel(), bytes);
  }

  const posix::Fd folder_;
  const std::string name_;
  const std::string path_;
  mode_t mode_;
  posix::Fd file_;
  std::string temporary_;  // empty: it has no name
  std::uint64_t credit_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace

std::shared_ptr<FileTask> read_file(Connection& connection, std::uint64_t channel, posix::Fd file,
                                    const wire::FileRequest& request) {
  return std::make_shared<ReadTask>(connection, channel, std::move(file), request);
}

std::shared_ptr<FileTask> write_file(Connection& connection, std::uint64_t channel,
                                     posix::Fd folder, std::string name,
                                     const wire::FileRequest& request) {
  auto task =
      std::make_shared<WriteTask>(connection, channel, std::move(folder), std::move(name), request);
  return task->start() ? task : nullptr;
}

}  // namespace sandforge::guest

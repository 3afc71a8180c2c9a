#include "tree_copy.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

namespace sandforge::local {
namespace {

constexpr int kCopies = 5;                             // of a file that changes while it is copied
constexpr std::size_t kPiece = std::size_t{16} << 20;  // between two looks at the flag
constexpr std::size_t kBuffer = std::size_t{256} << 10;

using Result = std::optional<Failure>;

// What is gone, or has become something else, is left out.
bool vanished(int error) noexcept {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENXIO;
}

bool same(const timespec& a, const timespec& b) noexcept {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool unchanged(const struct stat& a, const struct stat& b) noexcept {
  return a.st_size == b.st_size && same(a.st_mtim, b.st_mtim) && same(a.st_ctim, b.st_ctim);
}

// A folder below another one, each component by itself and none through a link. Empty, with errno,
// where it is not there.
Descriptor open_beneath(int root, const std::string& path) {
  Descriptor at(::openat(root, ".", kFolder));
  std::string_view rest = path;
  while (at && !rest.empty()) {
    const auto slash = std::min(rest.find('/'), rest.size());
    const std::string name(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    at = Descriptor(::openat(at.get(), name.c_str(), kFolder));
  }
  return at;
}

std::string joined(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

class TreeCopy {
 public:
  TreeCopy(int from, int to, const std::atomic<bool>& cancelled, CopyReport& report)
      : from_(from), to_(to), cancelled_(cancelled), report_(report) {}

  // Deep trees need no deep stack: folders wait in a list.
  Result run() {
    struct stat top {};
    if (::fstat(from_, &top) != 0) return failure("look at", "");
    device_ = top.st_dev;
    std::vector<std::string> waiting{""};
    while (!waiting.empty()) {
      const std::string path = std::move(waiting.back());
      waiting.pop_back();
      if (auto failed = copy_folder(path, waiting)) return failed;
    }
    return finish_folders();
  }

 private:
  struct Folder {
    std::string path;
    struct stat as;
  };
  using Inode = std::pair<dev_t, ino_t>;

  static Result failure(const char* what, const std::string& path) {
    return system_failure(errno, std::string("cannot ") + what, path.empty() ? "the folder" : path);
  }

  Result copy_folder(const std::string& path, std::vector<std::string>& waiting) {
    Descriptor source = open_beneath(from_, path);
    const Descriptor target = open_beneath(to_, path);
    if (!target) return failure("open the copy of", path);
    if (!source && vanished(errno)) return {};
    Folder folder{path, {}};
    if (!source || ::fstat(source.get(), &folder.as) != 0) return failure("open", path);
    folders_.push_back(folder);
    const int fd = source.get();
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(fd), &::closedir);
    if (!entries) return failure("read", path);
    static_cast<void>(source.release());
    for (;;) {
      if (cancelled_.load(std::memory_order_relaxed)) return copy_cancelled();
      errno = 0;
      const dirent* entry = ::readdir(entries.get());
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (auto failed = copy_entry(fd, target.get(), name, joined(path, name), waiting))
        return failed;
    }
    if (errno != 0) return failure("read", path);
    return {};
  }

  Result copy_entry(int from, int to, const std::string& name, const std::string& path,
                    std::vector<std::string>& waiting) {
    struct stat as {};
    if (::fstatat(from, name.c_str(), &as, AT_SYMLINK_NOFOLLOW) != 0) {
      if (vanished(errno)) return {};
      return failure("look at", path);
    }
    switch (as.st_mode & S_IFMT) {
      case S_IFREG:
        return copy_file(from, to, name, path);
      case S_IFLNK:
        return copy_link(from, to, name, path, as);
      case S_IFDIR:
        if (::mkdirat(to, name.c_str(), 0700) != 0) return failure("make the copy of", path);
        if (as.st_dev == device_) {
          waiting.push_back(path);
        } else {
          report_.foreign.note(path);
        }
        return {};
      default:
        report_.special.note(path);
        return {};
    }
  }

  Result copy_link(int from, int to, const std::string& name, const std::string& path,
                   const struct stat& as) {
    std::array<char, 4097> text{};
    const auto length = ::readlinkat(from, name.c_str(), text.data(), text.size() - 1);
    if (length < 0) {
      if (vanished(errno) || errno == EINVAL) return {};
      return failure("read the link", path);
    }
    if (::symlinkat(text.data(), to, name.c_str()) != 0) return failure("make the copy of", path);
    give_owner(to, name.c_str(), as, AT_SYMLINK_NOFOLLOW);
    const timespec times[2] = {as.st_atim, as.st_mtim};
    if (::utimensat(to, name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
      return failure("set the time of the copy of", path);
    return {};
  }

  Result copy_file(int from, int to, const std::string& name, const std::string& path) {
    const Descriptor in(
        ::openat(from, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!in) {
      if (vanished(errno)) return {};
      return failure("open", path);
    }
    struct stat as {};
    if (::fstat(in.get(), &as) != 0) return failure("look at", path);
    if (!S_ISREG(as.st_mode)) return {};  // it has become something else
    const Inode inode{as.st_dev, as.st_ino};
    if (as.st_nlink > 1) {
      const auto known = linked_.find(inode);
      if (known != linked_.end()) return link_to(known->second, to, name, path);
    }
    const Descriptor out(
        ::openat(to, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!out) return failure("make the copy of", path);
    if (auto failed = copy_settled(in.get(), out.get(), as, path)) return failed;
    report_.bytes += static_cast<std::uint64_t>(as.st_size);
    if (as.st_nlink > 1) linked_.emplace(inode, path);
    return finish(out.get(), as, path);
  }

  Result link_to(const std::string& first, int to, const std::string& name,
                 const std::string& path) {
    const auto slash = first.rfind('/');
    const bool deep = slash != std::string::npos;
    const Descriptor folder = open_beneath(to_, deep ? first.substr(0, slash) : "");
    const std::string target = deep ? first.substr(slash + 1) : first;
    if (!folder || ::linkat(folder.get(), target.c_str(), to, name.c_str(), 0) != 0)
      return failure("link the copy of", path);
    return {};
  }

  // Until the file is the same before and after; `as` is then what it was.
  Result copy_settled(int in, int out, struct stat& as, const std::string& path) {
    for (int tries = 1;; ++tries) {
      if (auto failed = copy_data(in, out, as.st_size, path)) return failed;
      struct stat now {};
      if (::fstat(in, &now) != 0) return failure("look at", path);
      if (unchanged(as, now)) return {};
      if (tries == kCopies) {
        report_.unsettled.note(path);
        return {};
      }
      as = now;
      if (::ftruncate(out, 0) != 0) return failure("write the copy of", path);
    }
  }

  Result copy_data(int in, int out, off_t size, const std::string& path) {
    if (clones_ && size > 0) {
      if (::ioctl(out, FICLONE, in) == 0) return {};
      clones_ = false;  // nor will this file system share the next one
    }
    for (off_t at = 0; at < size;) {
      const off_t data = ::lseek(in, at, SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;  // a hole up to the end
      const off_t begin = data < 0 ? at : data;
      const off_t hole = data < 0 ? -1 : ::lseek(in, begin, SEEK_HOLE);
      const off_t end = hole < 0 ? size : std::min(hole, size);
      if (begin >= size) break;
      if (auto failed = copy_range(in, out, begin, end, path)) return failed;
      at = std::max(end, begin + 1);
    }
    if (::ftruncate(out, size) != 0) return failure("write the copy of", path);
    return {};
  }

  Result copy_range(int in, int out, off_t begin, off_t end, const std::string& path) {
    off_t from = begin, to = begin;
    while (from < end) {
      if (cancelled_.load(std::memory_order_relaxed)) return copy_cancelled();
      const auto rest = static_cast<std::size_t>(end - from);
      if (in_kernel_) {
        const auto n = ::copy_file_range(in, &from, out, &to, std::min(rest, kPiece), 0);
        if (n == 0) return {};  // it has become shorter
        if (n > 0 || errno == EINTR) continue;
        if (errno != EXDEV && errno != ENOSYS && errno != EINVAL && errno != EOPNOTSUPP &&
            errno != EPERM && errno != EBADF)
          return failure("copy", path);
        in_kernel_ = false;
      }
      if (buffer_.empty()) buffer_.resize(kBuffer);
      const auto n = ::pread(in, buffer_.data(), std::min(rest, kBuffer), from);
      if (n == 0) return {};
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failure("read", path);
      if (auto failed = write_all(out, static_cast<std::size_t>(n), to, path)) return failed;
      from += n;
      to += n;
    }
    return {};
  }

  Result write_all(int out, std::size_t size, off_t at, const std::string& path) {
    for (std::size_t done = 0; done < size;) {
      const auto n =
          ::pwrite(out, buffer_.data() + done, size - done, at + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failure("write the copy of", path);
      done += static_cast<std::size_t>(n);
    }
    return {};
  }

  // Others than root cannot give a file away: then the copy is theirs.
  static void give_owner(int at, const char* name, const struct stat& as, int flags) {
    if (::geteuid() == 0) static_cast<void>(::fchownat(at, name, as.st_uid, as.st_gid, flags) == 0);
  }

  // The owner first: to change it takes set-user-ID away.
  static Result finish(int fd, const struct stat& as, const std::string& path) {
    give_owner(fd, "", as, AT_EMPTY_PATH);
    const timespec times[2] = {as.st_atim, as.st_mtim};
    if (::fchmod(fd, as.st_mode & 07777) != 0 || ::futimens(fd, times) != 0)
      return failure("set mode and time of the copy of", path);
    return {};
  }

  // When nothing is written to them any more, and the inner ones first: one of them may be closed
  // to its owner.
  Result finish_folders() {
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
      if (cancelled_.load(std::memory_order_relaxed)) return copy_cancelled();
      const Descriptor fd = open_beneath(to_, folder->path);
      if (!fd) return failure("open the copy of", folder->path);
      if (auto failed = finish(fd.get(), folder->as, folder->path)) return failed;
    }
    return {};
  }

  const int from_;
  const int to_;
  const std::atomic<bool>& cancelled_;
  CopyReport& report_;
  dev_t device_ = 0;
  bool clones_ = true;
  bool in_kernel_ = true;
  std::vector<char> buffer_;
  std::vector<Folder> folders_;
  std::map<Inode, std::string> linked_;  // files with several names: the first one copied
};

void add_warning(std::vector<std::string>& to, const Lacking& lacking, const char* one,
                 const char* many) {
  if (lacking.count == 0) return;
  to.push_back(std::to_string(lacking.count) + " " + (lacking.count == 1 ? one : many) +
               ", such as " + lacking.example);
}

}  // namespace

Failure copy_cancelled() {
  return Failure{SF_CANCELLED, "local.cancelled", "the copy was cancelled", {}, 0, false};
}

std::vector<std::string> CopyReport::warnings() const {
  std::vector<std::string> out;
  add_warning(out, special, "socket, pipe or device was left out",
              "sockets, pipes and devices were left out");
  add_warning(out, foreign, "folder of another file system is empty in the copy",
              "folders of other file systems are empty in the copy");
  add_warning(out, unsettled,
              "file changed whenever it was copied, and may hold parts of several states",
              "files changed whenever they were copied, and may hold parts of several states");
  return out;
}

std::optional<Failure> copy_tree(int from, int to, const std::atomic<bool>& cancelled,
                                 CopyReport& report) {
  return TreeCopy(from, to, cancelled, report).run();
}

}  // namespace sandforge::local

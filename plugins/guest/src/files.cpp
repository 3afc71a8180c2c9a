#include "files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

#include "connection.hpp"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

namespace sandforge::guest {
namespace {

using wire::ErrorCode;
using wire::FrameType;

constexpr mode_t kDirectoryMode = 0755;

wire::ErrorCode code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
      return ErrorCode::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::not_permitted;
    case ENOTDIR:
      return ErrorCode::no_directory;
    case ENAMETOOLONG:
    case EFBIG:
      return ErrorCode::too_large;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::limit;
    case EBUSY:
    case ETXTBSY:
      return ErrorCode::conflict;
    case EXDEV:
      return ErrorCode::outside;
    case EEXIST:
      return ErrorCode::exists;
    case ENOTEMPTY:
      return ErrorCode::not_empty;
    case EINVAL:
    case ELOOP:
    case EISDIR:
      return ErrorCode::invalid;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::internal;
  }
}

bool is_below(const std::string& path, const std::string& folder, std::string& rest) {
  if (folder == "/") {
    rest = path;
    return true;
  }
  if (path.compare(0, folder.size(), folder) != 0) return false;
  if (path.size() > folder.size() && path[folder.size()] != '/') return false;
  rest = path.substr(folder.size());
  return true;
}

std::string real_path(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) != nullptr ? std::string(buffer) : std::string();
}

// The request, with its paths resolved as far as text goes.
class Call {
 public:
  Call(const ServeOptions& options, Connection& connection, std::uint64_t channel,
       const wire::FileRequest& request)
      : options_(options), connection_(connection), channel_(channel), request_(request) {}

  std::shared_ptr<FileTask> run(FrameType operation) {
    root_path_ = options_.files_root.empty() ? options_.root : options_.files_root;
    if (root_path_.empty()) root_path_ = ".";
    using Link = posix::Beneath::Link;
    if (!root_.open(root_path_, posix::Beneath::Way::best,
                    options_.files_link ? Link::followed : Link::none)) {
      if (errno == ELOOP) errno = EXDEV;  // somebody in the sandbox put a link in its place
      return fail("cannot open", root_path_);
    }
    if (!inside(request_.path, path_)) return nullptr;
    switch (operation) {
      case FrameType::file_stat:
        return stat();
      case FrameType::file_list:
        return list();
      case FrameType::file_read:
        return read();
      case FrameType::file_write:
        return write();
      case FrameType::file_make_directory:
        return make_directory();
      case FrameType::file_move:
        return move();
      case FrameType::file_remove:
        return remove();
      default:
        return watch_files(connection_, channel_, std::move(root_), path_, request_.path, request_);
    }
  }

 private:
  using Task = std::shared_ptr<FileTask>;

  // A path relative to the folder that files are served of. False: it leads outside, which was
  // told.
  bool inside(const std::string& path, std::string& out) {
    if (path.front() == '/') {
      if (is_below(path, root_path_, out) || is_below(path, real_path(root_path_), out)) {
        if (out.find_first_not_of('/') == std::string::npos) out = ".";
        return true;
      }
    } else {
      std::string start;
      const bool same = options_.files_root.empty() || options_.root.empty();
      if (same || is_below(options_.root, options_.files_root, start)) {
        out = start.empty() ? path : start + "/" + path;
        return true;
      }
    }
    tell(EXDEV, "cannot reach", path);
    return false;
  }

  void tell(int error_number, const char* what, const std::string& path) {
    connection_.send_message(FrameType::error, channel_, file_error(error_number, what, path));
  }
  Task fail(const char* what, const std::string& path) {
    tell(errno, what, path);
    return nullptr;
  }
  Task done() {
    connection_.send(FrameType::file_end, channel_);
    return nullptr;
  }
  bool names_root() const {
    return path_.find_first_not_of("/.") == std::string::npos &&
           path_.find("..") == std::string::npos;
  }

  Task stat() {
    wire::FileEntries reply;
    wire::FileEntry& entry = reply.entries.emplace_back();
    std::string name = ".";
    // The folder itself, or what `..` leads to, has no name of its own.
    posix::Fd folder = root_.parent(path_, name);
    if (!folder && errno == EINVAL) {
      name = ".";
      folder = root_.at(path_, O_PATH | O_DIRECTORY);
    }
    if (!folder || !describe_file(folder.get(), name, request_.path, entry))
      return fail("cannot look at", request_.path);
    connection_.send_message(FrameType::file_entries, channel_, reply);
    return nullptr;
  }

  Task list() {
    if (request_.depth == 0) {
      errno = EINVAL;
      return fail("no depth to list", request_.path);
    }
    // What is no directory is told at once, and not by an empty list.
    const posix::Fd folder = root_.at(path_, O_PATH | O_DIRECTORY);
    if (!folder) return fail("cannot list", request_.path);
    return list_files(connection_, channel_, std::move(root_), path_, request_.path,
                      request_.depth);
  }

  Task read() {
    posix::Fd file = root_.at(path_, O_RDONLY);
    struct stat st = {};
    if (!file || ::fstat(file.get(), &st) != 0) return fail("cannot read", request_.path);
    if (!S_ISREG(st.st_mode)) {
      errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
      return fail("cannot read", request_.path);
    }
    return read_file(connection_, channel_, std::move(file), request_);
  }

  Task write() {
    std::string name;
    posix::Fd folder =
        request_.parents ? root_.make_parent(path_, name) : root_.parent(path_, name);
    if (!folder) return fail("cannot write", request_.path);
    return write_file(connection_, channel_, std::move(folder), std::move(name), request_);
  }

  Task make_directory() {
    if (request_.parents && names_root()) return done();
    std::string name;
    const posix::Fd folder =
        request_.parents ? root_.make_parent(path_, name) : root_.parent(path_, name);
    if (!folder) return fail("cannot make", request_.path);
    const mode_t mode = request_.mode != 0 ? static_cast<mode_t>(request_.mode) : kDirectoryMode;
    if (::mkdirat(folder.get(), name.c_str(), mode) != 0) {
      const int error = errno;
      if (error == EEXIST && request_.parents && root_.at(path_, O_PATH | O_DIRECTORY))
        return done();
      errno = error;
      return fail("cannot make", request_.path);
    }
    // Not what the umask left of it.
    const posix::Fd made(
        ::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (made && ::fchmod(made.get(), mode) != 0)
      return fail("cannot set the mode of", request_.path);
    return done();
  }

  Task move() {
    std::string to_path, from_name, to_name;
    if (request_.target.empty()) {
      errno = EINVAL;
      return fail("no path to move to", request_.path);
    }
    if (!inside(request_.target, to_path)) return nullptr;
    const posix::Fd from = root_.parent(path_, from_name);
    if (!from) return fail("cannot move", request_.path);
    const posix::Fd to =
        request_.parents ? root_.make_parent(to_path, to_name) : root_.parent(to_path, to_name);
    if (!to) return fail("cannot move to", request_.target);
    if (rename(from.get(), from_name, to.get(), to_name)) return done();
    // Not outside: on another file system, as far as rename goes.
    if (errno == EXDEV) errno = EOPNOTSUPP;
    struct stat st = {};
    const int error = errno;
    const bool there = ::fstatat(from.get(), from_name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    errno = error;
    return fail("cannot move", there ? request_.target : request_.path);
  }

  bool rename(int from, const std::string& name, int to, const std::string& new_name) {
    if (request_.replace) return ::renameat(from, name.c_str(), to, new_name.c_str()) == 0;
    if (::syscall(SYS_renameat2, from, name.c_str(), to, new_name.c_str(), RENAME_NOREPLACE) == 0)
      return true;
    // Absent, or not of this file system: then somebody else's file may be lost to a race.
    if (errno != ENOSYS && errno != EPERM && errno != EINVAL) return false;
    struct stat st = {};
    if (::fstatat(to, new_name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
      errno = EEXIST;
      return false;
    }
    return ::renameat(from, name.c_str(), to, new_name.c_str()) == 0;
  }

  Task remove() {
    std::string name;
    posix::Fd folder = root_.parent(path_, name);
    if (!folder) return fail("cannot remove", request_.path);
    if (::unlinkat(folder.get(), name.c_str(), 0) == 0) return done();
    if (errno != EISDIR && errno != EPERM) return fail("cannot remove", request_.path);
    const int error = errno;
    if (::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) == 0) return done();
    if (errno == ENOTDIR) errno = error;
    if ((errno == ENOTEMPTY || errno == EEXIST) && request_.tree)
      return remove_tree(connection_, channel_, std::move(folder), std::move(name), request_.path);
    if (errno == EEXIST) errno = ENOTEMPTY;
    return fail("cannot remove", request_.path);
  }

  const ServeOptions& options_;
  Connection& connection_;
  const std::uint64_t channel_;
  const wire::FileRequest& request_;
  std::string root_path_;
  posix::Beneath root_;
  std::string path_;
};

}  // namespace

wire::ErrorInfo file_error(int error_number, const char* what, const std::string& path) {
  wire::ErrorInfo error;
  error.code = code_of(error_number);
  error.error_number = error_number;
  const char* why = error_number == EXDEV ? "it leads out of the folder that files are served of"
                                          : std::strerror(error_number);
  error.message = std::string(what) + " " + path + ": " + why;
  return error;
}

void FileTask::wake() {
  connection_.file_wakes(*this);
}

FileTask::Step FileTask::end(std::uint64_t value) {
  ended_ = true;
  connection_.send(wire::FrameType::file_end, channel_, value);
  return Step::ended;
}

FileTask::Step FileTask::fail(int error_number, const char* what, const std::string& path) {
  ended_ = true;
  connection_.send_message(wire::FrameType::error, channel_, file_error(error_number, what, path));
  return Step::ended;
}

FileTask::Step FileTask::refuse(wire::ErrorCode code, std::string message) {
  ended_ = true;
  connection_.send_error(channel_, code, std::move(message));
  return Step::ended;
}

std::string below(const std::string& shown, const std::string& way) {
  if (way.empty()) return shown;
  if (shown.find_first_not_of('.') == std::string::npos && shown.size() == 1) return way;
  return shown.back() == '/' ? shown + way : shown + "/" + way;
}

bool describe_file(int folder, const std::string& name, const std::string& shown,
                   wire::FileEntry& entry) {
  struct stat st = {};
  if (::fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
  entry.path = shown;
  entry.kind = S_ISREG(st.st_mode)   ? wire::FileKind::regular
               : S_ISDIR(st.st_mode) ? wire::FileKind::directory
               : S_ISLNK(st.st_mode) ? wire::FileKind::symlink
                                     : wire::FileKind::other;
  entry.mode = static_cast<std::uint32_t>(st.st_mode & 07777);
  entry.size = static_cast<std::uint64_t>(st.st_size);
  entry.modified_ns =
      static_cast<std::int64_t>(st.st_mtim.tv_sec) * 1000000000 + st.st_mtim.tv_nsec;
  if (entry.kind != wire::FileKind::symlink) return true;
  char target[wire::kMaxFilePath];
  const ssize_t n = ::readlinkat(folder, name.c_str(), target, sizeof target);
  if (n < 0) return false;
  entry.link_target.emplace(target, static_cast<std::size_t>(n));
  return true;
}

std::shared_ptr<FileTask> serve_file(const ServeOptions& options, Connection& connection,
                                     std::uint64_t channel, wire::FrameType operation,
                                     const wire::FileRequest& request) {
  return Call(options, connection, channel, request).run(operation);
}

}  // namespace sandforge::guest

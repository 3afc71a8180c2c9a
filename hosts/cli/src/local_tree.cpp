#include "local_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sandforge/error.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(int number, const char* what, const std::string& path) {
  Status code = Status::internal;
  if (number == ENOENT) code = Status::not_found;
  if (number == EACCES || number == EPERM || number == EROFS || number == EXDEV)
    code = Status::forbidden;
  if (number == ENOSPC || number == EDQUOT) code = Status::no_space;
  if (number == ENOTDIR || number == EISDIR || number == ELOOP || number == EINVAL)
    code = Status::invalid;
  const std::string why =
      number == EXDEV ? "a symbolic link leads out of the destination" : std::strerror(number);
  throw_error(Error(code, std::string(what) + " " + path + ": " + why, "file.local"));
}

}  // namespace

Destination::Destination(const std::string& folder) : shown_(folder) {
  if (!folder_.open(folder)) refuse(errno, "cannot open", folder);
}

posix::Fd Destination::parent(const std::string& way, std::string& name) const {
  posix::Fd folder = folder_.parent(way, name);
  if (!folder) refuse(errno, "cannot write", shown_ + "/" + way);
  return folder;
}

Destination::File Destination::file(const std::string& way) const {
  std::string name;
  posix::Fd folder = parent(way, name);
  return {std::move(folder), std::move(name), shown_ + "/" + way};
}

void Destination::make_directory(const std::string& way) const {
  std::string name;
  const posix::Fd folder = parent(way, name);
  if (::mkdirat(folder.get(), name.c_str(), 0700) == 0) return;
  struct stat st = {};
  const int error = errno;
  if (error == EEXIST && ::fstatat(folder.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(st.st_mode))
    return;
  refuse(error == EEXIST ? ENOTDIR : error, "cannot make", shown_ + "/" + way);
}

void Destination::set_mode(const std::string& way, std::uint32_t mode) const {
  std::string name;
  const posix::Fd folder = parent(way, name);
  const posix::Fd made(
      ::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made || ::fchmod(made.get(), mode & kCopiedMode) != 0)
    refuse(errno, "cannot set the mode of", shown_ + "/" + way);
}

Destination::File::File(posix::Fd folder, std::string name, std::string shown)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      shown_(std::move(shown)),
      temporary_(".sandforge-" + posix::random_hex(8)),
      file_(::openat(folder_.get(), temporary_.c_str(),
                     O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  if (file_) return;
  temporary_.clear();
  fail("cannot write");
}

Destination::File::~File() {
  if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

void Destination::File::fail(const char* what) const {
  refuse(errno, what, shown_);
}

void Destination::File::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void Destination::File::keep(std::uint32_t mode) {
  if (::fchmod(file_.get(), mode & kCopiedMode) != 0 ||
      ::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0)
    fail("cannot write");
  temporary_.clear();
}

std::vector<LocalEntry> local_tree(const std::string& folder,
                                   const std::function<void(const std::string&)>& skipped) {
  std::vector<LocalEntry> out;
  std::error_code why;
  fs::recursive_directory_iterator it(folder, why), end;
  for (; !why && it != end; it.increment(why)) {
    struct stat st = {};
    if (::lstat(it->path().c_str(), &st) != 0) refuse(errno, "cannot read", it->path().string());
    LocalEntry entry;
    entry.way = it->path().lexically_relative(folder).string();
    entry.directory = S_ISDIR(st.st_mode);
    entry.mode = st.st_mode & kCopiedMode;
    if (!entry.directory && !S_ISREG(st.st_mode)) {
      skipped(it->path().string());
      continue;
    }
    out.push_back(std::move(entry));
  }
  if (why) refuse(why.value(), "cannot read", folder);
  return out;
}

bool stays_below(std::string_view way) {
  if (way.empty()) return false;
  for (std::size_t at = 0; at <= way.size();) {
    const std::size_t end = std::min(way.find('/', at), way.size());
    const std::string_view part = way.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos)
      return false;
    at = end + 1;
  }
  return true;
}

}  // namespace sandforge::cli

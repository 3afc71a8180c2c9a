#include "sandforge/posix/beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <vector>

#include "sandforge/posix/system.hpp"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

namespace sandforge::posix {
namespace {

constexpr std::uint64_t kNoMagicLinks = 0x02, kBeneath = 0x08, kInRoot = 0x10;
constexpr int kLinks = 40;
constexpr int kRaces = 16;  // with renames, which the kernel answers with EAGAIN

struct How {
  std::uint64_t flags;
  std::uint64_t mode;
  std::uint64_t resolve;
};

Fd failed(int error_number) {
  errno = error_number;
  return Fd();
}

bool is_link(int fd) {
  struct stat st = {};
  return ::fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

bool read_link(int dir, const std::string& name, std::string& target) {
  char text[PATH_MAX];
  const ssize_t n = ::readlinkat(dir, name.c_str(), text, sizeof text);
  if (n <= 0 || n == static_cast<ssize_t>(sizeof text)) return false;
  target.assign(text, static_cast<std::size_t>(n));
  return true;
}

// Takes the first part off the front of a path. slash: something, if only a slash, follows.
std::string take_part(std::string& path, bool& slash) {
  const std::size_t begin = path.find_first_not_of('/');
  if (begin == std::string::npos) {
    path.clear();
    return {};
  }
  const std::size_t end = path.find('/', begin);
  std::string part = path.substr(begin, end == std::string::npos ? end : end - begin);
  slash = end != std::string::npos;
  path.erase(0, slash ? end : path.size());
  return part;
}

bool only_slashes(const std::string& path) {
  return path.find_first_not_of('/') == std::string::npos;
}

// The path without its last part, and that part. False: there is none that could be named.
bool split(const std::string& path, std::string& folder, std::string& name) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return false;
  const std::size_t slash = path.rfind('/', end);
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  name = path.substr(begin, end + 1 - begin);
  folder = path.substr(0, begin);
  return name != "." && name != "..";
}

}  // namespace

bool Beneath::open(const std::string& folder, Way way, Link link) {
  // The kernel follows a link with a slash behind it, and answers ENOTDIR for one without.
  const std::size_t end = folder.find_last_not_of('/');
  const std::string name = end == std::string::npos ? folder : folder.substr(0, end + 1);
  const int flags = O_PATH | (link == Link::none ? O_NOFOLLOW : O_DIRECTORY) | O_CLOEXEC;
  folder_.reset(::open(name.c_str(), flags));
  struct stat st = {};
  if (folder_ && link == Link::none && (::fstat(folder_.get(), &st) != 0 || !S_ISDIR(st.st_mode)))
    folder_ = failed(S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR);
  whole_ = only_slashes(folder) && !folder.empty();
  way_ = way;
  return static_cast<bool>(folder_);
}

Fd Beneath::at(const std::string& path, int flags, mode_t mode) const {
  // A path that is only O_PATH may not carry the others.
  flags |= (flags & O_PATH) != 0 ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  if (path.find('\0') != std::string::npos) return failed(EINVAL);
  if (path.size() >= PATH_MAX) return failed(ENAMETOOLONG);
  if (way_ == Way::walk) return walk(path, flags, mode);
  // For the kernel a slash at the front leads outside.
  const std::size_t begin = path.find_first_not_of('/');
  const std::string inside = begin == std::string::npos ? "." : path.substr(begin);
  const How how = {static_cast<unsigned>(flags), (flags & O_CREAT) != 0 ? mode : 0,
                   kNoMagicLinks | (whole_ ? kInRoot : kBeneath)};
  for (int tries = 0; tries < kRaces; ++tries) {
    Fd fd(
        static_cast<int>(::syscall(SYS_openat2, folder_.get(), inside.c_str(), &how, sizeof how)));
    if (fd || (errno != EAGAIN && errno != EINTR && !call_is_absent(errno))) return fd;
    if (call_is_absent(errno)) break;
  }
  return walk(path, flags, mode);
}

// Each folder on the way is held open, `..` goes back to the one before: no name is looked up
// twice, and no link is followed by the kernel.
Fd Beneath::walk(const std::string& path, int flags, mode_t mode) const {
  std::vector<Fd> way;
  std::string rest = path;
  bool slash = false;
  for (int links = 0;;) {
    const int here = way.empty() ? folder_.get() : way.back().get();
    const std::string part = take_part(rest, slash);
    if (part.empty()) return Fd(::openat(here, ".", flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW)));
    if (part == ".") continue;
    if (part == "..") {
      if (!way.empty())
        way.pop_back();
      else if (!whole_)
        return failed(EXDEV);
      continue;
    }
    const bool last = only_slashes(rest);
    const int wanted = last ? flags | O_NOFOLLOW | (slash ? O_DIRECTORY : 0)
                            : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    Fd fd(::openat(here, part.c_str(), wanted, mode));
    const int error = errno;
    const bool follow = !last || slash || (flags & O_NOFOLLOW) == 0;
    const bool link = fd ? follow && (wanted & O_PATH) != 0 && is_link(fd.get())
                         : follow && (error == ELOOP || error == ENOTDIR);
    std::string target;
    if (!link || !read_link(here, part, target)) {
      if (!fd) return failed(error);
      if (last) return fd;
      way.push_back(std::move(fd));
      continue;
    }
    if (++links > kLinks) return failed(ELOOP);
    if (target.front() == '/') {
      if (!whole_) return failed(EXDEV);
      way.clear();
    }
    rest.insert(0, target);
  }
}

Fd Beneath::parent(const std::string& path, std::string& name) const {
  std::string folder;
  if (!split(path, folder, name)) return failed(EINVAL);
  return at(folder, O_PATH | O_DIRECTORY);
}

Fd Beneath::make_parent(const std::string& path, std::string& name) const {
  Fd found = parent(path, name);
  if (found || errno != ENOENT) return found;
  std::string folder, missing;
  split(path, folder, name);
  Fd above = make_parent(folder, missing);
  // A folder that is no name of its own, such as `a/..`, cannot be made.
  if (!above) return failed(errno == EINVAL ? ENOENT : errno);
  if (::mkdirat(above.get(), missing.c_str(), 0755) != 0 && errno != EEXIST) return Fd();
  return parent(path, name);
}

}  // namespace sandforge::posix

#include "paths.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "sandforge/support/hash.hpp"

namespace sandforge::local {
namespace {

constexpr std::size_t kMaxPlain = 128;
constexpr std::size_t kMaxEncoded = 200;

bool alphanumeric(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool safe(std::string_view id) noexcept {
  if (id.empty() || id.size() > kMaxPlain) return false;
  if (!alphanumeric(id.front()) && id.front() != '_') return false;
  for (const char c : id)
    if (!alphanumeric(c) && c != '.' && c != '_' && c != '-') return false;
  return true;
}

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

// Takes the descriptor over, also where it fails, with errno.
Folder read_folder(int fd) {
  Folder folder(::fdopendir(fd), &::closedir);
  if (!folder) {
    const int error = errno;
    ::close(fd);
    errno = error;
  }
  return folder;
}

std::vector<std::string> names_in(DIR* folder) {
  std::vector<std::string> out;
  ::rewinddir(folder);
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  return out;
}

// 0, or errno. Folders of any depth are emptied without descending: what is in a sub-folder moves
// up into `top`, and has its turn there.
int remove_entry(int top, const std::string& name, std::uint64_t& moved) {
  if (::unlinkat(top, name.c_str(), 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  ::fchmodat(top, name.c_str(), 0700,
             AT_SYMLINK_NOFOLLOW);  // where it is of use; else what follows fails
  const int fd = ::openat(top, name.c_str(), kFolder);
  if (fd < 0) return errno;
  const Folder folder = read_folder(fd);
  if (!folder) return errno;
  for (const auto& child : names_in(folder.get())) {
    if (::unlinkat(fd, child.c_str(), 0) == 0 || errno == ENOENT) continue;
    ::fchmodat(fd, child.c_str(), 0700,
               AT_SYMLINK_NOFOLLOW);  // to move a folder it must be writable, too
    do {
      if (::renameat2(fd, child.c_str(), top, ("%" + std::to_string(++moved)).c_str(),
                      RENAME_NOREPLACE) == 0)
        errno = 0;
    } while (errno == EEXIST);
    if (errno != 0) return errno;
  }
  return ::unlinkat(top, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

}  // namespace

std::string encode_id(std::string_view id) {
  if (safe(id)) return std::string(id);
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const char c = id[i];
    if (alphanumeric(c) || c == '_' || (i > 0 && (c == '.' || c == '-'))) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  if (out.empty() || out.size() > kMaxEncoded || id.size() > kMaxPlain)
    return "%h" + sha256_hex(id);
  return out;
}

std::optional<FolderParts> split_folder(std::string_view folder) {
  const auto slash = folder.rfind('/');
  if (folder.empty() || folder.front() != '/' || folder.find('\0') != std::string_view::npos)
    return std::nullopt;
  const auto name = folder.substr(slash + 1);
  if (name.empty() || name.size() > kMaxEncoded || name.front() == '.' || name.front() == '-')
    return std::nullopt;
  for (const char c : name)
    if (!alphanumeric(c) && c != '.' && c != '_' && c != '-' && c != '%') return std::nullopt;
  auto root = folder.substr(0, slash);
  while (root.size() > 1 && root.back() == '/')
    root.remove_suffix(1);
  return FolderParts{root.empty() ? "/" : std::string(root), std::string(name)};
}

std::string expand_home(std::string_view path, std::string_view home) {
  if (path == "~") return std::string(home);
  if (path.substr(0, 2) == "~/") return std::string(home) + std::string(path.substr(1));
  return std::string(path);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<Failure> open_root(const std::string& root, Descriptor& out) {
  if (root.empty() || root.front() != '/')
    return Failure{SF_INVALID, "local.root", "the root must be an absolute path", root, 0, false};
  for (std::size_t end = root.find('/', 1);; end = root.find('/', end + 1)) {
    const std::string part = root.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
      return system_failure(errno, "cannot create", part);
    if (end == std::string::npos) break;
  }
  // The root itself may be a symlink: the operator chose it.
  out = Descriptor(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!out) return system_failure(errno, "cannot open", root);
  return std::nullopt;
}

std::optional<Failure> open_child(int parent, const std::string& name,
                                  const std::string& shown_path, bool create, OpenedFolder& out) {
  bool created = false;
  if (create) {
    if (::mkdirat(parent, name.c_str(), 0700) == 0) {
      created = true;
    } else if (errno != EEXIST) {
      return system_failure(errno, "cannot create", shown_path);
    }
  }
  Descriptor fd(::openat(parent, name.c_str(), kFolder));
  if (!fd) return system_failure(errno, "cannot open", shown_path);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return system_failure(errno, "cannot look at", shown_path);
  if (st.st_uid != ::geteuid())
    return Failure{
        SF_FORBIDDEN, "local.owner", shown_path + " belongs to another user", shown_path, 0, false};
  out.fd = std::move(fd);
  out.created = created;
  return std::nullopt;
}

std::optional<Failure> remove_guest_folder(int parent, const std::string& name) {
  const int fd = ::openat(parent, name.c_str(), kFolder);
  // What is no folder goes as well: nobody can have a guest in it.
  if (fd < 0 && (errno == ENOTDIR || errno == ELOOP) && ::unlinkat(parent, name.c_str(), 0) == 0)
    return std::nullopt;
  if (fd < 0)
    return errno == ENOENT ? std::nullopt
                           : std::optional(system_failure(errno, "cannot open", name));
  const Folder folder = read_folder(fd);
  if (!folder) return system_failure(errno, "cannot read", name);
  std::uint64_t moved = 0;
  for (;;) {
    const auto entries = names_in(folder.get());
    if (entries.empty()) break;
    for (const auto& entry : entries)
      if (const int error = remove_entry(fd, entry, moved))
        return system_failure(error, "cannot remove", name + "/" + entry);
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
    return system_failure(errno, "cannot remove", name);
  return std::nullopt;
}

}  // namespace sandforge::local

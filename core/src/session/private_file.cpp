#include "session/private_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace sandforge {
namespace {

Error from_errno(int code, const std::string& path) {
  const std::string text =
      "the sessions cannot be kept there: " + path + ": " + std::strerror(code);
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return Error(Status::no_space, text, "store.full");
    case EACCES:
    case EPERM:
    case EROFS:
      return Error(Status::forbidden, text, "store.forbidden");
    default:
      return Error(Status::unavailable, text, "store.cannot_open");
  }
}

Error unsafe(const std::string& path, const std::string& why) {
  return Error(Status::forbidden, path + " " + why, "store.unsafe_permissions");
}

Result<void> make_folders(const std::filesystem::path& folder) {
  if (folder.empty()) return {};
  struct stat info {};
  if (::stat(folder.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) return from_errno(ENOTDIR, folder.string());
    return {};
  }
  if (errno != ENOENT) return from_errno(errno, folder.string());
  if (folder.has_parent_path() && folder.parent_path() != folder)
    if (auto made = make_folders(folder.parent_path()); !made) return made;
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return from_errno(errno, folder.string());
  return {};
}

Result<void> check_folder(const std::string& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return from_errno(errno, folder);
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    return unsafe(folder, "belongs to another user");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0)
    return unsafe(folder, "can be written by other users");
  return {};
}

Result<void> check_file(const std::string& path) {
  // Not opened for reading: to close such a descriptor would drop the locks that another connection
  // of this process holds on the file.
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return from_errno(errno, path);
  if (S_ISLNK(info.st_mode)) return unsafe(path, "is a symbolic link");
  if (!S_ISREG(info.st_mode)) return unsafe(path, "is no regular file");
  if (info.st_uid != ::geteuid()) return unsafe(path, "belongs to another user");
  if ((info.st_mode & 0777) != 0600 && ::chmod(path.c_str(), 0600) != 0)
    return from_errno(errno, path);
  return {};
}

}  // namespace

Result<void> make_private_file(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (auto made = make_folders(folder); !made) return made;
  if (auto safe = check_folder(folder.empty() ? "." : folder.string()); !safe) return safe;

  const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) {
    ::close(made);
    return {};
  }
  if (errno != EEXIST) return from_errno(errno, path);
  return check_file(path);
}

}  // namespace sandforge

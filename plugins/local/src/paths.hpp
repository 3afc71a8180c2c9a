// Where sessions live on disk.
//
//   <root>/<encoded id>/                 a session's files; destroy keeps them
//   <root>/.sandforge/<encoded id>/      its guest: socket, lock; removed by destroy
//
// Everything is opened beneath the root, one component at a time, and never through a symlink.
#pragma once

#include <fcntl.h>

#include <optional>
#include <string>
#include <string_view>

#include "abi_glue.hpp"

namespace sandforge::local {

// How a folder is opened that must be none behind a symlink.
inline constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// The folder name of a session. Names of 1 to 128 letters, digits, '.', '_' and '-' that begin with
// a letter, a digit or '_' stay as they are; other bytes become %XX; what gets too long becomes
// "%h" and a hash. Different ids give different names.
std::string encode_id(std::string_view id);

// An absolute folder, cut before its last part, which must be a name that encode_id makes.
struct FolderParts {
  std::string root;
  std::string name;
};
std::optional<FolderParts> split_folder(std::string_view folder);

// "~" and "~/x" with home in front; the rest as it is.
std::string expand_home(std::string_view path, std::string_view home);

// An owned descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const noexcept { return fd_; }
  int release() noexcept {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct OpenedFolder {
  Descriptor fd;
  bool created = false;
};

// Opens the root, and makes it and its parents where they are missing.
std::optional<Failure> open_root(const std::string& root, Descriptor& out);
// Opens a folder right below another one, made with mode 0700 where it is missing. One mkdir
// decides who created it. A symlink, a file or another user's folder is refused.
std::optional<Failure> open_child(int parent, const std::string& name,
                                  const std::string& shown_path, bool create, OpenedFolder& out);
// Removes the folder of a guest and whatever commands put there. What is missing is fine.
std::optional<Failure> remove_guest_folder(int parent, const std::string& name);

}  // namespace sandforge::local

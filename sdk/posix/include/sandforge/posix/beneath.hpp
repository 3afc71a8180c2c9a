// Paths beneath a folder: nothing outside of it is reached, whatever is linked or moved meanwhile.
#pragma once

#include <sys/types.h>
#include <string>

#include "sandforge/posix/fd.hpp"

namespace sandforge::posix {

// Paths are relative to the folder; a slash at their front means the folder, too. Symbolic links in
// them are followed as long as they stay beneath; absolute ones lead outside, except where the
// folder is `/`. What leads outside fails with EXDEV. Every call answers false, or nothing, with
// errno set.
class Beneath {
 public:
  enum class Way { best, walk };  // walk: without openat2, for tests

  // The folder itself may be behind a symbolic link, unless `link` is none: ELOOP.
  enum class Link { followed, none };

  bool open(const std::string& folder, Way way = Way::best, Link link = Link::followed);
  explicit operator bool() const noexcept { return static_cast<bool>(folder_); }
  int get() const noexcept { return folder_.get(); }

  // As openat(2). O_CLOEXEC, O_NOCTTY and O_NONBLOCK are added.
  Fd at(const std::string& path, int flags, mode_t mode = 0) const;
  // The folder that the last part of the path is in, for the calls that do not follow it, and that
  // part. EINVAL: the path names the folder itself, or ends in `..`.
  Fd parent(const std::string& path, std::string& name) const;
  // The same after making the folders on the way that are missing, with mode 0755 and the umask.
  Fd make_parent(const std::string& path, std::string& name) const;

 private:
  Fd walk(const std::string& path, int flags, mode_t mode) const;

  Fd folder_;
  bool whole_ = false;  // the folder is `/`: there is no outside
  Way way_ = Way::best;
};

}  // namespace sandforge::posix

// Plugins that are pinned to a hash: the bytes that are checked are the bytes that are mapped.
#pragma once

#include <string>

#include "sandforge/error.hpp"
#include "sandforge/posix/fd.hpp"

namespace sandforge::plugin {

// Copies a file into memory that nobody can change any more.
Result<posix::Fd> copy_sealed(int file);

// Lower-case hex of all bytes of an open file.
Result<std::string> sha256_of(int file);

// 64 hex digits in lower case, or empty when `text` is no such digest. "sha256:" before it is fine.
std::string normal_sha256(const std::string& text);

// A path under which the dynamic loader opens this file. The loader knows libraries by their name,
// so a number must never stand for a second library: the descriptor is moved to a high number, and
// keep() leaks it once something was loaded by it.
class DescriptorPath {
 public:
  static Result<DescriptorPath> make(posix::Fd file);
  const std::string& str() const noexcept { return path_; }
  int get() const noexcept { return file_.get(); }
  void keep() noexcept { file_.release(); }

 private:
  DescriptorPath(posix::Fd file, std::string path) noexcept
      : file_(std::move(file)), path_(std::move(path)) {}
  posix::Fd file_;
  std::string path_;
};

}  // namespace sandforge::plugin

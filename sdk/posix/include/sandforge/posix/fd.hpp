// A file descriptor that closes itself, and the few calls that must not be interrupted.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace sandforge::posix {

class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};

// Both ends close on exec; only the end named is non-blocking. False with errno set.
enum class PipeEnd { none, read, write };
bool make_pipe(Pipe& pipe, PipeEnd nonblocking = PipeEnd::none) noexcept;
bool set_nonblocking(int fd, bool on) noexcept;

// The first `limit` bytes of a file, such as one under /proc. False with errno set.
bool read_file(const char* path, std::string& out, std::size_t limit);
bool read_file_at(int dir, const char* path, std::string& out, std::size_t limit);
// One write call on an existing file. False with errno set.
bool write_file_at(int dir, const char* path, const char* text) noexcept;

}  // namespace sandforge::posix

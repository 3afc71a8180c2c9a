// One file operation of a host that takes more than a moment: it goes on in steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sandforge/posix/beneath.hpp"
#include "sandforge/wire/guest/files.hpp"
#include "sandforge/wire/guest/messages.hpp"

namespace sandforge::guest {

namespace wire = sandforge::wire::guest;
class Connection;

// Its owner drops it when it has ended, was left, or the connection is lost: a file that it was
// writing is then as before. Of a tree that it was removing a part is gone, and what lay deep in it
// may have been moved up below it.
class FileTask {
 public:
  FileTask(Connection& connection, std::uint64_t channel) noexcept
      : connection_(connection), channel_(channel) {}
  virtual ~FileTask() = default;
  FileTask(const FileTask&) = delete;
  FileTask& operator=(const FileTask&) = delete;

  enum class Step { more, wait, ended };
  // A piece of the work that blocks nobody else for long.
  virtual Step step() { return Step::wait; }
  virtual void add_credit(std::uint64_t) {}
  // Bytes to write, and their end. False: the host may not send that.
  virtual bool data(std::string_view) { return false; }
  virtual bool commit() { return false; }
  // It was left, or has ended: nothing may be left behind.
  virtual void drop() {}

  std::uint64_t channel() const noexcept { return channel_; }
  bool ended() const noexcept { return ended_; }
  bool queued = false;  // waits for its next step

 protected:
  Connection& connection() noexcept { return connection_; }
  void wake();
  Step end(std::uint64_t value = 0);
  // From errno, about a path.
  Step fail(int error_number, const char* what, const std::string& path);
  Step refuse(wire::ErrorCode code, std::string message);

 private:
  Connection& connection_;
  const std::uint64_t channel_;
  bool ended_ = false;
};

// From an errno of a file operation.
wire::ErrorInfo file_error(int error_number, const char* what, const std::string& path);

}  // namespace sandforge::guest

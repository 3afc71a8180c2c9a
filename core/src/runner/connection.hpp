// The socket between a host and a runner: frames out from any thread, frames in on one thread that
// does nothing else.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/posix/fd.hpp"
#include "sandforge/wire/runner/frame.hpp"

namespace sandforge::runner {

// Exit codes of a runner that has no other way to say why it ends.
inline constexpr int kExitStuck = 120;     // a call of the plugin does not return
inline constexpr int kExitNoSocket = 121;  // the plugin has closed our socket

namespace wire = wire::runner;

class Connection {
 public:
  // A host must not wait for a runner that does not read: what does not fit the socket is queued,
  // and beyond the limit the connection is over. A runner waits.
  enum class Full { queue, wait };
  static constexpr std::size_t kQueueLimit = 64U << 20;

  Connection(posix::Fd socket, Full full);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // False when the connection is over. [any]
  bool send(const wire::Header& header, std::string_view payload) noexcept;
  // A runner waits for its host to read. [any]
  bool sending() const noexcept { return sending_.load(); }
  // Ends it from this side; run() returns the reason. [any]
  void close(const char* why = "") noexcept;

  // A descriptor that is looked at as well; `ready` says false when it is done.
  struct Beside {
    int descriptor = -1;  // -1: none
    std::function<bool()> ready;
  };
  // Reads until the connection is over: `frame` is false for a frame that breaks the protocol.
  // Gives the reason of the end; empty: the other side closed.
  std::string run(const std::function<bool(const wire::FrameView&)>& frame,
                  std::vector<Beside> beside = {});
  // The other side has ended, whoever else holds its socket: what has come is read, then run()
  // returns as if it had closed. By the reader.
  void drain() noexcept { reads_left_ = kLastReads; }
  // One frame at least, for the first one of each side.
  wire::ParseResult first(wire::FrameView& frame);

 private:
  // False: over, and why.
  bool flush_queue(std::string& why);  // with the lock
  bool read_some(std::string& why);
  void check_socket() const noexcept;
  bool wait(std::vector<Beside>& beside, std::string& why);

  static constexpr int kLastReads = 64;  // far more than a socket holds

  const posix::Fd socket_;
  posix::Fd wake_;
  const Full full_;
  wire::FrameBuffer buffer_;
  std::mutex mutex_;
  std::string queue_;
  std::string scratch_;
  int failed_ = 0;       // errno of a send that failed
  int reads_left_ = -1;  // -1: no end in sight
  bool over_ = false;
  std::atomic<bool> sending_{false};
  const char* why_ = "";  // it was closed
};

// What a side that sends rubbish is told, in words.
inline constexpr const char* kBroken = "it sent a frame that breaks the protocol";

}  // namespace sandforge::runner

// The socket between a host and a runner: frames out from any thread, frames in on one thread that
// does nothing else.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

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

  // Reads until the connection is over: `frame` is false for a frame that breaks the protocol.
  // `beside` is a descriptor that is read as well (-1: none); `ready` says false when it is done.
  // Gives the reason of the end; empty: the other side closed.
  std::string run(const std::function<bool(const wire::FrameView&)>& frame, int beside = -1,
                  const std::function<bool()>& ready = {});
  // One frame at least, for the first one of each side.
  wire::ParseResult first(wire::FrameView& frame);

 private:
  bool flush_queue() noexcept;  // with the lock; false: over
  bool read_some(std::string& why);
  void check_socket() const noexcept;
  bool wait(int& beside, const std::function<bool()>& ready);

  const posix::Fd socket_;
  posix::Fd wake_;
  const Full full_;
  wire::FrameBuffer buffer_;
  std::mutex mutex_;
  std::string queue_;
  std::string scratch_;
  bool over_ = false;
  std::atomic<bool> sending_{false};
  const char* why_ = "";  // it was closed
};

// What a side that sends rubbish is told, in words.
inline constexpr const char* kBroken = "it sent a frame that breaks the protocol";

}  // namespace sandforge::runner

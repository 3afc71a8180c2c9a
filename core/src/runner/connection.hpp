// The socket between a host and a runner: frames out from any thread, frames in on one or two
// threads that take turns.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/epoll.h>

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
  // `frame` is false for a frame that breaks the protocol. Before read().
  void prepare(std::function<bool(const wire::FrameView&)> frame, std::vector<Beside> beside = {});
  // Reads until the connection is over. True for the one thread that finds it out.
  // Where two threads are here, the one that has read runs the lane that a frame has woken, instead
  // of waking another thread for it; meanwhile the other one is at its place, and there it stays.
  // So there is always one that reads and runs nobody's code.
  bool read();
  // Returns after the time, or never for zero: meanwhile no close of its descriptor ends the
  // connection without its readers. A runner whose descriptor was closed is ended. [any]
  void hold_open(std::chrono::milliseconds time) const noexcept;
  // A reader runs a lane. Once the connection is over none begins to. [any]
  bool is_one_away() const noexcept { return away_.load() != std::thread::id(); }
  // The reason of the end; empty: the other side closed.
  const std::string& reason() const noexcept { return reason_; }
  // The other side has ended, whoever else holds its socket: what has come is read, then the
  // connection is over as if it had closed. By the reader.
  void drain() noexcept {
    reads_left_ = kLastReads;
    readable_ = true;
  }
  // One frame at least, for the first one of each side.
  wire::ParseResult first(wire::FrameView& frame);

 private:
  // With the lock of sends. As sendmsg(2).
  ssize_t send_some(const std::string_view (&parts)[2]) noexcept;
  bool flush_queue(std::string& why);
  bool watch(int how, int descriptor, std::uint32_t events, std::size_t number) noexcept;
  bool read_some(std::string& why);
  // With the lock of readers. False: over, and why.
  bool turn(const epoll_event* events, int count, std::string& why);
  bool look_at(const epoll_event& event, std::string& why);
  bool frames();
  void end(std::string why);
  void check_socket(int error) const noexcept;

  static constexpr int kLastReads = 64;  // far more than a socket holds

  const posix::Fd socket_;
  const posix::Fd over_event_;  // readable for good once a send has failed, or all is over
  posix::Fd poll_;
  int poll_failed_ = 0;  // errno of its making
  const Full full_;

  std::mutex readers_mutex_;  // for these
  std::function<bool(const wire::FrameView&)> frame_;
  std::vector<Beside> beside_;
  wire::FrameBuffer buffer_;
  bool readable_ = true;
  bool hung_up_ = false;
  int reads_left_ = -1;  // -1: no end in sight
  bool done_ = false;
  std::string reason_;
  std::atomic<int> readers_{0};
  std::atomic<std::thread::id> away_{};

  std::mutex mutex_;  // of sends, for these
  std::string queue_;
  std::size_t flushed_ = 0;  // bytes at the front of it that have been sent
  int failed_ = 0;           // errno of a send that failed
  bool over_ = false;
  std::atomic<bool> sending_{false};
  const char* why_ = "";  // it was closed
};

// What a side that sends rubbish is told, in words.
inline constexpr const char* kBroken = "it sent a frame that breaks the protocol";

}  // namespace sandforge::runner

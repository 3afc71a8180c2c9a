// The other side of a connection: the calls that run there, and who hears of their ends.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "plugin/plugin.hpp"
#include "runner/connection.hpp"
#include "sandforge/runtime.hpp"
#include "sandforge/wire/runner/calls.hpp"

namespace sandforge::runner {

using Id = std::uint64_t;
using wire::Method;

// What a stream takes before its writer must wait; see InputWindow.
inline constexpr std::size_t kInputWindow = 256U << 10;

// The sending end of a stream's input: what the other side has not consumed yet is bounded.
class InputWindow {
 public:
  // How many of `wanted` bytes may be sent now; an error once the other end takes no more.
  Result<std::size_t> take(std::size_t wanted);
  // The other side consumed some. False: more than it was sent. `writable`: a writer waits.
  bool give_back(std::uint64_t bytes, bool& writable);
  // `writable`: a writer waits, and finds it out.
  void close(Error error, bool& writable);

 private:
  std::mutex mutex_;
  std::size_t left_ = kInputWindow;
  bool stalled_ = false;
  std::optional<Error> closed_;
};

// The callbacks of one call, kept by the side that made it.
class Callbacks {
 public:
  enum class Outcome : std::uint8_t { more, last, malformed };

  virtual ~Callbacks() = default;
  virtual Outcome invoke(plugin::Plugin& plugin, Method method, wire::Reader& in) = 0;
  // The last one, with this error.
  virtual void fail(plugin::Plugin& plugin, const sf_error& error) = 0;
  virtual void writable(plugin::Plugin&) {}

  std::shared_ptr<InputWindow> input;  // of the stream that the call made; may be null
  // Where they are called; none, as in a host, whose callbacks are core's: on the reader's thread.
  Lane lane;
  bool over = false;  // the last one was called; there
};

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  // call_limit: see ask.
  Peer(plugin::Plugin& plugin, std::shared_ptr<Connection> connection, Id first_id,
       std::chrono::milliseconds call_limit)
      : plugin_(plugin),
        connection_(std::move(connection)),
        call_limit_(call_limit),
        next_(first_id) {}
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  plugin::Plugin& plugin() const noexcept { return plugin_; }
  Connection& connection() noexcept { return *connection_; }
  bool lost() const noexcept { return lost_flag_.load(); }
  // Why, once it is lost.
  Error loss() const;

  // Every side has numbers of its own.
  Id next() noexcept { return next_.fetch_add(2); }
  bool send(wire::Kind kind, Method method, Id lane, Id target, Id id,
            std::string_view payload) noexcept;

  // False: the other side is lost, and the callbacks will not be called.
  bool expect(Id call, std::shared_ptr<Callbacks> callbacks);
  // Calls, and waits for the reply's payload. An error of the other side is the result. One that
  // does not answer within the limit is ended.
  Result<std::string> ask(Method method, Id lane, Id target, Id id, std::string_view payload);

  // By the reader. False: the frame breaks the protocol.
  bool on_event(const wire::FrameView& frame);
  bool on_reply(const wire::FrameView& frame);
  // Ends every call with the error, each on its lane. Once; by the reader.
  void lose(const Error& error);

  // Handles of records that cross; see wire::Handles.
  virtual wire::Handles* handles() noexcept = 0;

 protected:
  std::chrono::milliseconds call_limit() const noexcept { return call_limit_; }
  // A call did not come back within reason: the other side is ended.
  virtual void hung() noexcept { connection_->close(); }

 private:
  struct Wait {
    std::condition_variable changed;
    std::optional<Result<std::string>> result;
  };
  std::shared_ptr<Callbacks> find(Id call) const;
  void forget(Id call);
  bool deliver(Id call, Callbacks& callbacks, Method method, std::string_view payload);
  bool input_event(Callbacks& callbacks, Method method, std::string_view payload);

  plugin::Plugin& plugin_;
  const std::shared_ptr<Connection> connection_;
  const std::chrono::milliseconds call_limit_;
  std::atomic<Id> next_;
  std::atomic<bool> lost_flag_{false};
  mutable std::mutex mutex_;
  std::unordered_map<Id, std::shared_ptr<Callbacks>> calls_;
  std::unordered_map<Id, Wait*> waits_;
  std::optional<Error> loss_;
};

// Refuses what no frame takes.
Result<void> check_request(std::size_t size);
// The first byte of a reply: 1, and an error follows; 0, and the result.
std::string error_reply(const Error& error);
// Reads a record of an error from a frame.
Error read_error(plugin::Plugin& plugin, wire::Reader& in, std::string_view what);

// Of the functions that only the wire knows: input that was consumed, and input that has no taker.
inline constexpr Method kInputCredit = wire::method_of(&sf_stream_vtbl::grant);
inline constexpr Method kInputClosed = wire::method_of(&sf_stream_vtbl::shutdown_write);

}  // namespace sandforge::runner

// What an author gets for a stream or a command that the host consumes.
#pragma once

#include "channel.hpp"

namespace sandforge::plugin {

/*
 * A stream between the host and this plugin: output under credit, input, and one end. Copies share
 * it. It ends with finish or fail; when the last copy goes without one, it ends with
 * Code::internal. Thread-safe; the functions without a prefix wait and belong on a pool thread
 * (coroutines use the ones of coroutine.hpp).
 */
class Io {
 public:
  explicit Io(detail::Channel* channel) : hold_(std::make_shared<Hold>(channel)) {}

  // Requested by a cancel of the host, or by the command's time limit.
  StopToken stop() const { return channel().stop().token(); }
  // The same at once, while what the token calls follows on the lane.
  StopReason stop_reason() const { return channel().stop_reason(); }

  // Writes everything, waiting for credit. Throws when a stop was requested; what the host will
  // not take any more is dropped and counted.
  void write(std::string_view data, std::uint32_t channel_id = SF_CHANNEL_DATA,
             std::uint32_t flags = 0) const {
    must_not_be_on_lane();
    for (;;) {
      data.remove_prefix(channel().put(channel_id, flags, data));
      throw_if_stopped(channel().stop_reason());
      if (data.empty()) return;
      channel().wait_credit();
    }
  }
  // Writes what the credit allows now, and says how much.
  std::size_t try_write(std::string_view data, std::uint32_t channel_id = SF_CHANNEL_DATA,
                        std::uint32_t flags = 0) const {
    return channel().put(channel_id, flags, data);
  }
  // Runs fn once, on the lane, when try_write would make progress, a stop was requested, or the
  // stream has ended.
  void when_credit(std::function<void()> fn) const { channel().when_credit(std::move(fn)); }

  // The next piece of input; absent at its end. Throws when a stop was requested, and when the host
  // drops a stream that is no process without ending its input.
  std::optional<Piece> read() const {
    must_not_be_on_lane();
    for (;;) {
      std::optional<Piece> piece = channel().take_input();
      if (piece) return piece;
      throw_if_stopped(channel().stop_reason());
      if (channel().input_at_end()) return std::nullopt;
      channel().wait_input();
    }
  }
  // Absent when there is none yet, or at the end: input_at_end tells which.
  std::optional<Piece> try_read() const { return channel().take_input(); }
  bool input_at_end() const { return channel().input_at_end(); }
  // Runs fn once, on the lane, when try_read would answer or throw, or the input is at its end.
  void when_input(std::function<void()> fn) const { channel().when_input(std::move(fn)); }
  // Reads no more: the host's writes are refused from now on.
  void close_input() const { channel().close_input(); }

  void finish() const { channel().finish(nullptr); }
  void fail(const Error& error) const { channel().finish(std::make_exception_ptr(error)); }
  void fail(const std::exception_ptr& error) const { channel().finish(error); }

 protected:
  detail::Channel& channel() const noexcept { return *hold_->channel; }

 private:
  struct Hold {
    explicit Hold(detail::Channel* held) : channel(held) { channel->retain(); }
    ~Hold() {
      try {
        if (!channel->is_over()) {
          channel->finish(std::make_exception_ptr(
              Error(Code::internal, "the plugin dropped a stream without an end")));
        }
      } catch (...) {
        detail::report_stray(std::current_exception(), "the end of a stream");
      }
      channel->drop();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    detail::Channel* channel;
  };
  void must_not_be_on_lane() const {
    if (!channel().lane().is_current()) return;
    throw Error(Code::internal, "a blocking call on a lane: use a coroutine, or a pool thread");
  }

  std::shared_ptr<Hold> hold_;
};

/*
 * A command that this plugin runs. Call started before the first output; it is called for you, with
 * an empty id, when you do not. End it with finish(Exit), or with fail before anything has run.
 */
class ProcessIo : public Io {
 public:
  using Io::finish;
  using Io::Io;

  // id: what the processes extension takes, unique over the life of the sandbox.
  void started(std::string_view id, std::int64_t pid = 0) const { channel().started(id, pid); }
  void out(std::string_view data) const { write(data, SF_CHANNEL_STDOUT); }
  void err(std::string_view data) const { write(data, SF_CHANNEL_STDERR); }
  // The leader has ended; output may still follow, then finish().
  void exited(const Exit& exit) const { channel().exited(exit); }
  void finish(const Exit& exit) const {
    channel().exited(exit);
    channel().finish(nullptr);
  }

  // Called on the lane. Without a handler signals are refused as Code::unsupported.
  void on_signal(SignalHandler handler) const { channel().on_signal(std::move(handler)); }
  void on_resize(ResizeHandler handler) const { channel().on_resize(std::move(handler)); }

  // For the layer: how run ended, by what it returned or threw.
  void settle(const std::exception_ptr& error, const Exit* exit) const {
    const StopReason why = channel().stop_reason();
    const auto outcome =
        why == StopReason::timed_out ? ExitOutcome::timed_out : ExitOutcome::cancelled;
    if (exit != nullptr) {
      Exit told = *exit;
      const bool ended_itself = told.outcome == ExitOutcome::exited;
      // A stop that came too late to matter leaves a regular exit as it is, but for a time limit.
      if (why == StopReason::timed_out || (why != StopReason::none && !ended_itself)) {
        told.outcome = outcome;
      }
      return finish(told);
    }
    if (why == StopReason::none || !channel().has_started()) return fail(error);
    Exit stopped;
    stopped.outcome = outcome;
    channel().exited(stopped);
    if (why == StopReason::timed_out) return finish();
    fail(error);
  }
};

}  // namespace sandforge::plugin

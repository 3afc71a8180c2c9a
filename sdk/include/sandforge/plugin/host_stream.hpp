// Streams and processes that the host gives to the plugin, for coroutines: reading under credit,
// writing with backpressure, and the end.
#pragma once

#include <coroutine>

#include "command.hpp"
#include "impl/inbox.hpp"

namespace sandforge::plugin {

/*
 * The plugin's handle of a stream of the host. Owned by one coroutine or object; not copied. At
 * most `window` bytes wait unread: the credit goes back as they are taken, so a reader that pauses
 * holds the other end back. Dropping it cancels the stream. Use it on the lane that it was opened
 * with; one coroutine may read while another one writes.
 *
 * A stop of the coroutine that waits here cancels the stream. The wait goes on to the end of the
 * stream and then throws, so that a stream that was cut short is never taken for a whole one.
 */
class HostStream {
 public:
  // Takes over a connected socket, a pipe end or a pty. On an exception it stays the caller's.
  static HostStream adopt_descriptor(const Lane& lane, std::int32_t descriptor,
                                     std::uint64_t window = default_window) {
    const auto& executor = detail::need(detail::services().executor, SF_SERVICE_EXECUTOR);
    if (executor.adopt_descriptor == nullptr) {
      throw Error(Code::unsupported, "the host adopts no descriptors");
    }
    HostStream stream(lane);
    const sf_stream_events events = detail::Inbox::events(stream.inbox_);
    detail::ErrorCatcher errors;
    sf_stream* raw = nullptr;
    const sf_status status = executor.adopt_descriptor(
        detail::services().host, lane.get(), descriptor, window, &events, &raw, errors.sink());
    if (status != SF_OK) stream.inbox_->refused();
    errors.check(status);
    stream.inbox_->opened(raw, nullptr);
    return stream;
  }

  static constexpr std::uint64_t default_window = 1 << 16;

  HostStream(HostStream&&) noexcept = default;
  HostStream& operator=(HostStream&& other) noexcept {
    close();
    inbox_ = std::move(other.inbox_);
    return *this;
  }
  ~HostStream() { close(); }

  // The next bytes; absent at a regular end. At another end it throws the stream's error.
  Task<std::optional<Output>> read_some() { return read_from(inbox_); }
  // Ends when the host has taken all of it. Code::conflict after shutdown_write, or when the other
  // end closed its side.
  Task<void> write_all(std::string data, std::uint32_t flags = 0) {
    return write_to(inbox_, std::move(data), flags);
  }
  // The other end reads end of file after what was written. Idempotent.
  void shutdown_write() { inbox_->shutdown_write(); }
  // Ends the stream early; for a process: its whole tree. Idempotent, on any thread.
  void cancel() noexcept { inbox_->cancel(); }
  // Drops the output that nobody has read, and ends with the stream; throws its error.
  Task<void> finish() { return drain(inbox_); }

 protected:
  explicit HostStream(const Lane& lane) : inbox_(std::make_shared<detail::Inbox>(lane)) {}
  explicit HostStream(std::shared_ptr<detail::Inbox> inbox) noexcept : inbox_(std::move(inbox)) {}
  static Task<void> drain(std::shared_ptr<detail::Inbox> inbox) {
    for (;;) {
      const std::optional<Output> rest = co_await read_from(inbox);
      if (!rest) co_return;
    }
  }
  static Task<std::optional<Output>> read_from(std::shared_ptr<detail::Inbox> inbox) {
    const StopToken stop = co_await current_stop();
    const StopCallback cancel(stop, [inbox] { inbox->cancel(); });
    for (;;) {
      std::optional<Output> next = inbox->take();
      if (next) co_return next;
      const auto wake = std::make_shared<detail::Wake>();
      if (!inbox->wait_readable(wake)) break;
      co_await wake;
    }
    // The end of a process that was cancelled is a regular one, but not for who asked for a stop.
    stop.throw_if_stopped();
    co_return std::nullopt;
  }
  std::shared_ptr<detail::Inbox> inbox_;

 private:
  void close() noexcept {
    if (inbox_) inbox_->close();
  }

  static Task<void> write_to(std::shared_ptr<detail::Inbox> inbox, std::string data,
                             std::uint32_t flags) {
    const StopToken stop = co_await current_stop();
    const StopCallback cancel(stop, [inbox] { inbox->cancel(); });
    std::size_t taken = 0;
    for (;;) {
      const auto wake = std::make_shared<detail::Wake>();
      inbox->wait_writable(wake);
      taken += inbox->write(std::string_view(data).substr(taken), flags);
      if (taken == data.size()) co_return;
      co_await wake;
      stop.throw_if_stopped();
    }
  }
};

/*
 * A command that the host's process service runs. Dropping it ends its whole tree, in the
 * background; finish() ends with it.
 */
class HostProcess : public HostStream {
 public:
  // The service inherits no environment and wants an absolute cwd. A command that does not start
  // ends with a typed error: read_some and finish throw it.
  static HostProcess spawn(const Lane& lane, const Command& command) {
    const auto& service = detail::need(detail::services().process, SF_SERVICE_PROCESS);
    HostProcess process(lane);
    const detail::CommandView raw(command);
    const sf_stream_events io = detail::Inbox::events(process.inbox_);
    const sf_process_events events = detail::Inbox::process_events(process.inbox_);
    detail::ErrorCatcher errors;
    sf_process* made = nullptr;
    const sf_status status = service.spawn(detail::services().host, lane.get(), raw.get(), &io,
                                           &events, &made, errors.sink());
    if (status != SF_OK) process.inbox_->refused();
    errors.check(status);
    process.inbox_->opened(made->vtbl->stream(made), made);
    return process;
  }

  // 0 until it has started.
  std::int64_t pid() const { return inbox_->pid(); }
  // Absent until its leader has ended.
  std::optional<Exit> ended() const { return inbox_->ended(); }

  // A Linux signal number. Code::gone when it has ended.
  Async<void> signal(std::int32_t number, SignalScope scope = SignalScope::tree) const {
    return {inbox_->lane(),
            [inbox = inbox_, number, scope](auto* pending, sf_op** op, const sf_error_sink* err) {
              return inbox->signal(number, scope, detail::complete(pending), op, err);
            }};
  }

  // Drops the output that nobody has read, waits for the end of the process and says how it ended;
  // throws when it never started or cannot be told.
  Task<Exit> finish() { return end_of(inbox_); }

 private:
  explicit HostProcess(const Lane& lane) : HostStream(lane) {}

  static Task<void> drain_quietly(std::shared_ptr<detail::Inbox> inbox) {
    try {
      co_await drain(inbox);
    } catch (const Error&) {
      // An end that has an exit is no failure of the process.
      if (!inbox->ended()) throw;
    }
  }
  static Task<Exit> end_of(std::shared_ptr<detail::Inbox> inbox) {
    co_await drain_quietly(inbox);
    const std::optional<Exit> how = inbox->ended();
    if (!how) throw Error(Code::internal, "the host did not say how the process ended");
    co_return *how;
  }
};

}  // namespace sandforge::plugin

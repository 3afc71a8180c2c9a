// What the host delivered on one stream and no coroutine has read yet.
#pragma once

#include <coroutine>
#include <deque>

#include "../command.hpp"
#include "../task.hpp"

namespace sandforge::plugin {

// Bytes from a stream of the host.
class Output {
 public:
  Output(std::uint32_t from, std::uint32_t data_flags, std::string bytes)
      : channel(from), flags(data_flags), data(std::move(bytes)) {}
  std::uint32_t channel;  // SF_CHANNEL_*
  std::uint32_t flags;    // SF_DATA_*, on streams of messages
  std::string data;
};

namespace detail {

/*
 * Filled by the callbacks of the host, emptied by a coroutine. References: the plugin's handle, and
 * the host's from the start until done, which is the last use. The callbacks never continue a
 * coroutine themselves: they wake it through the lane.
 */
class Inbox {
 public:
  explicit Inbox(const Lane& lane) : lane_(lane) {}
  // The handle is released last, so that a stop may cancel the stream at any time before.
  ~Inbox() {
    if (process_ != nullptr) {
      process_->vtbl->release(process_);
    } else if (stream_ != nullptr) {
      stream_->vtbl->release(stream_);
    }
  }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  static sf_stream_events events(const std::shared_ptr<Inbox>& inbox) noexcept {
    inbox->host_ = inbox;
    return {sizeof(sf_stream_events), inbox.get(),
            [](void* ctx, std::uint32_t channel, std::uint32_t flags, sf_bytes data) noexcept {
              at(ctx).on_data(channel, flags, view(data));
            },
            [](void* ctx) noexcept { at(ctx).on_writable(); },
            [](void* ctx, const sf_error* error, const sf_stream_end*) noexcept {
              const std::shared_ptr<Inbox> last = std::move(at(ctx).host_);
              last->on_done(error);
            }};
  }
  static sf_process_events process_events(const std::shared_ptr<Inbox>& inbox) noexcept {
    return {sizeof(sf_process_events), inbox.get(),
            [](void* ctx, const sf_process_started* started) noexcept {
              at(ctx).pid_ = read_appendable(started).pid;
            },
            [](void* ctx, const sf_exit* exit) noexcept {
              const std::lock_guard<std::mutex> lock(at(ctx).mutex_);
              at(ctx).exit_ = Exit(*exit);
            }};
  }
  // The call that was given the events answered with these handles, or with an error.
  void opened(sf_stream* stream, sf_process* process) noexcept {
    stream_ = stream;
    process_ = process;
  }
  void refused() noexcept { host_.reset(); }

  const Lane& lane() const noexcept { return lane_; }
  std::int64_t pid() const noexcept { return pid_; }
  std::optional<Exit> ended() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return exit_;
  }

  // The next piece, whose credit goes back to the host; absent when there is none.
  std::optional<Output> take() {
    std::optional<Output> next;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (pieces_.empty()) return std::nullopt;
      next = std::move(pieces_.front());
      pieces_.pop_front();
    }
    stream_->vtbl->grant(stream_, next->data.size());
    return next;
  }
  // False at the end of the stream, whose error it throws. Else wake is set when it may be asked
  // again.
  bool wait_readable(const std::shared_ptr<Wake>& wake) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!pieces_.empty()) {
      wake->set();
    } else if (over_) {
      if (error_) std::rethrow_exception(error_);
      return false;
    }
    reader_ = wake;
    return true;
  }
  // Before a write: wake is set when there is room after a short one, or at the end.
  void wait_writable(const std::shared_ptr<Wake>& wake) {
    const std::lock_guard<std::mutex> lock(mutex_);
    writer_ = wake;
    if (over_) wake->set();
  }
  std::size_t write(std::string_view data, std::uint32_t flags) {
    std::size_t accepted = 0;
    ErrorCatcher errors;
    errors.check(stream_->vtbl->write(stream_, to_bytes(data), flags, &accepted, errors.sink()));
    return accepted;
  }
  void shutdown_write() {
    ErrorCatcher errors;
    errors.check(stream_->vtbl->shutdown_write(stream_, errors.sink()));
  }
  void cancel() noexcept { stream_->vtbl->cancel(stream_); }
  sf_status signal(std::int32_t number, SignalScope scope, sf_completion done, sf_op** op,
                   const sf_error_sink* err) {
    return process_->vtbl->signal(process_, number, static_cast<std::uint32_t>(scope), done, op,
                                  err);
  }

  // The plugin's handle is dropped: nobody reads any more.
  void close() noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
      pieces_.clear();
      if (over_) return;
    }
    if (stream_ != nullptr) cancel();
  }

 private:
  static Inbox& at(void* ctx) noexcept { return *static_cast<Inbox*>(ctx); }

  void on_data(std::uint32_t channel, std::uint32_t flags, std::string_view data) noexcept {
    if (keep(channel, flags, data)) return;
    cancel();
  }
  // False when there is no memory: bytes are never skipped, so the stream ends there.
  bool keep(std::uint32_t channel, std::uint32_t flags, std::string_view data) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_ || lost_) return true;
    try {
      pieces_.emplace_back(channel, flags, std::string(data));
    } catch (...) {
      lost_ = std::current_exception();
      return false;
    }
    tell(reader_);
    return true;
  }
  void on_writable() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    tell(writer_);
  }
  void on_done(const sf_error* error) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    try {
      if (error != nullptr) error_ = std::make_exception_ptr(Error::from(*error));
    } catch (...) {
      error_ = std::current_exception();
    }
    if (lost_) error_ = lost_;
    tell(reader_);
    tell(writer_);
  }
  static void tell(std::shared_ptr<Wake>& waiting) noexcept {
    if (waiting) std::exchange(waiting, nullptr)->set();
  }

  const Lane lane_;
  sf_stream* stream_ = nullptr;
  sf_process* process_ = nullptr;
  std::shared_ptr<Inbox> host_;
  std::atomic<std::int64_t> pid_{0};

  mutable std::mutex mutex_;
  std::deque<Output> pieces_;
  std::optional<Exit> exit_;
  std::exception_ptr lost_;
  std::exception_ptr error_;
  bool over_ = false;
  bool closed_ = false;
  std::shared_ptr<Wake> reader_;
  std::shared_ptr<Wake> writer_;
};

}  // namespace detail
}  // namespace sandforge::plugin

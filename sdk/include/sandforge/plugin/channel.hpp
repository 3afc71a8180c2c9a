// The plugin's side of a stream or a process that it gives to the host: credit, input, order and
// the single end. Authors see it as Io and ProcessIo (io.hpp).
#pragma once

#include <atomic>
#include <deque>
#include <vector>

#include "command.hpp"
#include "lane.hpp"
#include "reply.hpp"
#include "stop_token.hpp"

namespace sandforge::plugin {

// A piece of input, with SF_DATA_* flags on streams of messages.
class Piece {
 public:
  Piece(std::string bytes, std::uint32_t data_flags) : data(std::move(bytes)), flags(data_flags) {}
  std::string data;
  std::uint32_t flags;
};

// Answered later by the plugin, on any thread.
using SignalHandler = std::function<void(std::int32_t signal, SignalScope scope, Reply reply)>;
using ResizeHandler = std::function<void(std::uint32_t cols, std::uint32_t rows, Reply reply)>;

namespace detail {

/*
 * One stream. It keeps the rules by itself: no byte beyond the credit, callbacks one at a time and
 * in order, nothing before open() and nothing after the end, one done. References: the handle of
 * the host, and one until the end.
 */
class Channel {
 public:
  static constexpr std::size_t input_limit = 1 << 16;

  Channel(Lane lane, const sf_stream_events& io, const sf_process_events* process,
          std::uint64_t window)
      : lane_(std::move(lane)), io_(read_appendable(&io)), credit_(window) {
    if (process != nullptr) process_ = read_appendable(process);
    is_process_ = process != nullptr;
    stream_.vtbl = &stream_table();
    stream_.channel = this;
    process_face_.vtbl = &process_table();
    process_face_.channel = this;
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  sf_stream* stream() noexcept { return &stream_; }
  sf_process* process() noexcept { return &process_face_; }
  // Null when the process is no channel of this plugin.
  static Channel* of(sf_process* p) noexcept {
    return p->vtbl == &process_table() ? static_cast<ProcessFace*>(p)->channel : nullptr;
  }
  const Lane& lane() const noexcept { return lane_; }
  const StopSource& stop() const noexcept { return stop_; }
  StopReason stop_reason() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reason_;
  }
  bool is_over() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return over_;
  }

  void retain() noexcept { ++refs_; }
  void drop() noexcept {
    if (--refs_ == 0) delete this;
  }
  // The handle was not given out after all; nothing was told to the host.
  void abandon() noexcept {
    over_ = true;
    drop();
    drop();
  }

  // ---- Output ----

  // Gives the host what its credit allows and says how much that was. Bytes that nobody can take
  // any more count as taken, and as dropped: after a cancel those beyond the credit, because a
  // command may have something to say about its end.
  std::size_t put(std::uint32_t channel, std::uint32_t flags, std::string_view data) {
    const std::lock_guard<std::mutex> order(delivery_);
    std::size_t n = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (over_) throw Error(Code::internal, "output after the end");
      n = static_cast<std::size_t>(std::min<std::uint64_t>(credit_, data.size()));
      credit_ -= n;
      delivered_ += n;
    }
    const bool whole = n == data.size();
    const bool ends = whole && (flags & SF_DATA_END) != 0;
    if (n > 0 || ends) {
      tell_started();
      io_.on_data(io_.ctx, channel, ends ? flags : flags & ~SF_DATA_END,
                  to_bytes(data.substr(0, n)));
    }
    if (whole) return n;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!released_ && !cancelled_) return n;
    dropped_ += data.size() - n;
    return data.size();
  }

  // Runs fn once on the lane, when put would take something or drop it.
  void when_credit(std::function<void()> fn) {
    const std::lock_guard<std::mutex> lock(mutex_);
    credit_waiters_.push_back(std::move(fn));
    wake();
  }
  // Waits on a pool thread for the same.
  void wait_credit() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return can_put(); });
  }

  // ---- Input ----

  // The next piece; nothing when there is none yet, or at the end, which at_end tells.
  std::optional<Piece> take_input() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (input_.empty()) {
      if (input_is_lost()) throw Error(Code::cancelled, "the host gave up its input half way");
      return std::nullopt;
    }
    Piece piece = std::move(input_.front());
    input_.pop_front();
    input_bytes_ -= piece.data.size();
    if (room_wanted_ && input_bytes_ <= input_limit / 2) {
      room_wanted_ = false;
      retain();
      lane_.post([this] {
        tell_writable();
        drop();
      });
    }
    return piece;
  }
  bool input_at_end() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return input_.empty() && input_ended();
  }
  // The plugin reads no more: what the host writes from now on is refused.
  void close_input() {
    const std::lock_guard<std::mutex> lock(mutex_);
    input_over_ = true;
    wake();
  }
  void when_input(std::function<void()> fn) {
    const std::lock_guard<std::mutex> lock(mutex_);
    input_waiters_.push_back(std::move(fn));
    wake();
  }
  void wait_input() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return can_take(); });
  }

  // ---- Events of a process ----

  void started(std::string_view id, std::int64_t pid) {
    const std::lock_guard<std::mutex> order(delivery_);
    tell_started(id, pid);
  }
  bool has_started() const {
    const std::lock_guard<std::mutex> order(delivery_);
    return started_told_;
  }
  void exited(Exit exit) {
    const std::lock_guard<std::mutex> order(delivery_);
    tell_exit(exit);
  }
  void on_signal(SignalHandler handler) {
    const std::lock_guard<std::mutex> lock(mutex_);
    signal_handler_ = std::move(handler);
  }
  void on_resize(ResizeHandler handler) {
    const std::lock_guard<std::mutex> lock(mutex_);
    resize_handler_ = std::move(handler);
  }
  ResizeHandler resize_handler() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return over_ ? nullptr : resize_handler_;
  }

  // ---- The end ----

  // The last call; later ones do nothing. error may be null.
  void finish(const std::exception_ptr& error) {
    sf_op* timer = nullptr;
    std::vector<std::function<void()>> waiters;
    {
      const std::lock_guard<std::mutex> order(delivery_);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (over_) return;
        over_ = true;
        timer = std::exchange(timer_, nullptr);
        waiters.swap(credit_waiters_);
        for (auto& waiter : std::exchange(input_waiters_, {}))
          waiters.push_back(std::move(waiter));
        signal_handler_ = nullptr;
        resize_handler_ = nullptr;
        input_.clear();
        changed_.notify_all();
      }
      const sf_stream_end end{sizeof end, delivered_, dropped_};
      if (!error) {
        io_.done(io_.ctx, nullptr, &end);
      } else {
        with_error(error, [&](const sf_error& e) { io_.done(io_.ctx, &e, &end); });
      }
    }
    if (timer != nullptr) {
      timer->vtbl->cancel(timer);
      timer->vtbl->release(timer);
    }
    post_all(waiters);
    drop();
  }

  // Requests a stop when the time has passed; called on the lane, once.
  void limit_time(std::chrono::milliseconds time) {
    const auto& executor = need(services().executor, SF_SERVICE_EXECUTOR);
    retain();
    const sf_completion done{this, [](void* ctx, const sf_error* error) noexcept {
                               auto& me = *static_cast<Channel*>(ctx);
                               if (error == nullptr) me.request_stop(StopReason::timed_out);
                               me.drop();
                             }};
    ErrorCatcher errors;
    sf_op* op = nullptr;
    const sf_status status =
        executor.timer(services().host, lane_.get(), static_cast<std::uint64_t>(time.count()), done,
                       &op, errors.sink());
    if (status != SF_OK) drop();
    errors.check(status);
    const std::lock_guard<std::mutex> lock(mutex_);
    timer_ = op;
  }

 private:
  struct StreamFace : sf_stream {
    Channel* channel;
  };
  struct ProcessFace : sf_process {
    Channel* channel;
  };
  static Channel& of(sf_stream* s) noexcept { return *static_cast<StreamFace*>(s)->channel; }
  static Channel& at(sf_process* p) noexcept { return *static_cast<ProcessFace*>(p)->channel; }
  ~Channel() = default;

  bool is_stopping() const { return reason_ != StopReason::none; }
  bool can_put() const { return credit_ > 0 || is_stopping() || released_ || over_; }
  // Without its handle the host can write no more. To a process that is the end of its input; what
  // is stored would be cut short, and ends in an error.
  bool input_ended() const {
    return input_over_ || is_stopping() || over_ || (released_ && is_process_);
  }
  bool input_is_lost() const { return released_ && !input_ended(); }
  bool can_take() const { return !input_.empty() || input_ended() || released_; }

  // With the lock held: lets those go on that can.
  void wake() {
    changed_.notify_all();
    if (can_put()) post_all(credit_waiters_);
    if (can_take()) post_all(input_waiters_);
  }
  void post_all(std::vector<std::function<void()>>& waiters) {
    for (auto& waiter : std::exchange(waiters, {}))
      lane_.post(std::move(waiter));
  }

  // The flags change at once; callbacks of the token run on the lane, because a cancel may come
  // from inside a callback of the host, where they could not end the stream.
  void request_stop(StopReason why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (over_) return;
    cancelled_ = cancelled_ || why == StopReason::cancelled;
    if (reason_ != StopReason::none) return wake();
    reason_ = why;
    wake();
    lane_.post([stop = stop_, why] { stop.request_stop(why); });
  }

  void tell_writable() {
    const std::lock_guard<std::mutex> order(delivery_);
    if (!is_over()) io_.on_writable(io_.ctx);
  }

  // With delivery_ held. A plugin that does not say who it is still has started.
  void tell_started(std::string_view id = {}, std::int64_t pid = 0) {
    if (!is_process_ || std::exchange(started_told_, true)) return;
    const sf_process_started s{sizeof s, to_str(id), pid};
    process_.on_started(process_.ctx, &s);
  }
  void tell_exit(const Exit& exit) {
    if (!is_process_ || std::exchange(exit_told_, true)) return;
    tell_started();
    const sf_exit raw = exit.raw();
    process_.on_exit(process_.ctx, &raw);
  }

  sf_status write(sf_bytes data, std::uint32_t flags, std::size_t* accepted,
                  const sf_error_sink* err) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (input_over_ || over_ || is_stopping()) {
      return refuse(err, SF_CONFLICT, "the input of this stream is closed");
    }
    const std::size_t n = std::min(data.len, input_limit - std::min(input_limit, input_bytes_));
    room_wanted_ = room_wanted_ || n < data.len;
    const bool whole = n == data.len;
    if (n > 0 || (flags & SF_DATA_END) != 0) {
      input_.emplace_back(std::string(view(data).substr(0, n)),
                          whole ? flags : flags & ~SF_DATA_END);
      input_bytes_ += n;
    }
    *accepted = n;
    wake();
    return SF_OK;
  }

  static sf_status refuse(const sf_error_sink* err, sf_status code, std::string_view why) noexcept {
    const sf_error e = plain_error(code, why);
    if (err != nullptr) err->report(err->ctx, &e);
    return code;
  }

  sf_status signal(std::int32_t number, std::uint32_t scope, sf_completion done, sf_op** op,
                   const sf_error_sink* err) {
    SignalHandler handler;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (over_) return refuse(err, SF_GONE, "the process has ended");
      handler = signal_handler_;
    }
    if (!handler) return refuse(err, SF_UNSUPPORTED, "this process takes no signals");
    Reply reply(lane_, done);
    reply.give(op);
    handler(number, static_cast<SignalScope>(scope), std::move(reply));
    return SF_OK;
  }

  void grant(std::uint64_t bytes) {
    constexpr std::uint64_t cap = std::uint64_t{1} << 62;
    const std::lock_guard<std::mutex> lock(mutex_);
    credit_ = bytes > cap - std::min(cap, credit_) ? cap : credit_ + bytes;
    wake();
  }

  void release() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      released_ = true;
      wake();
    }
    drop();
  }

  // What cannot report an error logs it.
  template <class Fn>
  static void quietly(Fn fn) noexcept {
    try {
      fn();
    } catch (...) {
      report_stray(std::current_exception(), "a stream");
    }
  }
  template <class Fn>
  static sf_status reported(const sf_error_sink* err, Fn fn) noexcept {
    sf_status status = SF_OK;
    const sf_status thrown = fence(err, [&] { status = fn(); });
    return thrown != SF_OK ? thrown : status;
  }

  static const sf_stream_vtbl& stream_table() noexcept {
    static constexpr sf_stream_vtbl table = {
        sizeof(sf_stream_vtbl),
        [](sf_stream* s, std::uint64_t bytes) noexcept { quietly([&] { of(s).grant(bytes); }); },
        [](sf_stream* s, sf_bytes data, std::uint32_t flags, std::size_t* accepted,
           const sf_error_sink* err) noexcept {
          return reported(err, [&] { return of(s).write(data, flags, accepted, err); });
        },
        [](sf_stream* s, const sf_error_sink* err) noexcept {
          return fence(err, [&] { of(s).close_input(); });
        },
        [](sf_stream* s) noexcept { quietly([&] { of(s).request_stop(StopReason::cancelled); }); },
        [](sf_stream* s) noexcept {
          // A process's stream lives as long as the process.
          if (!of(s).is_process_) quietly([&] { of(s).release(); });
        }};
    return table;
  }
  static const sf_process_vtbl& process_table() noexcept {
    static constexpr sf_process_vtbl table = {
        sizeof(sf_process_vtbl), [](sf_process* p) noexcept { return at(p).stream(); },
        [](sf_process* p, std::int32_t number, std::uint32_t scope, sf_completion done, sf_op** op,
           const sf_error_sink* err) noexcept {
          return reported(err, [&] { return at(p).signal(number, scope, done, op, err); });
        },
        [](sf_process* p) noexcept { quietly([&] { at(p).release(); }); }};
    return table;
  }

  const Lane lane_;
  const sf_stream_events io_;
  sf_process_events process_{};
  bool is_process_ = false;
  StreamFace stream_{};
  ProcessFace process_face_{};
  std::atomic<int> refs_{2};
  StopSource stop_;

  // Held while a callback of the host runs: they come one at a time.
  mutable std::mutex delivery_;
  bool started_told_ = false;
  bool exit_told_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t credit_;
  std::uint64_t delivered_ = 0;
  std::uint64_t dropped_ = 0;
  StopReason reason_ = StopReason::none;
  bool cancelled_ = false;  // by the host: nobody wants the rest
  bool released_ = false;
  bool over_ = false;
  std::deque<Piece> input_;
  std::size_t input_bytes_ = 0;
  bool input_over_ = false;
  bool room_wanted_ = false;
  std::vector<std::function<void()>> credit_waiters_;
  std::vector<std::function<void()>> input_waiters_;
  SignalHandler signal_handler_;
  ResizeHandler resize_handler_;
  sf_op* timer_ = nullptr;
};

}  // namespace detail
}  // namespace sandforge::plugin

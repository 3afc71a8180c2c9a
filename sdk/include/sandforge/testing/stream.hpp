// A stream whose far end is a test.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "loop.hpp"

namespace sandforge::testing {

/*
 * In memory: delivers under credit what the test pushes, and hands the test what the plugin writes.
 * All of it happens on the lane; push, push_call, finish and writable may be called on any thread
 * until the stream is over. live counts those that still exist.
 */
class Stream : public sf_stream {
 public:
  static inline std::atomic<int> live{0};

  // What the far end does with input. write answers how many bytes it takes.
  std::function<std::size_t(std::string_view, std::uint32_t)> on_write;
  std::function<void()> on_shutdown;
  // Decides how a cancelled stream ends, and calls finish; else it ends in SF_CANCELLED.
  std::function<void()> on_cancel;

  static std::shared_ptr<Stream> create(Lane& lane, const sf_stream_events& events,
                                        std::uint64_t window) {
    std::shared_ptr<Stream> stream(new Stream(lane, events, window));
    stream->handle_ = stream;
    stream->running_ = stream;
    return stream;
  }

  // From the far end, on any thread.
  void push(std::uint32_t channel, std::uint32_t flags, std::string data) {
    lane_.post([me = self(), channel, flags, data = std::move(data)]() mutable {
      me->queue_.push_back({channel, flags, std::move(data), {}});
      me->deliver();
    });
  }
  // Something of its own between two pieces of data.
  void push_call(std::function<void()> call) {
    lane_.post([me = self(), call = std::move(call)]() mutable {
      me->queue_.push_back({0, 0, {}, std::move(call)});
      me->deliver();
    });
  }
  void finish(Failure failure = {}) {
    lane_.post([me = self(), failure = std::move(failure)] {
      if (!me->end_) me->end_ = failure;
      me->deliver();
    });
  }
  void writable() {
    lane_.post([me = self()] {
      if (me->running_) me->events_.on_writable(me->events_.ctx);
    });
  }
  bool released() const { return released_; }
  bool cancelled() const { return cancelled_; }

 private:
  struct Piece {
    std::uint32_t channel;
    std::uint32_t flags;
    std::string data;
    std::function<void()> call;
  };

  Stream(Lane& lane, const sf_stream_events& events, std::uint64_t window)
      : lane_(lane), events_(events), credit_(window) {
    vtbl = &functions();
    lane_.retain();
    ++live;
  }

 public:
  ~Stream() {
    lane_.release();
    --live;
  }

 private:
  std::shared_ptr<Stream> self() {
    const std::lock_guard lock(mutex_);
    return handle_    ? handle_
           : running_ ? running_
                      : throw Failed("a test used a stream that is over");
  }

  static Stream& of(sf_stream* stream) { return *static_cast<Stream*>(stream); }

  static const sf_stream_vtbl& functions() {
    static constexpr sf_stream_vtbl table = {
        sizeof(sf_stream_vtbl),
        [](sf_stream* s, std::uint64_t n) noexcept {
          of(s).lane_.post([me = of(s).self(), n] {
            me->credit_ += n;
            me->deliver();
          });
        },
        [](sf_stream* s, sf_bytes data, std::uint32_t flags, std::size_t* accepted,
           const sf_error_sink* err) noexcept -> sf_status {
          Stream& me = of(s);
          if (me.shut_ || !me.running_) return refuse(err, SF_CONFLICT, "the stream is closed");
          *accepted = me.on_write ? me.on_write(text(data), flags) : data.len;
          return SF_OK;
        },
        [](sf_stream* s, const sf_error_sink*) noexcept -> sf_status {
          Stream& me = of(s);
          if (!std::exchange(me.shut_, true) && me.on_shutdown) me.on_shutdown();
          return SF_OK;
        },
        [](sf_stream* s) noexcept {
          of(s).lane_.post([me = of(s).self()] {
            if (!me->running_ || me->cancelled_) return;
            me->cancelled_ = true;
            if (me->on_cancel) return me->on_cancel();
            if (!me->end_) me->end_ = Failure(SF_CANCELLED, "cancelled");
            me->deliver();
          });
        },
        [](sf_stream* s) noexcept {
          const auto me = of(s).self();
          me->lane_.post([me] {
            me->released_ = true;
            me->deliver();
          });
          const std::lock_guard lock(me->mutex_);
          me->handle_.reset();
        }};
    return table;
  }

  void deliver() {
    if (delivering_ || !running_) return;
    delivering_ = true;
    while (!queue_.empty()) {
      Piece& piece = queue_.front();
      if (piece.call) {
        const auto call = std::move(piece.call);
        queue_.pop_front();
        call();
        continue;
      }
      if (cancelled_ || (released_ && credit_ < piece.data.size())) {
        dropped_ += piece.data.size();
        queue_.pop_front();
        continue;
      }
      const auto n = std::min<std::uint64_t>(credit_, piece.data.size());
      const bool whole = n == piece.data.size();
      if (n == 0 && !(whole && (piece.flags & SF_DATA_END) != 0)) {
        if (whole) queue_.pop_front();
        if (whole) continue;
        break;
      }
      const std::string data = piece.data.substr(0, n);
      const std::uint32_t channel = piece.channel;
      const std::uint32_t flags = whole ? piece.flags : piece.flags & ~SF_DATA_END;
      piece.data.erase(0, n);
      if (whole) queue_.pop_front();
      credit_ -= n;
      delivered_ += n;
      events_.on_data(events_.ctx, channel, flags, bytes(data));
    }
    delivering_ = false;
    if (!queue_.empty() || !end_) return;
    sf_stream_end end{};
    end.struct_size = sizeof end;
    end.delivered = delivered_;
    end.dropped = dropped_;
    const sf_error error = end_->view();
    std::shared_ptr<Stream> keep;
    {
      const std::lock_guard lock(mutex_);
      keep = std::move(running_);
    }
    on_write = nullptr;
    on_shutdown = nullptr;
    on_cancel = nullptr;
    events_.done(events_.ctx, *end_ ? &error : nullptr, &end);
  }

  Lane& lane_;
  sf_stream_events events_;
  std::uint64_t credit_;
  std::deque<Piece> queue_;
  std::optional<Failure> end_;
  std::uint64_t delivered_ = 0;
  std::uint64_t dropped_ = 0;
  bool delivering_ = false;
  bool shut_ = false;
  std::atomic<bool> released_ = false;
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::shared_ptr<Stream> handle_;
  std::shared_ptr<Stream> running_;
};

}  // namespace sandforge::testing

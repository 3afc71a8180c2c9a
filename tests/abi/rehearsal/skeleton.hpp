// What the skeletons share: a provider and a sandbox with nothing in them, and a process whose
// output comes over some wire. Each skeleton then shows one protocol. Written on the bare boundary,
// to show that the boundary is enough; authors use sandforge/plugin/plugin.hpp instead.
#pragma once

#include <sandforge/abi.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace sandforge::rehearsal {

inline sf_str str(std::string_view v) noexcept {
  return {v.data(), v.size()};
}
inline sf_bytes bytes(std::string_view v) noexcept {
  return {reinterpret_cast<const uint8_t*>(v.data()), v.size()};
}
inline std::string text(sf_str v) {
  return v.ptr == nullptr ? "" : std::string(v.ptr, v.len);
}
inline std::string text(sf_bytes v) {
  return v.ptr == nullptr ? "" : std::string(reinterpret_cast<const char*>(v.ptr), v.len);
}
inline sf_error error(sf_status code, std::string_view message) noexcept {
  return {sizeof(sf_error), code, 0, str(message), {nullptr, 0}, SF_NONE};
}
inline sf_status refuse(const sf_error_sink* err, sf_status code, std::string_view message) {
  const sf_error e = error(code, message);
  if (err != nullptr) err->report(err->ctx, &e);
  return code;
}

inline sf_host* host = nullptr;
template <class Service>
const Service* service(const char* id) {
  return static_cast<const Service*>(host->vtbl->service(host, str(id)));
}

inline void post(sf_lane* lane, std::function<void()> fn) {
  auto* task = new std::function<void()>(std::move(fn));
  lane->vtbl->post(
      lane,
      [](void* ctx) noexcept {
        auto* run = static_cast<std::function<void()>*>(ctx);
        (*run)();
        delete run;
      },
      task);
}

// A handle for operations that end too soon to be cancelled.
inline void give_op(sf_op** op) {
  static constexpr sf_op_vtbl functions = {sizeof functions, [](sf_op*) noexcept {},
                                           [](sf_op*) noexcept {}};
  static sf_op nothing = {&functions};
  if (op != nullptr) *op = &nothing;
}

// Output waits here for credit, and consumed tells the wire how much of it has left. Everything but
// the two posts runs on the sandbox's lane. The subclass deletes itself through drop().
class WireProcess : public sf_process {
 public:
  WireProcess(sf_lane* lane, const sf_command& command, const sf_stream_events& io,
              const sf_process_events& events)
      : lane_(lane), io_events_(io), events_(events), credit_(command.window) {
    lane_->vtbl->retain(lane_);
    vtbl = &process_functions();
    io_.vtbl = &stream_functions();
    io_.owner = this;
  }
  virtual ~WireProcess() { lane_->vtbl->release(lane_); }
  WireProcess(const WireProcess&) = delete;
  WireProcess& operator=(const WireProcess&) = delete;

  void keep() { ++refs_; }
  void drop() {
    if (--refs_ == 0) delete this;
  }

 protected:
  // The protocol's part.
  virtual void consumed(std::uint64_t payload) = 0;
  virtual sf_status input(sf_bytes data, std::size_t* accepted) = 0;
  virtual void input_end() = 0;
  virtual void stop() = 0;
  virtual sf_status signal(int32_t) { return SF_UNSUPPORTED; }

  sf_lane* lane() const { return lane_; }
  void started(std::string_view id, int64_t pid) {
    const sf_process_started s{sizeof s, str(id), pid};
    events_.on_started(events_.ctx, &s);
  }
  void output(std::uint32_t channel, std::string_view data) {
    if (!data.empty()) queue_.emplace_back(channel, data);
    deliver();
  }
  void exited(std::int32_t code) {
    const sf_exit e{sizeof e, SF_EXIT_EXITED, 0, code, 0, 0, 0};
    events_.on_exit(events_.ctx, &e);
  }
  // The last call of the protocol.
  void finish(sf_status code = SF_OK, std::string message = {}) {
    if (ending_) return;
    ending_ = true;
    code_ = code;
    message_ = std::move(message);
    deliver();
  }
  void writable() {
    if (!over_) io_events_.on_writable(io_events_.ctx);
  }

 private:
  struct Io : sf_stream {
    WireProcess* owner;
  };
  static WireProcess& of(sf_stream* s) { return *static_cast<Io*>(s)->owner; }
  static WireProcess& of(sf_process* p) { return *static_cast<WireProcess*>(p); }

  void later(std::function<void()> fn) {
    keep();
    post(lane_, [this, fn = std::move(fn)] {
      fn();
      drop();
    });
  }

  void deliver() {
    if (delivering_ || over_) return;
    delivering_ = true;
    while (!queue_.empty() && (credit_ > 0 || discard_)) {
      const std::string data = std::move(queue_.front().second);
      const std::uint32_t channel = queue_.front().first;
      queue_.pop_front();
      const auto n = discard_ ? 0 : std::min<std::uint64_t>(credit_, data.size());
      if (n < data.size() && !discard_) queue_.emplace_front(channel, data.substr(n));
      if (n > 0) io_events_.on_data(io_events_.ctx, channel, 0, bytes(data.substr(0, n)));
      credit_ -= n;
      delivered_ += n;
      dropped_ += discard_ ? data.size() : 0;
      if (!ending_) consumed(discard_ ? data.size() : n);
    }
    delivering_ = false;
    if (!queue_.empty() || !ending_) return;
    over_ = true;
    const sf_stream_end end{sizeof end, delivered_, dropped_};
    const sf_error e = error(code_, message_);
    io_events_.done(io_events_.ctx, code_ == SF_OK ? nullptr : &e, &end);
    drop();
  }

  static const sf_stream_vtbl& stream_functions() {
    static constexpr sf_stream_vtbl table = {
        sizeof(sf_stream_vtbl),
        [](sf_stream* s, std::uint64_t n) noexcept {
          WireProcess& me = of(s);
          me.later([&me, n] {
            me.credit_ += n;
            me.deliver();
          });
        },
        [](sf_stream* s, sf_bytes data, std::uint32_t, std::size_t* accepted,
           const sf_error_sink* err) noexcept {
          *accepted = 0;
          if (of(s).over_ || of(s).shut_) return refuse(err, SF_CONFLICT, "input is closed");
          return of(s).input(data, accepted);
        },
        [](sf_stream* s, const sf_error_sink*) noexcept {
          if (!std::exchange(of(s).shut_, true) && !of(s).over_) of(s).input_end();
          return sf_status{SF_OK};
        },
        [](sf_stream* s) noexcept {
          WireProcess& me = of(s);
          me.later([&me] {
            if (me.over_ || std::exchange(me.discard_, true)) return;
            me.stop();
            me.deliver();
          });
        },
        [](sf_stream*) noexcept {}};
    return table;
  }
  static const sf_process_vtbl& process_functions() {
    static constexpr sf_process_vtbl table = {
        sizeof(sf_process_vtbl), [](sf_process* p) noexcept -> sf_stream* { return &of(p).io_; },
        [](sf_process* p, std::int32_t number, std::uint32_t, sf_completion done, sf_op** op,
           const sf_error_sink* err) noexcept {
          if (of(p).over_) return refuse(err, SF_GONE, "the process has ended");
          const sf_status status = of(p).signal(number);
          if (status != SF_OK) return refuse(err, status, "no signals here");
          give_op(op);
          post(of(p).lane_, [done] { done.done(done.ctx, nullptr); });
          return sf_status{SF_OK};
        },
        [](sf_process* p) noexcept {
          WireProcess& me = of(p);
          me.later([&me] {
            me.discard_ = me.discard_ || me.credit_ == 0;
            me.deliver();
          });
          me.drop();
        }};
    return table;
  }

  sf_lane* lane_;
  sf_stream_events io_events_;
  sf_process_events events_;
  Io io_{};
  std::atomic<int> refs_{2};  // the handle, and the run until done
  std::uint64_t credit_;
  std::deque<std::pair<std::uint32_t, std::string>> queue_;
  std::uint64_t delivered_ = 0;
  std::uint64_t dropped_ = 0;
  bool delivering_ = false;
  bool discard_ = false;
  bool shut_ = false;
  bool ending_ = false;
  bool over_ = false;
  sf_status code_ = SF_OK;
  std::string message_;
};

// The part of a sandbox that each skeleton writes. Created and destroyed on its lane.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual sf_status spawn(const sf_command& command, const sf_stream_events& io,
                          const sf_process_events& events, sf_process** process,
                          const sf_error_sink* err) = 0;
};
using MakeMachine = Machine* (*)(sf_lane* lane);

const sf_plugin* make_plugin(MakeMachine make);

}  // namespace sandforge::rehearsal

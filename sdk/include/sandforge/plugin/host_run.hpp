// A short command on the host's machine, taken whole. Both styles: a blocking author calls
// run_on_host(…).get(stop), a coroutine awaits it. For streams and input: HostProcess.
#pragma once

#include <memory>
#include <utility>

#include "async.hpp"
#include "command.hpp"

namespace sandforge::plugin {

class HostAnswer {
 public:
  HostAnswer() {}
  Exit exit;
  std::string out;
  std::string err;
};

namespace detail {

// References: the host's from the spawn until done, and that of the handle for cancel.
class HostRun : public std::enable_shared_from_this<HostRun> {
 public:
  HostRun(Command command, std::size_t most, Pending<HostAnswer>* pending)
      : command_(std::move(command)), most_(most), pending_(pending) {}

  void give(sf_op** op) {
    if (op != nullptr) *op = new Handle(shared_from_this());
  }

  // On the lane.
  void begin(const Lane& lane) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (cancelled_) return pending_->fail(plain_error(SF_CANCELLED, "cancelled"));
    }
    const CommandView raw(command_);
    const sf_stream_events io{sizeof io, this, on_data, [](void*) noexcept {}, on_done};
    const sf_process_events events{sizeof events, this,
                                   [](void*, const sf_process_started*) noexcept {}, on_exit};
    self_ = shared_from_this();
    ErrorCatcher errors;
    sf_process* process = nullptr;
    std::exception_ptr refused = thrown_in([&] {
      errors.check(need(services().process, SF_SERVICE_PROCESS)
                       .spawn(services().host, lane.get(), raw.get(), &io, &events, &process,
                              errors.sink()));
    });
    if (refused) {
      self_.reset();
      return pending_->fail(std::move(refused));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    process_ = process;
    if (cancelled_) end();
  }

 private:
  struct Handle : sf_op {
    std::shared_ptr<HostRun> of;
    explicit Handle(std::shared_ptr<HostRun> what) : of(std::move(what)) {
      static constexpr sf_op_vtbl functions = {
          sizeof(sf_op_vtbl), [](sf_op* op) noexcept { static_cast<Handle*>(op)->of->cancel(); },
          [](sf_op* op) noexcept { delete static_cast<Handle*>(op); }};
      vtbl = &functions;
    }
  };

  void cancel() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    if (process_ != nullptr) end();
  }
  sf_stream* stream() const noexcept { return process_->vtbl->stream(process_); }
  void end() noexcept { stream()->vtbl->cancel(stream()); }

  static HostRun& at(void* ctx) noexcept { return *static_cast<HostRun*>(ctx); }
  static void on_data(void* ctx, std::uint32_t channel, std::uint32_t, sf_bytes data) noexcept {
    HostRun& me = at(ctx);
    try {
      if (me.error_) return;
      if (me.answer_.out.size() + me.answer_.err.size() + data.len > me.most_) {
        throw Error(Code::no_space, "the command of the host wrote more than " +
                                        std::to_string(me.most_) + " bytes");
      }
      (channel == SF_CHANNEL_STDERR ? me.answer_.err : me.answer_.out).append(view(data));
    } catch (...) {
      me.error_ = std::current_exception();
      return me.cancel();
    }
    me.stream()->vtbl->grant(me.stream(), data.len);
  }
  static void on_exit(void* ctx, const sf_exit* exit) noexcept {
    at(ctx).answer_.exit = Exit(*exit);
    at(ctx).exited_ = true;
  }
  static void on_done(void* ctx, const sf_error* error, const sf_stream_end*) noexcept {
    const std::shared_ptr<HostRun> me = std::move(at(ctx).self_);
    sf_process* process = nullptr;
    bool cancelled = false;
    {
      const std::lock_guard<std::mutex> lock(me->mutex_);
      process = std::exchange(me->process_, nullptr);
      cancelled = me->cancelled_;
    }
    process->vtbl->release(process);
    // Handed over, not shared: whoever waits for it may be the one that ends it.
    if (me->error_) return me->pending_->fail(std::exchange(me->error_, nullptr));
    if (cancelled) return me->pending_->fail(plain_error(SF_CANCELLED, "cancelled"));
    if (me->exited_) return me->pending_->succeed(std::move(me->answer_));
    if (error != nullptr) return me->pending_->fail(*error);
    me->pending_->fail(plain_error(SF_INTERNAL, "the host did not say how the command ended"));
  }

  const Command command_;
  const std::size_t most_;
  Pending<HostAnswer>* const pending_;
  std::shared_ptr<HostRun> self_;
  HostAnswer answer_;
  std::exception_ptr error_;
  bool exited_ = false;
  std::mutex mutex_;  // of what a cancel looks at
  sf_process* process_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace detail

/*
 * Runs it to its end. Any exit is an answer; a command that cannot run at all throws, and so does
 * output of more than `most` bytes, Code::no_space. It inherits no environment; its program is
 * looked up in the PATH that it is given. A stop ends its whole tree. Code::unsupported when the
 * host has no process service, or the manifest does not name it.
 */
inline Async<HostAnswer> run_on_host(const Lane& lane, Command command,
                                     std::size_t most = 1 << 20) {
  return {lane, [lane, most, command = std::move(command)](auto* pending, sf_op** op,
                                                           const sf_error_sink*) {
            const auto run = std::make_shared<detail::HostRun>(command, most, pending);
            run->give(op);
            if (lane.is_current()) {
              run->begin(lane);
            } else {
              lane.post([run, lane] { run->begin(lane); });
            }
            return sf_status{SF_OK};
          }};
}

}  // namespace sandforge::plugin

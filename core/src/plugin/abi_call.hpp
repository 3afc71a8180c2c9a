// Calls into a plugin: fenced against exceptions, with exactly one end for each operation.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "plugin/abi_text.hpp"
#include "plugin/plugin.hpp"
#include "sandforge/handler.hpp"
#include "sandforge/runtime.hpp"

namespace sandforge::plugin {

// What an exception that is being handled says.
std::string describe_exception();

// Calls a function that answers a status. The pointer's type here has no noexcept, so that the
// handler is kept by the compiler: a plugin of an older language version may well throw.
template <class... P, class... A>
Result<void> call_status(Plugin& plugin, const char* what, sf_status (*fn)(P...), A... args) {
  ErrorFrame frame(plugin, what);
  sf_status status = SF_OK;
  try {
    status = fn(args..., frame.sink());
  } catch (...) {
    const std::string text = describe_exception();
    plugin.faults.report(Fault::exception, std::string(what) + ": " + text);
    Error error = crashed(plugin, std::string(what) + " let an exception out: " + text);
    error.may_have_started = true;
    return error;
  }
  if (status == SF_OK) return {};
  return frame.take(status);
}

// Calls a function that answers a value, or nothing. An exception gives R{}.
template <class R, class... P, class... A>
R call_value(Plugin& plugin, const char* what, R (*fn)(P...), A... args) noexcept {
  try {
    return fn(args...);
  } catch (...) {
    plugin.faults.report(Fault::exception, what);
    return R();
  }
}

// Ends an operation of the host: its `done` gets the error, or null, and the values.
template <class Done, class... V>
void call_done(Plugin& plugin, const char* what, Done done, void* ctx, const Error* error,
               V... values) {
  if (error == nullptr) {
    call_value(plugin, what, done, ctx, static_cast<const sf_error*>(nullptr), values...);
    return;
  }
  const ErrorView view(*error);
  call_value(plugin, what, done, ctx, view.get(), values...);
}

// Whether that is a handle of an operation; none, or one without its functions, is a fault.
bool is_usable(Plugin& plugin, const sf_op* op, const char* what);

// The plugin's handle of a running operation.
class OpHandle {
 public:
  OpHandle(Plugin& plugin, sf_op* op) noexcept : plugin_(plugin), op_(op) {}
  ~OpHandle() { call_value(plugin_, "op.release", op_->vtbl->release, op_); }
  OpHandle(const OpHandle&) = delete;
  OpHandle& operator=(const OpHandle&) = delete;
  void cancel() noexcept { call_value(plugin_, "op.cancel", op_->vtbl->cancel, op_); }

  // Null when the plugin gave none, or one without its functions: a fault.
  static std::shared_ptr<OpHandle> adopt(Plugin& plugin, sf_op* op, const char* what);

 private:
  Plugin& plugin_;
  sf_op* op_;
};

// What all kinds of operations share; see Call.
class CallBase : public Pending {
 public:
  CallBase(Plugin& plugin, Lane lane, const char* what, std::shared_ptr<void> keep)
      : plugin_(plugin), lane_(std::move(lane)), what_(what), keep_(std::move(keep)) {}

  void cancel() noexcept override;
  Plugin& plugin() noexcept { return plugin_; }
  const Lane& lane() const noexcept { return lane_; }
  const char* what() const noexcept { return what_; }

  // The start call returned: SF_OK with its handle, or an error.
  void started(sf_op* op);
  void refused() noexcept { phase_.store(Phase::refused); }

 protected:
  enum class Phase : std::uint8_t { starting, running, refused };

  // Reports an end that comes from inside the start. Called from `done`, on its thread.
  void note_end() noexcept;
  bool is_refused() noexcept;
  void drop_handle() noexcept;

 private:
  Plugin& plugin_;
  const Lane lane_;
  const char* const what_;
  std::shared_ptr<void> keep_;  // the plugin's object that was called
  std::atomic<Phase> phase_{Phase::starting};
  std::mutex mutex_;
  std::shared_ptr<OpHandle> op_;
  bool cancelled_ = false;
};

// One operation: a token while it runs, then its handler on the lane, exactly once.
template <class T>
class Call : public CallBase, public std::enable_shared_from_this<Call<T>> {
 public:
  static constexpr char kKind = 0;

  Call(Plugin& plugin, Lane lane, const char* what, std::shared_ptr<void> keep, Handler<T> handler)
      : CallBase(plugin, std::move(lane), what, std::move(keep)), handler_(std::move(handler)) {}

  void finish(Result<T> result) {
    note_end();
    lane().post([self = this->shared_from_this(), result = std::move(result)]() mutable {
      if (self->is_refused()) return;
      self->drop_handle();
      auto handler = std::move(self->handler_);
      std::move(handler)(std::move(result));
    });
  }

  // The start failed: its error is the result.
  void fail_start(Error error) {
    refused();
    lane().post([self = this->shared_from_this(), error = std::move(error)]() mutable {
      self->drop_handle();
      auto handler = std::move(self->handler_);
      std::move(handler)(Result<T>(std::move(error)));
    });
  }

 private:
  Handler<T> handler_;
};

template <class T>
inline std::shared_ptr<Call<T>> end_call(void* ctx, const char* what) noexcept {
  return std::static_pointer_cast<Call<T>>(object_of(ctx, &Call<T>::kKind, true, what));
}

// Starts an operation: `start(ctx, op, sink)` calls the plugin. The handler comes later, also when
// the start fails.
template <class T, class Start>
std::shared_ptr<Pending> run_call(std::shared_ptr<Call<T>> call, Start&& start) {
  Plugin& plugin = call->plugin();
  void* ctx = plugin.tokens.add(call, &Call<T>::kKind);
  if (ctx == nullptr) {
    call->fail_start(Error(Status::unavailable, "too many operations of one plugin are running"));
    return call;
  }
  sf_op* op = nullptr;
  auto outcome = start(ctx, &op);
  if (outcome.ok()) {
    call->started(op);
    return call;
  }
  if (!plugin.tokens.drop(ctx)) plugin.faults.report(Fault::contradiction, call->what());
  call->fail_start(std::move(outcome).error());
  return call;
}

// Turns what a plugin gave to a `done` into a result; never lets an exception out.
template <class T, class Read>
void complete(void* ctx, const sf_error* error, const char* what, Read&& read) noexcept {
  const auto call = end_call<T>(ctx, what);
  if (!call) return;
  try {
    if (error != nullptr) {
      call->finish(copy_error(call->plugin(), error, call->what()));
    } else {
      call->finish(read(call->plugin()));
    }
  } catch (...) {
    call->finish(Error(Status::internal, "an answer could not be copied: " + describe_exception()));
  }
}

// The completion of operations without a result.
void done_void(void* ctx, const sf_error* error) noexcept;
void done_text(void* ctx, const sf_error* error, sf_str text) noexcept;

}  // namespace sandforge::plugin

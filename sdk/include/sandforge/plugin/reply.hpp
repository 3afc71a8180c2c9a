// Answers of the plugin to calls of the host: the handle of a running call, and a completion that
// can neither be forgotten, nor given twice, nor given from inside the call.
#pragma once

#include <atomic>
#include <memory>

#include "lane.hpp"
#include "stop_token.hpp"

namespace sandforge::plugin {
namespace detail {

// The handle of a running call. One reference is the host's, the others are shared_ptrs.
class Operation final : public sf_op {
 public:
  static std::shared_ptr<Operation> create() { return std::make_shared<Operation>(); }
  Operation() {
    static constexpr sf_op_vtbl functions = {
        sizeof(sf_op_vtbl),
        [](sf_op* self) noexcept {
          try {
            const auto keep = static_cast<Operation*>(self)->host_;
            keep->stop_.request_stop();
          } catch (...) {
            report_stray(std::current_exception(), "cancel");
          }
        },
        [](sf_op* self) noexcept {
          // Moved out first: it may be the last reference.
          const auto last = std::move(static_cast<Operation*>(self)->host_);
        }};
    vtbl = &functions;
  }

  // Hands the call's handle to a host that wants one.
  static void give(const std::shared_ptr<Operation>& operation, sf_op** out) noexcept {
    if (out == nullptr) return;
    operation->host_ = operation;
    *out = operation.get();
  }
  StopToken token() const { return stop_.token(); }

 private:
  StopSource stop_;
  std::shared_ptr<Operation> host_;
};

}  // namespace detail

/*
 * The end of a call without a result. Answer once, on any thread; the host hears it on the lane. A
 * Reply that is dropped without an answer answers Code::internal.
 */
class Reply {
 public:
  Reply(Lane lane, sf_completion done)
      : lane_(std::move(lane)), done_(done), operation_(detail::Operation::create()) {}
  Reply(Reply&&) noexcept = default;
  Reply& operator=(Reply&&) = delete;
  ~Reply() {
    if (!operation_) return;
    try {
      fail(Error(Code::internal, "the plugin gave no answer"));
    } catch (...) {
      detail::report_stray(std::current_exception(), "an answer");
    }
  }

  StopToken stop() const { return operation_->token(); }
  void ok() { answer(nullptr); }
  void fail(const Error& error) { answer(std::make_exception_ptr(error)); }
  void fail(std::exception_ptr error) { answer(std::move(error)); }

  // For the layer: the handle of the call.
  void give(sf_op** out) const noexcept { detail::Operation::give(operation_, out); }

 private:
  void answer(std::exception_ptr error) {
    if (!std::exchange(operation_, nullptr)) return;
    lane_.post([done = done_, error = std::move(error)] {
      if (!error) return done.done(done.ctx, nullptr);
      detail::with_error(error, [&](const sf_error& e) { done.done(done.ctx, &e); });
    });
  }

  Lane lane_;
  sf_completion done_;
  std::shared_ptr<detail::Operation> operation_;
};

}  // namespace sandforge::plugin

// One call with an answer, and what a rule makes of it.
#pragma once

#include <functional>
#include <utility>

#include "faults/script.hpp"

namespace sandforge::faults {

// Lives until its answer. Everything on the lane, but for cancel and crash.
template <class T>
class Call final : public Pending, public Crashable, public std::enable_shared_from_this<Call<T>> {
 public:
  // Makes the call. The answer does not come from inside it.
  using Deliver = std::function<std::shared_ptr<Pending>(Handler<T>)>;

  Call(Ground ground, Lane lane, Handler<T> done, Deliver deliver)
      : ground_(std::move(ground)),
        lane_(std::move(lane)),
        done_(std::move(done)),
        deliver_(std::move(deliver)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() override { ground_.script->impl().remove(this); }

  void run(std::optional<Shot> shot) {
    ground_.script->impl().add(this->shared_from_this());
    shot_ = shot;
    if (!shot_) return deliver();
    switch (shot_->kind) {
      case FaultKind::refuse:
        return lane_.post([self = this->shared_from_this()] {
          self->answer(error_of(*self->shot_, Status::transport_lost, false));
        });
      case FaultKind::drop:
        return hold(error_of(*shot_, Status::timeout, true));
      case FaultKind::half_open:
        deliver();
        return hold(error_of(*shot_, Status::transport_lost, true));
      case FaultKind::delay:
        return after_delay();
      case FaultKind::crash:
        return ground_.script->impl().crash();
      case FaultKind::duplicate:
        again_ = true;
        return deliver();
      default:
        return deliver();
    }
  }

  void cancel() noexcept override {
    lane_.post([self = this->shared_from_this()] {
      const bool silent = self->is(FaultKind::half_open);
      if (self->inner_ && !silent) self->inner_->cancel();
      if (self->timer_) self->timer_->cancel();
    });
  }

  void crash() override {
    lane_.post([self = this->shared_from_this()] {
      self->answer(crash_error(true));
      if (self->timer_) self->timer_->cancel();
    });
  }

 private:
  bool is(FaultKind kind) const noexcept { return shot_ && shot_->kind == kind; }

  void deliver() {
    inner_ = deliver_(
        [self = this->shared_from_this()](Result<T> result) { self->came(std::move(result)); });
  }

  // No answer of the provider; this one after the time, or when it is cancelled.
  void hold(Error late) {
    timer_ = ground_.timer(
        lane_, shot_->rule.time,
        [self = this->shared_from_this(), late = std::move(late)](const Result<void>& result) {
          if (result) return self->answer(late);
          self->answer(self->cancelled(true));
        });
  }

  void after_delay() {
    timer_ = ground_.timer(lane_, shot_->rule.time,
                           [self = this->shared_from_this()](const Result<void>& result) {
                             self->timer_.reset();
                             if (!self->done_) return;
                             if (result) return self->deliver();
                             self->answer(self->cancelled(false));
                           });
  }

  Error cancelled(bool may_have_started) const {
    Error error(Status::cancelled, "the call was cancelled", "fault.cancelled");
    error.may_have_started = may_have_started;
    return error;
  }

  void came(Result<T> result) {
    inner_.reset();
    if (!done_ || is(FaultKind::half_open)) return;
    if (std::exchange(again_, false)) return deliver();
    if (is(FaultKind::lose)) return answer(error_of(*shot_, Status::transport_lost, true));
    answer(std::move(result));
  }

  void answer(Result<T> result) {
    if (!done_) return;
    Handler<T> done = std::move(done_);
    done_ = nullptr;
    deliver_ = nullptr;
    std::move(done)(std::move(result));
  }

  const Ground ground_;
  const Lane lane_;
  Handler<T> done_;
  Deliver deliver_;
  std::optional<Shot> shot_;
  std::shared_ptr<Pending> inner_;
  std::shared_ptr<Pending> timer_;
  bool again_ = false;
};

// Makes a call under what strikes it. [lane]
template <class T>
std::shared_ptr<Pending> run_call(const Ground& ground, const Lane& lane, std::optional<Shot> shot,
                                  Handler<T> done, typename Call<T>::Deliver deliver) {
  auto call = std::make_shared<Call<T>>(ground, lane, std::move(done), std::move(deliver));
  call->run(shot);
  return call;
}

}  // namespace sandforge::faults

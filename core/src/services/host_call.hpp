// An operation of the host that a plugin started: ends once, on the plugin's lane, also when it is
// cancelled, when the host's function answers from any thread, twice, or never.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "plugin/abi_lane.hpp"
#include "plugin/abi_text.hpp"
#include "sandforge/handler.hpp"

namespace sandforge::services {

// `deliver` hands a result to the plugin's callback, on the lane.
template <class T>
class HostCall : public Pending, public std::enable_shared_from_this<HostCall<T>> {
 public:
  using Deliver = std::function<void(const Result<T>&)>;

  HostCall(Lane lane, Deliver deliver) : lane_(std::move(lane)), deliver_(std::move(deliver)) {}

  bool ended() const noexcept { return ended_.load(); }
  void cancel() noexcept override { finish(Error(Status::cancelled, "cancelled by the plugin")); }

  void finish(Result<T> result) {
    if (ended_.exchange(true)) return;
    lane_.post([self = this->shared_from_this(), result = std::move(result)] {
      auto deliver = std::move(self->deliver_);
      deliver(result);
    });
  }

  // Later, so that an exception that drops the handler gets its say first.
  void give_up() {
    lane_.post([self = this->shared_from_this()] {
      self->finish(Error(Status::internal, "the host gave no answer"));
    });
  }

  // A handler for the host's function. Dropped without an answer, it gives an error.
  Handler<T> handler() {
    struct Guard {
      explicit Guard(std::shared_ptr<HostCall> c) : call(std::move(c)) {}
      Guard(Guard&&) noexcept = default;
      ~Guard() {
        if (call) call->give_up();
      }
      void operator()(Result<T> result) { std::exchange(call, nullptr)->finish(std::move(result)); }
      std::shared_ptr<HostCall> call;
    };
    return Handler<T>(Guard(this->shared_from_this()));
  }

 private:
  const Lane lane_;
  Deliver deliver_;
  std::atomic<bool> ended_{false};
};

// Starts one: the handle is given first, then `begin` runs on the lane and asks the host.
template <class T, class Begin>
void start_host_call(const Lane& lane, sf_op** op, typename HostCall<T>::Deliver deliver,
                     Begin&& begin) {
  auto call = std::make_shared<HostCall<T>>(lane, std::move(deliver));
  plugin::HostOp::give(op, call);
  lane.post([call, begin = std::forward<Begin>(begin)]() mutable {
    if (call->ended()) return;
    try {
      begin(call->handler());
    } catch (const std::exception& e) {
      call->finish(Error(Status::internal, std::string("the host's function failed: ") + e.what()));
    } catch (...) {
      call->finish(Error(Status::internal, "the host's function failed"));
    }
  });
}

}  // namespace sandforge::services

#include "plugin/abi_lane.hpp"

#include "plugin/abi_call.hpp"

namespace sandforge::plugin {

HostLane::HostLane(Plugin& plugin, Lane lane) noexcept : plugin_(plugin), lane_(std::move(lane)) {
  static const sf_lane_vtbl table = {sizeof(sf_lane_vtbl), &HostLane::retain, &HostLane::release,
                                     &HostLane::post, &HostLane::is_current};
  vtbl = &table;
}

void HostLane::retain(sf_lane* self) noexcept {
  static_cast<HostLane*>(self)->references_.fetch_add(1, std::memory_order_relaxed);
}

void HostLane::release(sf_lane* self) noexcept {
  auto* lane = static_cast<HostLane*>(self);
  if (lane->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete lane;
}

void HostLane::post(sf_lane* self, void (*fn)(void*) noexcept, void* ctx) noexcept {
  auto* lane = static_cast<HostLane*>(self);
  if (fn == nullptr) {
    lane->plugin_.faults.report(Fault::missing_value, "lane.post without a function");
    return;
  }
  lane->lane_.post(
      [plugin = &lane->plugin_, fn, ctx] { call_value(*plugin, "lane.post", fn, ctx); });
}

uint32_t HostLane::is_current(sf_lane* self) noexcept {
  return static_cast<HostLane*>(self)->lane_.is_current() ? 1 : 0;
}

HostOp::HostOp(std::shared_ptr<Pending> pending) noexcept : pending_(std::move(pending)) {
  static const sf_op_vtbl table = {sizeof(sf_op_vtbl), &HostOp::cancel, &HostOp::release};
  vtbl = &table;
}

void HostOp::give(sf_op** op, std::shared_ptr<Pending> pending) {
  if (op != nullptr) *op = new HostOp(std::move(pending));
}

void HostOp::cancel(sf_op* self) noexcept {
  static_cast<HostOp*>(self)->pending_->cancel();
}

void HostOp::release(sf_op* self) noexcept {
  delete static_cast<HostOp*>(self);
}

}  // namespace sandforge::plugin

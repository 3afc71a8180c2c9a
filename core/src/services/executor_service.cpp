#include <limits>
#include <mutex>
#include <utility>

#include "plugin/abi_call.hpp"
#include "plugin/abi_lane.hpp"
#include "sandforge/ext/host_executor.h"
#include "services/descriptor_stream.hpp"
#include "services/plugin_host.hpp"

namespace sandforge::services {
namespace {

using plugin::call_value;
using plugin::HostLane;
using plugin::HostOp;
using plugin::Plugin;
using plugin::refuse;

// A handle that exists before what it cancels: plugins must have it before anything can end.
class LatePending final : public Pending {
 public:
  void set(std::shared_ptr<Pending> inner) {
    bool now = false;
    {
      const std::lock_guard lock(mutex_);
      inner_ = inner;
      now = cancelled_;
    }
    if (now) inner->cancel();
  }

  void cancel() noexcept override {
    std::shared_ptr<Pending> inner;
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(cancelled_, true)) return;
      inner = inner_;
    }
    if (inner) inner->cancel();
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Pending> inner_;
  bool cancelled_ = false;
};

Handler<void> completion(Plugin& plugin, sf_completion done, const char* what) {
  return Handler<void>([&plugin, done, what](const Result<void>& result) {
    plugin::call_done(plugin, what, done.done, done.ctx, result.ok() ? nullptr : &result.error());
  });
}

// Runs `f(runtime, plugin)` with what every function here needs, and lets no exception out.
template <class F>
sf_status with_runtime(sf_host* self, const sf_error_sink* err, F&& f) noexcept {
  try {
    PluginHost& host = PluginHost::of(self);
    const auto runtime = host.runtime();
    if (!runtime)
      return refuse(err, Error(Status::unavailable, "the host has closed this service"));
    const Result<void> result = f(*runtime, host.plugin());
    return result.ok() ? SF_OK : refuse(err, result.error());
  } catch (...) {
    return refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

Error missing(const char* what) {
  return Error(Status::invalid, what);
}

sf_status lane_create(sf_host* self, sf_lane** lane, const sf_error_sink* err) noexcept {
  return with_runtime(self, err, [&](Runtime& runtime, Plugin& plugin) -> Result<void> {
    if (lane == nullptr) return missing("lane_create needs a place for the lane");
    *lane = new HostLane(plugin, runtime.make_lane());
    return {};
  });
}

sf_status timer(sf_host* self, sf_lane* lane, uint64_t delay_ms, sf_completion done, sf_op** op,
                const sf_error_sink* err) noexcept {
  return with_runtime(self, err, [&](Runtime& runtime, Plugin& plugin) -> Result<void> {
    if (lane == nullptr || done.done == nullptr)
      return missing("a timer needs a lane and a completion");
    constexpr std::uint64_t longest = std::numeric_limits<std::int64_t>::max();
    auto pending = std::make_shared<LatePending>();
    HostOp::give(op, pending);
    pending->set(runtime.timer(HostLane::lane_of(lane),
                               std::chrono::milliseconds(std::min(delay_ms, longest)),
                               completion(plugin, done, "timer.done")));
    return {};
  });
}

sf_status post_blocking(sf_host* self, sf_lane* lane, void (*work)(void*) noexcept, void* work_ctx,
                        sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
  return with_runtime(self, err, [&](Runtime& runtime, Plugin& plugin) -> Result<void> {
    if (lane == nullptr || work == nullptr || done.done == nullptr)
      return missing("post_blocking needs a lane, work and a completion");
    auto pending = std::make_shared<LatePending>();
    HostOp::give(op, pending);
    pending->set(runtime.post_blocking(
        HostLane::lane_of(lane),
        [&plugin, work, work_ctx] { call_value(plugin, "blocking work", work, work_ctx); },
        completion(plugin, done, "post_blocking.done")));
    return {};
  });
}

sf_status adopt(sf_host* self, sf_lane* lane, int32_t descriptor, uint64_t window,
                const sf_stream_events* events, sf_stream** stream,
                const sf_error_sink* err) noexcept {
  return with_runtime(self, err, [&](Runtime& runtime, Plugin& plugin) -> Result<void> {
    if (lane == nullptr || events == nullptr || stream == nullptr)
      return missing("adopt_descriptor needs a lane, events and a place for the stream");
    return adopt_descriptor(plugin, runtime, HostLane::lane_of(lane), descriptor, window, *events,
                            stream);
  });
}

}  // namespace

const void* executor_service() noexcept {
  static const sf_executor_service table = {sizeof(sf_executor_service), &lane_create, &timer,
                                            &post_blocking, &adopt};
  return &table;
}

}  // namespace sandforge::services

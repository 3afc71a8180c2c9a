// Lanes and operations of the host in the form that plugins hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "plugin/plugin.hpp"
#include "sandforge/abi.h"
#include "sandforge/runtime.hpp"

namespace sandforge::plugin {

// A lane, counted by whoever holds it on either side.
class HostLane : public sf_lane {
 public:
  HostLane(Plugin& plugin, Lane lane) noexcept;
  static const Lane& lane_of(sf_lane* lane) noexcept { return static_cast<HostLane*>(lane)->lane_; }
  static Plugin& plugin_of(sf_lane* lane) noexcept { return static_cast<HostLane*>(lane)->plugin_; }

 private:
  friend class LaneRef;
  static void retain(sf_lane* self) noexcept;
  static void release(sf_lane* self) noexcept;
  static void post(sf_lane* self, void (*fn)(void*) noexcept, void* ctx) noexcept;
  static uint32_t is_current(sf_lane* self) noexcept;

  Plugin& plugin_;
  const Lane lane_;
  std::atomic<std::uint32_t> references_{1};
};

// The host's own reference to a HostLane.
class LaneRef {
 public:
  LaneRef(Plugin& plugin, Lane lane) : lane_(new HostLane(plugin, std::move(lane))) {}
  ~LaneRef() { HostLane::release(lane_); }
  LaneRef(const LaneRef&) = delete;
  LaneRef& operator=(const LaneRef&) = delete;
  sf_lane* get() const noexcept { return lane_; }

 private:
  HostLane* lane_;
};

// An operation of the host that a plugin started: written to its `op` before anything can end.
class HostOp : public sf_op {
 public:
  // Nothing when the plugin wants no handle.
  static void give(sf_op** op, std::shared_ptr<Pending> pending);

 private:
  explicit HostOp(std::shared_ptr<Pending> pending) noexcept;
  static void cancel(sf_op* self) noexcept;
  static void release(sf_op* self) noexcept;
  const std::shared_ptr<Pending> pending_;
};

}  // namespace sandforge::plugin

// In the runner: a session's context that the host keeps.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runner/peer.hpp"

namespace sandforge::runner {

// Counted; made with one reference. The last one lets go of the host's context.
class ContextProxy final : public sf_context {
 public:
  ContextProxy(std::shared_ptr<Peer> peer, Id id, sf_context_fields fields,
               const std::string& sandbox_id);

  static ContextProxy& of(sf_context* self) noexcept { return *static_cast<ContextProxy*>(self); }
  static void release(sf_context* self) noexcept;
  Id id() const noexcept { return id_; }
  const std::shared_ptr<Peer>& peer() const noexcept { return peer_; }

 private:
  ~ContextProxy();

  const std::shared_ptr<Peer> peer_;
  const Id id_;
  std::string bytes_;  // what the fields point into
  wire::Arena arena_;
  sf_context_fields fields_{};
  std::atomic<std::uint32_t> references_{1};
};

// Handles of one call that a room serves.
class RoomHandles final : public wire::Handles {
 public:
  RoomHandles(std::shared_ptr<Peer> peer, sf_lane* lane) : peer_(std::move(peer)), lane_(lane) {}
  ~RoomHandles() override;
  // The provider's id as it is known now, where that is not the context's.
  void set_sandbox_id(std::string id) { sandbox_id_ = std::move(id); }

  void write(wire::Writer& out, sf_context* context) override;
  sf_context* read_context(wire::Reader& in) override;
  sf_lane* lane() override { return lane_; }

 private:
  const std::shared_ptr<Peer> peer_;
  sf_lane* const lane_;
  std::string sandbox_id_;
  std::vector<sf_context*> borrowed_;
};

}  // namespace sandforge::runner

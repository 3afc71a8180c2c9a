// The state of a session and its functions, behind the vtable in sandbox_vtable.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "sandbox.hpp"
#include "sandforge/ext/snapshot.h"
#include "sandforge/guest_link/guest_process.hpp"

namespace sandforge::local {

// What making a connection found out.
struct LinkFacts {
  bool folder_created = false;
  bool guest_started = false;
};

// A failure, or a link, or neither: no guest runs.
using LinkFn = std::function<void(const Failure*, const std::shared_ptr<GuestLink>&, LinkFacts)>;

class SandboxObject final : public GuestOwner, public std::enable_shared_from_this<SandboxObject> {
 public:
  SandboxObject(std::shared_ptr<const ProviderSettings> settings, SessionPlace place,
                BootNames boot, sf_lane* lane);

  sf_sandbox* handle() {
    self_ = shared_from_this();
    return &handle_.base;
  }
  static SandboxObject& of(sf_sandbox* self) noexcept {
    return *reinterpret_cast<Handle*>(self)->owner;
  }

  // Once the flag is set, a checkpoint that the start boots from is not copied on.
  std::shared_ptr<CancelFlag> start(const sf_start_request& request, const sf_start_events& events);
  void stop(sf_completion done);
  void destroy(sf_completion done);
  void info(sf_info_completion done);
  void instructions(sf_text_completion done);
  // Checkpoints: snapshots.cpp.
  std::shared_ptr<CancelFlag> capture(std::string name, sf_checkpoint_completion done);
  void list_checkpoints(sf_checkpoint_completion done);
  void remove_checkpoint(std::string name, sf_completion done);
  void start_from(std::string name, sf_completion done);
  // The link that is up; else a connection to the guest.
  void with_link(Guest wanted, LinkFn then) { with_link(wanted, std::move(then), 0); }
  void release() noexcept { self_.reset(); }
  const std::shared_ptr<GuestLink>& guest() const noexcept override { return link_; }
  std::optional<Failure> unable() const override;
  void with_guest(GuestFn then) override;
  std::function<bool()> missing_root() const override;

 private:
  struct Handle {
    sf_sandbox base;
    SandboxObject* owner;
  };
  static const sf_sandbox_vtbl kSandbox;

  void run_blocking(std::function<void()> work, std::function<void(const Failure*)> done);
  void with_link(Guest wanted, LinkFn then, int tries);
  void capture_running(const std::string& name, const std::shared_ptr<CancelFlag>& cancelled,
                       sf_checkpoint_completion done);
  void connect(Guest wanted, LinkFn then);
  void adopt(GuestConnection connection, LinkFn then);
  // Null where the host has no timer: then it never comes.
  sf_op* after(std::uint64_t delay_ms, std::function<void()> work);
  void started(const sf_start_events& events, LinkFacts facts,
               const std::vector<std::string>& names);
  // done comes once: when the function that is returned is called, or with `late` after the time,
  // when the link is closed.
  std::function<void(const Failure*)> limited(std::uint64_t limit_ms, Failure late,
                                              const std::shared_ptr<GuestLink>& link,
                                              std::function<void(const Failure*)> done);
  // Kills a guest that does not answer, then goes on.
  void kill_silent(std::function<void(const Failure*)> next);
  void end_silent(const std::shared_ptr<GuestLink>& link);
  void end_guest(std::function<void(const Failure*)> done, bool may_kill = true);
  void when_gone(const std::shared_ptr<GuestLink>& link, std::function<void(const Failure*)> done);

  std::shared_ptr<const ProviderSettings> settings_;
  SessionPlace place_;
  LaneRef lane_;
  Handle handle_;
  std::shared_ptr<SandboxObject> self_;  // until the host's release
  std::shared_ptr<GuestLink> link_;
  BootNames boot_;
  Booted booted_;  // of the start that has not succeeded yet
  std::shared_ptr<CancelFlag> start_cancelled_;
};

// Asks for the names of the environment that a guest has; those that are no UTF-8 are left out.
class NamesListener final : public ChannelListener {
 public:
  NamesListener(std::function<void(const std::vector<std::string>&)> done,
                std::function<void(const Failure&)> failed)
      : done_(std::move(done)), failed_(std::move(failed)) {}
  void on_environment(const guest::EnvReply& reply) override;
  void on_error(const guest::ErrorInfo& error) override;
  void on_lost(bool may_have_started) override;

 private:
  std::function<void(const std::vector<std::string>&)> done_;
  std::function<void(const Failure&)> failed_;
};

}  // namespace sandforge::local

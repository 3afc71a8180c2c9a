// One session in a container.
#pragma once

#include <deque>
#include <list>

#include <sandforge/guest_link/guest_owner.hpp>

#include "builds.hpp"
#include "machine.hpp"

namespace sandforge::docker {

class DockerSandbox : public plugin::CoSandbox,
                      public plugin::BasicSnapshots<plugin::Coroutine>,
                      public plugin::BasicPorts<plugin::Coroutine>,
                      public guest_link::GuestOwner {
 public:
  DockerSandbox(std::shared_ptr<const ProviderOptions> options,
                std::shared_ptr<DockerBuilds> builds, plugin::Context context,
                const plugin::Settings& settings);

  ~DockerSandbox() override;

  Task<plugin::Started> start(plugin::Starting& starting) override;
  Task<void> stop(plugin::StopToken stop) override;
  Task<void> destroy(plugin::StopToken stop) override;
  Task<plugin::SandboxInfo> info(plugin::StopToken stop) override;
  Task<std::string> instructions(plugin::StopToken stop) override;
  // By the guest, where there is one: else, and for users that it may not become, by execs.
  void spawn(plugin::Spawn& call) override;
  Task<plugin::Exit> run(plugin::Command command, plugin::ProcessIo io) override;
  const void* extension(std::string_view id) override;

  const std::shared_ptr<GuestLink>& guest() const noexcept override { return link_; }
  std::optional<Failure> unable() const override;
  void with_guest(guest_link::GuestFn then) override;
  std::function<bool()> missing_root() const override;

  // Where the options publish some.
  plugin::BasicPorts<plugin::Coroutine>* ports() override {
    return options_->exposed_ports.empty() ? nullptr : this;
  }
  Task<std::optional<std::string>> url(std::uint32_t port, plugin::StopToken stop) override;

  plugin::BasicSnapshots<plugin::Coroutine>* snapshots() override {
    return options_->read_only_root ? nullptr : this;
  }
  Task<std::optional<plugin::Checkpoint>> create(std::string name, plugin::StopToken stop) override;
  Task<std::vector<plugin::Checkpoint>> list(plugin::StopToken stop) override;
  Task<void> remove(std::string name, plugin::StopToken stop) override;
  Task<void> start_from(std::string name, plugin::StopToken stop) override;

 private:
  // Bound to the lane, which a sandbox has from its first call on.
  Engine& engine();
  Machines& machines();
  MachineSpec spec(const plugin::Starting& starting) const;
  void commands_end() noexcept;
  bool guest_takes(const plugin::Command& command) const;
  Task<void> join_guest(wire::ContainerInfo container, std::vector<std::string>& warnings);
  Task<void> connect();
  Task<void> end_commands(milliseconds grace);
  void watch_link(const std::shared_ptr<GuestLink>& link);
  Task<bool> is_paused(std::string container);
  Task<void> explain_loss(std::shared_ptr<GuestLink> link, std::string container);
  void drop_guest() noexcept;
  void must_be_new(const std::string& request);

  const std::shared_ptr<const ProviderOptions> options_;
  const std::shared_ptr<DockerBuilds> builds_;
  const plugin::Context context_;
  Boot boot_;
  std::string image_;
  std::string working_directory_;
  std::optional<Engine> engine_;
  std::optional<Machines> machines_;
  std::string container_;  // of the last start; empty: none
  std::string directory_;
  bool has_guest_ = false;  // the container of the last start
  bool guest_switches_user_ = false;
  bool ends_when_idle_ = false;  // its guest sees no execs
  std::shared_ptr<GuestLink> link_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  int captures_ = 0;  // that are under way: the container is paused
  std::list<std::weak_ptr<Exec>> running_;
  std::deque<std::string> requests_;  // of the last commands, so that none runs twice
};

}  // namespace sandforge::docker

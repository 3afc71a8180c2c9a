// One session in a container.
#pragma once

#include <deque>
#include <list>

#include "machine.hpp"

namespace sandforge::docker {

class DockerSandbox : public plugin::CoSandbox, public plugin::BasicSnapshots<plugin::Coroutine> {
 public:
  DockerSandbox(std::shared_ptr<const ProviderOptions> options, plugin::Context context,
                const plugin::Settings& settings);

  Task<plugin::Started> start(plugin::Starting& starting) override;
  Task<void> stop(plugin::StopToken stop) override;
  Task<void> destroy(plugin::StopToken stop) override;
  Task<plugin::SandboxInfo> info(plugin::StopToken stop) override;
  Task<std::string> instructions(plugin::StopToken stop) override;
  Task<plugin::Exit> run(plugin::Command command, plugin::ProcessIo io) override;

  plugin::BasicSnapshots<plugin::Coroutine>* snapshots() override { return this; }
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
  void must_be_new(const std::string& request);

  const std::shared_ptr<const ProviderOptions> options_;
  const plugin::Context context_;
  Boot boot_;
  std::string image_;
  std::string working_directory_;
  std::optional<Engine> engine_;
  std::optional<Machines> machines_;
  std::string container_;  // of the last start; empty: none
  std::string directory_;
  int captures_ = 0;  // that are under way: the container is paused
  std::list<std::weak_ptr<Exec>> running_;
  std::deque<std::string> requests_;  // of the last commands, so that none runs twice
};

}  // namespace sandforge::docker

// What this provider has at its engine: containers of sessions, whoever knows those.
#pragma once

#include <sandforge/plugin/provider_parts.hpp>

#include "machine.hpp"

namespace sandforge::docker {

// On the lane of the engine. The engine and the options outlive what is awaited.
class EngineDirectory {
 public:
  EngineDirectory(Engine& engine, std::shared_ptr<const ProviderOptions> options)
      : engine_(engine), options_(std::move(options)) {}

  // By their ids, from the one behind `page` on. limit: 0: all.
  Task<plugin::DirectoryPage> find(plugin::Document labels, std::string page, std::uint32_t limit);
  // Code::conflict: the container is none of this provider's.
  Task<void> remove(std::string container);
  // What is left of builds whose host is gone, images that are old by the options, and volumes of
  // guests that no container has; they are removed where that is asked for.
  Task<std::vector<plugin::Leftover>> sweep(bool remove);

 private:
  Task<std::vector<wire::ContainerSummary>> containers();
  Task<void> sweep_containers(const std::vector<wire::ContainerSummary>& all);
  Task<void> sweep_images(const std::vector<wire::ContainerSummary>& all);
  Task<void> sweep_volumes();
  // Notes it, and removes it by this request where that is asked for.
  Task<void> found(plugin::Leftover one, std::string path);

  bool removes_ = false;
  std::vector<plugin::Leftover> left_;
  Engine& engine_;
  const std::shared_ptr<const ProviderOptions> options_;
};

}  // namespace sandforge::docker

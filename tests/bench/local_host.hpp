// A host with the real local provider, over folders of its own.
#pragma once

#include <memory>
#include <string>

#include "measure.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/runtime.hpp"
#include "sandforge/sandbox.hpp"

namespace sandforge::bench {

class LocalHost {
 public:
  LocalHost();
  ~LocalHost();
  LocalHost(const LocalHost&) = delete;
  LocalHost& operator=(const LocalHost&) = delete;

  Sandbox& sandbox() noexcept { return *sandbox_; }  // started
  // The process that runs the sandbox's commands.
  pid_t guest() const;
  const std::filesystem::path& folder() const noexcept { return folder_.path(); }

 private:
  Folder folder_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<ProviderRegistry> registry_;
  std::shared_ptr<Sandbox> sandbox_;
};

}  // namespace sandforge::bench

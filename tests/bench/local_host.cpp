#include "local_host.hpp"

#include <cstdio>
#include <stdexcept>

#include "support/guest_process.hpp"
#include "test_paths.hpp"

namespace sandforge::bench {

LocalHost::LocalHost() {
  runtime_ = std::make_unique<Runtime>();
  auto services = std::make_shared<HostServices>();
  services->runtime = runtime_.get();
  services->env = [](const std::string& name) -> std::optional<std::string> {
    return name == "PATH" ? std::optional(command_path()) : std::nullopt;
  };
  ProviderRegistry::Options options;
  options.services = std::move(services);
  registry_ = std::make_unique<ProviderRegistry>(*runtime_, std::move(options));
  PluginSearchPath search;
  search.add(SANDFORGE_LOCAL_PLUGIN, "bench");
  const LoadReport report = registry_->scan(search);
  if (report.refused() != 0) throw std::runtime_error(report.to_text());

  json::Object given;
  given.set("root", folder_.path().string());
  SandboxConfig config;
  config.id = "bench";
  sandbox_ =
      Sandbox::create(*runtime_, registry_->open("local", std::move(given)), std::move(config))
          .value();
  sandbox_->start();
}

LocalHost::~LocalHost() {
  try {
    sandbox_->destroy();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "the sandbox stays: %s\n", failure.what());
  }
}

pid_t LocalHost::guest() const {
  const pid_t pid = test::guest_of((folder_.path() / "bench").string());
  if (pid == 0) throw std::runtime_error("the guest is not to be found");
  return pid;
}

}  // namespace sandforge::bench

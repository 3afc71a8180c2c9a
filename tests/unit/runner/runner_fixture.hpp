// A host whose plugins run in processes of their own, with the plugin of fixtures/unruly.cpp.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "sandforge/registry.hpp"
#include "sandforge/sandbox.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"
#include "test_paths.hpp"

namespace sandforge::test {

// Of the secrets service: every name that ends in "-token" is known. "held-token" is answered when
// it is released, with nothing.
class TokenSource final : public SecretSource {
 public:
  void get(const std::string&, std::shared_ptr<const SessionContext> scope, std::string name,
           Handler<std::optional<std::string>> done) override {
    if (name == "held-token") {
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(done));
      changed_.notify_all();
      return;
    }
    const bool known = name.size() > 6 && name.substr(name.size() - 6) == "-token";
    const std::string session = scope && scope->session_id ? scope->session_id->str() : "nobody";
    std::move(done)(known ? std::optional(name + " of " + session) : std::nullopt);
  }

  // Until somebody waits for that answer.
  bool is_held() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return !held_.empty(); });
  }

  void release() {
    std::vector<Handler<std::optional<std::string>>> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (auto& done : held)
      std::move(done)(std::optional<std::string>());
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Handler<std::optional<std::string>>> held_;
};

class RunnerHost {
 public:
  explicit RunnerHost(PluginPolicy policy = {}, std::filesystem::path program = SANDFORGE_RUNNER,
                      std::shared_ptr<SecretSource> secrets = nullptr) {
    policy.isolation = Isolation::process;
    auto services = std::make_shared<HostServices>();
    services->clock = clock;
    services->logger = std::make_shared<Logger>([this](std::string_view line) {
      std::unique_lock lock(mutex_);
      log_ += line;
      changed_.wait(lock, [&] { return !held_; });
    });
    services->env = [](const std::string& name) -> std::optional<std::string> {
      return "value of " + name;
    };
    services->secrets = secrets ? std::move(secrets) : tokens;
    services->state = memory_state_store();
    services->folders.data = folder / "data";
    services->guest_program = SANDFORGE_GUEST;
    ProviderRegistry::Options options;
    options.services = std::move(services);
    options.runner.program = std::move(program);
    options.runner.others = policy;
    options.runner.quarantine = folder / "quarantine";
    registry = std::make_unique<ProviderRegistry>(runtime, std::move(options));
    PluginSearchPath search;
    search.add(SANDFORGE_UNRULY, "a test");
    const auto report = registry->scan(search);
    INFO(report.to_text());
    REQUIRE(report.refused() == 0);
  }

  // `fail`: see the plugin.
  std::shared_ptr<ProviderBackend> open(const std::string& fail = {}) {
    json::Object options;
    if (!fail.empty()) options.set("fail", fail);
    options.set("record", record().string());
    return registry->open("unruly", std::move(options));
  }
  std::shared_ptr<Sandbox> make(std::shared_ptr<ProviderBackend> provider, std::string id = "s",
                                std::shared_ptr<SessionContext> context = nullptr) {
    SandboxConfig config;
    config.id = std::move(id);
    config.context = std::move(context);
    return Sandbox::create(runtime, std::move(provider), std::move(config)).value();
  }
  std::shared_ptr<Sandbox> make(const std::string& fail = {}) { return make(open(fail)); }

  // Which machines exist. In the plugin's own folder, where it may write without a grant.
  std::filesystem::path record() const { return folder.path() / "data/unruly/record"; }

  // While it is held, whoever writes to the log waits.
  void hold_log(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }

  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<TokenSource> tokens = std::make_shared<TokenSource>();
  TempDir folder;

 private:
  // Outlive the threads that write to the log.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string log_;
  bool held_ = false;

 public:
  Runtime runtime;
  std::unique_ptr<ProviderRegistry> registry;
};

}  // namespace sandforge::test

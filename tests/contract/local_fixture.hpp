// A host with the local provider, over folders of its own.
//
// It loads the built plugin through the registry, makes sandboxes, and at its end destroys them all
// and checks that nothing is left behind: no process, no socket, no file but the session folders,
// which the contract keeps.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "in_sandbox.hpp"
#include "machine.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/runtime.hpp"
#include "sandforge/sandbox.hpp"
#include "support/error_of.hpp"
#include "support/guest_process.hpp"
#include "support/temp_dir.hpp"

namespace sandforge::contract {

using std::chrono::milliseconds;
using std::chrono::seconds;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
using conformance::alive;
using conformance::argv;
using conformance::describe;
using conformance::eventually;
using conformance::open_sockets;
using conformance::processes_with;
using conformance::sh;
using conformance::shell;
using test::error_of;
using test::guest_of;
using test::read_file;

// Whether the plugin of the fixture runs in a process of its own: SANDFORGE_TEST_ISOLATION.
bool in_process();

class LocalFixture {
 public:
  LocalFixture();
  ~LocalFixture();
  LocalFixture(const LocalFixture&) = delete;
  LocalFixture& operator=(const LocalFixture&) = delete;

  // A provider over root(); `options` are added to the root.
  std::shared_ptr<ProviderBackend> open(json::Object options = {});
  // The provider that most tests use: no options but the root.
  const std::shared_ptr<ProviderBackend>& provider();

  // An unstarted sandbox, destroyed at the end.
  std::shared_ptr<Sandbox> make(SandboxConfig config);
  std::shared_ptr<Sandbox> make(std::string id = "s");
  std::shared_ptr<Sandbox> make(std::shared_ptr<ProviderBackend> provider, SandboxConfig config);
  // The same, already running.
  std::shared_ptr<Sandbox> started(std::string id = "s");
  // For sandboxes that came another way.
  void destroy_at_end(std::shared_ptr<Sandbox> sandbox) { made_.push_back(std::move(sandbox)); }

  Runtime& runtime() noexcept { return *runtime_; }
  ProviderRegistry& registry() noexcept { return *registry_; }
  // The host's environment as the provider may see it: PATH, HOME and TMPDIR below base().
  std::map<std::string, std::string>& host_env() noexcept { return *host_env_; }

  const fs::path& base() const noexcept { return base_.path(); }
  fs::path root() const { return base() / "root"; }
  fs::path home() const { return base() / "home"; }
  fs::path folder(const std::string& id = "s") const { return root() / id; }

  // Living processes of this fixture's sandboxes, guests included.
  std::vector<pid_t> processes() const { return processes_with(base().string()); }
  // Nothing runs, not even a guest: one that has answered its last request needs a moment to end.
  bool nothing_runs() const {
    return eventually([&] { return processes().empty(); });
  }
  // Nothing runs but guests: who was killed needs a moment, too.
  bool only_guests() const;

 private:
  void check_nothing_left();

  test::TempDir base_;
  std::size_t sockets_before_;
  std::shared_ptr<std::map<std::string, std::string>> host_env_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<ProviderRegistry> registry_;
  std::shared_ptr<ProviderBackend> provider_;
  std::vector<std::shared_ptr<Sandbox>> made_;
};

// The number that a command wrote into a file; waits for it.
pid_t read_pid(const fs::path& path);

}  // namespace sandforge::contract

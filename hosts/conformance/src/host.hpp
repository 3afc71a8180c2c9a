// The host of a case: opens the plugin, makes sandboxes, and at the end removes them all and looks
// for what is left.
//
// Nothing here knows a provider: what happens in a sandbox is looked at with commands in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "case.hpp"
#include "check.hpp"
#include "in_sandbox.hpp"
#include "machine.hpp"
#include "sandforge/conformance.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/runtime.hpp"
#include "sandforge/sandbox.hpp"

namespace sandforge::conformance {

using std::chrono::milliseconds;
using std::chrono::seconds;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

// What the process of a case knows.
struct Setting {
  Subject subject;
  fs::path guest_program;
  fs::path opening;   // a file that is there while the provider is being opened
  fs::path folder;    // for the case alone; its path is in the environment of all that it starts
  std::string token;  // in no other case, on this machine or another; letters, digits and '-'
  std::uint64_t seed = 0;
  std::vector<Case> cases;  // all that there are, also those that were not selected
};

class Host {
 public:
  explicit Host(Setting setting);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const Setting& setting() const noexcept { return setting_; }
  Runtime& runtime() noexcept { return *runtime_; }
  ProviderRegistry& registry();
  // The name of the provider that is judged.
  const std::string& provider_name();
  // Opened with the options of the request, with `changes` over them.
  std::shared_ptr<ProviderBackend> open(const json::Object& changes = {});
  // Opened and described once; ends the case as Unopened where that fails.
  const std::shared_ptr<ProviderBackend>& provider();
  const Description& description();
  bool has(const std::string& feature);
  void need(const std::string& feature);  // ends the case as not applicable

  // Unstarted, destroyed at the end. Ids are made unique, so that cases may share an account.
  std::shared_ptr<Sandbox> make(SandboxConfig config);
  std::shared_ptr<Sandbox> make(const std::string& name = "s");
  std::shared_ptr<Sandbox> make(std::shared_ptr<ProviderBackend> provider, SandboxConfig config);
  std::shared_ptr<Sandbox> started(const std::string& name = "s");
  void destroy_at_end(std::shared_ptr<Sandbox> sandbox) { made_.push_back(std::move(sandbox)); }
  // Of a started sandbox that was not made here: its folder may stay where destroy keeps it.
  void keep_folder_of(const Sandbox& sandbox);
  std::string id(const std::string& name = "s") const { return setting_.token + "-" + name; }
  SandboxConfig config(const std::string& name = "s") const;

  // A word for command lines, by which a process is found again.
  std::string word(const std::string& name = "w") const { return setting_.token + "." + name; }

  // The host's environment as the plugin may see it.
  std::map<std::string, std::string>& env() noexcept { return *env_; }
  const fs::path& base() const noexcept { return setting_.folder; }
  fs::path home() const { return base() / "home"; }
  fs::path tmp() const { return base() / "tmp"; }
  // A folder of the procedure's own, which may stay until the end.
  fs::path scratch();

  // Destroys what was made, lets go of everything, and records what is left of it.
  void finish();

 private:
  json::Object options() const;
  void check_files() const;

  const Setting setting_;
  std::set<std::string> open_before_;
  std::shared_ptr<std::map<std::string, std::string>> env_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<ProviderRegistry> registry_;
  // What the log says of rules that the plugin broke; the logger's while the runtime lives.
  std::shared_ptr<std::vector<std::string>> broken_rules_ =
      std::make_shared<std::vector<std::string>>();
  std::string provider_name_;
  std::shared_ptr<ProviderBackend> provider_;
  std::optional<Description> description_;
  std::vector<std::shared_ptr<Sandbox>> made_;
  std::set<fs::path> kept_;
};

// Nothing was started on this machine on behalf of the case, or it has ended.
bool nothing_runs(const Host& host);

// ---- Time and memory of this process

template <class Call>
milliseconds timed(Call&& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
}

// Whether memory bounds mean anything in this build.
constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#else
  return false;
#endif
#else
  return false;
#endif
}

// Growth of this process's memory at its peak, since construction.
class PeakMemory {
 public:
  PeakMemory();
  std::int64_t growth_kib() const;

 private:
  std::int64_t before_;
};

ExecOptions limited(milliseconds timeout, milliseconds grace = 2000ms);
ExecOptions with_env(EnvMap env);

}  // namespace sandforge::conformance

// Loading a plugin into a process of its own: its file is checked here, its code runs there.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plugin/inspect.hpp"
#include "plugin/pinned.hpp"
#include "plugin/plugin.hpp"
#include "plugin/shipped.hpp"
#include "runner/quarantine.hpp"
#include "runner/remote_plugin.hpp"
#include "sandforge/plugin_loader.hpp"

namespace sandforge {
namespace {

bool is_below(const std::filesystem::path& file, const std::filesystem::path& folder) {
  std::error_code ec;
  const auto real = std::filesystem::canonical(folder, ec);
  return !folder.empty() && !ec && file.parent_path() == real;
}

}  // namespace

PluginPolicy PluginLoader::policy_of(const std::string& plugin) const {
  const std::lock_guard lock(policies_mutex_);
  const auto found = policies_.find(plugin);
  return found == policies_.end() ? options_.runner.others : found->second;
}

void PluginLoader::add_policies(const std::map<std::string, PluginPolicy>& policies) {
  const std::lock_guard lock(policies_mutex_);
  policies_.insert(policies.begin(), policies.end());
}

bool PluginLoader::isolates(const PluginFile& file) const {
  const Isolation wanted = policy_of(file.manifest.name).isolation;
  if (wanted != Isolation::automatic) return wanted == Isolation::process;
  const bool ours = is_below(file.path, options_.runner.shipped) &&
                    plugin::is_shipped(file.path.filename().native());
  return !options_.runner.program.empty() && !ours;
}

std::vector<std::string> PluginLoader::not_granted(const PluginFile& file) const {
  std::vector<std::string> out;
  if (!isolates(file)) return out;
  const auto policy = policy_of(file.manifest.name);
  const auto& named = file.manifest.services;
  const auto ask = [&](const char* service, bool granted) {
    if (!granted && std::find(named.begin(), named.end(), service) != named.end())
      out.emplace_back(service);
  };
  ask("process", policy.process);
  ask("http", !policy.hosts.empty() || !policy.unix_sockets.empty());
  ask("secrets", !policy.secrets.empty());
  return out;
}

PluginLoader::Loaded PluginLoader::load_remote(const PluginFile& file) {
  Loaded out;
  auto inspected = plugin::inspect(file.path, file.origin, file.sha256);
  out.attempt = std::move(inspected.attempt);
  out.attempt.in_process = true;
  if (!out.attempt.usable() || !plugin::check_services(out.attempt, inspected.manifest)) return out;

  const std::lock_guard lock(mutex_);
  for (runner::RemotePlugin* remote : remotes_) {
    if (!remote->is(inspected.identity, inspected.sha256) || remote->plugin().api == nullptr)
      continue;
    out.plugin = &remote->plugin();
    out.attempt.stage = LoadStage::loaded;
    return out;
  }
  if (options_.runner.program.empty()) {
    plugin::refuse(out.attempt, LoadStage::no_runner,
                   "is to run in a process of its own, and this program has no sandforge-runner",
                   "let it run inside this program: isolation: inline");
    return out;
  }
  std::string sha256 = inspected.sha256;
  if (sha256.empty()) {
    auto hashed = plugin::sha256_of(inspected.file.get());
    if (!hashed) {
      plugin::refuse(out.attempt, LoadStage::not_readable, hashed.error().message, "");
      return out;
    }
    sha256 = std::move(*hashed);
  }
  if (const auto entry = quarantine_->find(sha256)) {
    plugin::refuse(out.attempt, LoadStage::quarantined, "is in quarantine: " + entry->reason,
                   "sandforge plugins doctor --clear-quarantine lets it run again");
    return out;
  }
  if (!plugin::check_schemas(out.attempt, inspected.manifest, options_.check_options_schema))
    return out;
  const auto start = [&](runner::RemotePlugin& remote) {
    remote.start(out.attempt);
    if (!out.attempt.usable()) return;
    remote.plugin().api = runner::RemotePlugin::table();
    out.plugin = &remote.plugin();
  };
  // One that did not start has its place, and another try.
  for (runner::RemotePlugin* remote : remotes_) {
    if (!remote->is(inspected.identity, inspected.sha256) || !remote->has_content(sha256)) continue;
    start(*remote);
    return out;
  }
  auto place = plugin::Plugin::reserve(inspected.manifest, inspected.path);
  if (!place) {
    plugin::refuse(out.attempt, LoadStage::too_many, place.error().message, "");
    return out;
  }
  runner::RemotePlugin::Setup setup;
  setup.file = {inspected.path, file.origin, inspected.sha256, inspected.manifest};
  setup.policy = policy_of(inspected.manifest.name);
  setup.program = options_.runner.program;
  setup.ready_limit = options_.runner.ready_limit;
  setup.call_limit = options_.runner.call_limit;
  setup.services = options_.services ? options_.services : std::make_shared<const HostServices>();
  setup.quarantine = quarantine_;
  setup.sha256 = std::move(sha256);
  setup.identity = inspected.identity;
  auto* remote = new runner::RemotePlugin(**place, std::move(setup));
  (*place)->remote = remote;
  remotes_.push_back(remote);
  start(*remote);
  return out;
}

std::vector<std::string> PluginLoader::quarantined() const {
  std::vector<std::string> out;
  for (const auto& entry : quarantine_->list())
    out.push_back(fmt::format("{} ({}): {}", entry.plugin, entry.path, entry.reason));
  return out;
}

std::size_t PluginLoader::clear_quarantine() {
  return quarantine_->clear();
}

}  // namespace sandforge

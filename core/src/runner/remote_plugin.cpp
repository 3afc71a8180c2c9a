#include "runner/remote_plugin.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "plugin/abi_text.hpp"
#include "sandforge/posix/user.hpp"

namespace sandforge::runner {
namespace {

// The name of a secret is all that tells what was granted.
class GrantedSecrets final : public SecretSource {
 public:
  GrantedSecrets(std::shared_ptr<SecretSource> inner, std::set<std::string> granted)
      : inner_(std::move(inner)), granted_(std::move(granted)) {}

  void get(const std::string& plugin, std::shared_ptr<const SessionContext> scope, std::string name,
           Handler<std::optional<std::string>> done) override {
    if (granted_.count(name) != 0)
      return inner_->get(plugin, std::move(scope), std::move(name), std::move(done));
    std::move(done)(
        Error(Status::unsupported,
              fmt::format("the secret {} is not granted to the plugin {}: what grants it is "
                          "plugins: {{policies: {{{}: {{allow: {{secrets: [\"{}\"]}}}}}}}}",
                          name, plugin, plugin, name),
              "grant.secret"));
  }

 private:
  const std::shared_ptr<SecretSource> inner_;
  const std::set<std::string> granted_;
};

// Most broken rules are found by the thread that reads from the process. The log, which may be
// slow, is written on a lane.
void log_on_lane(HostServices& services, const std::string& plugin) {
  if (services.runtime == nullptr || !services.logger || services.on_fault) return;
  services.on_fault = [lane = services.runtime->make_lane(), logger = services.logger, plugin](
                          std::uint8_t kind, std::string_view what, std::uint64_t count) {
    lane.post([logger, plugin, kind, what = std::string(what), count] {
      plugin::log_fault(*logger, plugin, static_cast<plugin::Fault>(kind), what, count);
    });
  };
}

RemotePlugin::Setup for_process(RemotePlugin::Setup setup, const std::string& plugin) {
  auto services = std::make_shared<HostServices>(*setup.services);
  if (services->secrets)
    services->secrets = std::make_shared<GrantedSecrets>(services->secrets, setup.policy.secrets);
  log_on_lane(*services, plugin);
  setup.services = std::move(services);
  return setup;
}

bool uses(const Manifest& manifest, std::string_view service) {
  for (const std::string& name : manifest.services)
    if (name == service) return true;
  return false;
}

// Who its process runs as.
uid_t user_of(const PluginPolicy& policy) {
  posix::Identity who;
  std::string ignored;  // the start says it
  return !policy.user.empty() && posix::find_identity(policy.user, who, ignored) ? who.uid
                                                                                 : ::geteuid();
}

// Its own folders. One of somebody else, or a link in its place, would open that to the plugin.
std::vector<std::string> folders_of(const RemotePlugin::Setup& setup) {
  const HostServices& services = *setup.services;
  const std::string& name = setup.file.manifest.name;
  std::vector<std::string> out;
  for (const auto& parent :
       {services.folders.data, services.folders.cache, services.folders.runtime}) {
    if (parent.empty()) continue;
    const auto folder = std::filesystem::absolute(parent) / name;
    const std::string why = services::why_not_private(folder, user_of(setup.policy));
    if (why.empty()) {
      out.push_back(folder.string());
    } else {
      services::tell_folder(services, name, folder, why);
    }
  }
  return out;
}

Hello hello_of(const RemotePlugin::Setup& setup) {
  const HostServices& services = *setup.services;
  const Manifest& manifest = setup.file.manifest;
  Hello out;
  out.path = setup.file.path.string();
  out.origin = setup.file.origin;
  out.sha256 = setup.file.sha256;
  for (const std::string& name : manifest.env) {
    if (setup.policy.env.count(name) == 0) continue;
    out.granted_env.push_back(name);
    if (auto value = services.env ? services.env(name) : std::nullopt) out.env[name] = *value;
  }
  out.hosts.assign(setup.policy.hosts.begin(), setup.policy.hosts.end());
  out.unix_sockets.assign(setup.policy.unix_sockets.begin(), setup.policy.unix_sockets.end());
  out.folders = services.folders;
  if (uses(manifest, "paths")) out.writable = folders_of(setup);
  if (setup.policy.process) out.guest_program = services.guest_program.string();
  out.may_run_programs = setup.policy.process;
  out.log_level = services.logger ? services.logger->level() : LogLevel::off;
  out.has_state = services.state != nullptr;
  out.has_secrets = services.secrets != nullptr;
  out.memory_mb = setup.policy.memory_mb;
  out.open_files = setup.policy.open_files;
  out.call_limit_ms = static_cast<std::uint64_t>(setup.call_limit.count());
  return out;
}

sf_status table_init(sf_host*, const sf_error_sink*) noexcept {
  return SF_OK;  // its process ran the plugin's own before it was ready
}

sf_status table_open(const sf_open_request* request, sf_provider** provider,
                     const sf_error_sink* err) noexcept {
  try {
    RemotePlugin* remote = RemotePlugin::of(plugin::HostLane::plugin_of(request->lane));
    if (remote == nullptr)
      return plugin::refuse(err, Error(Status::unavailable, "the host has closed this plugin"));
    auto opened = open_remote(*remote, *request);
    if (!opened) return plugin::refuse(err, opened.error());
    *provider = *opened;
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

}  // namespace

RemotePlugin::RemotePlugin(plugin::Plugin& plugin, Setup setup)
    : plugin_(plugin), setup_(for_process(std::move(setup), plugin.name())) {
  plugin_.host.attach(setup_.services);
}

const sf_plugin* RemotePlugin::table() noexcept {
  static const sf_plugin table = {sizeof(sf_plugin), SF_ABI_MAJOR, SF_ABI_MINOR, &table_init,
                                  &table_open};
  return &table;
}

std::shared_ptr<HostPeer> RemotePlugin::launch(LoadAttempt& attempt, bool& host_failed) {
  host_failed = true;
  const auto runtime = plugin_.host.runtime();
  if (!runtime) {
    attempt.stage = LoadStage::init_failed;
    attempt.message = "the host has ended";
    return nullptr;
  }
  return HostPeer::start(
      plugin_, runtime,
      {setup_.program, hello_of(setup_), setup_.policy, setup_.ready_limit, setup_.call_limit},
      attempt, host_failed);
}

void RemotePlugin::waiting(const std::function<void()>& work) const {
  const auto runtime = plugin_.host.runtime();
  runtime ? runtime->while_waiting(work) : work();
}

void RemotePlugin::start(LoadAttempt& attempt) {
  const std::lock_guard lock(mutex_);
  bool ignored = false;
  peer_ = launch(attempt, ignored);
}

Result<std::shared_ptr<HostPeer>> RemotePlugin::live() {
  const auto lock = this->lock(mutex_);
  if (refused_) return *refused_;
  if (peer_ && !peer_->lost()) return peer_;
  const std::uint64_t now = setup_.services->clock->monotonic_ns();
  const auto window = static_cast<std::uint64_t>(std::chrono::nanoseconds(kRestartWindow).count());
  while (!restarts_.empty() && now - restarts_.front() >= window)
    restarts_.pop_front();
  Error last = peer_ ? peer_->loss() : plugin::crashed(plugin_, "its process has ended");
  if (failed_) last = *failed_;
  const auto kept =
      setup_.quarantine->restarts(setup_.sha256, setup_.services->clock->now_ns(), kRestartWindow);
  if (std::max(restarts_.size(), kept) >= kRestarts) return over_budget(last);
  LoadAttempt attempt;
  attempt.plugin = plugin_.name();
  attempt.path = plugin_.file;
  bool host_failed = true;
  std::shared_ptr<HostPeer> next;
  waiting([&] {
    if (peer_) peer_->stop();
    next = launch(attempt, host_failed);
  });
  if (!host_failed) {
    restarts_.push_back(now);
    setup_.quarantine->add_restart(setup_.sha256, setup_.services->clock->now_ns());
  }
  if (!next) {
    Error error = attempt.to_error();
    if (!host_failed) failed_ = error;
    return error;
  }
  peer_ = std::move(next);
  failed_ = std::nullopt;
  if (setup_.services->logger)
    setup_.services->logger->write(LogLevel::warn, "the process of a plugin was started again",
                                   {{"plugin", plugin_.name()}, {"why", last.message}});
  return peer_;
}

Error RemotePlugin::over_budget(const Error& last) {
  Quarantined entry;
  entry.sha256 = setup_.sha256;
  entry.plugin = plugin_.name();
  entry.path = plugin_.file.string();
  entry.reason = fmt::format("its process was lost {} times within {} minutes, at last: {}",
                             kRestarts + 1, kRestartWindow.count(), last.message);
  entry.at_ns = setup_.services->clock->now_ns();
  const auto kept = setup_.quarantine->add(entry);
  if (!kept && setup_.services->logger)
    setup_.services->logger->write(LogLevel::error, kept.error().message,
                                   {{"plugin", plugin_.name()}});
  refused_ = quarantine_error(entry);
  return *refused_;
}

void RemotePlugin::stop() {
  std::shared_ptr<HostPeer> peer;
  {
    const std::lock_guard lock(mutex_);
    peer.swap(peer_);
    if (!refused_)
      refused_ = Error(Status::unavailable, "the host has closed this plugin", "plugin.closed");
  }
  if (peer) peer->stop();
  plugin_.host.detach(setup_.services);
}

}  // namespace sandforge::runner

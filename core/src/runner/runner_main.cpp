// The whole life of a sandforge-runner.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "plugin/abi_text.hpp"
#include "runner/caller.hpp"
#include "runner/greeting.hpp"
#include "runner/harden.hpp"
#include "runner/room.hpp"
#include "runtime/blocking_pool.hpp"
#include "sandforge/ext/host_http.h"
#include "sandforge/runner.hpp"
#include "services/http_grants.hpp"

namespace sandforge::runner {
namespace {

// What this process is for. Never destroyed: the plugin's code may be on some stack to the end.
struct Process {
  Hello hello;
  std::shared_ptr<Connection> connection;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<PluginLoader> loader;
  std::mutex mutex;
  std::shared_ptr<RunnerPeer> peer;
  std::set<std::string> told;  // variables that were asked for in vain
};

Process& process() {
  static auto* only = new Process;
  return *only;
}

std::shared_ptr<RunnerPeer> peer_of(plugin::Plugin& plugin) {
  Process& mine = process();
  const std::lock_guard lock(mine.mutex);
  if (!mine.peer) mine.peer = std::make_shared<RunnerPeer>(plugin, *mine.runtime, mine.connection);
  return mine.peer;
}

// ---- Services that are not served here

std::uint32_t log_level(sf_host*) noexcept {
  return static_cast<std::uint32_t>(process().hello.log_level);
}

sf_status refuse_process(sf_host* host, const sf_error_sink* err) {
  const std::string& name = services::PluginHost::of(host).plugin().name();
  return plugin::refuse(err,
                        Error(Status::unsupported,
                              "the plugin " + name +
                                  " may not run commands on this machine: the configuration "
                                  "does not grant it; what grants it is plugins: {policies: {" +
                                  name + ": {allow: {process: true}}}}",
                              "grant.process"));
}

const sf_process_service kNoProcess = {
    sizeof(sf_process_service),
    [](sf_host* host, sf_lane*, const sf_command*, const sf_stream_events*,
       const sf_process_events*, sf_process**,
       const sf_error_sink* err) noexcept { return refuse_process(host, err); },
    [](sf_host* host, sf_str, const sf_error_sink* err) noexcept {
      return refuse_process(host, err);
    },
    [](sf_host* host, sf_lane*, sf_str, const sf_command*, const sf_stream_events*,
       const sf_process_events*, sf_process**,
       const sf_error_sink* err) noexcept { return refuse_process(host, err); },
    // A group that could not be opened has ended: what removes a sandbox does not fail by it.
    [](sf_host* host, sf_lane* lane, sf_str group, std::uint64_t grace_ms, sf_completion done,
       sf_op** op, const sf_error_sink* err) noexcept {
      const auto* real = static_cast<const sf_process_service*>(services::process_service());
      return real->end_group(host, lane, group, grace_ms, done, op, err);
    }};

sf_status create_granted_client(sf_host* host, sf_lane* lane, const sf_http_client_options* options,
                                sf_http_client** client, const sf_error_sink* err) noexcept {
  const auto* real = static_cast<const sf_http_service*>(services::http_service());
  const Hello& hello = process().hello;
  try {
    const std::string& name = services::PluginHost::of(host).plugin().name();
    const auto granted = services::check_grants({hello.hosts, hello.unix_sockets}, name, options);
    if (!granted) return plugin::refuse(err, granted.error());
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
  return real->client_create(host, lane, options, client, err);
}

const void* instead(std::string_view id) {
  static const sf_log_service log = {sizeof(sf_log_service), &Call<&sf_log_service::write>::call,
                                     &log_level};
  static const sf_state_service state = {sizeof(sf_state_service),
                                         &Call<&sf_state_service::get>::call,
                                         &Call<&sf_state_service::set>::call};
  static const sf_secrets_service secrets = {sizeof(sf_secrets_service),
                                             &Call<&sf_secrets_service::get>::call};
  static const sf_http_service http = [] {
    auto table = *static_cast<const sf_http_service*>(services::http_service());
    table.client_create = &create_granted_client;
    return table;
  }();
  const Hello& hello = process().hello;
  if (id == SF_SERVICE_LOG) return &log;
  if (id == SF_SERVICE_STATE && hello.has_state) return &state;
  if (id == SF_SERVICE_SECRETS && hello.has_secrets) return &secrets;
  if (id == SF_SERVICE_PROCESS && !hello.may_run_programs) return &kNoProcess;
  if (id == SF_SERVICE_HTTP) return &http;
  return nullptr;
}

// A rule that the plugin broke: the host counts them.
void tell_fault(std::uint8_t kind, std::string_view what, std::uint64_t count) {
  wire::Writer out;
  out.value(kind);
  out.value(count);
  out.value(sf_str{what.data(), std::min<std::size_t>(what.size(), 1024)});
  wire::Header header;
  header.kind = wire::Kind::fault;
  process().connection->send(header, out.out);
}

// A line of this process itself. The host adds the time and a level of its own.
void log_line(std::string_view line) {
  Process& mine = process();
  std::shared_ptr<RunnerPeer> peer;
  {
    const std::lock_guard lock(mine.mutex);
    peer = mine.peer;
  }
  if (!peer) return;
  while (!line.empty() && line.back() == '\n')
    line.remove_suffix(1);
  constexpr std::size_t level = sizeof("WARN  ");
  line.remove_prefix(std::min(line.find(' ') + level, line.size()));
  wire::Writer out;
  wire::write_call(
      out, std::tuple<std::uint32_t, sf_str, const sf_log_field*, std::size_t, std::size_t>(
               SF_LOG_WARN, sf_str{line.data(), line.size()}, nullptr, 0, sizeof(sf_log_field)));
  peer->send(wire::Kind::call, wire::method_of(&sf_log_service::write), 0, 0, 0, out.out);
}

std::optional<std::string> granted_variable(const std::shared_ptr<Logger>& logger,
                                            const std::string& name) {
  Process& mine = process();
  const auto& granted = mine.hello.granted_env;
  if (const auto found = mine.hello.env.find(name); found != mine.hello.env.end())
    return found->second;
  if (std::find(granted.begin(), granted.end(), name) != granted.end()) return std::nullopt;
  {
    const std::lock_guard lock(mine.mutex);
    if (!mine.told.insert(name).second) return std::nullopt;
  }
  logger->write(LogLevel::warn,
                "the plugin asked for a variable that is not granted: list it under "
                "plugins.policies.NAME.allow.env",
                {{"variable", name}});
  return std::nullopt;
}

std::shared_ptr<const HostServices> make_services(Process& mine) {
  auto services = std::make_shared<HostServices>();
  Logger::Options options;
  options.level = mine.hello.log_level;
  services->runtime = mine.runtime.get();
  services->logger = std::make_shared<Logger>(log_line, options);
  services->env = [logger = services->logger](const std::string& name) {
    return granted_variable(logger, name);
  };
  services->folders = mine.hello.folders;
  services->guest_program = mine.hello.guest_program;
  services->instead = instead;
  services->on_fault = tell_fault;
  return services;
}

// The host's socket, out of the way of whatever the plugin does with the first three.
posix::Fd take_socket() {
  posix::Fd socket(::fcntl(0, F_DUPFD_CLOEXEC, 3));
  const posix::Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null) ::dup2(null.get(), 0);
  return socket;
}

bool greet(Process& mine) {
  wire::FrameView frame;
  if (mine.connection->first(frame) != wire::ParseResult::frame ||
      frame.header.kind != wire::Kind::hello) {
    std::fputs("sandforge-runner is started by a host, on a socket\n", stderr);
    return false;
  }
  auto hello = decode_hello(frame.payload);
  if (hello) {
    mine.hello = std::move(*hello);
    return true;
  }
  // Its own version is what the host has to see.
  Ready ready;
  ready.attempt.stage = LoadStage::load_failed;
  ready.attempt.message = hello.error().message;
  wire::Header header;
  header.kind = wire::Kind::ready;
  mine.connection->send(header, encode(ready));
  return false;
}

}  // namespace

Result<Route> route_of(sf_host* self, Method) {
  return Route{peer_of(services::PluginHost::of(self).plugin()), 0, 0};
}

namespace {

// What no thread of the plugin can hold up. It keeps the socket open, too: closed by the plugin, it
// would be nobody's, and its readers would not wake.
[[noreturn]] void watch(const std::shared_ptr<RunnerPeer>& peer, std::chrono::milliseconds limit) {
  for (;;) {
    peer->connection().hold_open(limit);
    if (limit.count() != 0 && !peer->connection().sending() && !peer->lanes_move()) break;
  }
  ::_exit(kExitStuck);
}

// Ends the process, by the one thread that has read the end of the connection.
void read_to_end(const std::shared_ptr<RunnerPeer>& peer) {
  if (!peer->connection().read()) return;
  // What waits for the host comes back, and with it the threads that the Runtime waits for.
  peer->lose(Error(Status::unavailable, "the host has closed this plugin", "plugin.closed"));
  peer->clear();
  process().runtime.reset();
  // No destructor of the plugin's libraries runs: their threads may still use what these destroy.
  std::fflush(nullptr);
  ::_exit(0);
}

// A thread that reads. It runs lanes, and takes as few signals as others that do: a write to a pipe
// that was closed is an error there.
void start_reader(const std::shared_ptr<RunnerPeer>& peer) {
  const BlockSignals blocked;
  std::thread(read_to_end, peer).detach();
}

std::shared_ptr<RunnerPeer> refuse_without_thread(Ready& ready) {
  ready.lacks_thread = true;
  ready.attempt.stage = LoadStage::load_failed;
  ready.attempt.message = "could not be started in a process: " + no_thread().message;
  return nullptr;
}

// Its lanes, and then the plugin; null: `ready` says why not.
std::shared_ptr<RunnerPeer> load(Process& mine, Ready& ready) {
  try {
    mine.runtime = std::make_unique<Runtime>();
  } catch (const Exception&) {
    return refuse_without_thread(ready);
  }
  PluginLoader::Options options;
  options.services = make_services(mine);
  mine.loader = std::make_unique<PluginLoader>(options);
  auto loaded = mine.loader->load({mine.hello.path, mine.hello.origin, mine.hello.sha256, {}});
  ready.attempt = std::move(loaded.attempt);
  if (loaded.plugin == nullptr) return nullptr;
  auto peer = peer_of(*loaded.plugin);
  mine.connection->prepare([peer](const wire::FrameView& frame) { return peer->on_frame(frame); });
  try {
    start_reader(peer);
    return peer;
  } catch (const std::system_error&) {
    return refuse_without_thread(ready);
  }
}

int run() {
  Process& mine = process();
  mine.connection = std::make_shared<Connection>(take_socket(), Connection::Full::wait);
  if (!greet(mine)) return 2;
  Ready ready;
  ready.hardening = harden(mine.hello);
  const auto peer = load(mine, ready);
  wire::Header header;
  header.kind = wire::Kind::ready;
  mine.connection->send(header, encode(ready));
  if (!peer) ::_exit(0);
  try {
    start_reader(peer);
  } catch (const std::system_error&) {
    // Then there is one reader, and other threads run the lanes.
  }
  watch(peer, std::chrono::milliseconds(mine.hello.call_limit_ms));
}

}  // namespace
}  // namespace sandforge::runner

int sandforge::run_plugin_runner() {
  return runner::run();
}

#include "runner/host_peer.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/abi_text.hpp"
#include "runner/serving.hpp"
#include "runtime/blocking_pool.hpp"
#include "sandforge/posix/spawn.hpp"
#include "sandforge/posix/system.hpp"
#include "sandforge/posix/user.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge::runner {
namespace {

constexpr int kEndLimitMs = 2000;  // for a runner that was asked to end
// Calls of a plugin that have not had their turn: each costs its payload and a little more.
constexpr std::size_t kMaxQueued = 64U << 20;
constexpr std::size_t kQueuedCall = 16U << 10;
constexpr std::size_t kMaxContexts = 100'000;
constexpr std::size_t kMaxOperations = 1024;    // under way at once
constexpr std::size_t kOutputTurn = 64U << 10;  // as much as a pipe holds
constexpr std::size_t kMaxRecord = 256U << 10;  // of the log

template <class S>
struct HostServes : std::bool_constant<std::is_same_v<S, sf_context_vtbl> ||
                                       std::is_same_v<S, sf_state_service> ||
                                       std::is_same_v<S, sf_secrets_service>> {};

const ServeTable& host_table() {
  static const ServeTable functions = [] {
    ServeTable out{};
#define SF_STRUCT(s, kind, size)
#define SF_MEMBER(s, m, offset, size) ServeEntry<HostServes, &s::m>::add(out);
#define SF_STRUCT_END(s, last)
#include "sandforge/wire/runner/layout.inc"
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END
    return out;
  }();
  return functions;
}

// What a runner inherits: nothing that could be a secret.
std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (const char* name :
       {"PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
        "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"})
    if (const auto value = HostServices::environment_variable(name))
      out.push_back(fmt::format("{}={}", name, *value));
  return out;
}

std::string in_words(std::chrono::milliseconds limit) {
  if (limit == std::chrono::seconds(1)) return "1 second";
  return limit.count() % 1000 == 0 ? fmt::format("{} seconds", limit.count() / 1000)
                                   : fmt::format("{} ms", limit.count());
}

std::string words_of(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return fmt::format("was ended by signal {} (SIG{})", WTERMSIG(status),
                       name != nullptr ? name : "?");
  }
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

// Until it has ended, or the time is over. Reaps nothing.
void wait_for(pid_t pid, int limit_ms) {
  const posix::Fd handle = posix::open_pidfd(pid);
  if (!handle) return;
  pollfd polled{handle.get(), POLLIN, 0};
  while (::poll(&polled, 1, limit_ms) < 0 && errno == EINTR) {
  }
}

}  // namespace

// ---- Output

void LastLines::add(std::string_view bytes) {
  bytes_.append(bytes.substr(bytes.size() > kKept ? bytes.size() - kKept : 0));
  if (bytes_.size() > kKept) bytes_.erase(0, bytes_.size() - kKept);
}

std::string LastLines::text() const {
  std::string_view rest = bytes_;
  while (!rest.empty() && rest.back() == '\n')
    rest.remove_suffix(1);
  std::size_t begin = rest.size();
  for (int lines = 0; lines < 10 && begin != std::string_view::npos && begin > 0; ++lines)
    begin = rest.rfind('\n', begin - 1);
  return to_valid_utf8(begin == std::string_view::npos || begin == 0 ? rest
                                                                     : rest.substr(begin + 1));
}

// ---- Start

HostPeer::HostPeer(plugin::Plugin& plugin, Runtime& runtime, std::shared_ptr<Connection> connection,
                   std::chrono::milliseconds call_limit)
    : Peer(plugin, std::move(connection), 2, call_limit),
      lane_(runtime.make_lane()),
      lane_ref_(plugin, lane_) {}

std::shared_ptr<HostPeer> HostPeer::start(plugin::Plugin& plugin,
                                          const std::shared_ptr<Runtime>& runtime, Launch launch,
                                          LoadAttempt& attempt, bool& host_failed) {
  host_failed = true;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    attempt.stage = LoadStage::load_failed;
    attempt.message = fmt::format("its process has no socket: {}", std::strerror(errno));
    return nullptr;
  }
  auto connection = std::make_shared<Connection>(posix::Fd(pair[0]), Connection::Full::queue);
  std::shared_ptr<HostPeer> peer(
      new HostPeer(plugin, *runtime, std::move(connection), launch.call_limit));
  auto future = peer->ready_.get_future();
  const auto limit = launch.ready_limit;
  {
    const BlockSignals blocked;
    posix::Fd theirs(pair[1]);
    try {
      peer->reader_ =
          std::thread([peer, theirs = std::move(theirs), launch = std::move(launch)]() mutable {
            peer->run(std::move(theirs), launch);
          });
    } catch (const std::system_error&) {
      attempt.stage = LoadStage::load_failed;
      attempt.message = "could not be started in a process: " + no_thread().message;
      return nullptr;
    }
  }
  if (future.wait_for(limit) != std::future_status::ready) {
    attempt.stage = LoadStage::init_failed;
    attempt.message = fmt::format("could not be initialised: it took longer than {} in its process",
                                  in_words(limit));
    peer->hung();  // one that does not come to an end by itself is not asked for it
    peer->stop();
    host_failed = peer->host_failed_;
    return nullptr;
  }
  Ready ready = future.get();
  host_failed = peer->host_failed_;
  attempt.stage = ready.attempt.stage;
  attempt.message = std::move(ready.attempt.message);
  attempt.hint = std::move(ready.attempt.hint);
  attempt.loader_text = std::move(ready.attempt.loader_text);
  attempt.details = std::move(ready.attempt.details);
  if (attempt.usable()) return peer;
  peer->stop();
  return nullptr;
}

HostPeer::~HostPeer() {
  for (const auto& [id, context] : contexts_)
    context->vtbl->release(context);
  // Dropped by a reader itself when the host has let go of it before.
  if (reader_.joinable()) reader_.detach();
}

void HostPeer::stop() {
  stopping_.store(true);
  connection().close();
  has_ended_.wait();
  if (!reader_.joinable()) return;
  // One that runs a lane comes back when that is through, and may be who calls.
  connection().is_one_away() ? reader_.detach() : reader_.join();
}

bool HostPeer::spawn(const Launch& launch, posix::Fd theirs) {
  Ready failed;
  failed.attempt.stage = LoadStage::load_failed;
  posix::Pipe pipe;
  posix::SpawnSpec spec;
  if (!posix::make_pipe(pipe, posix::PipeEnd::read)) {
    failed.attempt.message = fmt::format("its process has no pipe: {}", std::strerror(errno));
    settle(std::move(failed));
    return false;
  }
  spec.argv = {launch.program.string()};
  spec.environment = environment();
  spec.cwd = "/";
  spec.stdin_fd = theirs.get();
  spec.stdout_fd = spec.stderr_fd = pipe.write.get();
  // Of the thread that spawns: this one, which lives as long as the process.
  spec.death_signal = SIGKILL;
  if (!launch.policy.user.empty()) {
    std::string problem;
    posix::Identity& who = spec.user.emplace();
    const std::string& user = launch.policy.user;
    bool found = posix::find_identity(user, who, problem);
    if (found && who.name.empty() && user.find(':') == std::string::npos) {
      found = false;  // it would have the group of root
      problem = fmt::format("the user {} has no entry and so no group: give one, as in {}:GID",
                            user, user);
    }
    if (!found) {
      failed.attempt.message = "its process cannot run as another user: " + problem;
      settle(std::move(failed));
      return false;
    }
  }
  const posix::SpawnResult result = posix::spawn(spec);
  if (result.stage != posix::SpawnStage::none) {
    if (result.stage == posix::SpawnStage::exec) failed.attempt.stage = LoadStage::no_runner;
    failed.attempt.message =
        fmt::format("its process cannot be started: {}: {}", launch.program.string(),
                    std::strerror(result.error_number));
    failed.attempt.hint =
        "install sandforge-runner beside the plugins that this program came with, or let the "
        "plugin run inside it: isolation: inline";
    settle(std::move(failed));
    return false;
  }
  pid_.store(result.pid);
  host_failed_ = false;
  output_pipe_ = std::move(pipe.read);
  return true;
}

void HostPeer::settle(Ready ready) {
  if (!std::exchange(settled_, true)) ready_.set_value(std::move(ready));
}

// ---- The reader

void HostPeer::run(posix::Fd theirs, const Launch& launch) {
  if (!spawn(launch, std::move(theirs)))
    return tell_end(plugin::crashed(plugin(), "its process could not be started", "process_lost"));
  send(wire::Kind::hello, 0, 0, 0, 0, encode(launch.hello));
  watch_process();
  std::thread second;
  try {
    second = std::thread([this] {
      if (connection().read()) end();
    });
  } catch (const std::system_error&) {
    // Then it reads alone, and other threads run the lanes.
  }
  if (connection().read()) {
    end();
  } else {
    has_ended_.wait();
  }
  if (second.joinable()) second.join();
}

void HostPeer::watch_process() {
  process_ = posix::open_pidfd(pid_.load());
  connection().prepare([this](const wire::FrameView& frame) { return on_frame(frame); },
                       {{output_pipe_.get(), [this] { return read_output(output_pipe_.get()); }},
                        // Its children may hold the socket.
                        {process_.get(), [this] {
                           kill_now();
                           connection().drain();
                           return false;
                         }}});
}

void HostPeer::end() {
  Error loss = end_process(connection().reason());
  read_output(output_pipe_.get());
  if (const std::string lines = output_.text(); !lines.empty()) loss.details.set("stderr", lines);
  tell_end(loss);
}

// Whoever waits for it or for a call of it.
void HostPeer::tell_end(const Error& loss) {
  Ready failed;
  failed.attempt.stage = LoadStage::init_failed;
  failed.attempt.message = "could not be initialised: " + ending_;
  failed.attempt.details = loss.details;
  settle(std::move(failed));
  lose(loss);
  lane_.post([self = shared_from_this(), this] {
    for (const auto& [call, op] : std::exchange(operations_, {})) {
      op->vtbl->cancel(op);
      op->vtbl->release(op);
    }
  });
  end_.set_value();
}

// A piece of it: what is written without end keeps no frame waiting.
bool HostPeer::read_output(int output) {
  char bytes[4096];
  for (std::size_t read = 0; read < kOutputTurn;) {
    const auto got = ::read(output, bytes, sizeof bytes);
    if (got > 0) {
      read += static_cast<std::size_t>(got);
      output_.add(std::string_view(bytes, static_cast<std::size_t>(got)));
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

// Reaps the process, and says how it ended.
Error HostPeer::end_process(const std::string& why) {
  const pid_t pid = pid_.load();
  const bool asked = stopping_.load();
  int status = 0;
  if (!why.empty() && !asked) kill_now();
  wait_for(pid, kEndLimitMs);
  kill_now();  // too late for one that has ended, which is still there to be reaped
  wait_for(pid, -1);
  {
    const std::lock_guard lock(pid_mutex_);
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    pid_.store(-1);
  }
  if (asked) return Error(Status::unavailable, "the host has closed this plugin", "plugin.closed");
  ending_ = ending(status, why);
  Error error = plugin::crashed(plugin(), ending_, "process_lost");
  error.may_have_started = true;
  if (WIFSIGNALED(status)) error.details.set("signal", WTERMSIG(status));
  if (WIFEXITED(status)) error.details.set("exitCode", WEXITSTATUS(status));
  return error;
}

std::string HostPeer::ending(int status, const std::string& why) const {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (hung_.load() || code == kExitStuck)
    return fmt::format("a call of it did not return within {}, and its process was ended",
                       in_words(call_limit()));
  if (code == kExitNoSocket)
    return "it closed descriptors that are not its own, and its process was ended";
  if (!why.empty()) return "its process was ended: " + why;
  return "its process " + words_of(status);
}

// With its children: it leads a session of its own. Those that left it are not reached.
void HostPeer::kill_now() noexcept {
  const std::lock_guard lock(pid_mutex_);
  if (pid_.load() > 0) ::kill(-pid_.load(), SIGKILL);
}

void HostPeer::hung() noexcept {
  hung_.store(true);
  kill_now();
}

bool HostPeer::on_frame(const wire::FrameView& frame) {
  switch (frame.header.kind) {
    case wire::Kind::event:
      return on_event(frame);
    case wire::Kind::reply:
      return on_reply(frame);
    case wire::Kind::call:
      return on_call(frame);
    case wire::Kind::fault:
      return on_fault(frame);
    case wire::Kind::ready: {
      if (settled_) return false;
      auto ready = decode_ready(frame.payload);
      if (!ready) {
        host_failed_ = ready.error().reason == kOtherVersion;
        Ready failed;
        failed.attempt.stage = LoadStage::load_failed;
        failed.attempt.message = ready.error().message;
        failed.attempt.details = ready.error().details;
        settle(std::move(failed));
        return false;
      }
      // A process that can be used did not fail, whatever it says: losing it counts.
      host_failed_ = ready->lacks_thread && !ready->attempt.usable();
      if (!ready->hardening.empty())
        post(frame.payload.size(), [this, why = std::move(ready->hardening)] {
          const auto services = plugin().host.services();
          if (!services || !services->logger) return;
          services->logger->write(LogLevel::info, "a plugin's process is less confined",
                                  {{"plugin", plugin().name()}, {"why", why}});
        });
      settle(std::move(*ready));
      return true;
    }
    default:
      return false;
  }
}

// Whatever it asks for runs on our lane, so that this thread runs nobody's code.
bool HostPeer::on_call(const wire::FrameView& frame) {
  post(frame.payload.size(), [this, header = frame.header, payload = std::string(frame.payload)] {
    if (!serve(header, payload)) connection().close(kBroken);
  });
  return true;
}

bool HostPeer::on_fault(const wire::FrameView& frame) {
  wire::Arena arena;
  wire::Reader in(frame.payload, arena);
  const auto kind = in.read<std::uint8_t>();
  const auto count = in.read<std::uint64_t>();
  const auto what = in.read<sf_str>();
  if (!in.whole() || kind >= faults_.size()) return false;
  // Those of two threads may come in the other order: the later number counts for both.
  const std::uint64_t known = std::exchange(faults_[kind], std::max(count, faults_[kind]));
  const std::uint64_t times = faults_[kind] - known;
  post(frame.payload.size(), [this, kind, times, what = plugin::copy_text(what, 1024)] {
    plugin().faults.report(static_cast<plugin::Fault>(kind), what, times);
  });
  return true;
}

// On our lane, as long as not too much waits for it.
void HostPeer::post(std::size_t bytes, std::function<void()> work) {
  const std::size_t cost = bytes + kQueuedCall;
  if (queued_.fetch_add(cost) + cost > kMaxQueued)
    return connection().close("it makes calls faster than they can be answered");
  lane_.post([self = std::static_pointer_cast<HostPeer>(shared_from_this()), work = std::move(work),
              cost] {
    self->queued_.fetch_sub(cost);
    work();
  });
}

// ---- Calls of the plugin

bool HostPeer::serve(const wire::Header& header, std::string_view payload) {
  if (header.method == wire::method_of(&sf_log_service::write)) return log(payload);
  if (header.method == wire::method_of(&sf_op_vtbl::cancel)) {
    const auto found = operations_.find(header.target);
    if (found != operations_.end()) found->second->vtbl->cancel(found->second);
    return true;
  }
  if (header.method == wire::method_of(&sf_context_vtbl::release)) {
    sf_context* context = nullptr;
    {
      const std::lock_guard lock(contexts_mutex_);
      const auto found = contexts_.find(header.target);
      if (found == contexts_.end()) return false;
      context = found->second;
      contexts_.erase(found);
    }
    context->vtbl->release(context);
    return true;
  }
  const ServeFn function = serve_function(host_table(), header.method);
  if (function == nullptr || lost()) return function != nullptr;
  if (operations_.count(header.id) != 0) return false;
  wire::Arena arena;
  wire::Reader in(payload, arena, this);
  return function(*this, header, in);
}

bool HostPeer::log(std::string_view payload) {
  if (payload.size() > kMaxRecord) {
    plugin().faults.report(plugin::Fault::bad_value, "a log record of more than 256 KiB");
    return true;
  }
  wire::Arena arena;
  wire::Reader in(payload, arena);
  std::tuple<std::uint32_t, sf_str, const sf_log_field*, std::size_t, std::size_t> record{};
  wire::read_call(in, record);
  if (!in.whole()) return false;
  const auto* service = static_cast<const sf_log_service*>(services::log_service());
  std::apply([&](auto... part) { service->write(&plugin().host, part...); }, record);
  return true;
}

Result<void> HostPeer::admit() {
  if (operations_.size() < kMaxOperations) return {};
  return Error(Status::unavailable, "too many operations of one plugin are running",
               "runner.operations");
}

bool HostPeer::find(sf_context*& self, const sf_context_vtbl*& table, Id target) {
  const std::lock_guard lock(contexts_mutex_);
  const auto found = contexts_.find(target);
  if (found == contexts_.end()) return false;
  self = found->second;
  table = self->vtbl;
  return true;
}

const void* HostPeer::table(std::uint8_t number) {
  const auto service = [&](const char* id) {
    return plugin().host.vtbl->service(&plugin().host, {id, std::string_view(id).size()});
  };
  if (number == wire::struct_number<sf_state_service>()) return service(SF_SERVICE_STATE);
  if (number == wire::struct_number<sf_secrets_service>()) return service(SF_SERVICE_SECRETS);
  return nullptr;
}

void HostPeer::prepare(Remote& remote) {
  remote.ended = [weak = weak_from_this(), lane = lane_, call = remote.call] {
    lane.post([weak, call] {
      const auto self = std::static_pointer_cast<HostPeer>(weak.lock());
      if (!self) return;
      const auto found = self->operations_.find(call);
      if (found == self->operations_.end()) return;
      found->second->vtbl->release(found->second);
      self->operations_.erase(found);
    });
  };
}

// ---- Contexts in records

void HostPeer::write(wire::Writer& out, sf_context* context) {
  if (context == nullptr) return out.value(Id{0});
  const Id id = next();
  {
    const std::lock_guard lock(contexts_mutex_);
    if (contexts_.size() >= kMaxContexts)
      throw_error(Error(Status::unavailable, "the plugin holds too many contexts"));
    context->vtbl->retain(context);
    contexts_.emplace(id, context);
  }
  out.value(id);
  out.value(*context->vtbl->fields(context));
}

sf_context* HostPeer::read_context(wire::Reader& in) {
  const auto id = in.read<std::uint64_t>();
  if (id == 0) return nullptr;
  const std::lock_guard lock(contexts_mutex_);
  const auto found = contexts_.find(id);
  if (found != contexts_.end()) return found->second;
  in.fail();
  return nullptr;
}

}  // namespace sandforge::runner

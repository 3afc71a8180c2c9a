#include "sandbox.hpp"

#include <sandforge/guest_link/files.hpp>
#include <sandforge/guest_link/guest_process.hpp>
#include <sandforge/guest_link/processes.hpp>

#include <algorithm>

#include "engine_time.hpp"

namespace sandforge::docker {
namespace {

constexpr std::int64_t kBytesPerMb = 1024 * 1024;
constexpr std::size_t kRequestsKept = 1024;
constexpr milliseconds kCaptureNap{50};
constexpr milliseconds kGrace{2000};  // of commands, when their machine ends
constexpr milliseconds kBuildLook{2000};
// For a look at what became of a container: somebody waits for the end of a command.
constexpr milliseconds kLookTime = std::chrono::seconds(10);
constexpr milliseconds kLookNap{50};
constexpr int kEndedLooks = 10;   // half a second
constexpr int kGoingLooks = 200;  // ten seconds
constexpr milliseconds kLongestIdle{std::int64_t{1} << 40};

bool is_any(const std::string& address) {
  return address.empty() || address == "0.0.0.0" || address == "::";
}

std::string authority(const std::string& address, const std::string& port) {
  const bool six = address.find(':') != std::string::npos;
  return (six ? '[' + address + ']' : address) + ':' + port;
}

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts)
    if (!text.empty()) return text;
  return ProviderOptions::kDefaultImage;
}

guest_link::GuestOwner& owner_of(sf_sandbox* self) {
  return static_cast<DockerSandbox&>(plugin::SandboxBase::of(self));
}

// Why a guest could not be reached; nothing: its machine does not run, or is gone.
std::optional<Failure> failure_of(const std::exception_ptr& error) {
  if (!error) return std::nullopt;
  try {
    std::rethrow_exception(error);
  } catch (const Error& why) {
    if (why.code() == Code::gone || why.code() == Code::conflict) return std::nullopt;
    return Failure{static_cast<sf_status>(why.code()), "docker.guest", why.message(), {}, 0, false};
  } catch (const std::exception& why) {
    return Failure{SF_INTERNAL, "docker.guest", why.what(), {}, 0, false};
  }
}

std::string look_path(const std::string& id) {
  return "/containers/" + id + "/json";
}

// The engine went with the connection, or says nothing any more.
Failure engine_lost(const std::exception_ptr& error) {
  std::string why = "it cannot be asked";
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& failed) {
    why = failed.what();
  }
  return Failure{SF_TRANSPORT_LOST,
                 "docker.engine_lost",
                 "the connection to the container was lost, and whether the command still runs is "
                 "not known: " +
                     why,
                 {},
                 0,
                 false};
}

// A request to the guest whose answer is an end.
class Answer {
 public:
  bool told = false;
  std::optional<Failure> failure;
  std::function<void()> wake;  // on the lane
};

}  // namespace

DockerSandbox::~DockerSandbox() {
  drop_guest();
}

DockerSandbox::DockerSandbox(std::shared_ptr<const ProviderOptions> options,
                             std::shared_ptr<DockerBuilds> builds, plugin::Context context,
                             const plugin::Settings& settings)
    : options_(std::move(options)), builds_(std::move(builds)), context_(std::move(context)) {
  const std::string chosen = settings.string("baseImage").value_or("");
  // With a repository the host's image is what a template builds from, and the project may choose
  // another; without one it is what runs.
  image_ = context_.has_repository() ? first_of({chosen, options_->base_image, options_->image})
                                     : first_of({options_->image, chosen, options_->base_image});
  working_directory_ = context_.working_directory().value_or(options_->working_directory);
  if (working_directory_.substr(0, 1) != "/")
    throw fault(Code::invalid, "docker.working_directory",
                "the working directory of a container is an absolute path: " + working_directory_);
  if (!context_.session_id() && !context_.sandbox_id())
    throw fault(Code::invalid, "docker.no_id", "a sandbox needs an id");
  boot_.own = context_.checkpoint_name();
  if (!boot_.own && context_.caller_chose_id()) boot_.own = context_.session_id();
  boot_.seed = context_.seed_checkpoint_name();
}

Engine& DockerSandbox::engine() {
  if (!engine_) engine_.emplace(lane(), options_->engine);
  return *engine_;
}

Machines& DockerSandbox::machines() {
  if (!machines_) {
    machines_.emplace(engine(), options_);
    machines_->session_id = context_.session_id();
    machines_->container_id = context_.sandbox_id();
    machines_->any_session = !context_.caller_chose_id();
  }
  return *machines_;
}

MachineSpec DockerSandbox::spec(const plugin::Starting& starting) const {
  MachineSpec out;
  out.image = image_;
  out.working_directory = working_directory_;
  // The guest takes no longer one; it is a third of a century.
  out.idle = std::min(context_.idle_timeout().value_or(options_->idle), kLongestIdle);
  std::map<std::string, std::optional<std::string>> env;
  if (!starting.env_given())
    for (const plugin::EnvEntry& entry : options_->env)
      env[entry.name] = entry.value;
  for (const plugin::EnvEntry& entry : starting.env())
    env[entry.name] = entry.value;
  for (const auto& [name, value] : env)
    out.env.push_back(value ? name + '=' + *value : name);
  return out;
}

Task<plugin::Started> DockerSandbox::start(plugin::Starting& starting) {
  const auto identify = [&starting](const std::string& id) { starting.identify(id); };
  std::optional<TemplateChoice> choice;
  const auto& document = starting.template_document();
  if (document) choice.emplace(engine(), options_, builds_, *document);
  ImageChoice* const by = choice ? &*choice : nullptr;
  const Machine machine = co_await machines().start(spec(starting), boot_, by, identify);
  if (machine.created) boot_.wanted.reset();
  container_ = machine.info.id;
  ends_when_idle_ = !machine.info.label(wire::kIdleLabel).empty();
  directory_ = machine.info.working_directory.empty() ? "/" : machine.info.working_directory;
  plugin::Started out(machine.created ? plugin::Outcome::created : plugin::Outcome::connected,
                      container_, directory_);
  out.provenance = machine.created ? machine.provenance : plugin::Provenance::base;
  out.warnings = machine.warnings;
  co_await join_guest(machine.info, out.warnings);
  if (choice) {
    out.warnings.insert(out.warnings.end(), choice->warnings.begin(), choice->warnings.end());
    if (!choice->pending.empty()) {
      out.template_pending_id = choice->pending;
      out.template_retry_after = kBuildLook;
    }
  }
  if (!machine.created)
    for (const std::string& entry : machine.info.env)
      out.env_names.push_back(entry.substr(0, entry.find('=')));
  co_return out;
}

void DockerSandbox::commands_end() noexcept {
  for (const std::weak_ptr<Exec>& running : running_)
    if (const auto exec = running.lock()) exec->machine_ends();
}

Task<void> DockerSandbox::stop(plugin::StopToken) {
  commands_end();
  // The container's own command is ended, too, and has its time.
  milliseconds grace = kGrace;
  if (options_->has_command) grace = options_->stop_timeout;
  co_await end_commands(grace);
  co_await machines().stop();
}

Task<void> DockerSandbox::destroy(plugin::StopToken) {
  commands_end();
  co_await end_commands(kGrace);
  const std::vector<std::string> images = co_await machines().remove();
  container_.clear();
  has_guest_ = false;
  drop_guest();
  // A checkpoint that was replaced or removed while a container needed it is not needed any more.
  for (const std::string& image : images) {
    try {
      co_await machines().checkpoints.drop_unnamed(image);
    } catch (const Error& error) {
      plugin::Log::warn("an image without a name is left",
                        {{"image", image}, {"why", error.message()}});
    }
  }
}

// ---- Checkpoints

Task<std::optional<plugin::Checkpoint>> DockerSandbox::create(std::string name, plugin::StopToken) {
  if (name.empty()) name = boot_.own.value_or("");
  if (name.empty()) co_return std::nullopt;
  const std::optional<wire::ContainerInfo> found = co_await machines().find();
  if (!found && !container_.empty())
    throw fault(Code::gone, "sandbox.gone", "the container no longer exists");
  if (!found || !found->running || found->is_going()) co_return std::nullopt;
  if (found->paused)
    throw fault(Code::conflict, "docker.paused",
                "the container is paused, by somebody else or for another snapshot");
  ++captures_;
  std::exception_ptr failed;
  std::optional<plugin::Checkpoint> made;
  try {
    made =
        co_await machines().checkpoints.capture(*found, name, context_.session_id().value_or(""));
  } catch (...) {
    failed = std::current_exception();
  }
  --captures_;
  if (failed) std::rethrow_exception(failed);
  co_return made;
}

Task<std::vector<plugin::Checkpoint>> DockerSandbox::list(plugin::StopToken) {
  std::vector<plugin::Checkpoint> all = co_await machines().checkpoints.list();
  co_return all;
}

Task<void> DockerSandbox::remove(std::string name, plugin::StopToken) {
  co_await machines().checkpoints.remove(name);
}

Task<void> DockerSandbox::start_from(std::string name, plugin::StopToken) {
  co_await machines().checkpoints.must_exist(name);
  boot_.wanted = name;
}

Task<plugin::SandboxInfo> DockerSandbox::info(plugin::StopToken) {
  const std::optional<wire::ContainerInfo> found = co_await machines().find();
  plugin::SandboxInfo out(plugin::State::absent);
  const bool by_guest = options_->guest != nullptr && found &&
                        !found->label(wire::kGuestLabel).empty() &&
                        (container_ != found->id || has_guest_);
  out.metadata.set("commandPath", by_guest ? "guest" : "engine-exec");
  out.metadata.set("engine", engine().shown());
  out.metadata.set("engineApi", engine().api());
  if (!engine().server().empty()) out.metadata.set("engineServer", engine().server());
  if (!found || found->is_going()) co_return out;
  // A paused one takes no commands: it has to be started.
  const bool running = found->running && !found->paused;
  out.state = running ? plugin::State::running : plugin::State::stopped;
  out.sandbox_id = found->id;
  out.created_at = time_of(found->created);
  if (found->memory > 0) out.memory_mb = static_cast<std::uint64_t>(found->memory / kBytesPerMb);
  if (found->nano_cpus > 0)
    out.cpu_millis = static_cast<std::uint64_t>(found->nano_cpus / 1'000'000);
  out.metadata.set("sandboxId", found->id);
  out.metadata.set("providerResourceId", found->id);
  out.metadata.set("platformStatus", found->status);
  out.metadata.set("containerName", found->name);
  out.metadata.set("image", found->image);
  out.metadata.set("workingDirectory", found->working_directory);
  const std::string idle = found->label(wire::kIdleLabel);
  if (!idle.empty()) out.metadata.set("idleTimeoutMs", std::strtoll(idle.c_str(), nullptr, 10));
  json::Object published;
  for (const wire::PublishedPort& port : found->ports)
    if (published.find(port.port) == nullptr)
      published.set(port.port, authority(port.address, port.host_port));
  if (!published.empty()) out.metadata.set("ports", std::move(published));
  if (found->oom_killed) out.metadata.set("oomKilled", true);
  // Names alone: what the machine was made with, also where the options say something else by now.
  json::Array variables;
  for (const std::string& entry : found->env)
    variables.emplace_back(entry.substr(0, entry.find('=')));
  out.metadata.set("variables", std::move(variables));
  co_return out;
}

Task<std::optional<std::string>> DockerSandbox::url(std::uint32_t port, plugin::StopToken) {
  const std::optional<wire::ContainerInfo> found = co_await machines().find();
  const std::string wanted = std::to_string(port) + "/tcp";
  std::optional<std::string> out;
  // An engine elsewhere has addresses of its own, which need not be reached from here.
  const bool here = !options_->engine->endpoint.path.empty();
  if (!found || !found->running || !here) co_return out;
  for (const wire::PublishedPort& one : found->ports)
    if (one.port == wanted && !out)
      out = "http://" + authority(is_any(one.address) ? "127.0.0.1" : one.address, one.host_port);
  co_return out;
}

Task<std::string> DockerSandbox::instructions(plugin::StopToken) {
  if (options_->has_instructions) co_return options_->instructions;
  std::string text = "Commands run in a Docker container of the image " + image_ + ".\n" +
                     "The working directory is " +
                     (directory_.empty() ? working_directory_ : directory_) + ".\n";
  if (!container_.empty()) text += "The container is " + container_.substr(0, 12) + ".\n";
  co_return text;
}

// ---- The guest

bool DockerSandbox::guest_takes(const plugin::Command& command) const {
  return has_guest_ && (command.user.empty() || guest_switches_user_);
}

void DockerSandbox::drop_guest() noexcept {
  if (const auto link = std::exchange(link_, nullptr)) link->close_when_idle();
}

// A link may outlive this object, which it must not keep.
void DockerSandbox::watch_link(const std::shared_ptr<GuestLink>& link) {
  const std::weak_ptr<int> alive = alive_;
  const std::weak_ptr<GuestLink> weak = link;
  link->when_lost([this, alive, weak, container = container_] {
    const auto lost = weak.lock();
    if (alive.expired()) return lost->let_go();
    const plugin::detail::Ref<plugin::detail::Object> keep(*this);
    plugin::Coroutine::launch<void>(
        lane(), plugin::StopToken(),
        [this, keep, lost, container] { return explain_loss(lost, container); },
        [lost](const std::exception_ptr& error, plugin::Void*) {
          if (error) lost->lost_means(engine_lost(error));
          lost->let_go();
        });
  });
  // Whoever is paused says nothing, and is not lost.
  link->when_silent([this, alive, weak, container = container_] {
    const auto silent = weak.lock();
    if (alive.expired()) return silent->let_go();
    const plugin::detail::Ref<plugin::detail::Object> keep(*this);
    plugin::Coroutine::launch<bool>(
        lane(), plugin::StopToken(), [this, keep, container] { return is_paused(container); },
        [this, keep, silent](const std::exception_ptr& error, bool* paused) {
          if (error) {
            // It was asked, and need not be asked again.
            silent->lost_means(engine_lost(error));
            silent->when_lost(nullptr);
          }
          if (paused == nullptr || !*paused) return silent->let_go();
          plugin::Log::debug("a guest says nothing, because its container is paused", {});
          watch_link(silent);
          silent->go_on();
        });
  });
}

Task<bool> DockerSandbox::is_paused(std::string container) {
  const HttpAnswer answer =
      co_await engine().call("GET", look_path(container), std::string(), kLookTime);
  const auto now = wire::read_container(answer.body);
  co_return answer.status == 200 && now && now->paused;
}

Task<void> DockerSandbox::connect() {
  const std::shared_ptr<GuestLink> link =
      co_await connect_guest(engine(), container_, options_->guest_silence);
  watch_link(link);
  drop_guest();
  link_ = link;
  guest_switches_user_ = (link->hello().features & guest_link::guest::kFeatureUser) != 0 &&
                         options_->host_config.find("CapDrop") == nullptr;
}

Task<void> DockerSandbox::join_guest(wire::ContainerInfo container,
                                     std::vector<std::string>& warnings) {
  has_guest_ = options_->guest != nullptr && !container.label(wire::kGuestLabel).empty();
  if (!has_guest_) drop_guest();
  if (!has_guest_) co_return;
  if (link_ && link_->up()) co_return;
  std::string why;
  try {
    co_await connect();
  } catch (const Error& error) {
    // The machine is what is missing, then.
    const Code code = error.code();
    if (code == Code::cancelled || code == Code::gone || code == Code::conflict) throw;
    why = error.message();
  }
  if (why.empty()) co_return;
  has_guest_ = false;
  drop_guest();
  warnings.push_back("commands run by the engine's execs, because the guest does not answer: " +
                     why);
}

// What became of a machine whose connection was lost while it did something. The connection ends
// with its processes, before the engine says that it ended, and who removes it ends it first.
Task<void> DockerSandbox::explain_loss(std::shared_ptr<GuestLink> link, std::string container) {
  std::optional<wire::ContainerInfo> now;
  bool removed = false;
  for (int naps = 0;; ++naps) {
    const HttpAnswer answer =
        co_await engine().call("GET", look_path(container), std::string(), kLookTime);
    removed = answer.status == 404;
    now = wire::read_container(answer.body);
    const int most = now && now->is_going() ? kGoingLooks : kEndedLooks;
    if (removed || naps >= most) break;
    co_await plugin::sleep_for(kLookNap);
  }
  Failure failure;
  failure.code = SF_TRANSPORT_LOST;
  failure.reason = "docker.stream";
  failure.message = "the connection to the container's guest was lost";
  if (removed) {
    failure.code = SF_GONE;
    failure.reason = "docker.gone";
    failure.message = "the container was removed while the command ran";
  } else if (now && !now->running) {
    failure.message =
        "the container ended while the command ran: how the command ended is not known";
  }
  link->lost_means(std::move(failure));
}

// Terminate, a grace, kill: then nothing of a command is left to be cut.
Task<void> DockerSandbox::end_commands(milliseconds grace) {
  const std::shared_ptr<GuestLink> link = link_;
  if (link == nullptr || !link->up()) co_return;
  const auto answer = std::make_shared<Answer>();
  link->request(
      [grace](guest_link::guest::GuestClient& client) {
        guest_link::guest::StopAllRequest request;
        request.grace_ms = static_cast<std::uint64_t>(grace.count());
        return client.stop_all(request);
      },
      std::make_shared<guest_link::ReplyListener>([answer, lane = lane()](const Failure* failure) {
        answer->told = true;
        if (failure != nullptr) answer->failure = *failure;
        if (answer->wake) lane.post(std::exchange(answer->wake, nullptr));
      }));
  const auto told = [answer](auto fn) { answer->wake = std::move(fn); };
  if (!answer->told) co_await plugin::detail::wait_or_stop(told);
  if (answer->failure && answer->failure->code != SF_TRANSPORT_LOST)
    plugin::Log::warn("the guest did not end its commands",
                      {{"container", container_}, {"error", answer->failure->message}});
}

std::optional<Failure> DockerSandbox::unable() const {
  if (link_ && link_->up()) return std::nullopt;
  if (!container_.empty() && !has_guest_)
    return Failure{SF_UNSUPPORTED,
                   "docker.no_guest",
                   "the container has no guest: its commands run by the engine's execs",
                   {},
                   0,
                   false};
  return guest_link::guest_stopped();
}

void DockerSandbox::with_guest(guest_link::GuestFn then) {
  const plugin::detail::Ref<plugin::detail::Object> keep(*this);
  const bool there = has_guest_ && !container_.empty() && !(link_ && link_->up());
  plugin::Coroutine::launch<void>(
      lane(), plugin::StopToken(),
      [this, there] { return there ? connect() : plugin::Coroutine::ready(); },
      [this, keep, then](const std::exception_ptr& error, plugin::Void*) {
        if (link_ && link_->up()) return then(nullptr, link_);
        if (const auto failure = failure_of(error)) return then(&*failure, nullptr);
        const std::optional<Failure> why = unable();
        if (why->code == SF_UNSUPPORTED) return then(&*why, nullptr);
        then(nullptr, nullptr);
      });
}

std::function<bool()> DockerSandbox::missing_root() const {
  return [] { return false; };
}

const void* DockerSandbox::extension(std::string_view id) {
  if (options_->guest != nullptr) {
    if (id == SF_EXT_PROCESSES) return guest_link::processes_extension<owner_of>();
    if (id == SF_EXT_PTY) return guest_link::pty_extension();
    if (id == SF_EXT_FILES) return guest_link::files_extension<owner_of>();
  }
  return plugin::CoSandbox::extension(id);
}

void DockerSandbox::spawn(plugin::Spawn& call) {
  if (!guest_takes(call.command()) || !link_ || !link_->up()) return plugin::CoSandbox::spawn(call);
  call.hand_over([this](const sf_command& command, const sf_stream_events& io,
                        const sf_process_events& events, sf_process** process,
                        const sf_error_sink* err) {
    return guest_link::spawn(*this, command, io, events, process, err);
  });
}

void DockerSandbox::must_be_new(const std::string& request) {
  if (request.empty()) return;
  if (std::find(requests_.begin(), requests_.end(), request) != requests_.end())
    throw fault(Code::already_exists, "command.already_ran", "the command has come before")
        .may_have_started(true);
  requests_.push_back(request);
  if (requests_.size() > kRequestsKept) requests_.pop_front();
}

Task<plugin::Exit> DockerSandbox::run(plugin::Command command, plugin::ProcessIo io) {
  // An engine refuses commands in a container that is paused.
  while (captures_ > 0)
    co_await plugin::sleep_for(kCaptureNap);
  if (container_.empty())
    throw fault(Code::conflict, "docker.not_running", "the sandbox was not started");
  if (guest_takes(command)) {
    // The connection to the guest is lost, or the machine with it: a start finds out.
    HttpAnswer lost;
    lost.status = 409;
    co_await refuse_by_state(engine(), container_, lost, "run a command without its guest");
  }
  if (command.tty || command.detach)
    throw fault(Code::unsupported, "command.unsupported",
                "the engine's execs have no terminal, and end with this host");
  if (has_guest_ && ends_when_idle_)
    throw fault(Code::unsupported, "docker.idle_user",
                "a command for another user runs by the engine's exec, which does not hold off "
                "the idle timeout of the container: leave out one of them");
  const std::string request = command.request_id;
  must_be_new(request);
  ExecPlace place;
  place.container = container_;
  place.directory = directory_;
  place.user = options_->user;
  const auto keep = std::make_shared<plugin::detail::Ref<plugin::detail::Object>>(*this);
  const auto exec =
      std::make_shared<Exec>(engine(), std::move(place), std::move(command), std::move(io), keep);
  running_.remove_if([](const auto& other) { return other.expired(); });
  running_.push_back(exec);
  try {
    const plugin::Exit exit = co_await exec->run();
    co_return exit;
  } catch (const Error& error) {
    // What provably never started may be sent again.
    if (!exec->started() && !error.may_have_started())
      requests_.erase(std::remove(requests_.begin(), requests_.end(), request), requests_.end());
    throw;
  }
}

}  // namespace sandforge::docker

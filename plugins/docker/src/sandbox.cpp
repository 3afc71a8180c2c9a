#include "sandbox.hpp"

#include <algorithm>
#include <ctime>

namespace sandforge::docker {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr std::int64_t kBytesPerMb = 1024 * 1024;
constexpr std::size_t kRequestsKept = 1024;
constexpr milliseconds kCaptureNap{50};

// "2026-01-02T03:04:05.678901234Z" as nanoseconds since the Unix epoch; 0: no such text.
std::int64_t time_of(const std::string& text) {
  std::tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return 0;
  std::int64_t fraction = 0, digits = 0;
  if (*rest == '.')
    for (++rest; *rest >= '0' && *rest <= '9' && digits < 9; ++rest, ++digits)
      fraction = fraction * 10 + (*rest - '0');
  for (; digits < 9; ++digits)
    fraction *= 10;
  return static_cast<std::int64_t>(::timegm(&parts)) * kNanoseconds + fraction;
}

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts)
    if (!text.empty()) return text;
  return ProviderOptions::kDefaultImage;
}

}  // namespace

DockerSandbox::DockerSandbox(std::shared_ptr<const ProviderOptions> options,
                             plugin::Context context, const plugin::Settings& settings)
    : options_(std::move(options)), context_(std::move(context)) {
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
  const Machine machine = co_await machines().start(spec(starting), boot_, identify);
  if (machine.created) boot_.wanted.reset();
  container_ = machine.info.id;
  directory_ = machine.info.working_directory.empty() ? "/" : machine.info.working_directory;
  plugin::Started out(machine.created ? plugin::Outcome::created : plugin::Outcome::connected,
                      container_, directory_);
  out.provenance = machine.created ? machine.provenance : plugin::Provenance::base;
  out.warnings = machine.warnings;
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
  co_await machines().stop();
}

Task<void> DockerSandbox::destroy(plugin::StopToken) {
  commands_end();
  const std::vector<std::string> images = co_await machines().remove();
  container_.clear();
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
  out.metadata.set("commandPath", "engine-exec");
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
  if (found->oom_killed) out.metadata.set("oomKilled", true);
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

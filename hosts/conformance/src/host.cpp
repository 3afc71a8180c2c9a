#include "host.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "sandforge/host_config.hpp"

namespace sandforge::conformance {
namespace {

constexpr std::size_t kRulesShown = 20;

// Descriptors of this process that belong to somebody else's file or socket: what they stand for.
// Those that the process has of itself, such as the event queue of a sanitizer, are there before.
std::set<std::string> open_descriptors() {
  std::set<std::string> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", none)) {
    const auto target = fs::read_symlink(entry.path(), none).string();
    if (target.find("/proc/") != 0 && !target.empty())
      out.insert(entry.path().filename().string() + " " + target);
  }
  return out;
}

json::Value resolved(const json::Value& value, const fs::path& directory,
                     const ReferenceSource& source) {
  if (value.is_string()) {
    if (!has_reference(value.as_string())) return value;
    auto text = resolve_reference(value.as_string(), directory, source);
    if (!text.error.empty()) throw_error(Error(Status::invalid, text.error, "conformance.options"));
    return std::move(text.text);
  }
  if (value.is_array()) {
    json::Array out;
    for (const auto& item : value.as_array())
      out.push_back(resolved(item, directory, source));
    return out;
  }
  if (!value.is_object()) return value;
  json::Object out;
  for (const auto& [key, member] : value.as_object())
    out.set(key, resolved(member, directory, source));
  return out;
}

}  // namespace

Host::Host(Setting setting)
    : setting_(std::move(setting)),
      open_before_(open_descriptors()),
      env_(std::make_shared<std::map<std::string, std::string>>()) {
  fs::create_directories(home());
  fs::create_directories(tmp());
  *env_ = {{"HOME", home().string()}, {"TMPDIR", tmp().string()}};
  const char* path = std::getenv("PATH");
  env_->emplace("PATH", path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  runtime_ = std::make_unique<Runtime>();
}

Host::~Host() = default;

ProviderRegistry& Host::registry() {
  if (registry_) return *registry_;
  auto services = std::make_shared<HostServices>();
  services->runtime = runtime_.get();
  services->env = [env = env_](const std::string& name) -> std::optional<std::string> {
    if (const auto it = env->find(name); it != env->end()) return it->second;
    return HostServices::environment_variable(name);
  };
  services->state = memory_state_store();
  services->folders.data = base() / "tmp" / "data";
  services->folders.cache = base() / "tmp" / "cache";
  services->folders.runtime = base() / "tmp" / "run";
  services->guest_program = setting_.guest_program;
  Logger::Options log;
  log.level = LogLevel::warn;
  services->logger = std::make_shared<Logger>(
      [kept = broken_rules_](std::string_view line) {
        if (line.find("broke a rule") != std::string_view::npos && kept->size() < kRulesShown)
          kept->emplace_back(line.substr(0, line.find('\n')));
      },
      log);
  ProviderRegistry::Options options;
  options.services = std::move(services);
  registry_ = std::make_unique<ProviderRegistry>(*runtime_, std::move(options));
  PluginSearchPath search;
  search.add(setting_.subject.plugin, "conformance");
  const LoadReport report = registry_->scan(search);
  if (report.refused() != 0)
    throw_error(Error(Status::invalid, report.to_text(), "conformance.plugin"));
  return *registry_;
}

const std::string& Host::provider_name() {
  if (!provider_name_.empty()) return provider_name_;
  provider_name_ = setting_.subject.provider;
  if (provider_name_.empty()) {
    const auto all = registry().list();
    if (all.size() != 1)
      throw_error(Error(Status::invalid, "the plugin has several providers: name one of them",
                        "conformance.provider"));
    provider_name_ = all.front().name;
  }
  return provider_name_;
}

json::Object Host::options() const {
  auto source = host_references();
  source.variable = [this, next = source.variable](const std::string& name) {
    return name == "SANDFORGE_CASE_DIR" ? std::optional(base().string()) : next(name);
  };
  const auto directory = setting_.subject.options_directory.empty()
                             ? fs::current_path()
                             : setting_.subject.options_directory;
  return resolved(setting_.subject.options, directory, source).as_object();
}

std::shared_ptr<ProviderBackend> Host::open(const json::Object& changes) {
  auto given = options();
  for (const auto& [key, value] : changes)
    given.set(key, value);
  return registry().open(provider_name(), std::move(given));
}

const std::shared_ptr<ProviderBackend>& Host::provider() {
  if (provider_) return provider_;
  std::ofstream(setting_.opening) << "\n";  // for who watches, should the plugin end this process
  try {
    const auto backend = open();
    description_ = await_result<Description>([&](Handler<Description> done) {
      auto held = std::make_shared<Handler<Description>>(std::move(done));
      backend->lane().post([backend, held] { backend->describe(std::move(*held)); });
    });
    provider_ = backend;
  } catch (const Exception& error) {
    throw Unopened{error.what()};
  }
  fs::remove(setting_.opening);
  return provider_;
}

const Description& Host::description() {
  provider();
  return *description_;
}

bool Host::has(const std::string& feature) {
  const auto& all = description();
  if (feature == "template") return all.has_template;
  if (feature == "builds") return all.has_builds;
  if (feature == "builds.history") return all.has_build_history;
  return std::find(all.features.begin(), all.features.end(), feature) != all.features.end();
}

void Host::need(const std::string& feature) {
  if (!has(feature)) throw Absent{feature};
}

SandboxConfig Host::config(const std::string& name) const {
  SandboxConfig config;
  config.id = id(name);
  return config;
}

std::shared_ptr<Sandbox> Host::make(std::shared_ptr<ProviderBackend> provider,
                                    SandboxConfig config) {
  auto sandbox = Sandbox::create(runtime(), std::move(provider), std::move(config)).value();
  made_.push_back(sandbox);
  return sandbox;
}

std::shared_ptr<Sandbox> Host::make(SandboxConfig config) {
  return make(provider(), std::move(config));
}

std::shared_ptr<Sandbox> Host::make(const std::string& name) {
  return make(config(name));
}

std::shared_ptr<Sandbox> Host::started(const std::string& name) {
  auto sandbox = make(name);
  sandbox->start();
  return sandbox;
}

fs::path Host::scratch() {
  fs::create_directories(base() / "scratch");
  return base() / "scratch";
}

// ---- The end

void Host::keep_folder_of(const Sandbox& sandbox) {
  if (!has("destroy.keeps_directory")) return;
  if (const auto place = sandbox.working_directory()) kept_.insert(fs::path(*place));
  // A start from a checkpoint may set aside what destroy has kept, where it says so; what earlier
  // ones did lies beside it.
  const auto started = sandbox.started();
  for (const auto& warning : started ? started->warnings : std::vector<std::string>()) {
    const auto at = warning.find(base().string() + "/");
    if (at == std::string::npos) continue;
    const fs::path beside = fs::path(warning.substr(at, warning.find(' ', at) - at)).parent_path();
    if (beside != base()) kept_.insert(beside);
  }
}

void Host::finish() {
  for (const auto& sandbox : made_) {
    try {
      keep_folder_of(*sandbox);
      sandbox->destroy();
    } catch (const std::exception& error) {
      findings().add("destroy of " + sandbox->id() + " failed at the end: " + error.what());
    }
  }
  std::uint64_t faults = 0;
  if (registry_)
    for (const auto& info : registry_->list())
      faults += info.faults;
  made_.clear();
  provider_.reset();
  registry_.reset();
  runtime_.reset();  // and nobody writes to the log any more
  if (faults != 0) {
    std::string text = "the plugin broke rules of the boundary: " + std::to_string(faults);
    for (const auto& line : *broken_rules_)
      text += "\n  " + line;
    findings().add(text);
  }
  check_files();
  const auto extra = [this] {
    auto now = open_descriptors();
    for (const auto& name : open_before_)
      now.erase(name);
    return now;
  };
  if (!eventually([&] { return extra().empty(); }))
    for (const auto& name : extra())
      findings().add("left open: descriptor " + name);
}

// Files, sockets and links. Folders without any may stay, such as the root of all sessions, and the
// procedure's own; where destroy keeps the sessions' folders, these with all that is in them.
void Host::check_files() const {
  const auto left = [&] {
    std::set<std::string> out;
    std::error_code none;
    for (auto it = fs::recursive_directory_iterator(base(), none), end = decltype(it)();
         it != end && !none; it.increment(none)) {
      const auto path = it->path();
      const bool folder = it->is_directory(none) && !it->is_symlink(none);
      if (path == base() / "scratch" || kept_.count(path) != 0) {
        it.disable_recursion_pending();
      } else if (!folder) {
        out.insert(path.lexically_relative(base()).string());
      }
    }
    return out;
  };
  if (eventually([&] { return left().empty(); })) return;
  for (const auto& name : left())
    findings().add("left behind: " + name);
}

}  // namespace sandforge::conformance

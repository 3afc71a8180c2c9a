#include "app.hpp"

#include "default_sandbox.hpp"

namespace sandforge::cli {

App::App(GlobalArguments arguments, std::vector<ProviderDefinition> providers)
    : arguments_(std::move(arguments)),
      terminal_(arguments_.json),
      hurried_(interrupts_.token(), [this] { terminal_.hurry(); }),
      providers_(std::move(providers)),
      places_(find_places(arguments_.state)) {
  make_services();
}

App::~App() {
  // Whatever still runs ends before what it stands on.
  manager_.reset();
  store_.reset();
  registry_.reset();
  runtime_.reset();
}

void App::make_services() {
  const auto configuration = config();
  Logger::Options options;
  options.level = arguments_.log_level.value_or(
      configuration && configuration->document.at_pointer("/log/level") != nullptr
          ? configuration->log_level
          : LogLevel::warn);
  if (configuration) options.format = configuration->log_format;
  logger_ = std::make_shared<Logger>(descriptor_sink(2), options);
  runtime_ = std::make_unique<Runtime>();
}

ConfigPtr App::config() {
  return arguments_.config.empty() ? nullptr : configurations_.load(arguments_.config);
}

ProviderRegistry& App::registry(const ConfigPtr& named) {
  const auto configuration = named ? named : config();
  const std::lock_guard lock(registry_mutex_);
  const bool first = !registry_;
  const bool more = configuration && scanned_.count(configuration->file) == 0;
  if (first || (more && !configuration->plugins.paths.empty())) {
    const auto path = search_path(configuration);  // throws before anything counts as scanned
    if (first) make_registry();
    // Sessions of several configurations in one call: what is known already is only refused again.
    auto report = registry_->scan(path);
    if (first) scan_report_ = std::move(report);
  }
  if (more) secrets_->add(*configuration);
  if (more) registry_->add_policies(configuration->plugins.policies);
  // Of a draft `config check` says it.
  if (more && configurations_.find(configuration->file) == configuration)
    for (const auto& unfit : unfit_policies_in(registry_->report(), configuration))
      terminal_.warn(configuration->file + ": " + unfit.message());
  if (more) scanned_.insert(configuration->file);
  return *registry_;
}

// Beside the sessions: by it plugins tell what is theirs, and the store says which of that is in
// use.
std::filesystem::path App::plugin_state() {
  try {
    const auto configuration = config();
    if (configuration && !configuration->session_store.empty())
      return configuration->session_store.native() + ".plugin-state";
  } catch (const Exception&) {
    // What is wrong with it is told to whoever uses it; a mark of another place is nobody's then.
  }
  return places_.state / "plugin-state";
}

void App::make_registry() {
  auto services = std::make_shared<HostServices>();
  services->runtime = runtime_.get();
  services->logger = logger_;
  services->secrets = secrets_;
  services->state = folder_state_store(plugin_state());
  services->folders.data = places_.state / "plugins";
  services->folders.cache = places_.cache / "plugins";
  services->folders.runtime = places_.runtime;
  ProviderRegistry::Options options;
  if (const auto folder = PluginSearchPath::install_folder(); !folder.empty()) {
    services->guest_program = folder / "sandforge-guest";
    options.runner.program = folder / "sandforge-runner";
    options.runner.shipped = folder;
  }
  options.runner.quarantine = places_.state / "quarantine";
  options.services = services;
  registry_ = std::make_unique<ProviderRegistry>(*runtime_, options);
  for (auto& definition : providers_)
    registry_->add(definition).value();
}

const LoadReport& App::scan_report() {
  registry();
  return scan_report_;
}

SessionStore& App::store() {
  if (!store_) {
    SqliteStoreOptions options;
    const auto configuration = config();
    options.path = configuration && !configuration->session_store.empty()
                       ? configuration->session_store
                       : places_.state / "sessions.db";
    store_ = open_sqlite_session_store(options).value();
  }
  return *store_;
}

SessionManager& App::manager(SetupOptions setup) {
  if (manager_) return *manager_;
  store();
  SessionManager::Options options;
  options.setup = std::move(setup);
  options.resolve = [this](const std::string& reference) { return resolve(reference, config()); };
  options.warn = [this](const SessionId& id, const Error& error) {
    // A note that was not yet written when the program ended, such as the time of the last use.
    if (error.code == Status::cancelled) return;
    logger_->write(LogLevel::warn, error.message,
                   {{"session", id.str()}, {"code", to_string(error.code)}});
  };
  manager_ = SessionManager::create(
      *runtime_, store_,
      [this](const SessionRecord& record, OpenPurpose purpose, Handler<OpenedProvider> done) {
        open_for_record(record, purpose, std::move(done));
      },
      std::move(options));
  return *manager_;
}

std::string App::choose_provider(const std::string& named) {
  DefaultSandboxInput input;
  const auto configuration = config();
  if (!named.empty()) {
    input.explicit_provider = named;
  } else if (configuration && configuration->sandbox) {
    input.explicit_provider = configuration->sandbox->name;
  }
  input.development = arguments_.development;
  input.env = HostServices::environment_variable;
  input.installed = [this](const std::string& name) { return registry().find(name).has_value(); };
  const auto chosen = choose_default_sandbox(input);
  if (chosen.provider != "none") return chosen.provider;
  if (!chosen.warning.empty()) terminal_.warn(chosen.warning);
  Error error(Status::unavailable, "no sandbox provider: " + chosen.why, "cli.no_provider");
  error.details.set("hint",
                    "name one with --provider, or in a configuration file that --config names");
  throw_error(std::move(error));
}

std::string App::known_provider(const std::string& named) {
  if (!named.empty()) return named;
  const auto configuration = config();
  if (configuration && configuration->sandbox) return configuration->sandbox->name;
  throw_error(
      Error(Status::invalid,
            arguments_.config + " has no sandbox.provider: name the provider behind the command",
            "cli.no_provider"));
}

std::optional<std::string> App::resolve(const std::string& reference, const ConfigPtr& config) {
  const auto folder = config ? config->directory : std::filesystem::current_path();
  auto resolved = resolve_reference(reference, folder, host_references());
  if (!resolved.error.empty()) {
    logger_->write(LogLevel::warn, resolved.error);
    return std::nullopt;
  }
  redactor().add(resolved.text);
  return std::move(resolved.text);
}

}  // namespace sandforge::cli

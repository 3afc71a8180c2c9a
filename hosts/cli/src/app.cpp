#include "app.hpp"

#include <unistd.h>

#include <cstdlib>

#include "default_sandbox.hpp"
#include "exit_codes.hpp"
#include "sandforge/settings.hpp"

namespace sandforge::cli {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> variable(const char* name) {
  return HostServices::environment_variable(name);
}

LogLevel parse_level(const std::string& text) {
  for (const auto level :
       {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error, LogLevel::off})
    if (to_string(level) == text) return level;
  throw Fatal(kUsage, "--log-level takes debug, info, warn, error or off");
}

std::shared_ptr<const HostConfig> read_config(const std::string& file) {
  auto loaded = load_host_config(file);
  if (!loaded) throw Fatal(kUsage, loaded.report);
  return loaded.config;
}

Error options_error(const std::string& message) {
  return Error(Status::invalid, message, "options.invalid");
}

}  // namespace

Description describe(const std::shared_ptr<ProviderBackend>& provider) {
  return await_result<Description>([&](Handler<Description> done) {
    auto box = std::make_shared<Handler<Description>>(std::move(done));
    provider->lane().post([provider, box] { provider->describe(std::move(*box)); });
  });
}

App::App(const CommonOptions& options) : options_(options) {
  if (options_.config) config_ = read_config(*options_.config);
  Logger::Options log;
  log.level = parse_level(options_.log_level);
  if (config_) log.format = config_->log_format;
  logger_ = std::make_shared<Logger>(descriptor_sink(STDERR_FILENO), log);

  PluginSearchPath path;
  const auto pin_of = [&](const fs::path& file) -> std::string {
    if (!config_) return {};
    for (const auto& key : {file.string(), file.filename().string()})
      if (const auto it = config_->plugins.pins.find(key); it != config_->plugins.pins.end())
        return it->second;
    return {};
  };
  for (const auto& file : options_.plugin_paths)
    path.add(file, "--plugin-path", pin_of(file));
  if (config_)
    for (const auto& file : config_->plugins.paths)
      path.add(file, "configuration", pin_of(file));
  if (const auto list = variable("SANDFORGE_PLUGIN_PATH"))
    path.add_list(*list, "SANDFORGE_PLUGIN_PATH");
  path.add_install_folder();

  runtime_ = std::make_unique<Runtime>();
  auto services = std::make_shared<HostServices>();
  services->runtime = runtime_.get();
  services->logger = logger_;
  services->state = memory_state_store();
  services->folders.data = state_folder() / "plugins";
  services->folders.cache = state_folder() / "cache";
  ProviderRegistry::Options registry;
  registry.services = services;
  registry_ = std::make_unique<ProviderRegistry>(*runtime_, registry);
  registry_->scan(path);
}

App::~App() {
  sessions_.reset();
  registry_.reset();
}

fs::path App::state_folder() const {
  if (options_.state) return fs::absolute(*options_.state);
  if (const auto given = variable("SANDFORGE_STATE_DIR"); given && !given->empty())
    return fs::absolute(*given);
  if (const auto xdg = variable("XDG_STATE_HOME"); xdg && !xdg->empty())
    return fs::path(*xdg) / "sandforge";
  const auto home = variable("HOME");
  if (!home || home->empty())
    throw Fatal(kUsage, "no folder for the state: set --state, SANDFORGE_STATE_DIR or HOME");
  return fs::path(*home) / ".local/state/sandforge";
}

std::string App::choose_provider(const std::optional<std::string>& named) const {
  DefaultSandboxInput input;
  input.explicit_provider = named;
  if (!named && config_ && config_->sandbox) input.explicit_provider = config_->sandbox->name;
  input.dev_flag = options_.dev;
  input.variable = [](const char* name) { return variable(name); };
  input.installed = [this](const std::string& name) { return registry_->find(name).has_value(); };
  const auto choice = choose_sandbox(input);
  if (choice.provider) return *choice.provider;
  throw Fatal(kUsage, choice.warning.empty()
                          ? "no provider: name one with --provider or in the configuration"
                          : choice.warning);
}

Result<json::Object> App::resolved_options(const HostConfig* config,
                                           const std::string& name) const {
  const auto* provider = config == nullptr ? nullptr : config->find_provider(name);
  if (provider == nullptr) return json::Object();
  const auto info = registry_->find(name);
  if (!info) return json::Object();  // the open tells what is missing
  const auto schema = compile_schema(info->options_schema, SchemaProfile::options);
  if (!schema) return options_error("the options schema of '" + name + "' is not usable");
  const auto resolved = resolve_options(*config, *provider, *schema.schema, host_references());
  if (!resolved.issues.empty())
    return options_error(format_config_issues(*config, resolved.issues));
  return resolved.options.is_object() ? resolved.options.as_object() : json::Object();
}

std::shared_ptr<ProviderBackend> App::open_provider(const std::string& name) {
  return registry_->open(name, resolved_options(config_.get(), name).value());
}

Description App::describe(const std::string& name) {
  return cli::describe(open_provider(name));
}

json::Value App::configured_settings(const std::string& name) const {
  const auto* provider = config_ ? config_->find_provider(name) : nullptr;
  return provider == nullptr ? json::Value() : provider->settings;
}

void App::open_for_session(const SessionRecord& record, Handler<OpenedProvider> done) {
  std::shared_ptr<const HostConfig> config = config_;
  if (!record.config_file.empty() && (!config || config->file != record.config_file)) {
    auto loaded = load_host_config(record.config_file);
    if (!loaded) return std::move(done)(options_error(loaded.report));
    config = loaded.config;
  }
  auto options = resolved_options(config.get(), record.provider);
  if (!options) return std::move(done)(std::move(options).error());
  auto box = std::make_shared<Handler<OpenedProvider>>(std::move(done));
  registry_->async_open(
      record.provider, std::move(options).value(),
      [box](Result<std::shared_ptr<ProviderBackend>> opened) {
        if (!opened) return std::move(*box)(std::move(opened).error());
        const auto backend = *opened;
        backend->lane().post([box, backend] {
          backend->describe([box, backend](Result<Description> described) {
            if (!described) return std::move(*box)(std::move(described).error());
            auto schema = compile_schema(described->settings_schema, SchemaProfile::settings);
            if (!schema)
              return std::move(*box)(
                  Error(Status::invalid, format_issues(schema.issues), "schema.invalid"));
            OpenedProvider out;
            out.backend = backend;
            out.effective =
                [compiled = schema.schema](const json::Object& stored) -> Result<json::Object> {
              auto settings = effective_settings(*compiled, stored);
              if (!settings.issues.empty())
                return Error(Status::invalid, format_issues(settings.issues), "settings.invalid");
              return settings.document.as_object();
            };
            std::move (*box)(std::move(out));
          });
        });
      });
}

SessionManager& App::sessions() {
  if (sessions_) return *sessions_;
  SqliteStoreOptions store;
  store.path = config_ && !config_->session_store.empty()
                   ? config_->session_store.string()
                   : (state_folder() / "sessions.db").string();
  SessionManager::Options options;
  options.resolve = [](const std::string& reference) -> std::optional<std::string> {
    const auto resolved = resolve_reference(reference, fs::current_path(), host_references());
    return resolved.error.empty() ? std::optional(resolved.text) : std::nullopt;
  };
  options.warn = [logger = logger_](const SessionId& id, const Error& error) {
    logger->write(LogLevel::warn, error.message, {{"session", id.str()}});
  };
  sessions_ = SessionManager::create(
      *runtime_, open_sqlite_session_store(store).value(),
      [this](const SessionRecord& record, Handler<OpenedProvider> done) {
        open_for_session(record, std::move(done));
      },
      options);
  return *sessions_;
}

}  // namespace sandforge::cli

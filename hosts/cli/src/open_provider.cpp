// From a name and a configuration to an opened provider with its settings schema.
#include "app.hpp"
#include "sandforge/faults.hpp"
#include "sandforge/settings.hpp"

namespace sandforge::cli {
namespace {

Error from_issues(const HostConfig& config, std::vector<ConfigIssue> issues) {
  auto report = format_config_issues(config, std::move(issues));
  while (!report.empty() && report.back() == '\n')
    report.pop_back();
  Error error(Status::invalid, report, "config.invalid");
  error.details.set("file", config.file);
  return error;
}

CompiledSchemaPtr compile(const json::Value& schema, SchemaProfile profile,
                          const std::string& provider, const char* what) {
  auto compiled = compile_schema(schema, profile);
  if (!compiled)
    throw_error(Error(Status::invalid,
                      std::string(what) + " of provider '" + provider + "' are not valid:\n" +
                          format_issues(compiled.issues),
                      "schema.invalid"));
  return compiled.schema;
}

EnvMap to_env(const json::Value& object) {
  EnvMap env;
  for (const auto& [name, value] : object.as_object()) {
    if (value.is_string()) {
      env[name] = value.as_string();
    } else {
      env[name] = std::nullopt;
    }
  }
  return env;
}

std::optional<std::string> factory_of(const json::Object& context) {
  const auto* id = context.find("factoryId");
  return id != nullptr && id->is_string() ? std::optional(id->as_string()) : std::nullopt;
}

// The caller named no configuration, and may not know that there is one.
Error of_remembered_configuration(Error error, const SessionId& id) {
  if (error.reason != "config.invalid") return error;
  error.details.set("session", id.str());
  error.details.set("hint", "the session '" + id.str() +
                                "' remembers this configuration; --config names another one "
                                "instead, and rm -f forgets the session and leaves its machine");
  return error;
}

}  // namespace

ProviderSetup App::open_provider(const std::string& name, const ConfigPtr& config,
                                 const json::Object& context, OpenPurpose purpose, Faults faults) {
  ProviderSetup out;
  json::Object options;
  const ProviderConfig* configured = config ? config->find_provider(name) : nullptr;
  auto& known = registry(config);
  const auto info = known.find(name);
  if (configured != nullptr && info) {
    const auto schema = compile(info->options_schema, SchemaProfile::options, name, "the options");
    if (auto issues = check_provider(*config, *configured, *schema); !issues.empty())
      throw_error(from_issues(*config, std::move(issues)));
    const bool removal = purpose == OpenPurpose::removal;
    auto resolved = resolve_options(*config, *configured, *schema, host_references(),
                                    removal ? Unresolved::left_out : Unresolved::refused);
    if (!resolved.issues.empty()) throw_error(from_issues(*config, std::move(resolved.issues)));
    options = std::move(resolved.options.as_object());
    if (const auto* defaults = options.find("defaults"); defaults != nullptr)
      out.host_defaults = *defaults;
    const auto* env = configured->options.find("env");
    if (env != nullptr && env->is_array() && !removal) {
      const auto factory = factory_of(context);
      auto session = resolved_session_env(
          *config, *configured, factory ? std::optional<std::string_view>(*factory) : std::nullopt,
          host_references());
      if (!session.issues.empty()) throw_error(from_issues(*config, std::move(session.issues)));
      out.session_env = to_env(session.env);
    }
  }
  const bool faulty =
      faults == Faults::injected && configured != nullptr && !configured->faults.is_null();
  try {
    out.backend = faulty ? open_faulty(*configured, std::move(options), known)
                         : known.open(name, std::move(options));
  } catch (const Exception& failure) {
    // The registry does not know how a person calls this program.
    auto error = failure.error();
    if (error.reason == "provider.unknown") error.details.set("doctor", doctor_command(config));
    throw_error(std::move(error));
  }
  out.description = await_result<Description>([&](auto done) {
    auto held = std::make_shared<Handler<Description>>(std::move(done));
    out.backend->lane().post(
        [backend = out.backend, held] { backend->describe(std::move(*held)); });
  });
  out.settings_schema =
      compile(out.description.settings_schema, SchemaProfile::settings, name, "the settings");
  return out;
}

// Faults that its configuration asks for are nothing that anybody is to meet unawares.
std::shared_ptr<ProviderBackend> App::open_faulty(const ProviderConfig& configured,
                                                  json::Object options, ProviderRegistry& known) {
  terminal_.warn("the configuration injects faults into the provider '" + configured.name + "'");
  auto script = FaultScript::create(read_fault_plan(configured.faults).value()).value();
  return await_result<std::shared_ptr<ProviderBackend>>([&](auto done) {
    async_open_with_faults(*runtime_, known, configured.name, std::move(options), std::move(script),
                           std::move(done));
  });
}

void App::check_configured(const std::string& provider) {
  const auto configuration = config();
  const auto* configured = configuration ? configuration->find_provider(provider) : nullptr;
  if (configured == nullptr) return;
  const auto setup = open_provider(provider, configuration);
  const auto options = compile(registry(configuration).find(provider).value().options_schema,
                               SchemaProfile::options, provider, "the options");
  auto issues = check_provider(*configuration, *configured, *options, setup.settings_schema.get());
  if (!issues.empty()) throw_error(from_issues(*configuration, std::move(issues)));
}

// Blocks on files and plugins, so it is done on the pool.
void App::open_for_record(const SessionRecord& record, OpenPurpose purpose,
                          Handler<OpenedProvider> done) {
  auto held = std::make_shared<Handler<OpenedProvider>>(std::move(done));
  auto result = std::make_shared<Result<OpenedProvider>>(OpenedProvider());
  const bool remembered = arguments_.config.empty() && !record.config_file.empty();
  const auto open = [this, record, purpose, remembered] {
    ConfigPtr config = remembered ? configurations_.load(record.config_file) : this->config();
    auto setup = open_provider(record.provider, config, record.context, purpose, Faults::injected);
    OpenedProvider out;
    out.backend = setup.backend;
    out.env = setup.session_env;
    out.effective = [schema = setup.settings_schema, defaults = setup.host_defaults](
                        const json::Object& stored) -> Result<json::Object> {
      auto effective = effective_settings(*schema, stored, defaults);
      if (effective.issues.empty()) return std::move(effective.document.as_object());
      return Error(Status::invalid,
                   "the session's settings are not valid:\n" + format_issues(effective.issues),
                   "settings.invalid");
    };
    return out;
  };
  runtime_->post_blocking(
      runtime_->make_lane(),
      [result, open, remembered, id = record.id] {
        try {
          *result = open();
        } catch (const Exception& failure) {
          *result = remembered ? of_remembered_configuration(failure.error(), id) : failure.error();
        }
      },
      [result, held](Result<void> ran) {
        if (!ran) return std::move(*held)(std::move(ran).error());
        std::move (*held)(std::move(*result));
      });
}

}  // namespace sandforge::cli

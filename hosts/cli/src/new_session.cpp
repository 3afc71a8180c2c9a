#include "new_session.hpp"

#include <unistd.h>

#include <algorithm>

#include "exit_codes.hpp"

namespace sandforge::cli {
namespace {

SetupPlan plan_of(const SessionArguments& arguments) {
  SetupPlan plan;
  for (const auto& url : arguments.repositories) {
    RepositoryPlan repository;
    repository.url = url;
    repository.ref = arguments.ref;
    repository.credential = arguments.repository_token;
    plan.repositories.push_back(std::move(repository));
  }
  if (plan.repositories.size() == 1) {
    plan.repositories[0].setup_commands = arguments.setup;
  } else {
    plan.list_form = !plan.repositories.empty() || !arguments.setup.empty();
    plan.workspace_commands = arguments.setup;
  }
  return plan;
}

json::Object configured_settings(const ConfigPtr& config, const std::string& provider) {
  const auto* configured = config ? config->find_provider(provider) : nullptr;
  if (configured == nullptr || !configured->settings.is_object()) return {};
  return configured->settings.as_object();
}

// Set-up may have written what references lead to.
json::Value masked(const Redactor& redactor, const json::Value& value) {
  if (value.is_string()) return redactor.redact(value.as_string());
  if (value.is_array()) {
    json::Array out;
    for (const auto& entry : value.as_array())
      out.push_back(masked(redactor, entry));
    return out;
  }
  if (!value.is_object()) return value;
  json::Object out;
  for (const auto& [name, entry] : value.as_object())
    out.set(name, masked(redactor, entry));
  return out;
}

void tell_warnings(App& app, const Session& session, const StartedInfo& info) {
  for (const auto& warning : info.warnings)
    app.terminal().warn(warning);
  const auto report = session.setup_report();
  if (!report) return;
  for (const auto& warning : report->warnings)
    app.terminal().warn(warning);
  for (const auto& name : report->failed_repositories)
    app.terminal().warn("the set-up of '" + name + "' failed");
}

}  // namespace

SetupOptions setup_options(App& app, const SessionArguments& arguments) {
  SetupOptions options;
  options.step_timeout = arguments.setup_timeout;
  options.stop = app.interrupts().token();
  const bool shown = arguments.progress == Progress::always ||
                     (arguments.progress == Progress::automatic && !app.terminal().json() &&
                      app.terminal().stderr_is_terminal());
  if (!shown) return options;
  options.on_step = [&app](const SetupStep& step) {
    const auto where = step.repository.empty() ? std::string() : step.repository + ": ";
    app.terminal().progress(where + step.text);
  };
  // A few lines on a terminal; a slow one holds the set-up back, and nothing is
  // lost.
  options.on_output = [](std::string_view text) { write_all(2, text); };
  return options;
}

NewSession open_session(App& app, const SessionArguments& arguments, bool keep) {
  const auto configured = app.config() ? app.config()->sandbox : std::nullopt;
  if (!arguments.provider.empty()) {
    app.check_configured(arguments.provider);
  } else if (configured) {
    app.check_configured(configured->name);
  }
  SessionSpec spec;
  spec.id = SessionId(arguments.session);
  spec.keep = keep;
  bool known = false;
  if (!arguments.session.empty()) {
    check_session_id(spec.id).value();
    known = app.store().find(spec.id).value().has_value();
  }
  // What exists already is asked for its provider; a name that differs is
  // refused.
  spec.provider = known ? arguments.provider : app.choose_provider(arguments.provider);
  spec.settings = configured_settings(app.config(), spec.provider);
  if (app.config()) spec.config_file = std::filesystem::absolute(app.config()->file).native();
  spec.working_directory = arguments.cwd;
  spec.env = arguments.env;
  for (const auto& variable : spec.env)
    if (variable.value && !variable.reference.empty()) app.redactor().add(*variable.value);
  spec.plan = plan_of(arguments);
  NewSession out;
  out.session = app.manager(setup_options(app, arguments)).open(std::move(spec), OpenMode::either);
  // Of two calls at once that name the same new id, one made it.
  out.existed = !out.session->made_here();
  warn_of_missing_env(app, *out.session);
  return out;
}

StartedInfo start_session(App& app, const Session& session) {
  StartedInfo info;
  try {
    info = session.sandbox()->start();
  } catch (const Exception& failure) {
    auto error = failure.error();
    error.message = app.redactor().redact(error.message);
    error.details = masked(app.redactor(), error.details).as_object();
    throw_error(std::move(error));
  }
  if (!app.terminal().json()) tell_warnings(app, session, info);
  return info;
}

std::optional<std::string> default_cwd(const SessionRecord& record) {
  if (record.plan.repositories.size() != 1) return std::nullopt;
  const auto& directory = record.plan.repositories[0].directory;
  return directory.empty() ? std::nullopt : std::optional(directory);
}

void warn_of_missing_env(App& app, const Session& session,
                         const std::vector<SessionVariable>& given) {
  for (const auto& name : session.missing_env())
    if (std::none_of(given.begin(), given.end(),
                     [&](const SessionVariable& variable) { return variable.name == name; }))
      app.terminal().warn("the value of " + name +
                          " was given to another call only; name it again with --env");
}

json::Object started_json(const Session& session, const StartedInfo& info) {
  json::Object out;
  out.set("outcome", to_string(info.outcome));
  out.set("provenance", to_string(info.provenance));
  out.set("generation", static_cast<long long>(session.record().generation));
  json::Array warnings;
  for (const auto& warning : info.warnings)
    warnings.emplace_back(warning);
  if (const auto report = session.setup_report()) {
    json::Object setup;
    setup.set("ran", report->ran);
    json::Array heads, failed;
    for (const auto& head : report->heads)
      heads.emplace_back(head);
    for (const auto& name : report->failed_repositories)
      failed.emplace_back(name);
    for (const auto& warning : report->warnings)
      warnings.emplace_back(warning);
    setup.set("heads", std::move(heads));
    setup.set("failedRepositories", std::move(failed));
    out.set("setup", std::move(setup));
  }
  if (info.template_pending) out.set("templatePending", info.template_pending->str());
  out.set("warnings", std::move(warnings));
  return out;
}

Error of_session(Error error, const Session& session) {
  error.details.set("session", session.id().str());
  return error;
}

int failure_code(App& app, const Error& error) noexcept {
  const int caught = app.interrupts().caught();
  return caught != 0 ? kSignalBase + caught : exit_code_of(error);
}

}  // namespace sandforge::cli

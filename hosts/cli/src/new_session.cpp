#include "new_session.hpp"

#include <unistd.h>

#include <algorithm>

#include "commands/template_build.hpp"
#include "exit_codes.hpp"
#include "sandforge/support/encoding.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge::cli {
namespace {

std::vector<std::string> urls_of(const SetupPlan& plan) {
  std::vector<std::string> out;
  for (const auto& repository : plan.repositories) {
    const auto url = parse_clone_url(repository.url);
    out.push_back(url ? url->url : repository.url);
  }
  return out;
}

std::vector<std::string> commands_of(const SetupPlan& plan) {
  std::vector<std::string> out;
  for (const auto& repository : plan.repositories)
    out.insert(out.end(), repository.setup_commands.begin(), repository.setup_commands.end());
  out.insert(out.end(), plan.workspace_commands.begin(), plan.workspace_commands.end());
  return out;
}

// Whether there is a repository, and the text is that of each.
bool all_have(const SetupPlan& plan, std::string RepositoryPlan::*text, const std::string& wanted) {
  return !plan.repositories.empty() &&
         std::all_of(plan.repositories.begin(), plan.repositories.end(),
                     [&](const RepositoryPlan& r) { return r.*text == wanted; });
}

// The options that make a new session only, where they ask for something else than this one has.
std::vector<std::string> not_applied(const SessionArguments& given, const SessionRecord& record) {
  auto plan = setup_plan_of(given);
  normalize(plan).value();
  const auto& has = record.plan;
  std::vector<std::string> out;
  if (!plan.repositories.empty() && urls_of(plan) != urls_of(has)) out.emplace_back("--repo");
  if (!given.ref.empty() && !all_have(has, &RepositoryPlan::ref, given.ref))
    out.emplace_back("--ref");
  if (!given.repository_token.empty() &&
      !all_have(has, &RepositoryPlan::credential, given.repository_token))
    out.emplace_back("--repo-token");
  const auto commands = commands_of(plan);
  if (!commands.empty() && commands != commands_of(has)) out.emplace_back("--setup");
  if (given.cwd && given.cwd != record.working_directory) out.emplace_back("--cwd");
  const auto* booted = record.context.find("template");
  if (!given.template_file.empty() &&
      (booted == nullptr || *booted != json::Value(read_template(given.template_file))))
    out.emplace_back("--template");
  return out;
}

std::string not_applied_text(const std::vector<std::string>& options, const SessionId& id) {
  std::string names;
  for (std::size_t i = 0; i < options.size(); ++i)
    names += (i == 0 ? "" : i + 1 == options.size() ? " and " : ", ") + options[i];
  return names + (options.size() == 1 ? " was" : " were") + " not applied: the session '" +
         id.str() + "' exists already, and only a new one is made by that";
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

void warn_of_missing_env(App& app, const Session& session,
                         const std::vector<SessionVariable>& given) {
  for (const auto& name : session.missing_env())
    if (std::none_of(given.begin(), given.end(),
                     [&](const SessionVariable& variable) { return variable.name == name; }))
      app.terminal().warn("the value of " + name +
                          " was given to another call only; name it again with --env");
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
  // A few lines on a terminal; a slow one holds the set-up back, and nothing is lost.
  options.on_output = [&app](std::string_view text) { app.terminal().pass_on(2, text); };
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
  // What exists already is asked for its provider; a name that differs is refused.
  spec.provider = known ? arguments.provider : app.choose_provider(arguments.provider);
  spec.settings = configured_settings(app.config(), spec.provider);
  if (app.config()) spec.config_file = std::filesystem::absolute(app.config()->file).native();
  spec.working_directory = arguments.cwd;
  spec.env = arguments.env;
  for (const auto& variable : spec.env)
    if (variable.value && !variable.reference.empty()) app.redactor().add(*variable.value);
  spec.plan = setup_plan_of(arguments);
  if (!arguments.template_file.empty()) {
    spec.template_document = read_template(arguments.template_file);
    // Whoever asks for a template wants it now: a build that this program left behind would end
    // with it.
    if (!known) build_ahead(app, spec.provider, *spec.template_document);
  } else if (!known) {
    spec.template_document = built_template(app, spec.provider, arguments);
  }
  NewSession out;
  out.session = app.manager(setup_options(app, arguments)).open(std::move(spec), OpenMode::either);
  // Of two calls at once that name the same new id, one made it.
  out.existed = !out.session->made_here();
  if (const auto id = out.session->id().str(); !out.existed)
    app.interrupts().say_at_exit("sandforge: session " + id +
                                 " stays; remove it with: sandforge rm " + id + "\n");
  if (out.existed)
    if (const auto options = not_applied(arguments, out.session->record()); !options.empty()) {
      out.warnings.push_back(not_applied_text(options, out.session->id()));
      if (!app.terminal().json()) app.terminal().warn(out.warnings.back());
    }
  return out;
}

StartedInfo start_session(App& app, const Session& session,
                          const std::vector<SessionVariable>& given) {
  StartedInfo info;
  try {
    info = session.sandbox()->start();
  } catch (const Exception& failure) {
    auto error = failure.error();
    error.message = app.redactor().redact(error.message);
    error.details = masked(app.redactor(), error.details).as_object();
    warn_of_missing_env(app, session, given);
    throw_error(std::move(error));
  }
  warn_of_missing_env(app, session, given);
  if (!app.terminal().json()) tell_warnings(app, session, info);
  return info;
}

StartedInfo start_session(App& app, const Session& session, const SessionArguments& arguments) {
  if (arguments.from.empty()) return start_session(app, session);
  session.sandbox()->start_from(arguments.from);
  auto info = start_session(app, session);
  if (info.outcome != StartOutcome::connected) return info;
  info.warnings.push_back("--from was not applied: the session '" + session.id().str() +
                          "' has a machine already, and only a new one boots from a checkpoint");
  if (!app.terminal().json()) app.terminal().warn(info.warnings.back());
  return info;
}

bool remove_without_machine(App& app, const NewSession& opened) {
  if (opened.existed) return false;
  const auto& id = opened.session->id();
  const auto found = app.store().find(id);
  if (!found || !*found || !has_no_machine(**found)) return false;
  try {
    app.manager().destroy(id);
    app.interrupts().say_at_exit({});
    return true;
  } catch (const Exception& failure) {
    app.terminal().warn("the session '" + id.str() +
                        "' was not removed: " + failure.error().message);
    return false;
  }
}

bool is_known(App& app, const Session& session) {
  const auto found = app.store().find(session.id());
  return !found || found->has_value();
}

std::optional<std::string> default_cwd(const SessionRecord& record) {
  if (record.plan.repositories.size() != 1) return std::nullopt;
  const auto& directory = record.plan.repositories[0].directory;
  return directory.empty() ? std::nullopt : std::optional(directory);
}

json::Object started_json(const Session& session, const StartedInfo& info,
                          const std::vector<std::string>& more_warnings) {
  json::Object out;
  out.set("outcome", to_string(info.outcome));
  out.set("provenance", to_string(info.provenance));
  out.set("generation", static_cast<long long>(session.record().generation));
  json::Array warnings;
  for (const auto& warning : more_warnings)
    warnings.emplace_back(warning);
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

json::Object result_json(const CommandResult& result) {
  const json::Value described = to_json(result);
  json::Object out = described.as_object();
  if (!is_valid_utf8(result.out)) out.set("stdoutBase64", base64_encode(result.out));
  if (!is_valid_utf8(result.err)) out.set("stderrBase64", base64_encode(result.err));
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

#include <unistd.h>

#include <cstdlib>

#include "commands.hpp"
#include "exit_codes.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "run_command.hpp"

namespace sandforge::cli {
namespace {

void check_name(const std::string& word, const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos)
    throw Fatal(kUsage, "--env takes NAME=VALUE or NAME, not '" + word + "'");
}

std::vector<SessionVariable> session_env(const std::vector<std::string>& words) {
  std::vector<SessionVariable> out;
  for (const auto& [name, value] : parse_env(words)) {
    SessionVariable variable;
    variable.name = name;
    variable.value = value;
    out.push_back(std::move(variable));
  }
  for (const auto& word : words) {
    if (word.find('=') != std::string::npos) continue;
    for (auto& variable : out)
      if (variable.name == word) variable.reference = "${" + word + "}";
  }
  return out;
}

SessionSpec make_spec(App& app, const SessionOptions& options) {
  SessionSpec spec;
  spec.provider = app.choose_provider(options.provider);
  if (options.session) spec.id = SessionId(*options.session);
  if (app.config() != nullptr)
    spec.config_file = std::filesystem::absolute(app.config()->file).string();
  const auto settings = app.configured_settings(spec.provider);
  if (settings.is_object()) spec.settings = settings.as_object();
  spec.env = session_env(options.env);
  if (options.repo) {
    RepositoryPlan repository;
    repository.url = *options.repo;
    repository.ref = options.ref.value_or("");
    repository.setup_commands = options.setup;
    spec.plan.repositories.push_back(std::move(repository));
  } else {
    if (options.ref) throw Fatal(kUsage, "--ref needs --repo");
    spec.plan.workspace_commands = options.setup;
  }
  return spec;
}

// The folder of the only repository: where run's commands start.
std::optional<std::string> repository_folder(const Session& session) {
  const auto plan = session.record().plan;
  if (plan.repositories.size() != 1) return std::nullopt;
  return plan.repositories.front().directory;
}

void warn_missing(const Session& session) {
  for (const auto& name : session.missing_env())
    complain("warning", "the value of " + name + " was given to another call only; it is not set");
}

std::shared_ptr<Session> open_and_start(App& app, const SessionOptions& options) {
  auto spec = make_spec(app, options);
  const auto mode = options.session ? OpenMode::either : OpenMode::create;
  const auto session = app.sessions().open(std::move(spec), mode);
  try {
    const auto started = app.sessions().start(session->id());
    for (const auto& warning : started.warnings)
      complain("warning", warning);
  } catch (...) {
    // A session that this call made and could not start is not left behind.
    if (!options.session) {
      try {
        app.sessions().destroy(session->id());
      } catch (const Exception& e) {
        complain("warning",
                 "session " + session->id().str() + " could not be removed: " + e.what());
      }
    }
    throw;
  }
  warn_missing(*session);
  return session;
}

}  // namespace

EnvMap parse_env(const std::vector<std::string>& words) {
  EnvMap out;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    check_name(word, name);
    if (equals != std::string::npos) {
      out[name] = word.substr(equals + 1);
    } else if (const char* value = std::getenv(name.c_str())) {
      out[name] = value;
    } else {
      throw Fatal(kUsage, "--env " + name + ": there is no such variable here");
    }
  }
  return out;
}

int run(App& app, const SessionOptions& options, const CommandOptions& command, bool keep) {
  if (command.argv.empty() && !command.shell) throw Fatal(kUsage, "run needs a command after --");
  const auto session = open_and_start(app, options);
  CommandOptions here = command;
  if (!here.cwd) here.cwd = repository_folder(*session);
  int code = kFailed;
  std::exception_ptr failure;
  try {
    code = run_command(*session->sandbox(), here, app.options().json);
  } catch (...) {
    failure = std::current_exception();
  }
  if (keep || options.session) {
    complain("session", session->id().str());
  } else {
    app.sessions().destroy(session->id());
  }
  if (failure) std::rethrow_exception(failure);
  return code;
}

int start(App& app, const SessionOptions& options) {
  const auto session = open_and_start(app, options);
  if (app.options().json)
    print_json(to_json(session->record()));
  else
    print(session->id().str() + "\n");
  return kOk;
}

int exec(App& app, const std::string& id, const CommandOptions& command) {
  const auto session = app.sessions().attach(SessionId(id));
  warn_missing(*session);
  CommandOptions here = command;
  if (!here.cwd) here.cwd = repository_folder(*session);
  return run_command(*session->sandbox(), here, app.options().json);
}

int ps(App& app, const std::optional<std::string>& id) {
  if (id) {
    const auto session = app.sessions().attach(SessionId(*id));
    std::vector<std::vector<std::string>> rows = {{"PROCESS", "PID", "STATE", "COMMAND"}};
    json::Array list;
    for (const auto& process : session->sandbox()->list_processes()) {
      json::Object object;
      object.set("id", process.id.str());
      object.set("pid", static_cast<long long>(process.pid));
      object.set("running", process.running);
      object.set("detached", process.detached);
      object.set("command", process.command);
      if (process.exit && process.exit->code) object.set("exitCode", *process.exit->code);
      list.emplace_back(std::move(object));
      rows.push_back({process.id.str(), std::to_string(process.pid),
                      process.running ? "running" : "ended", process.command});
    }
    if (app.options().json)
      print_json(list);
    else
      print(table(rows));
    return kOk;
  }
  std::vector<std::vector<std::string>> rows = {{"SESSION", "PROVIDER", "STATUS", "LAST USED"}};
  json::Array list;
  SessionQuery query;
  for (;;) {
    const auto page = app.sessions().list(query);
    for (const auto& record : page) {
      list.push_back(to_json(record));
      rows.push_back({record.id.str(), record.provider, std::string(to_string(record.status)),
                      format_time(record.last_used_at_ns)});
    }
    if (page.size() < query.limit) break;
    query.after = page.back().id;
  }
  if (app.options().json)
    print_json(list);
  else
    print(table(rows));
  return kOk;
}

int stop(App& app, const std::vector<std::string>& ids) {
  for (const auto& id : ids)
    app.sessions().stop(SessionId(id));
  return kOk;
}

int rm(App& app, const std::vector<std::string>& ids, bool forget) {
  for (const auto& id : ids) {
    if (!forget) {
      app.sessions().destroy(SessionId(id));
      continue;
    }
    await_result<void>(
        [&](Handler<void> done) { app.sessions().async_forget(SessionId(id), std::move(done)); });
  }
  return kOk;
}

}  // namespace sandforge::cli

#include <algorithm>

#include "sandbox/lane_handler.hpp"
#include "sandforge/clock.hpp"
#include "sandforge/posix/system.hpp"
#include "session/session_backend.hpp"
#include "session/session_impl.hpp"

namespace sandforge {
namespace {

std::optional<std::string> text_of(const json::Object& object, std::string_view key) {
  const auto* value = object.find(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->as_string();
}

// Credentials that the caller wrote into the URLs of the plan, in plan order.
std::vector<std::optional<Authorization>> url_credentials(const SetupPlan& plan) {
  std::vector<std::optional<Authorization>> out;
  for (const auto& repository : plan.repositories) {
    auto url = parse_clone_url(repository.url);
    out.push_back(url ? url->authorization : std::nullopt);
  }
  return out;
}

// The URL of the plan, with what it carried or the token that its reference leads to.
RepositoryAccessByIndex planned_access(std::shared_ptr<const SessionServices> services,
                                       std::shared_ptr<SessionCore> core, const SetupPlan& given) {
  return [services, core, carried = url_credentials(given)](std::size_t index,
                                                            Handler<RepositoryAccess> done) {
    auto held = std::make_shared<Handler<RepositoryAccess>>(std::move(done));
    auto found = std::make_shared<Result<RepositoryAccess>>(RepositoryAccess());
    services->runtime.post_blocking(
        services->runtime.make_lane(),
        [services, core, carried, index, found] {
          const auto plan = core->record().plan;
          const auto& repository = plan.repositories.at(index);
          (*found)->clone_url = repository.url;
          if (index < carried.size() && carried[index]) {
            (*found)->authorization = carried[index];
            return;
          }
          if (repository.credential.empty()) return;
          const auto& resolve = services->options.resolve;
          auto token = resolve ? resolve(repository.credential) : std::nullopt;
          if (token) {
            Authorization authorization;
            authorization.token = std::move(*token);
            (*found)->authorization = std::move(authorization);
          } else {
            *found = Error(Status::unauthenticated,
                           "the credential " + repository.credential + " is not set here",
                           "setup.no_credential");
          }
        },
        [held, found](Result<void> ran) {
          if (ran) {
            std::move (*held)(std::move(*found));
          } else {
            std::move (*held)(std::move(ran).error());
          }
        });
  };
}

std::shared_ptr<const SessionContext> make_context(const SessionParts& parts,
                                                   const RepositoryAccessByIndex& access) {
  const auto& record = parts.record;
  auto context = std::make_shared<SessionContext>();
  context->session_id = record.id;
  context->sandbox_id = record.sandbox_id;
  context->factory_id = text_of(record.context, "factoryId");
  context->factory_name = text_of(record.context, "factoryName");
  context->repo_full_name = text_of(record.context, "repoFullName");
  context->working_directory = record.working_directory;
  const auto* chosen = record.context.find("callerChoseId");
  context->caller_chose_id = chosen != nullptr && chosen->is_bool() && chosen->as_bool();
  if (parts.for_removal || record.plan.empty()) return context;

  context->resolve_head = parts.spec.resolve_head;
  const auto access_at = [access](std::size_t index) -> RepositoryAccessFn {
    return [access, index](Handler<RepositoryAccess> done) { access(index, std::move(done)); };
  };
  if (record.plan.list_form) {
    context->repos.emplace();
    for (std::size_t i = 0; i < record.plan.repositories.size(); ++i)
      context->repos->push_back({access_at(i), record.plan.repositories[i].setup_commands});
    context->workspace_setup_commands = record.plan.workspace_commands;
    context->continue_on_setup_failure = record.plan.continue_on_failure;
  } else if (!record.plan.repositories.empty()) {
    context->repository_access = access_at(0);
    const auto& commands = record.plan.repositories[0].setup_commands;
    if (commands.size() == 1) context->setup_command = commands[0];
  }
  return context;
}

Result<json::Object> effective_settings(const SessionParts& parts) {
  if (!parts.provider.effective) return parts.record.settings;
  Result<json::Object> effective = json::Object();
  const auto called = sandbox::contained("the settings function", [&] {
    effective = parts.provider.effective(parts.record.settings);
  });
  if (!called) effective = called.error();
  if (!effective && parts.for_removal) return json::Object();
  return effective;
}

}  // namespace

ResolvedEnv resolve_env(const SessionRecord& record, const std::vector<SessionVariable>& given,
                        const ResolveReferenceFn& resolve) {
  ResolvedEnv out;
  for (const auto& variable : record.env) {
    const auto match = std::find_if(given.begin(), given.end(), [&](const SessionVariable& v) {
      return v.name == variable.name && v.value;
    });
    std::optional<std::string> value;
    if (match != given.end()) {
      value = match->value;
    } else if (!variable.reference.empty() && resolve) {
      value = resolve(variable.reference);
    }
    if (value) {
      out.values[variable.name] = std::move(value);
    } else {
      out.missing.push_back(variable.name);
    }
  }
  return out;
}

Result<SessionRecord> new_record(const SessionSpec& spec, bool caller_chose_id) {
  SessionRecord record;
  record.id = spec.id;
  record.provider = spec.provider;
  record.settings = spec.settings;
  record.config_file = spec.config_file;
  record.options = spec.options;
  record.context = spec.context;
  record.context.set("callerChoseId", caller_chose_id);
  if (spec.template_document) record.context.set("template", *spec.template_document);
  if (spec.idle_timeout)
    record.context.set("idleTimeoutMs", static_cast<long long>(spec.idle_timeout->count()));
  record.working_directory = spec.working_directory;
  for (const auto& variable : spec.env)
    record.env.push_back({variable.name, variable.reference});
  record.plan = spec.plan;
  if (auto ok = normalize(record.plan); !ok) return std::move(ok).error();
  // What is stored never holds a password, whatever the caller did.
  for (auto& repository : record.plan.repositories)
    if (!repository.url.empty()) {
      auto url = parse_clone_url(repository.url);
      if (!url) return std::move(url).error();
      repository.url = url->url;
    }
  record.start_key = posix::random_hex(16);
  record.created_at_ns = system_clock()->now_ns();
  record.last_used_at_ns = record.created_at_ns;
  return record;
}

Result<std::shared_ptr<SessionImpl>> build_session(std::shared_ptr<const SessionServices> services,
                                                   SessionParts parts) {
  auto settings = effective_settings(parts);
  if (!settings) return std::move(settings).error();
  auto core = std::make_shared<SessionCore>(services, parts.record);

  auto hook = std::make_shared<SetupHookState>();
  hook->core = core;
  hook->access =
      parts.spec.access ? parts.spec.access : planned_access(services, core, parts.spec.plan);
  hook->on_start = parts.spec.on_start;

  SandboxConfig config;
  config.id = parts.record.id.str();
  config.context = make_context(parts, hook->access);
  config.settings = std::move(settings).value();
  config.timeout = parts.spec.timeout;
  config.working_directory = parts.record.working_directory;
  if (const auto* idle = parts.record.context.find("idleTimeoutMs");
      idle != nullptr && idle->is_integer())
    config.idle_timeout = std::chrono::milliseconds(idle->as_integer());
  if (const auto document = text_of(parts.record.context, "template");
      document && !parts.for_removal)
    config.template_document = [document](Handler<std::optional<std::string>> done) {
      std::move(done)(std::optional<std::string>(document));
    };
  config.env = parts.provider.env;
  config.overlay = parts.env.values;
  config.left_env = parts.env.values;
  config.hooks.on_start = make_session_hook(hook);
  // Not the hook's business: a user may put another one in its place.
  config.hooks.after_start = [core, lane = services->runtime.make_lane()](Handler<void> done) {
    auto held = std::make_shared<Handler<void>>(std::move(done));
    core->release(lane, [held] { std::move (*held)(Result<void>()); });
  };

  auto sandbox = Sandbox::create(
      services->runtime, make_session_provider(parts.provider.backend, core), std::move(config));
  if (!sandbox) return std::move(sandbox).error();
  return std::make_shared<SessionImpl>(std::move(core), std::move(hook), std::move(sandbox).value(),
                                       parts);
}

SessionImpl::SessionImpl(std::shared_ptr<SessionCore> core, std::shared_ptr<SetupHookState> hook,
                         std::shared_ptr<Sandbox> sandbox, const SessionParts& parts)
    : core_(std::move(core)),
      hook_(std::move(hook)),
      sandbox_(std::move(sandbox)),
      id_(core_->id()),
      made_here_(parts.inserted),
      missing_(parts.env.missing) {}

std::vector<std::string> SessionImpl::missing_env() const {
  const auto started = sandbox_->started();
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& name : missing_)
    if (!started || std::find(started->env_names.begin(), started->env_names.end(), name) ==
                        started->env_names.end())
      out.push_back(name);
  return out;
}

std::optional<SetupReport> SessionImpl::setup_report() const {
  const std::lock_guard lock(hook_->mutex);
  return hook_->report;
}

void SessionImpl::add_env(const std::vector<SessionVariable>& variables) {
  sandbox_->set_env([&](EnvMap env) {
    for (const auto& variable : variables)
      if (variable.value) env[variable.name] = variable.value;
    return env;
  });
  const std::lock_guard lock(mutex_);
  missing_.erase(std::remove_if(missing_.begin(), missing_.end(),
                                [&](const std::string& name) {
                                  return std::any_of(variables.begin(), variables.end(),
                                                     [&](const SessionVariable& v) {
                                                       return v.name == name && v.value;
                                                     });
                                }),
                 missing_.end());
}

}  // namespace sandforge

#include "plugin/abi_context.hpp"

#include <utility>

#include "plugin/abi_call.hpp"
#include "plugin/abi_lane.hpp"
#include "plugin/abi_text.hpp"
#include "services/host_call.hpp"

namespace sandforge::plugin {
namespace {

json::Array to_array(const std::vector<std::string>& list) {
  return json::Array(list.begin(), list.end());
}

std::string repos_json(const std::vector<SessionRepository>& repos) {
  json::Array out;
  for (const SessionRepository& repo : repos) {
    json::Object entry;
    if (!repo.setup_commands.empty()) entry.set("setupCommand", to_array(repo.setup_commands));
    out.emplace_back(std::move(entry));
  }
  return json::write(out);
}

uint32_t flags_of(const SessionContext& context) {
  uint32_t flags = 0;
  if (context.repository_access) flags |= SF_CONTEXT_HAS_REPOSITORY;
  if (context.repos) flags |= SF_CONTEXT_LIST_FORM;
  if (context.repos && !context.repos->empty() && context.repos->front().access)
    flags |= SF_CONTEXT_HAS_REPOSITORY;
  if (context.continue_on_setup_failure.value_or(false)) flags |= SF_CONTEXT_CONTINUE_ON_FAILURE;
  if (context.resolve_head) flags |= SF_CONTEXT_HAS_RESOLVE_HEAD;
  if (context.caller_chose_id) flags |= SF_CONTEXT_CALLER_CHOSE_ID;
  if (context.is_session) flags |= SF_CONTEXT_SESSION;
  return flags;
}

void deliver_access(Plugin& plugin, sf_access_completion done,
                    const Result<RepositoryAccess>& result) {
  if (!result.ok()) {
    const ErrorView error(result.error());
    call_value(plugin, "repository_access.done", done.done, done.ctx, error.get(),
               static_cast<const sf_repository_access*>(nullptr));
    return;
  }
  sf_repository_access access{};
  access.struct_size = sizeof(access);
  access.clone_url = to_str(result->clone_url);
  if (result->authorization) {
    access.scheme = to_str(result->authorization->scheme);
    access.token = to_str(result->authorization->token);
    access.username = to_str(result->authorization->username);
  }
  const sf_repository_access* given = &access;
  call_value(plugin, "repository_access.done", done.done, done.ctx,
             static_cast<const sf_error*>(nullptr), given);
}

void deliver_text(Plugin& plugin, sf_text_completion done,
                  const Result<std::optional<std::string>>& result) {
  if (!result.ok()) {
    const ErrorView error(result.error());
    call_value(plugin, "resolve_head.done", done.done, done.ctx, error.get(), sf_str{nullptr, 0});
    return;
  }
  call_value(plugin, "resolve_head.done", done.done, done.ctx,
             static_cast<const sf_error*>(nullptr), to_str(*result));
}

// The token must not appear in a log, whoever writes it.
void mask(Plugin& plugin, const Result<RepositoryAccess>& result) {
  if (!result.ok() || !result->authorization) return;
  const auto services = plugin.host.services();
  if (services && services->logger)
    services->logger->redactor().add_passing(result->authorization->token);
}

}  // namespace

HostContext::HostContext(Plugin& plugin, std::shared_ptr<const SessionContext> context)
    : plugin_(plugin), context_(std::move(context)) {
  static const sf_context_vtbl table = {
      sizeof(sf_context_vtbl),         &HostContext::retain,
      &HostContext::release,           &HostContext::fields,
      &HostContext::repository_access, &HostContext::resolve_head};
  vtbl = &table;
  const SessionContext& c = *context_;
  fields_.struct_size = sizeof(fields_);
  if (c.session_id) fields_.session_id = to_str(session_id_ = c.session_id->str());
  if (c.sandbox_id) fields_.sandbox_id = to_str(sandbox_id_ = c.sandbox_id->str());
  fields_.factory_id = to_str(c.factory_id);
  fields_.factory_name = to_str(c.factory_name);
  fields_.repo_full_name = to_str(c.repo_full_name);
  if (c.setup_command) fields_.setup_command = to_str(setup_ = json::write(*c.setup_command));
  if (!c.workspace_setup_commands.empty())
    fields_.workspace_setup_command =
        to_str(workspace_setup_ = json::write(to_array(c.workspace_setup_commands)));
  fields_.working_directory = to_str(c.working_directory);
  if (c.repos) {
    fields_.repos = to_str(repos_ = repos_json(*c.repos));
    fields_.repo_count = static_cast<uint32_t>(c.repos->size());
  } else {
    fields_.repo_count = c.repository_access ? 1 : 0;
  }
  fields_.flags = flags_of(c);
}

void HostContext::retain(sf_context* self) noexcept {
  static_cast<HostContext*>(self)->references_.fetch_add(1, std::memory_order_relaxed);
}

void HostContext::release(sf_context* self) noexcept {
  auto* context = static_cast<HostContext*>(self);
  if (context->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete context;
}

std::shared_ptr<const SessionContext> HostContext::session_of(sf_context* self) noexcept {
  return self == nullptr ? nullptr : static_cast<HostContext*>(self)->context_;
}

const sf_context_fields* HostContext::fields(sf_context* self) noexcept {
  return &static_cast<HostContext*>(self)->fields_;
}

RepositoryAccessFn HostContext::access_at(std::uint32_t index) const {
  if (context_->repos)
    return index < context_->repos->size() ? (*context_->repos)[index].access : nullptr;
  return index == 0 ? context_->repository_access : nullptr;
}

sf_status HostContext::repository_access(sf_context* self, sf_lane* lane, uint32_t index,
                                         sf_access_completion done, sf_op** op,
                                         const sf_error_sink* err) noexcept {
  auto& context = *static_cast<HostContext*>(self);
  try {
    auto access = context.access_at(index);
    if (!access) return refuse(err, Error(Status::not_found, "the session has no such repository"));
    if (lane == nullptr || done.done == nullptr)
      return refuse(err, Error(Status::invalid, "repository_access needs a lane and a completion"));
    Plugin& plugin = context.plugin_;
    services::start_host_call<RepositoryAccess>(
        HostLane::lane_of(lane), op,
        [&plugin, done](const Result<RepositoryAccess>& result) {
          mask(plugin, result);
          deliver_access(plugin, done, result);
        },
        [access = std::move(access)](Handler<RepositoryAccess> handler) {
          access(std::move(handler));
        });
    return SF_OK;
  } catch (...) {
    return refuse(err, Error(Status::internal, describe_exception()));
  }
}

sf_status HostContext::resolve_head(sf_context* self, sf_lane* lane, sf_str clone_url, sf_str token,
                                    sf_text_completion done, sf_op** op,
                                    const sf_error_sink* err) noexcept {
  auto& context = *static_cast<HostContext*>(self);
  try {
    if (!context.context_->resolve_head)
      return refuse(err, Error(Status::unsupported, "the host resolves no heads"));
    if (lane == nullptr || done.done == nullptr)
      return refuse(err, Error(Status::invalid, "resolve_head needs a lane and a completion"));
    Plugin& plugin = context.plugin_;
    services::start_host_call<std::optional<std::string>>(
        HostLane::lane_of(lane), op,
        [&plugin, done](const Result<std::optional<std::string>>& result) {
          deliver_text(plugin, done, result);
        },
        [session = context.context_, url = copy_text(clone_url),
         secret = copy_text(token)](Handler<std::optional<std::string>> handler) {
          session->resolve_head(url, secret, std::move(handler));
        });
    return SF_OK;
  } catch (...) {
    return refuse(err, Error(Status::internal, describe_exception()));
  }
}

}  // namespace sandforge::plugin

// Sandbox::create and clone: from a configuration to an unstarted sandbox.
#include "sandbox/sandbox_impl.hpp"
#include "sandbox/validate.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge {
namespace {

using sandbox::check_env;
using sandbox::check_id;

Error invalid(std::string message, std::string reason) {
  return Error(Status::invalid, std::move(message), std::move(reason));
}

// Id and context agree afterwards.
Result<void> complete(SandboxConfig& config) {
  auto context = std::make_shared<SessionContext>();
  if (config.context) {
    *context = *config.context;
  } else {
    context->is_session = false;
    context->caller_chose_id = !config.id.empty();
  }
  if (auto bad = check(*context); !bad) return bad;
  if (context->session_id && !config.id.empty() && context->session_id->str() != config.id)
    return invalid("the sandbox id differs from the context's session id", "sandbox.id_mismatch");
  if (context->session_id) config.id = context->session_id->str();
  if (config.id.empty()) {
    config.id = "sandbox-" + posix::random_hex(10);
    context->caller_chose_id = false;
  }
  if (auto bad = check_id(config.id)) return *std::move(bad);
  context->session_id = SessionId(config.id);
  if (!config.working_directory) config.working_directory = context->working_directory;
  config.context = std::move(context);
  return {};
}

Result<void> check_config(const SandboxConfig& config) {
  if (config.timeout && config.timeout->count() < 0)
    return invalid("the timeout is negative", "sandbox.timeout");
  if ((config.start_timeout && config.start_timeout->count() < 0) ||
      config.start_patience.count() < 0 || config.cancel_grace.count() < 0)
    return invalid("a time limit of the start is negative", "sandbox.start_timeout");
  if (config.idle_timeout && config.idle_timeout->count() < 0)
    return invalid("the idle timeout is negative", "sandbox.idle_timeout");
  for (const auto* name : {&config.checkpoint_name, &config.seed_checkpoint_name})
    if (*name && check_id(**name))
      return invalid("\"" + **name + "\" is no name of a checkpoint", "sandbox.checkpoint_name");
  for (const auto* env : {&config.overlay, &config.left_env})
    if (auto bad = check_env(*env)) return *std::move(bad);
  if (config.env)
    if (auto bad = check_env(*config.env)) return *std::move(bad);
  return {};
}

}  // namespace

Result<std::shared_ptr<Sandbox>> Sandbox::create(Runtime& runtime,
                                                 std::shared_ptr<ProviderBackend> provider,
                                                 SandboxConfig config) {
  if (!provider) return invalid("a sandbox needs a provider", "sandbox.provider");
  if (auto bad = complete(config); !bad) return std::move(bad).error();
  if (auto bad = check_config(config); !bad) return std::move(bad).error();
  if (config.name.empty()) config.name = provider->name();
  auto made =
      std::make_shared<sandbox::SandboxImpl>(runtime, std::move(provider), std::move(config));
  made->begin();
  return std::shared_ptr<Sandbox>(std::move(made));
}

namespace sandbox {

Result<std::shared_ptr<Sandbox>> SandboxImpl::clone(CloneOptions options) const {
  SandboxConfig config = config_;
  auto context = std::make_shared<SessionContext>(*config_.context);
  context->session_id.reset();
  if (options.id) context->session_id = SessionId(*options.id);
  context->caller_chose_id = options.id.has_value();
  context->sandbox_id = options.sandbox_id;
  config.id = options.id.value_or("");
  if (options.env) {
    context->env = nullptr;
    config.env = std::move(options.env);
    config.overlay.clear();
    config.left_env.clear();
  }
  if (options.working_directory) config.working_directory = options.working_directory;
  if (options.idle_timeout) config.idle_timeout = options.idle_timeout;
  if (options.checkpoint_name) config.checkpoint_name = options.checkpoint_name;
  if (options.seed_checkpoint_name) config.seed_checkpoint_name = options.seed_checkpoint_name;
  config.context = std::move(context);
  config.hooks = {};
  auto provider = provider_->for_clone();
  if (!provider) provider = provider_;
  return Sandbox::create(runtime_, std::move(provider), std::move(config));
}

}  // namespace sandbox
}  // namespace sandforge

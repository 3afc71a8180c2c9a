// resolve_repo_template for coroutines.
#pragma once

#include <coroutine>

#include "coroutine.hpp"
#include "repo_template.hpp"

namespace sandforge::plugin {

namespace detail {

// Asks for what the resolver needs now, and tells it.
inline Task<void> ask_need(Context context, std::shared_ptr<RepoResolver> resolver) {
  const RepoNeed need = resolver->need();
  if (need == RepoNeed::access) {
    const auto index = static_cast<std::uint32_t>(resolver->index());
    const RepositoryAccess access = co_await context.repository_access(index);
    resolver->give_access(access.clone_url, access.token, access.username);
  } else if (need == RepoNeed::context_head) {
    const std::optional<std::string> head =
        co_await context.resolve_head(resolver->url(), resolver->token());
    resolver->give_head(head);
  } else if (need == RepoNeed::github_head) {
    const HeadRequest wanted = resolver->http();
    const HttpAnswer answer = co_await ask_once(context.lane(), wanted);
    take_http(*resolver, answer);
  } else {
    Command command = git_command(resolver->git());
    const HostAnswer answer = co_await run_on_host(context.lane(), std::move(command));
    take_git(*resolver, answer);
  }
}

}  // namespace detail

// On the lane; the same otherwise. The memory must outlive it.
inline Task<RepoOutcome> resolve_repo_template_task(Context context, RepoRequest request,
                                                    RepoRules rules, HeadMemory* memory = nullptr) {
  const StopToken stop = co_await current_stop();
  const auto resolver = std::make_shared<RepoResolver>(std::move(request), std::move(rules),
                                                       context.has_resolve_head(), memory);
  while (resolver->need() != RepoNeed::nothing) {
    try {
      co_await detail::ask_need(context, resolver);
    } catch (const Error& error) {
      detail::take_error(*resolver, error, stop);
    }
  }
  co_return resolver->outcome();
}

}  // namespace sandforge::plugin

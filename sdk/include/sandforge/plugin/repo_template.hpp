// The plan of a session's repository template, for authors of a provider: the context's fields, its
// accesses and heads, GitHub's API by the host's http service and git by its process service.
//
//   ResolvedTemplate resolve(Context context, Settings settings, StopToken stop) override {
//     const RepoOutcome outcome = resolve_repo_template(context, request_of(context), rules, stop);
//     return resolved_template(outcome, style);
//   }
//
// Never for a reattach or a recreate: those have no template to resolve.
#pragma once

#include <sandforge/support/repo_resolver.hpp>

#include <chrono>

#include "context.hpp"
#include "host.hpp"
#include "host_run.hpp"
#include "http.hpp"
#include "provider_parts.hpp"

namespace sandforge::plugin {

// Commands as a context gives them: JSON of a string or of a list of strings. Absent: none.
inline std::vector<std::string> commands_of(const json::Value& value) {
  if (value.is_string()) return {value.as_string()};
  std::vector<std::string> out;
  if (value.is_array()) {
    for (const json::Value& item : value.as_array())
      if (item.is_string()) out.push_back(item.as_string());
  }
  return out;
}
inline std::vector<std::string> commands_of(const Context::Text& text) {
  if (!text) return {};
  const json::ParseResult parsed = json::parse(*text);
  if (!parsed) throw Error(Code::invalid, "the host gave commands that are no JSON");
  return commands_of(parsed.value);
}

namespace detail {

inline HttpRequest http_request(const HeadRequest& wanted) {
  HttpRequest request("GET", wanted.target);
  request.headers = wanted.headers;
  request.total_timeout = std::chrono::seconds(10);
  request.max_answer = 1 << 10;
  return request;
}
inline Command git_command(const HeadCommand& wanted) {
  Command command;
  command.argv = wanted.argv;
  for (const auto& [name, value] : wanted.env)
    command.env.emplace_back(name, value);
  command.timeout = std::chrono::seconds(10);
  return command;
}
inline void take_http(RepoResolver& resolver, const HttpAnswer& answer) {
  resolver.give_http(static_cast<int>(answer.status), answer.body);
}
inline void take_git(RepoResolver& resolver, const HostAnswer& answer) {
  if (answer.exit.outcome == ExitOutcome::exited && answer.exit.code != 0)
    return resolver.give_failure("git ls-remote failed: " + answer.err);
  resolver.give_git(answer.exit.outcome == ExitOutcome::exited, answer.out);
}
// One request by a client of its own, which is made and let go of on the lane.
inline Async<HttpAnswer> ask_once(const Lane& lane, const HeadRequest& wanted) {
  return {lane, [lane, wanted](auto* pending, sf_op** op, const sf_error_sink*) {
            const auto exchange = std::make_shared<HttpExchange>(http_request(wanted), pending);
            exchange->give(op);
            const auto begin = [lane, exchange, pending, url = wanted.base_url] {
              std::exception_ptr refused = thrown_in([&] {
                const HttpClient client(lane, HttpOptions(url));
                client.begin(exchange);
              });
              if (refused) pending->fail(std::move(refused));
            };
            if (lane.is_current()) {
              begin();
            } else {
              lane.post(begin);
            }
            return sf_status{SF_OK};
          }};
}
// A stop is no answer of the thing that was asked.
inline void take_error(RepoResolver& resolver, const Error& error, const StopToken& stop) {
  stop.throw_if_stopped();
  resolver.give_failure(error.message());
}

}  // namespace detail

// What the context says; sizes and the build environment are the provider's to add.
inline RepoRequest request_of(const Context& context) {
  RepoRequest request;
  if (context.is_list_form()) {
    request.repositories.emplace();
    if (const auto repos = context.repos()) {
      const json::ParseResult parsed = json::parse(*repos);
      if (!parsed || !parsed.value.is_array())
        throw Error(Code::invalid, "the host gave repositories that are no JSON list");
      for (const json::Value& repo : parsed.value.as_array()) {
        RepoWish wish;
        if (const auto* commands = repo.find("setupCommand"))
          wish.setup_commands = commands_of(*commands);
        request.repositories->push_back(std::move(wish));
      }
    }
    request.repositories->resize(context.repo_count());
    request.workspace_commands = commands_of(context.workspace_setup_command());
    request.continue_on_failure = context.continues_on_failure();
  } else if (context.has_repository()) {
    request.repository.emplace();
    request.repository->setup_commands = commands_of(context.setup_command());
  }
  request.working_directory = context.working_directory();
  return request;
}

// On a pool thread. What cannot be told is in the outcome's warnings; a request that is wrong
// throws TemplateError, a stop its error.
inline RepoOutcome resolve_repo_template(const Context& context, RepoRequest request,
                                         RepoRules rules, const StopToken& stop,
                                         HeadMemory* memory = nullptr) {
  RepoResolver resolver(std::move(request), std::move(rules), context.has_resolve_head(), memory);
  for (auto need = resolver.need(); need != RepoNeed::nothing; need = resolver.need()) {
    try {
      if (need == RepoNeed::access) {
        const auto index = static_cast<std::uint32_t>(resolver.index());
        const RepositoryAccess access = context.repository_access(index).get(stop);
        resolver.give_access(access.clone_url, access.token, access.username);
      } else if (need == RepoNeed::context_head) {
        resolver.give_head(context.resolve_head(resolver.url(), resolver.token()).get(stop));
      } else if (need == RepoNeed::github_head) {
        detail::take_http(resolver, detail::ask_once(context.lane(), resolver.http()).get(stop));
      } else {
        detail::take_git(
            resolver, run_on_host(context.lane(), detail::git_command(resolver.git())).get(stop));
      }
    } catch (const Error& error) {
      detail::take_error(resolver, error, stop);
    }
  }
  return resolver.outcome();
}

// What the provider's resolve answers: the template of the plan behind `base`, its text, identity
// and family. Without a plan: the family and the warnings alone.
inline ResolvedTemplate resolved_template(const RepoOutcome& outcome, const RepoStyle& style,
                                          const Template& base = Template(),
                                          const TemplateResources& defaults = {}) {
  ResolvedTemplate out;
  out.family = outcome.family;
  out.warnings = outcome.warnings;
  if (!outcome.plan) return out;
  const Template made = repo_template(*outcome.plan, style, base);
  out.document = made.text();
  out.identity = made.identity(defaults);
  return out;
}

}  // namespace sandforge::plugin

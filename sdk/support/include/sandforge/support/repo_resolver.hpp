// How a request becomes a plan: access to each repository and its head, asked for one after the
// other. It does no I/O itself: it says what it needs, and is told what came of it. So it serves
// blocking code and coroutines alike (sandforge/plugin/repo_template.hpp drives it).
//
//   RepoResolver resolver(request, rules, context.has_resolve_head());
//   for (auto need = resolver.need(); need != RepoNeed::nothing; need = resolver.need()) …
//   const RepoOutcome outcome = resolver.outcome();
//
// A head is asked of the host's context first, then of GitHub's API where the repository lies
// there, then of `git ls-remote` on the host; each only where those before it had no answer. What
// nobody can tell is an outcome with a warning, and not an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "repo_template.hpp"

namespace sandforge {

// Heads that were told in this process, for when they cannot be told again. Thread-safe; the oldest
// of 1,000 goes first.
class HeadMemory {
 public:
  static constexpr std::size_t kMost = 1000;
  void keep(const std::string& url, const std::string& ref, const std::string& head);
  std::optional<std::string> find(const std::string& url, const std::string& ref) const;

 private:
  using Entry = std::pair<std::string, std::string>;
  mutable std::mutex mutex_;
  mutable std::list<Entry> entries_;  // the latest that was used first
  std::map<std::string, std::list<Entry>::iterator> by_key_;
};

enum class RepoNeed : std::uint8_t {
  nothing,       // outcome() is there
  access,        // of repository index(): give_access
  context_head,  // of url() with token(): give_head
  github_head,   // the answer of http(): give_http
  git_head       // the answer of git(): give_git
};

// GET, 10 s, at most 1 KiB of answer.
struct HeadRequest {
  std::string base_url;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;  // secret
};

// 10 s, at most 1 MiB of output. The token is in the environment alone, which is all there is.
struct HeadCommand {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // secret
};

struct RepoOutcome {
  RepoOutcome() {}
  // Absent: the request has no repository and no size, or `warnings` say what could not be told.
  // Sizes alone where there are no repositories, or where one cannot be accessed.
  std::optional<RepoPlan> plan;
  // Where there is no plan for want of a head: of what could stand in for it.
  std::string family;
  TemplateResources resources;        // as requested, also without a plan
  std::vector<std::string> warnings;  // without credentials
  // False: the plan lacks what the request asked for. A start goes on without, a build is refused.
  bool complete = true;
};

class RepoResolver {
 public:
  // Throws what `check` throws. The memory, where there is one, must outlive it.
  RepoResolver(RepoRequest request, RepoRules rules, bool context_has_heads,
               HeadMemory* memory = nullptr);

  RepoNeed need() const noexcept { return need_; }
  std::size_t index() const noexcept { return at_; }
  const std::string& url() const { return current().url; }
  const std::string& token() const { return current().token; }  // secret
  HeadRequest http() const;
  HeadCommand git() const;

  void give_access(const std::string& clone_url, std::string token, std::string username = {});
  void give_head(const std::optional<std::string>& head);
  void give_http(int status, std::string_view body);
  void give_git(bool succeeded, std::string_view output);
  // What was needed is not to be had. The reason is for a person; credentials are taken out.
  void give_failure(std::string_view reason);

  // Once nothing is needed.
  RepoOutcome outcome();

 private:
  const PlannedRepository& current() const { return plan_.repositories[at_]; }
  PlannedRepository& current() { return plan_.repositories[at_]; }
  std::string redacted(std::string_view text) const;
  void ask_head();
  void ask_provider();
  bool on_github() const;
  void next_head(std::string_view reason);
  void no_head();
  void settle_head(std::string head);
  void advance();
  void give_up(std::string warning);

  const RepoRules rules_;
  const bool context_has_heads_;
  HeadMemory* const memory_;
  RepoRequest request_;
  RepoPlan plan_;
  std::vector<std::string> warnings_;
  std::string why_no_head_;
  std::size_t at_ = 0;
  bool given_up_ = false;
  bool unknown_heads_ = false;
  RepoNeed need_ = RepoNeed::nothing;
};

}  // namespace sandforge

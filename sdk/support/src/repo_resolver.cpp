#include "sandforge/support/repo_resolver.hpp"

#include <algorithm>
#include <set>

#include "sandforge/support/encoding.hpp"
#include "sandforge/support/redact.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge {
namespace {

constexpr std::string_view kGithub = "https://github.com/";

std::string basic_credential(const PlannedRepository& r) {
  return base64_encode((r.username.empty() ? "x-access-token" : r.username) + ":" + r.token);
}

std::string without_blanks(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

std::string protocol_of(const std::string& url) {
  const auto mark = url.find("://");
  return mark == std::string::npos ? "ssh" : url.substr(0, mark);
}

bool is_full_commit(std::string_view ref) {
  return ref.size() == 40 && is_commit(ref);
}

// A credential goes over a wire that nobody listens to, or stays on this machine.
bool may_carry_token(const std::string& url) {
  const std::string protocol = protocol_of(url);
  if (protocol == "https") return true;
  if (protocol != "http") return false;
  const std::string host = url.substr(7, url.find_first_of(":/", 7) - 7);
  return host == "localhost" || host == "127.0.0.1";
}

// The commit of "SHA<tab>NAME" lines: that of a tag's object is its peeled line.
std::optional<std::string> head_of_list(std::string_view output) {
  std::optional<std::string> first;
  for (std::size_t at = 0; at < output.size();) {
    const auto end = std::min(output.find('\n', at), output.size());
    const auto line = output.substr(at, end - at);
    at = end + 1;
    const auto tab = line.find('\t');
    if (tab == std::string_view::npos || !is_full_commit(line.substr(0, tab))) continue;
    const bool peeled = line.size() > 3 && line.substr(line.size() - 3) == "^{}";
    if (peeled) return std::string(line.substr(0, tab));
    if (!first) first = std::string(line.substr(0, tab));
  }
  return first;
}

}  // namespace

// ---- Memory

void HeadMemory::keep(const std::string& url, const std::string& ref, const std::string& head) {
  const std::string key = url + "\n" + ref;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto known = by_key_.find(key); known != by_key_.end()) entries_.erase(known->second);
  entries_.emplace_front(key, head);
  by_key_[key] = entries_.begin();
  if (entries_.size() <= kMost) return;
  by_key_.erase(entries_.back().first);
  entries_.pop_back();
}

std::optional<std::string> HeadMemory::find(const std::string& url, const std::string& ref) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = by_key_.find(url + "\n" + ref);
  if (known == by_key_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, known->second);
  return known->second->second;
}

// ---- Resolving

RepoResolver::RepoResolver(RepoRequest request, RepoRules rules, bool context_has_heads,
                           HeadMemory* memory)
    : rules_(std::move(rules)),
      context_has_heads_(context_has_heads),
      memory_(memory),
      request_(std::move(request)) {
  check(request_, rules_);
  plan_.list_form = request_.repositories.has_value();
  std::vector<RepoWish> wishes;
  if (request_.repository) wishes.push_back(*request_.repository);
  if (request_.repositories) wishes = *request_.repositories;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    PlannedRepository repository;
    repository.index = i;
    repository.ref = wishes[i].ref;
    repository.setup_commands = std::move(wishes[i].setup_commands);
    plan_.repositories.push_back(std::move(repository));
  }
  if (plan_.list_form) {
    plan_.workspace_commands = request_.workspace_commands.value_or(std::vector<std::string>());
    plan_.continue_on_failure = request_.continue_on_failure.value_or(false);
  }
  plan_.working_directory = request_.working_directory.value_or("");
  plan_.resources = request_.resources;
  plan_.build_env = request_.build_env;
  if (!plan_.repositories.empty()) need_ = RepoNeed::access;
}

void RepoResolver::give_access(const std::string& clone_url, std::string token,
                               std::string username) {
  PlannedRepository& r = current();
  r.token = std::move(token);
  r.username = std::move(username);
  if (clone_url.empty()) return give_up("has no clone URL");
  try {
    r.url = normal_clone_url(clone_url, rules_.urls);
  } catch (const TemplateError& error) {
    return give_up(std::string("cannot be cloned: ") + error.what());
  }
  if (r.token.find_first_of(std::string_view("\0\r\n", 3)) != std::string::npos ||
      r.username.find_first_of(std::string_view("\0\r\n:", 4)) != std::string::npos)
    return give_up("has a credential that no request can carry");
  if (!r.token.empty() && !may_carry_token(r.url))
    return give_up("has a credential, and a URL over which none is sent");
  r.directory = clone_directory(r.url);
  for (std::size_t i = 0; i < at_; ++i)
    if (plan_.repositories[i].directory == r.directory)
      throw TemplateError(TemplateFault::same_directory,
                          "two repositories would both clone into '" + r.directory + "'",
                          "/repositories/" + std::to_string(at_));
  ask_head();
}

void RepoResolver::ask_head() {
  why_no_head_.clear();
  if (is_full_commit(current().ref)) return settle_head(current().ref);
  // The context knows nothing of other refs.
  if (context_has_heads_ && current().ref.empty()) {
    need_ = RepoNeed::context_head;
  } else {
    ask_provider();
  }
}

void RepoResolver::ask_provider() {
  need_ = on_github() ? RepoNeed::github_head : RepoNeed::git_head;
}

// Exactly owner and name.
bool RepoResolver::on_github() const {
  const std::string& url = current().url;
  return url.rfind(kGithub, 0) == 0 &&
         std::count(url.begin() + static_cast<std::ptrdiff_t>(kGithub.size()), url.end(), '/') == 1;
}

HeadRequest RepoResolver::http() const {
  HeadRequest request;
  request.base_url = "https://api.github.com";
  const std::string ref = current().ref.empty() ? "HEAD" : current().ref;
  request.target =
      "/repos/" + current().url.substr(kGithub.size()) + "/commits/" + percent_encode(ref);
  request.headers = {{"Accept", "application/vnd.github.sha"},
                     {"X-GitHub-Api-Version", "2022-11-28"},
                     {"User-Agent", "sandforge"}};
  if (!current().token.empty())
    request.headers.emplace_back("Authorization", "Bearer " + current().token);
  return request;
}

HeadCommand RepoResolver::git() const {
  const PlannedRepository& r = current();
  HeadCommand command;
  command.argv = {"git", "ls-remote", "--", r.url};
  if (r.ref.empty()) {
    command.argv.emplace_back("HEAD");
  } else if (r.ref.rfind("refs/", 0) == 0) {
    command.argv.push_back(r.ref);
    command.argv.push_back(r.ref + "^{}");
  } else {
    for (const char* kind : {"refs/heads/", "refs/tags/"})
      command.argv.push_back(kind + r.ref);
    command.argv.push_back("refs/tags/" + r.ref + "^{}");
  }
  auto& env = command.env;
  env = {{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
         {"LC_ALL", "C"},
         {"GIT_TERMINAL_PROMPT", "0"},
         {"GIT_ALLOW_PROTOCOL", protocol_of(r.url)},
         {"GIT_CONFIG_NOSYSTEM", "1"},
         {"GIT_CONFIG_GLOBAL", "/dev/null"}};
  if (r.token.empty()) return command;
  // A header that git sends to this URL alone, wherever it is sent on to.
  const std::vector<std::pair<std::string, std::string>> config = {
      {"credential.helper", ""},
      {"http.followRedirects", "false"},
      {"http." + r.url + ".extraheader", "AUTHORIZATION: basic " + basic_credential(r)}};
  env["GIT_CONFIG_COUNT"] = std::to_string(config.size());
  for (std::size_t i = 0; i < config.size(); ++i) {
    env["GIT_CONFIG_KEY_" + std::to_string(i)] = config[i].first;
    env["GIT_CONFIG_VALUE_" + std::to_string(i)] = config[i].second;
  }
  return command;
}

void RepoResolver::give_head(const std::optional<std::string>& head) {
  if (head && is_commit(*head)) return settle_head(*head);
  next_head(head ? "the host told something that is no commit" : "");
}

void RepoResolver::give_http(int status, std::string_view body) {
  const std::string head = without_blanks(body.substr(0, 200));
  if (status >= 200 && status < 300 && is_commit(head)) return settle_head(head);
  next_head("GitHub answered " + std::to_string(status));
}

void RepoResolver::give_git(bool succeeded, std::string_view output) {
  const auto head = succeeded ? head_of_list(output) : std::nullopt;
  if (head) return settle_head(*head);
  next_head(succeeded ? "git ls-remote lists no such ref" : "git ls-remote failed");
}

void RepoResolver::give_failure(std::string_view reason) {
  if (need_ == RepoNeed::access) return give_up("cannot be accessed: " + redacted(reason));
  next_head(reason);
}

void RepoResolver::next_head(std::string_view reason) {
  if (!reason.empty()) why_no_head_ += (why_no_head_.empty() ? "" : "; ") + redacted(reason);
  if (need_ == RepoNeed::context_head) return ask_provider();
  if (need_ == RepoNeed::github_head) {
    need_ = RepoNeed::git_head;
    return;
  }
  no_head();
}

void RepoResolver::no_head() {
  const std::optional<std::string> known =
      memory_ == nullptr ? std::nullopt : memory_->find(current().url, current().ref);
  std::string warning = "the head of " + redacted(current().url) + " is not to be had";
  if (!why_no_head_.empty()) warning += " (" + why_no_head_ + ")";
  if (known) {
    warnings_.push_back(warning + ": the one that was told last is used");
    current().head = *known;
  } else if (rules_.unknown_head == RepoRules::UnknownHead::unpinned) {
    warnings_.push_back(warning + ": it is not pinned to a commit");
  } else {
    warnings_.push_back(warning + ": there is no template of this very commit");
    unknown_heads_ = true;
  }
  advance();
}

void RepoResolver::settle_head(std::string head) {
  for (char& c : head)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  if (memory_ != nullptr) memory_->keep(current().url, current().ref, head);
  current().head = std::move(head);
  advance();
}

void RepoResolver::advance() {
  ++at_;
  need_ = at_ < plan_.repositories.size() ? RepoNeed::access : RepoNeed::nothing;
}

void RepoResolver::give_up(std::string warning) {
  const std::string which =
      plan_.list_form ? "repository " + std::to_string(at_ + 1) : std::string("the repository");
  warnings_.push_back(which + " " + warning);
  given_up_ = true;
  need_ = RepoNeed::nothing;
}

std::string RepoResolver::redacted(std::string_view text) const {
  Redactor redactor;
  if (at_ < plan_.repositories.size() && !current().token.empty()) {
    redactor.add(current().token);
    redactor.add(basic_credential(current()));
  }
  std::string out = redactor.redact(without_blanks(text));
  if (out.size() > 500) out.resize(500);
  return escape_controls(to_valid_utf8(out));
}

RepoOutcome RepoResolver::outcome() {
  RepoOutcome out;
  out.resources = plan_.resources;
  out.warnings = std::move(warnings_);
  out.complete = !given_up_ && !unknown_heads_;
  const bool repositories = !plan_.repositories.empty();
  if (repositories && !given_up_) {
    plan_.family = repo_family(plan_);
    out.family = plan_.family;
    if (!unknown_heads_) out.plan = std::move(plan_);
    return out;
  }
  // Without repositories the sizes are what is left of it.
  if (plan_.resources.empty()) return out;
  RepoPlan sizes;
  sizes.resources = plan_.resources;
  out.plan = std::move(sizes);
  return out;
}

}  // namespace sandforge

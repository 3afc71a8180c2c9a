// What a repository template may be asked for, and what a clone URL may be.
#include <algorithm>

#include "sandforge/support/hash.hpp"
#include "sandforge/support/json.hpp"
#include "sandforge/support/repo_template.hpp"
#include "template_checks.hpp"

namespace sandforge {
namespace {

using templates::Place;

bool is_one_of(char c, std::string_view more) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         more.find(c) != std::string_view::npos;
}
bool all_of(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return is_one_of(c, more); });
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

[[noreturn]] void bad_url(const std::string& why) {
  // The URL itself is left out: it may carry a password.
  throw TemplateError(TemplateFault::bad_url, "the clone URL " + why);
}

// Non-empty segments of plain characters, none of which leads elsewhere.
void check_path(std::string_view path) {
  if (path.empty()) bad_url("names no repository");
  for (std::size_t at = 0; at <= path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    const auto segment = path.substr(at, end - at);
    if (segment.empty() || segment == "." || segment == ".." || segment.front() == '-')
      bad_url("has a path with an empty segment, or one that leads elsewhere");
    at = end + 1;
  }
}

void check_host(std::string_view host) {
  auto name = host;
  if (const auto colon = name.find(':'); colon != std::string_view::npos) {
    const auto port = name.substr(colon + 1);
    name = name.substr(0, colon);
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != port.npos)
      bad_url("has a port that is none");
  }
  if (name.empty() || name.front() == '-' || name.front() == '.' || !all_of(name, ".-"))
    bad_url("has no plain host name");
}

std::string cut_end(std::string_view url) {
  const auto slashes = [&] {
    while (!url.empty() && url.back() == '/')
      url.remove_suffix(1);
  };
  slashes();
  if (url.size() > 4 && lower_case(url.substr(url.size() - 4)) == ".git") url.remove_suffix(4);
  slashes();
  return std::string(url);
}

std::string user_of(std::string_view& authority) {
  const auto at = authority.rfind('@');
  if (at == std::string_view::npos) return {};
  std::string user(authority.substr(0, at));
  authority = authority.substr(at + 1);
  if (user.empty() || user.front() == '-' || !all_of(user, "._-"))
    bad_url("has a user name that ssh must not be given");
  return user + "@";
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

void check_commands(std::vector<std::string>& commands, const Place& at, const RepoRules& rules) {
  if (commands.size() > templates::kMaxEntries)
    at.refuse(TemplateFault::too_many, "there cannot be more than 512 set-up commands");
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string& command = commands[i];
    if (is_blank(command)) continue;
    templates::check_text(command, at / i, "a set-up command");
    if (!rules.single_line_commands) continue;
    for (std::size_t c = 0; c < command.size(); ++c)
      if (command[c] == '\r' || (command[c] == '\n' && (c == 0 || command[c - 1] != '\\')))
        (at / i).refuse(TemplateFault::bad_command,
                        "a set-up command must be one line; a newline may follow a backslash");
  }
  commands.erase(std::remove_if(commands.begin(), commands.end(),
                                [](const std::string& text) { return is_blank(text); }),
                 commands.end());
}

void check_ref(const std::string& ref, const Place& at) {
  if (ref.empty()) return;
  if (ref.size() > 255 || ref.front() == '-' || ref.front() == '/' || ref.back() == '/' ||
      ref.back() == '.' || ref.find("..") != std::string::npos || ref == "HEAD" ||
      ref.find("//") != std::string::npos || !all_of(ref, "_./-"))
    at.refuse(TemplateFault::bad_ref, "the ref is no name of a branch, tag or commit");
}

void check_directory(std::string& directory) {
  const Place at("/workingDirectory");
  const auto bad = [&] {
    at.refuse(TemplateFault::bad_path,
              "the working directory must be an absolute path of letters, digits, '.', '_', '-'");
  };
  if (directory.empty() || directory.front() != '/' || !all_of(directory, "._/-") ||
      directory.size() > 4096)
    bad();
  while (directory.size() > 1 && directory.back() == '/')
    directory.pop_back();
  if ((directory + "/").find("/../") != std::string::npos) bad();
}

}  // namespace

void check(RepoRequest& request, const RepoRules& rules) {
  const auto exclusive = [](const char* pointer, const char* message) {
    Place(pointer).refuse(TemplateFault::exclusive, message);
  };
  if (request.repository && request.repositories)
    exclusive("/repositories", "one repository and a list of repositories exclude each other");
  if (!request.repositories) {
    if (request.workspace_commands)
      exclusive("/workspaceCommands", "a set-up of the workspace needs a list of repositories");
    if (request.continue_on_failure)
      exclusive("/continueOnFailure", "to go on after a failure needs a list of repositories");
  }
  if (request.repository) {
    check_ref(request.repository->ref, Place("/repository/ref"));
    check_commands(request.repository->setup_commands, Place("/repository/setupCommands"), rules);
  }
  if (request.repositories) {
    if (request.repositories->size() > templates::kMaxEntries)
      Place("/repositories")
          .refuse(TemplateFault::too_many, "there cannot be more than 512 repositories");
    for (std::size_t i = 0; i < request.repositories->size(); ++i) {
      RepoWish& wish = (*request.repositories)[i];
      const Place at = Place("/repositories") / i;
      check_ref(wish.ref, at / "ref");
      check_commands(wish.setup_commands, at / "setupCommands", rules);
    }
  }
  if (request.workspace_commands)
    check_commands(*request.workspace_commands, Place("/workspaceCommands"), rules);
  if (!request.working_directory && !rules.working_directory.empty())
    request.working_directory = rules.working_directory;
  if (request.working_directory) check_directory(*request.working_directory);
  templates::check_envs(request.build_env, Place("/buildEnv"));
  if (request.resources.cpu_count)
    templates::check_number(*request.resources.cpu_count, Place("/resources/cpuCount"),
                            "the number of CPUs");
  if (request.resources.memory_mb)
    templates::check_number(*request.resources.memory_mb, Place("/resources/memoryMB"),
                            "the memory in MiB");
}

std::string normal_clone_url(std::string_view url, RepoRules::Urls allowed) {
  if (url.empty()) bad_url("is empty");
  if (url.size() > 2048) bad_url("is longer than 2048 bytes");
  const bool any = allowed == RepoRules::Urls::any;
  if (!all_of(url, any ? ":/._-@" : ":/._-"))
    bad_url("has a character that no plain URL needs, such as a query, a user or a space");
  std::string normal = cut_end(url);
  std::string_view rest = normal;
  const auto mark = rest.find("://");
  if (mark == std::string_view::npos) {
    const auto colon = rest.find(':');
    if (!any || colon == std::string_view::npos || rest.find('/') < colon)
      bad_url(any ? "is no https, http, ssh or file URL" : "must be an https URL");
    auto host = rest.substr(0, colon);
    const std::string user = user_of(host);
    check_host(host);
    auto path = rest.substr(colon + 1);
    if (path.find('@') != std::string_view::npos || path.find(':') != std::string_view::npos)
      bad_url("has an '@' or ':' in its path");
    check_path(!path.empty() && path.front() == '/' ? path.substr(1) : path);
    return user + lower_case(host) + ":" + std::string(path);
  }
  const std::string scheme = lower_case(rest.substr(0, mark));
  const bool known =
      scheme == "https" || (any && (scheme == "http" || scheme == "ssh" || scheme == "file"));
  if (!known) bad_url(any ? "is no https, http, ssh or file URL" : "must be an https URL");
  rest = rest.substr(mark + 3);
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos) bad_url("names no repository");
  auto host = rest.substr(0, slash);
  const auto path = rest.substr(slash + 1);
  if (path.find('@') != std::string_view::npos || path.find(':') != std::string_view::npos)
    bad_url("has an '@' or ':' in its path");
  check_path(path);
  if (scheme == "file") {
    if (!host.empty()) bad_url("must name a file of this machine");
    return "file:///" + std::string(path);
  }
  if (scheme != "ssh" && host.find('@') != std::string_view::npos)
    bad_url("carries a user or a password");
  const std::string user = user_of(host);
  check_host(host);
  return scheme + "://" + user + lower_case(host) + "/" + std::string(path);
}

std::string clone_directory(std::string_view url) {
  const std::string end = cut_end(url);
  const auto cut = end.find_last_of("/:");
  std::string name = cut == std::string::npos ? end : end.substr(cut + 1);
  for (char& c : name)
    if (!is_one_of(c, "._-")) c = '-';
  name.erase(0, std::min(name.find_first_not_of(".-"), name.size()));
  if (name.size() > 255) name.resize(255);
  return name.empty() ? "repo" : name;
}

bool is_commit(std::string_view text) noexcept {
  return text.size() >= 7 && text.size() <= 40 &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

std::string setup_marker(const std::vector<std::string>& commands) {
  std::string joined;
  for (std::size_t i = 0; i < commands.size(); ++i)
    joined += (i == 0 ? "" : "\n") + commands[i];
  return "sha256:" + sha256_hex(joined);
}

std::string repo_family(const RepoPlan& plan) {
  const auto& all = plan.repositories;
  if (!plan.list_form && !all.empty()) {
    std::string one = "repo:" + all[0].url + ":" + plan.working_directory + "/" + all[0].directory;
    // A URL may be longer than a family: then its hash stands for it.
    if (one.size() <= templates::kMaxFamilyUnits) return one;
  }
  json::Array list;
  for (const PlannedRepository& repository : all)
    list.emplace_back(json::Array{repository.url, repository.directory});
  const std::string text = json::write(json::Array{plan.working_directory, std::move(list)});
  return (plan.list_form ? "repos:" : "repo:") + sha256_hex(text).substr(0, 32);
}

}  // namespace sandforge

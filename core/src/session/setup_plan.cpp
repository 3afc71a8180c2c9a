#include "sandforge/setup_plan.hpp"

#include <algorithm>
#include <set>

#include "sandforge/host_config.hpp"
#include "session/name_character.hpp"

namespace sandforge {
namespace {

Error invalid(std::string reason, std::string message) {
  return Error(Status::invalid, std::move(message), std::move(reason));
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

void drop_blank(std::vector<std::string>& commands) {
  commands.erase(std::remove_if(commands.begin(), commands.end(),
                                [](const std::string& text) { return is_blank(text); }),
                 commands.end());
}

Result<void> check_commands(const std::vector<std::string>& commands) {
  for (const auto& command : commands)
    if (command.find('\0') != std::string::npos)
      return invalid("setup.bad_command", "a set-up command contains a NUL byte");
  return {};
}

// One component, so that markers and the checkout stay where they belong.
Result<void> check_directory(const std::string& directory) {
  const bool safe = !directory.empty() && directory.size() <= 255 && directory.front() != '.' &&
                    directory.front() != '-' &&
                    std::all_of(directory.begin(), directory.end(), is_name_character);
  if (safe) return {};
  return invalid("setup.bad_directory",
                 "'" + directory + "' cannot be the directory of a repository");
}

Result<void> normalize_repository(RepositoryPlan& repository) {
  if (!repository.url.empty()) {
    auto url = parse_clone_url(repository.url);
    if (!url) return std::move(url).error();
    if (repository.directory.empty()) repository.directory = repository_directory(url->url);
  }
  if (!repository.ref.empty())
    if (auto ref = check_ref(repository.ref); !ref) return ref;
  if (!repository.directory.empty())
    if (auto directory = check_directory(repository.directory); !directory) return directory;
  // Not repeated: it may be the credential itself, which belongs into no store and no message.
  if (!repository.credential.empty() && !is_one_reference(repository.credential))
    return invalid("setup.bad_credential",
                   "the credential of a repository must be a reference, ${NAME} or file:PATH, and "
                   "not the credential itself");
  drop_blank(repository.setup_commands);
  return check_commands(repository.setup_commands);
}

json::Array to_array(const std::vector<std::string>& texts) {
  json::Array out;
  for (const auto& text : texts)
    out.emplace_back(text);
  return out;
}

bool read_text(const json::Value& object, std::string_view key, std::string& out) {
  const auto* value = object.find(key);
  if (value == nullptr) return true;
  if (!value->is_string()) return false;
  out = value->as_string();
  return true;
}

bool read_flag(const json::Value& object, std::string_view key, bool& out) {
  const auto* value = object.find(key);
  if (value == nullptr) return true;
  if (!value->is_bool()) return false;
  out = value->as_bool();
  return true;
}

bool read_texts(const json::Value& object, std::string_view key, std::vector<std::string>& out) {
  const auto* value = object.find(key);
  if (value == nullptr) return true;
  if (!value->is_array()) return false;
  for (const auto& item : value->as_array()) {
    if (!item.is_string()) return false;
    out.push_back(item.as_string());
  }
  return true;
}

}  // namespace

Result<void> normalize(SetupPlan& plan) {
  std::set<std::string> directories;
  for (auto& repository : plan.repositories) {
    if (auto ok = normalize_repository(repository); !ok) return ok;
    if (!repository.directory.empty() && !directories.insert(repository.directory).second)
      return invalid("setup.same_directory",
                     "two repositories would both clone into '" + repository.directory + "'");
  }
  drop_blank(plan.workspace_commands);
  return check_commands(plan.workspace_commands);
}

Result<SetupPlan> setup_plan(const SessionContext& context) {
  if (auto ok = check(context); !ok) return std::move(ok).error();
  SetupPlan plan;
  if (context.repository_access) {
    RepositoryPlan repository;
    if (context.setup_command) repository.setup_commands.push_back(*context.setup_command);
    plan.repositories.push_back(std::move(repository));
  } else if (context.repos) {
    plan.list_form = true;
    for (const auto& entry : *context.repos) {
      RepositoryPlan repository;
      repository.setup_commands = entry.setup_commands;
      plan.repositories.push_back(std::move(repository));
    }
    plan.workspace_commands = context.workspace_setup_commands;
    plan.continue_on_failure = context.continue_on_setup_failure.value_or(false);
  }
  if (auto ok = normalize(plan); !ok) return std::move(ok).error();
  return plan;
}

json::Value to_json(const SetupPlan& plan) {
  json::Array repositories;
  for (const auto& repository : plan.repositories) {
    json::Object entry;
    if (!repository.url.empty()) entry.set("url", repository.url);
    if (!repository.ref.empty()) entry.set("ref", repository.ref);
    if (!repository.directory.empty()) entry.set("directory", repository.directory);
    if (!repository.setup_commands.empty())
      entry.set("setupCommands", to_array(repository.setup_commands));
    if (!repository.credential.empty()) entry.set("credential", repository.credential);
    repositories.emplace_back(std::move(entry));
  }
  json::Object out;
  out.set("repositories", std::move(repositories));
  out.set("workspaceCommands", to_array(plan.workspace_commands));
  out.set("listForm", plan.list_form);
  out.set("continueOnSetupFailure", plan.continue_on_failure);
  return out;
}

Result<SetupPlan> parse_setup_plan(const json::Value& value) {
  SetupPlan plan;
  bool ok = value.is_object() && read_texts(value, "workspaceCommands", plan.workspace_commands) &&
            read_flag(value, "listForm", plan.list_form) &&
            read_flag(value, "continueOnSetupFailure", plan.continue_on_failure);
  if (const auto* repositories = value.find("repositories"); ok && repositories != nullptr) {
    ok = repositories->is_array();
    if (ok)
      for (const auto& entry : repositories->as_array()) {
        RepositoryPlan repository;
        ok = ok && entry.is_object() && read_text(entry, "url", repository.url) &&
             read_text(entry, "ref", repository.ref) &&
             read_text(entry, "directory", repository.directory) &&
             read_text(entry, "credential", repository.credential) &&
             read_texts(entry, "setupCommands", repository.setup_commands);
        plan.repositories.push_back(std::move(repository));
      }
  }
  if (!ok) return invalid("setup.bad_plan", "this is no set-up plan");
  return plan;
}

}  // namespace sandforge

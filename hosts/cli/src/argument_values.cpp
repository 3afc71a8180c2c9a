#include <string.h>  // sigabbrev_np

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <limits>

#include "arguments.hpp"

namespace sandforge::cli {

Result<std::chrono::milliseconds> parse_duration(const std::string& text) {
  const auto refuse = [&] {
    return Error(Status::invalid, "'" + text + "' is no duration: use 500ms, 90s, 5m or 2h",
                 "cli.bad_duration");
  };
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return refuse();
  const std::string unit(end, text.data() + text.size());
  std::uint64_t scale = 0;
  if (unit == "ms") scale = 1;
  if (unit.empty() || unit == "s") scale = 1000;
  if (unit == "m") scale = 60'000;
  if (unit == "h") scale = 3'600'000;
  if (scale == 0 || number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) /
                                 scale / 1'000'000)
    return refuse();
  return std::chrono::milliseconds(static_cast<std::int64_t>(number * scale));
}

Result<std::string> parse_session_name(const std::string& text) {
  const auto refuse = [](std::string message) {
    return Error(Status::invalid, std::move(message), "cli.bad_session");
  };
  if (auto good = check_session_id(SessionId(text)); !good) return std::move(good).error();
  if (text.front() == '-') return refuse("the name '" + text + "' begins with '-', as options do");
  if (text == "." || text == ".." || text.find_first_of("/\\") != std::string::npos)
    return refuse("the name '" + text + "' is a path, or a part of one");
  return text;
}

CopyEnd parse_copy_end(const std::string& word) {
  CopyEnd out;
  const auto colon = word.find(':');
  if (colon == std::string::npos || colon == 0 || word.find('/') < colon) {
    out.path = word;
    return out;
  }
  out.session = word.substr(0, colon);
  out.path = word.substr(colon + 1);
  if (out.path.empty()) out.path = ".";
  return out;
}

Result<std::string> parse_checkpoint_name(const std::string& text) {
  auto name = parse_session_name(text);
  if (name) return name;
  return Error(Status::invalid, "'" + text + "' is no name of a checkpoint", "cli.bad_checkpoint");
}

SetupPlan setup_plan_of(const SessionArguments& arguments) {
  SetupPlan plan;
  for (const auto& url : arguments.repositories) {
    RepositoryPlan repository;
    repository.url = url;
    repository.ref = arguments.ref;
    repository.credential = arguments.repository_token;
    plan.repositories.push_back(std::move(repository));
  }
  if (plan.repositories.size() == 1) {
    plan.repositories[0].setup_commands = arguments.setup;
  } else {
    plan.list_form = !plan.repositories.empty() || !arguments.setup.empty();
    plan.workspace_commands = arguments.setup;
  }
  return plan;
}

Result<std::string> parse_project_name(const std::string& text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  bool good = !text.empty() && text.size() <= 48 && is_letter(text.front()) && text.back() != '-';
  char before = '-';
  for (const char c : text) {
    const bool dash = c == '-' && before != '-';
    good = good && (is_letter(c) || (c >= '0' && c <= '9') || dash);
    before = c;
  }
  for (const char* taken : {"local", "docker", "e2b", "platform", "none", "custom"})
    if (text == taken || text == std::string("sandforge-") + taken)
      return Error(Status::invalid,
                   "'" + text +
                       "' is a name of sandforge's own: of two providers or plugins with one "
                       "name, a host has only the first that it finds",
                   "cli.taken_name");
  if (good) return text;
  return Error(Status::invalid,
               "'" + text +
                   "' is no name for a provider: a-z, 0-9 and single dashes, beginning with a "
                   "letter, 48 at most",
               "cli.bad_name");
}

Result<SessionVariable> parse_variable(const std::string& text) {
  SessionVariable variable;
  const auto equals = text.find('=');
  variable.name = text.substr(0, equals);
  if (variable.name.empty())
    return Error(Status::invalid, "'" + text + "' names no variable", "cli.bad_variable");
  if (equals != std::string::npos) {
    variable.value = text.substr(equals + 1);
    return variable;
  }
  const char* value = std::getenv(variable.name.c_str());
  if (value == nullptr)
    return Error(Status::not_found, "the variable " + variable.name + " is not set here",
                 "cli.unset_variable");
  variable.value = value;
  variable.reference = "${" + variable.name + "}";
  return variable;
}

Result<OutputCursor> parse_cursor(const std::string& text) {
  OutputCursor out;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, out.out);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == ':')
    read = std::from_chars(read.ptr + 1, end, out.err);
  if (read.ec == std::errc() && read.ptr == end) return out;
  return Error(Status::invalid, "'" + text + "' is no number of bytes: use 4096 or 4096:0",
               "cli.bad_cursor");
}

Result<int> parse_signal(const std::string& text) {
  int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = read.ec == std::errc() && read.ptr == text.data() + text.size();
  const std::string name = text.substr(0, 3) == "SIG" ? text.substr(3) : text;
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* const known = ::sigabbrev_np(signal);
    if (is_number ? number == signal : known != nullptr && name == known) return signal;
  }
  return Error(Status::invalid, "'" + text + "' is no signal: use TERM, SIGTERM or 15",
               "cli.bad_signal");
}

}  // namespace sandforge::cli

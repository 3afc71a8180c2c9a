#include "plugin/abi_command.hpp"

#include <fmt/format.h>

namespace sandforge::plugin {
namespace {

Error invalid(std::string message) {
  return Error(Status::invalid, std::move(message), "command.invalid");
}

bool has_nul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

}  // namespace

std::uint64_t to_ms(std::chrono::milliseconds duration) noexcept {
  return duration.count() > 0 ? static_cast<std::uint64_t>(duration.count()) : 0;
}

Result<void> check_env(const EnvMap& env) {
  for (const auto& [name, value] : env) {
    if (name.empty()) return invalid("the environment has an entry without a name");
    if (has_nul(name) || name.find('=') != std::string::npos)
      return invalid("the name of an environment variable holds NUL or '='");
    if (value && has_nul(*value))
      return invalid(fmt::format("the value of the environment variable {} holds NUL", name));
  }
  return {};
}

Result<void> check_command(const Command& command) {
  if (!command.shell && command.argv.empty()) return invalid("there is no command to run");
  if (command.shell && !command.argv.empty())
    return invalid("a command is either shell text or an argument list, not both");
  if (command.shell && has_nul(*command.shell)) return invalid("the command holds NUL");
  for (const std::string& argument : command.argv) {
    if (has_nul(argument)) return invalid("an argument holds NUL");
  }
  if (command.cwd && has_nul(*command.cwd)) return invalid("the working directory holds NUL");
  if (has_nul(command.user)) return invalid("the user holds NUL");
  return check_env(command.env);
}

EnvView::EnvView(const EnvMap& env) {
  entries_.reserve(env.size());
  for (const auto& [name, value] : env)
    entries_.push_back({to_bytes(name), to_bytes(value)});
}

CommandView::CommandView(const Command& command) : env_(command.env) {
  argv_.reserve(command.argv.size());
  for (const std::string& argument : command.argv)
    argv_.push_back(to_bytes(argument));
  if (command.tty) tty_ = {command.tty->cols, command.tty->rows, to_str(command.tty->term)};
  value_.struct_size = sizeof(value_);
  value_.shell = to_bytes(command.shell);
  value_.argv = argv_.data();
  value_.argc = argv_.size();
  value_.env = env_.data();
  value_.env_count = env_.size();
  value_.cwd = to_bytes(command.cwd);
  value_.user = to_str(command.user);
  value_.tty = command.tty ? &tty_ : nullptr;
  value_.stdin_mode = command.stdin_pipe ? SF_STDIN_PIPE : SF_STDIN_EOF;
  value_.output = command.combined ? SF_OUTPUT_COMBINED : SF_OUTPUT_SEPARATE;
  value_.flags = command.detach ? SF_COMMAND_DETACH : 0;
  value_.timeout_ms = to_ms(command.timeout);
  value_.grace_ms = to_ms(command.grace);
  value_.window = command.window;
  value_.tag = to_str(command.tag);
  value_.request_id = to_str(command.request_id);
}

}  // namespace sandforge::plugin

#include "sandbox/validate.hpp"

#include <algorithm>

#include "sandforge/support/utf8.hpp"

namespace sandforge::sandbox {
namespace {

Error invalid(std::string message, std::string_view field) {
  Error error(Status::invalid, std::move(message), "command.invalid");
  error.details.set("field", field);
  return error;
}

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

std::optional<Error> check_program(const Command& command) {
  if (command.shell) {
    if (!command.argv.empty()) return invalid("a command is shell text or argv, not both", "argv");
    if (command.shell->empty()) return invalid("the command is empty", "command");
    if (has_nul(*command.shell)) return invalid("the command holds a NUL byte", "command");
    return std::nullopt;
  }
  if (command.argv.empty() || command.argv.front().empty())
    return invalid("the command is empty", "argv");
  if (std::any_of(command.argv.begin(), command.argv.end(), has_nul))
    return invalid("an argument holds a NUL byte", "argv");
  return std::nullopt;
}

}  // namespace

std::optional<Error> check_env(const EnvMap& env) {
  for (const auto& [name, value] : env) {
    if (name.empty()) return invalid("an environment name is empty", "env");
    if (name.find('=') != std::string::npos || has_nul(name))
      return invalid("an environment name holds '=' or a NUL byte", "env");
    if (value && has_nul(*value))
      return invalid("the environment value of " + name + " holds a NUL byte", "env");
  }
  return std::nullopt;
}

std::optional<Error> check_command(const Command& command) {
  if (auto bad = check_program(command)) return bad;
  if (auto bad = check_env(command.env)) return bad;
  if (command.cwd && has_nul(*command.cwd))
    return invalid("the working directory holds a NUL byte", "cwd");
  if (has_nul(command.user)) return invalid("the user holds a NUL byte", "user");
  if (command.timeout.count() < 0) return invalid("the timeout is negative", "timeout");
  if (command.grace.count() < 0) return invalid("the grace is negative", "grace");
  if (command.tty && (command.tty->cols == 0 || command.tty->rows == 0))
    return invalid("a terminal needs columns and rows", "tty");
  return std::nullopt;
}

std::optional<Error> check_id(std::string_view id) {
  const auto refuse = [](const char* message) {
    return Error(Status::invalid, message, "sandbox.id_invalid");
  };
  if (id.empty()) return refuse("the sandbox id is empty");
  if (id.size() > 255) return refuse("the sandbox id is longer than 255 bytes");
  if (id == "." || id == "..") return refuse("the sandbox id is no name");
  const auto bad = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '/' || c == '\\';
  };
  if (std::any_of(id.begin(), id.end(), bad) || !is_valid_utf8(id))
    return refuse("the sandbox id holds a separator, a control character or invalid UTF-8");
  return std::nullopt;
}

}  // namespace sandforge::sandbox

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>

#include "commands.hpp"
#include "exit_codes.hpp"
#include "interrupt.hpp"
#include "output.hpp"

namespace {

using namespace sandforge::cli;

constexpr const char* kFooter = R"(
Exit codes: a command's own code with run and exec; 2 wrong usage or a refused configuration;
124 the command's time limit; 125 sandforge failed; 126 the command cannot be executed; 127 there is
no such command; 128+n signal n; 141 nobody reads the output any more.)";

void add_session_options(CLI::App& command, SessionOptions& options) {
  command.add_option("--provider", options.provider, "Provider to use");
  command.add_option("--session", options.session, "Session to use or to make");
  command.add_option("--repo", options.repo, "Repository to check out, a URL or an absolute path");
  command.add_option("--ref", options.ref, "Branch, tag or commit of it");
  command.add_option("--setup", options.setup, "Shell command to run once after the checkout")
      ->allow_extra_args(false);
  command.add_option("--env", options.env, "NAME=VALUE, or NAME to pass it on")
      ->allow_extra_args(false);
}

void add_command_options(CLI::App& command, CommandOptions& options, bool env) {
  command.add_option("--shell", options.shell, "Shell text to run in place of a command");
  command.add_option("--timeout", options.timeout_s, "Seconds; 0 is none");
  command.add_option("--cwd", options.cwd, "Folder to run in");
  command.add_flag("-i,--interactive", options.interactive, "Pass standard input on");
  command.add_flag("-t,--tty", options.tty, "Run on a terminal");
  if (env)
    command.add_option("--env", options.env, "NAME=VALUE, or NAME to pass it on")
        ->allow_extra_args(false);
}

}  // namespace

int main(int argc, char** argv) {
  watch_interrupts();
  // What follows "--" is the command, word by word, whatever it looks like.
  std::vector<std::string> words(argv + 1, argv + argc);
  std::vector<std::string> tail;
  bool has_tail = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != "--") continue;
    tail.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
    words.resize(i);
    has_tail = true;
    break;
  }

  CLI::App program("Runs commands in sandboxes of any provider.", "sandforge");
  program.footer(kFooter);
  program.set_version_flag("--version", SANDFORGE_VERSION);
  program.require_subcommand(1);
  program.fallthrough();
  CommonOptions common;
  program.add_option("--config", common.config, "Configuration file (YAML)");
  program.add_option("--state", common.state, "Folder of sessions; default SANDFORGE_STATE_DIR");
  program.add_option("--plugin-path", common.plugin_paths, "Plugin file or folder")
      ->allow_extra_args(false);
  program.add_option("--log-level", common.log_level, "debug, info, warn, error, off");
  program.add_flag("--dev", common.dev, "Development: the default provider is local");
  program.add_flag("--json", common.json, "JSON output");

  std::function<int(App&)> action;
  SessionOptions session;
  CommandOptions command;
  bool keep = false;
  bool forget = false;
  std::string id;
  std::string file;
  std::optional<std::string> name;
  std::vector<std::string> ids;

  auto* run_cmd = program.add_subcommand("run", "Run a command in a new session");
  add_session_options(*run_cmd, session);
  add_command_options(*run_cmd, command, false);
  run_cmd->add_flag("--keep", keep, "Keep the session afterwards");
  run_cmd->callback([&] { action = [&](App& app) { return run(app, session, command, keep); }; });

  auto* start_cmd = program.add_subcommand("start", "Start a session and print its id");
  add_session_options(*start_cmd, session);
  start_cmd->callback([&] { action = [&](App& app) { return start(app, session); }; });

  auto* exec_cmd = program.add_subcommand("exec", "Run a command in a session");
  exec_cmd->add_option("session", id, "Session")->required();
  add_command_options(*exec_cmd, command, true);
  exec_cmd->callback([&] { action = [&](App& app) { return exec(app, id, command); }; });

  auto* ps_cmd = program.add_subcommand("ps", "List sessions, or the processes of one");
  ps_cmd->add_option("session", name, "Session");
  ps_cmd->callback([&] { action = [&](App& app) { return ps(app, name); }; });

  auto* stop_cmd =
      program.add_subcommand("stop", "Stop sessions; the next command starts them again");
  stop_cmd->add_option("sessions", ids, "Sessions")->required();
  stop_cmd->callback([&] { action = [&](App& app) { return stop(app, ids); }; });

  auto* rm_cmd = program.add_subcommand("rm", "Remove sessions");
  rm_cmd->add_option("sessions", ids, "Sessions")->required();
  rm_cmd->add_flag("--forget", forget, "Forget the record only, leave the machine");
  rm_cmd->callback([&] { action = [&](App& app) { return rm(app, ids, forget); }; });

  program.add_subcommand("providers", "List the providers of the plugins that are found")
      ->callback([&] { action = [](App& app) { return providers(app); }; });
  auto* describe_cmd =
      program.add_subcommand("describe", "Settings schema and capabilities, as JSON");
  describe_cmd->add_option("provider", name, "Provider");
  describe_cmd->callback([&] { action = [&](App& app) { return describe_provider(app, name); }; });

  auto* settings_cmd = program.add_subcommand("settings", "Settings of a provider");
  settings_cmd->require_subcommand(1);
  auto* effective_cmd = settings_cmd->add_subcommand("effective", "Each value with its origin");
  effective_cmd->add_option("provider", name, "Provider");
  effective_cmd->callback(
      [&] { action = [&](App& app) { return settings_effective(app, name); }; });

  auto* config_cmd = program.add_subcommand("config", "Configuration");
  config_cmd->require_subcommand(1);
  auto* check_cmd =
      config_cmd->add_subcommand("check", "Report every mistake of a configuration file");
  check_cmd->add_option("file", file, "YAML file")->required();
  check_cmd->callback([&] { action = [&](App& app) { return config_check(app, file); }; });

  auto* plugins_cmd = program.add_subcommand("plugins", "Plugins");
  plugins_cmd->require_subcommand(1);
  plugins_cmd->add_subcommand("doctor", "Load every plugin that is found, and say what is wrong")
      ->callback([&] { action = [](App& app) { return plugins_doctor(app); }; });

  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    program.parse(reversed);
  } catch (const CLI::ParseError& e) {
    const int code = program.exit(e);
    return code == 0 ? kOk : kUsage;
  }
  command.argv = tail;
  if (has_tail && !run_cmd->parsed() && !exec_cmd->parsed()) {
    complain("error", "only run and exec take a command after --");
    return kUsage;
  }

  try {
    App app(common);
    return action(app);
  } catch (const Fatal& e) {
    complain("error", e.what());
    return e.code();
  } catch (const sandforge::Exception& e) {
    if (common.json) print_json(to_json(e.error()));
    complain("error", e.what());
    const bool usage = e.error().code == sandforge::Status::invalid;
    return interrupt_signal() != 0 ? kSignalBase + interrupt_signal() : usage ? kUsage : kFailed;
  } catch (const std::exception& e) {
    complain("error", e.what());
    return kFailed;
  }
}

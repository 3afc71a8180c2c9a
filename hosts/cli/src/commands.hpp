// The commands of `sandforge`: each takes what the command line said and gives the exit code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app.hpp"

namespace sandforge::cli {

// What run and start make a session of.
struct SessionOptions {
  std::optional<std::string> provider;
  std::optional<std::string> session;
  std::optional<std::string> repo;
  std::optional<std::string> ref;
  std::vector<std::string> setup;
  std::vector<std::string> env;  // NAME=VALUE, or NAME: from the environment of this program
};

// How run and exec run a command.
struct CommandOptions {
  std::vector<std::string> argv;
  std::optional<std::string> shell;
  std::vector<std::string> env;
  std::optional<std::string> cwd;
  double timeout_s = 0;  // 0: none
  bool interactive = false;
  bool tty = false;
};

int run(App& app, const SessionOptions& session, const CommandOptions& command, bool keep);
int start(App& app, const SessionOptions& session);
int exec(App& app, const std::string& session, const CommandOptions& command);
int ps(App& app, const std::optional<std::string>& session);
int stop(App& app, const std::vector<std::string>& sessions);
int rm(App& app, const std::vector<std::string>& sessions, bool forget);

int providers(App& app);
int describe_provider(App& app, const std::optional<std::string>& name);
int settings_effective(App& app, const std::optional<std::string>& name);
int config_check(App& app, const std::string& file);
int plugins_doctor(App& app);

// NAME=VALUE or NAME. Fatal when it is neither.
EnvMap parse_env(const std::vector<std::string>& words);

}  // namespace sandforge::cli

// The command line, read: one struct per subcommand.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "copy_argument.hpp"
#include "sandforge/log.hpp"
#include "sandforge/session.hpp"

namespace sandforge::cli {

enum class Progress : std::uint8_t { automatic, always, never };

struct GlobalArguments {
  std::string config;
  std::string state;  // folder; empty: by the environment
  std::vector<std::string> plugin_paths;
  bool development = false;
  bool json = false;
  std::optional<LogLevel> log_level;
};

// What a new session is made of: run and start.
struct SessionArguments {
  std::string provider;
  std::string session;
  std::vector<std::string> repositories;
  std::string ref;
  std::string repository_token;  // reference
  std::vector<std::string> setup;
  std::vector<SessionVariable> env;
  std::optional<std::string> cwd;  // of the sandbox
  std::optional<std::chrono::milliseconds> setup_timeout;
  Progress progress = Progress::automatic;
  std::string from;  // checkpoint; empty: by the session's name
  std::string template_file;
};

// What is run: run and exec.
struct CommandArguments {
  std::vector<std::string> argv;  // what follows "--"
  std::optional<std::string> shell;
  std::optional<std::string> cwd;
  std::chrono::milliseconds timeout{0};  // 0: none
  bool stdin_wanted = false;             // -i
  bool stdin_refused = false;            // -n
  bool tty = false;
};

struct RunArguments {
  SessionArguments session;
  CommandArguments command;
  bool keep = false;
};
struct StartArguments {
  SessionArguments session;
};
struct ExecArguments {
  std::string session;
  CommandArguments command;
  std::vector<SessionVariable> env;  // of this command only
  bool detach = false;               // it outlives this program
};
struct LogsArguments {
  std::string session;
  std::string process;
  OutputCursor from;
  bool follow = false;
};
struct KillArguments {
  std::string session;
  std::string process;
  int signal = 0;  // 0: the whole tree ends at once
};
struct CopyArguments {
  CopyEnd from, to;  // exactly one of them is in a session
  bool tree = false;
};
struct PsArguments {
  std::string session;  // empty: the sessions themselves
  bool check = false;   // asks their machines
};
struct StopArguments {
  std::vector<std::string> sessions;
};
struct RemoveArguments {
  std::vector<std::string> sessions;
  bool force = false;
};
struct SnapshotArguments {
  std::string session;              // empty: the provider is named
  std::string provider;             // list and remove need no session
  std::optional<std::string> name;  // empty: the session's own
  bool list = false;
  std::optional<std::string> remove;
};
struct BuildArguments {
  SessionArguments session;  // provider, repositories, their token, set-up
  bool list = false;
};
struct GcArguments {
  std::string provider;  // empty: those of the configuration
  bool remove = false;
  bool adopt = false;
  bool other_hosts = false;
  std::optional<std::chrono::milliseconds> older_than;  // absent: the defaults below
  static constexpr std::chrono::hours kOwn{1}, kOthers{7 * 24};
};
struct ProvidersArguments {};
struct DescribeArguments {
  std::string provider;
};
struct SettingsArguments {
  std::string provider;
};
struct ConfigCheckArguments {
  std::string file;
};
struct PluginsDoctorArguments {
  bool clear_quarantine = false;
};
struct FaultProxyArguments {
  std::string listen;
  std::string to;
  std::string rules_file;
  std::vector<std::string> rules;  // YAML, one rule each
  bool remote = false;
};
struct NewArguments {
  std::string name;
  std::string folder;  // empty: the name
  std::string language = "cpp";
};

struct ConformanceArguments {
  std::string plugin;
  std::string provider;
  std::string options;  // file
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::vector<std::string> case_files;
  std::string junit;  // file; empty: none
  std::optional<std::uint64_t> seed;
  unsigned jobs = 0;  // 0: one for each processor
  std::optional<std::chrono::milliseconds> bound;
  bool list = false;
};

using Subcommand =
    std::variant<RunArguments, StartArguments, ExecArguments, CopyArguments, PsArguments,
                 LogsArguments, KillArguments, StopArguments, RemoveArguments, SnapshotArguments,
                 BuildArguments, GcArguments, ProvidersArguments, DescribeArguments,
                 SettingsArguments, ConfigCheckArguments, PluginsDoctorArguments,
                 FaultProxyArguments, NewArguments, ConformanceArguments>;

struct CommandLine {
  GlobalArguments global;
  Subcommand subcommand;
};

// Either a command line, or what to print and to exit with: help, the version, a mistake.
struct ParsedArguments {
  std::optional<CommandLine> line;
  int exit_code = 0;
  std::string out;  // for standard output
  std::string err;
};

// Reads variables of the host for "--env NAME". Words after the first "--" are the command of run
// and exec; to every other subcommand they are words that are no options.
ParsedArguments parse_arguments(const std::vector<std::string>& words);

// "500ms", "90s", "5m", "2h", or seconds; invalid otherwise.
Result<std::chrono::milliseconds> parse_duration(const std::string& text);
// What a new session may be called: also what a command line can say.
Result<std::string> parse_session_name(const std::string& text);
// What a checkpoint may be called: what core takes, and no option.
Result<std::string> parse_checkpoint_name(const std::string& text);
// What set-up has to do in the new session.
SetupPlan setup_plan_of(const SessionArguments& arguments);
// A name for a provider and its project: a-z, 0-9 and single dashes, 48 at most.
Result<std::string> parse_project_name(const std::string& text);
// Bytes of the two streams: "OUT" or "OUT:ERR".
Result<OutputCursor> parse_cursor(const std::string& text);
// A Linux number, or a name with or without SIG.
Result<int> parse_signal(const std::string& text);
// "NAME=VALUE", or "NAME" with the host's value; not_found when the host has none.
Result<SessionVariable> parse_variable(const std::string& text);

}  // namespace sandforge::cli

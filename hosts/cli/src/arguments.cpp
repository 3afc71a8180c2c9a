// The only file that is compiled with CLI11.
#include "arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "argument_mistakes.hpp"
#include "conformance_arguments.hpp"
#include "exit_codes.hpp"
#include "harmless.hpp"
#include "proxy_address.hpp"
#include "sandforge/host_config.hpp"
#include "sandforge/setup_plan.hpp"
#include "sandforge/support/json.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge::cli {
namespace {

constexpr const char* kFolderStays =
    "Of the provider local the folder of a session stays, with the checkouts in it, below\n"
    "the option root; it is removed by hand. Its processes end, and its name is forgotten.";

constexpr const char* kLevels = "debug, info, warn, error or off";

std::optional<LogLevel> parse_level(const std::string& text) {
  for (auto level :
       {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error, LogLevel::off})
    if (to_string(level) == text) return level;
  return std::nullopt;
}

// Throws the mistake of a value as CLI11's own, so that it is shown like any other.
template <class T>
T value_or_usage(const char* option, Result<T> result) {
  if (!result) throw CLI::ValidationError(option, result.error().message);
  return std::move(result).value();
}

// In front of a word that follows "--", which is no option: CLI11's own "--" loses its meaning once
// a subcommand has the words that it needs.
constexpr char kNoOption = '\1';

std::string marked(const std::string& word) {
  return kNoOption + word;
}

CLI::Validator unmarked() {
  return {[](std::string& word) {
            if (!word.empty() && word.front() == kNoOption) word.erase(0, 1);
            return std::string();
          },
          "", ""};
}

class Formatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    auto text = CLI::Formatter::make_usage(app, std::move(name));
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    if (app->get_name() == "run" || app->get_name() == "exec") text += " -- COMMAND [ARGUMENT...]";
    if (app->get_parent() != nullptr)
      text += "\nOptions of every subcommand, such as --json: sandforge --help";
    return text + "\n";
  }
};

bool is_commit(const std::string& ref) {
  return ref.size() == 40 && ref.find_first_not_of("0123456789abcdef") == std::string::npos;
}

struct Builder {
  Builder() : app("Run commands in code sandboxes, on any provider.", "sandforge") {
    app.require_subcommand(1);
    app.fallthrough();
    app.footer(kPlainCodes);  // of the subcommands that say nothing else
    app.set_version_flag("--version", std::string("sandforge ") + SANDFORGE_VERSION);
    app.formatter(std::make_shared<Formatter>());
    app.get_formatter()->column_width(30);
    add_global();
    add_run();
    add_start();
    add_exec();
    add_copy();
    add_ps();
    add_logs();
    add_kill();
    add_stop();
    add_snapshot();
    add_remove();
    add_build();
    add_gc();
    add_information();
    add_fault_proxy();
    add_new();
    app.footer(kExitCodeTable);
  }

  void add_global() {
    app.add_option("--config", global.config, "Configuration file (YAML)")->type_name("FILE");
    app.add_option("--state", global.state,
                   "Folder that keeps the sessions; else $SANDFORGE_STATE_DIR,\n"
                   "$XDG_STATE_HOME/sandforge or ~/.local/state/sandforge")
        ->type_name("DIR");
    app.add_option("--plugin-path", global.plugin_paths,
                   "Plugin, or folder of plugins, before all others; repeatable")
        ->type_name("PATH")
        ->allow_extra_args(false);
    app.add_flag("--dev", global.development,
                 "This is development, as with SANDFORGE_ENV=development:\n"
                 "where platform credentials are set, the default provider is local");
    app.add_flag("--json", global.json, "Answer as JSON on standard output");
    app.add_option_function<std::string>(
           "--log-level",
           [this](const std::string& text) {
             global.log_level = parse_level(text);
             if (!global.log_level)
               throw CLI::ValidationError("--log-level", "'" + text + "' is none of " + kLevels);
           },
           std::string("Least level of the log on standard error:\n") + kLevels)
        ->type_name("LEVEL");
  }

  void add_session(CLI::App& sub, SessionArguments& to) {
    add_repositories(sub, to);
    sub.add_option_function<std::string>(
           "--setup-timeout",
           [&to](const std::string& text) {
             to.setup_timeout = value_or_usage("--setup-timeout", parse_duration(text));
           },
           "Limit of each step of set-up, as that of --timeout of run")
        ->type_name("DURATION");
    add_env(sub, to.env, "Variable of the session; a bare NAME takes the host's value");
    sub.add_option_function<std::string>(
           "--from",
           [&to](const std::string& name) {
             to.from = value_or_usage("--from", parse_checkpoint_name(name));
           },
           "Checkpoint to boot a new machine from; else the one that bears the\n"
           "session's name, if there is one")
        ->type_name("CHECKPOINT");
    add_template(sub, to,
                 "Template (JSON) that a new machine boots; it is built before,\n"
                 "where that was not done yet: see build --template");
    sub.add_option_function<std::string>(
           "--progress",
           [&to](const std::string& text) {
             if (text == "auto") {
               to.progress = Progress::automatic;
             } else if (text == "always") {
               to.progress = Progress::always;
             } else if (text == "never") {
               to.progress = Progress::never;
             } else {
               throw CLI::ValidationError("--progress",
                                          "'" + text + "' is none of auto, always or never");
             }
           },
           "Steps of set-up on standard error: auto (on a terminal),\nalways or never")
        ->type_name("WHEN");
  }

  static void add_template(CLI::App& sub, SessionArguments& to, const std::string& text) {
    sub.add_option("--template", to.template_file, text)->type_name("FILE");
  }

  void add_repositories(CLI::App& sub, SessionArguments& to) {
    sub.add_option("--provider", to.provider, "Where it runs; else what the configuration names")
        ->type_name("NAME");
    sub.add_option_function<std::vector<std::string>>(
           "--repo",
           [&to](const std::vector<std::string>& words) {
             for (const auto& word : words)
               if (const auto url = parse_clone_url(word); !url)
                 throw CLI::ValidationError("--repo", bad_repository(word, url.error().message));
             to.repositories = words;
           },
           "Clone URL (https, ssh, file) or absolute path; repeatable")
        ->type_name("URL")
        ->allow_extra_args(false);
    sub.add_option("--ref", to.ref, "Branch, tag or commit of --repo")->type_name("REF");
    sub.add_option_function<std::string>(
           "--repo-token",
           [&to](const std::string& text) {
             // Not repeated: where a shell has replaced the reference, it is the token.
             if (!is_one_reference(text))
               throw CLI::ValidationError("--repo-token",
                                          "what is given is no reference; write '${NAME}', in "
                                          "single quotes, or file:PATH, and not the token itself");
             to.repository_token = text;
           },
           "Where the token for --repo is: '${NAME}' or file:PATH")
        ->type_name("REFERENCE");
    sub.add_option("--setup", to.setup,
                   "Shell command run once, inside the repository if there is exactly\n"
                   "one, else at the workspace root; repeatable")
        ->type_name("COMMAND")
        ->allow_extra_args(false);
  }

  void add_session_name(CLI::App& sub, SessionArguments& to, const std::string& text) {
    sub.add_option_function<std::string>(
           "--session",
           [&to](const std::string& name) {
             to.session = value_or_usage("--session", parse_session_name(name));
           },
           text)
        ->type_name("ID");
  }

  void add_env(CLI::App& sub, std::vector<SessionVariable>& to, const std::string& text) {
    sub.add_option_function<std::vector<std::string>>(
           "-e,--env",
           [&to](const std::vector<std::string>& words) {
             for (const auto& word : words)
               to.push_back(value_or_usage("--env", parse_variable(word)));
           },
           text)
        ->type_name("NAME[=VALUE]")
        ->allow_extra_args(false);
  }

  void add_command(CLI::App& sub, CommandArguments& to) {
    sub.add_option("--shell", to.shell, "Shell text to run, in place of -- COMMAND")
        ->type_name("TEXT");
    sub.add_option("-C,--cwd", to.cwd, "Working directory of the command")->type_name("DIR");
    sub.add_option_function<std::string>(
           "--timeout",
           [&to](const std::string& text) {
             to.timeout = value_or_usage("--timeout", parse_duration(text));
           },
           "Limit of the command: a whole number with ms, s, m or h, such as\n"
           "500ms, 90s, 5m or 2h; without a unit: seconds; 0: none")
        ->type_name("DURATION");
    sub.add_flag("-i,--stdin", to.stdin_wanted, "Pass standard input through");
    sub.add_flag("-t,--tty", to.tty, "Give the command a terminal; implies -i");
  }

  void add_run() {
    auto* sub = app.add_subcommand(
        "run", "Run a command in a session of its own, which is removed afterwards");
    sub->footer(
        "The command follows after --, and runs without a shell:\n"
        "  sandforge run --provider local -- make test\n\n" +
        std::string(kFolderStays) + "\n\n" + kCommandCodes);
    add_session(*sub, run.session);
    add_session_name(*sub, run.session,
                     "Name of the session; one that exists already is used and kept.\n"
                     "What makes a new one is not applied to it: --repo, --ref,\n"
                     "--repo-token and --setup");
    sub->add_flag("--keep", run.keep, "Keep the session, and say its name on standard error");
    add_command(*sub, run.command);
    on(sub, [this] { return finish_run(); });
  }

  void add_start() {
    auto* sub = app.add_subcommand("start", "Start a session without a command; prints its name");
    add_session(*sub, start.session);
    add_session_name(*sub, start.session,
                     "Name of the session; one that exists already is started. What\n"
                     "makes a new one is not applied to it: --repo, --ref, --repo-token,\n"
                     "--setup and --cwd");
    sub->add_option("-C,--cwd", start.session.cwd, "Working directory of the session")
        ->type_name("DIR");
    on(sub, [this] {
      check_session(start.session);
      return Subcommand(start);
    });
  }

  void add_exec() {
    auto* sub = app.add_subcommand("exec", "Run a command in a session that exists");
    sub->footer(
        "The command follows after --, and runs without a shell:\n"
        "  sandforge exec SESSION -- make test\n\n" +
        std::string(kCommandCodes));
    sub->add_option("SESSION", exec.session, "The session")->required()->type_name("");
    add_command(*sub, exec.command);
    sub->add_flag("-n,--no-stdin", exec.command.stdin_refused,
                  "Standard input is at its end; else it is passed through when it is no\n"
                  "terminal");
    add_env(*sub, exec.env, "Variable of this command; a bare NAME takes the host's value");
    sub->add_flag("-d,--detach", exec.detach,
                  "Leave the command running and print its id, for logs, kill and ps;\n"
                  "it has no standard input");
    on(sub, [this] {
      if (exec.detach && (exec.command.stdin_wanted || exec.command.tty))
        throw CLI::ValidationError("--detach excludes -i and -t");
      exec.command.argv = command;
      return Subcommand(exec);
    });
  }

  void add_copy() {
    auto* sub = app.add_subcommand("cp", "Copy files between this machine and a session");
    sub->footer(
        "One of the two is SESSION:PATH; a path that is relative starts at the session's\n"
        "working directory. A local path with a colon is written ./a:b. A link that is\n"
        "named is followed; pipes, sockets and devices are left out, with a warning. - is\n"
        "standard input or output:\n"
        "  sandforge cp notes.txt SESSION:work/\n"
        "  sandforge cp -r SESSION:work/out .\n"
        "  sandforge cp SESSION:log - | tail\n\n" +
        std::string(kCopyCodes));
    sub->add_option("FROM", copy_from, "What is copied")
        ->required()
        ->type_name("")
        ->transform(unmarked());
    sub->add_option("TO", copy_to, "Where to: a new name, or a directory that is there")
        ->required()
        ->type_name("")
        ->transform(unmarked());
    sub->add_flag("-r,--recursive", copy.tree,
                  "Directories with all that is in them; symbolic links and special\n"
                  "files are left out, with a warning");
    on(sub, [this] {
      copy.from = parse_copy_end(copy_from);
      copy.to = parse_copy_end(copy_to);
      if (copy.from.session.has_value() == copy.to.session.has_value())
        throw CLI::ValidationError(
            "exactly one of FROM and TO must be in a session, as SESSION:PATH");
      if (copy.tree && (copy.from.path == "-" || copy.to.path == "-"))
        throw CLI::ValidationError("-r copies no standard input or output");
      if (copy.from.path.empty() || copy.to.path.empty())
        throw CLI::ValidationError("an empty path names nothing");
      return Subcommand(copy);
    });
  }

  void add_ps() {
    auto* sub = app.add_subcommand("ps", "List the sessions, or the processes of one");
    sub->add_option("SESSION", ps.session, "A session")->type_name("")->transform(unmarked());
    sub->add_flag("--check", ps.check,
                  "Ask the machine of each session that was left running: it may have\n"
                  "ended since, as an idle one does");
    on(sub, [this] { return Subcommand(ps); });
  }

  void add_process(CLI::App& sub, std::string& session, std::string& process) {
    sub.add_option("SESSION", session, "The session")
        ->required()
        ->type_name("")
        ->transform(unmarked());
    sub.add_option("PROCESS", process, "Id of a process, as ps and exec --detach print it")
        ->required()
        ->type_name("")
        ->transform(unmarked());
  }

  void add_logs() {
    auto* sub = app.add_subcommand("logs", "Print what a process of a session has written");
    sub->footer(
        "What is kept is the newest output: 1 MiB of each stream of a process, by default. Of\n"
        "one that has ended it is kept until somebody has read all of it.\n\n" +
        std::string(kPlainCodes));
    add_process(*sub, logs.session, logs.process);
    sub->add_flag("-f,--follow", logs.follow, "Go on until the process has ended");
    sub->add_option("--from", logs_from,
                    "Leave out so many bytes of its standard output, and of its standard\n"
                    "error; next of --json says where a later look goes on")
        ->type_name("OUT[:ERR]");
    on(sub, [this] {
      if (logs.follow && global.json)
        throw CLI::ValidationError("--follow and --json exclude each other");
      if (!logs_from.empty()) logs.from = value_or_usage("--from", parse_cursor(logs_from));
      return Subcommand(logs);
    });
  }

  void add_kill() {
    auto* sub = app.add_subcommand("kill", "End a process of a session and all that it started");
    add_process(*sub, kill.session, kill.process);
    sub->add_option("-s,--signal", kill_signal,
                    "Send this signal to all of them in place of ending them at once: a\n"
                    "name such as TERM, or a number")
        ->type_name("SIGNAL");
    on(sub, [this] {
      if (!kill_signal.empty()) kill.signal = value_or_usage("--signal", parse_signal(kill_signal));
      return Subcommand(kill);
    });
  }

  void add_stop() {
    auto* sub = app.add_subcommand("stop", "Stop sessions; the next command starts them again");
    sub->add_option("SESSION", stop.sessions, "The sessions")
        ->required()
        ->type_name("")
        ->transform(unmarked());
    on(sub, [this] { return Subcommand(stop); });
  }

  void add_snapshot() {
    auto* sub = app.add_subcommand("snapshot", "Keep the files of a session as a checkpoint");
    sub->footer(
        "A session that is made or destroyed and started again under its name boots from the\n"
        "checkpoint of that name; another one with --from:\n"
        "  sandforge snapshot mine --name base\n"
        "  sandforge start --session other --from base\n"
        "Checkpoints outlive their session; then the provider leads to them:\n"
        "  sandforge snapshot --provider local --list\n\n" +
        std::string(kPlainCodes));
    sub->add_option("SESSION", snapshot.session, "The session; not with --provider")
        ->type_name("")
        ->transform(unmarked());
    sub->add_option("--provider", snapshot.provider,
                    "With --list and --remove, in place of a session: whose checkpoints\n"
                    "they are, with the options of --config")
        ->type_name("NAME");
    const auto named = [&](const char* option, std::optional<std::string>& to, const char* text) {
      sub->add_option_function<std::string>(
             option,
             [option, &to](const std::string& name) {
               to = value_or_usage(option, parse_checkpoint_name(name));
             },
             text)
          ->type_name("NAME");
    };
    named("--name", snapshot.name,
          "Name of the checkpoint; else that of the session, if it was given\n"
          "one. A checkpoint that has it already is replaced");
    sub->add_flag("--list", snapshot.list, "List the checkpoints that the provider has");

    named("--remove", snapshot.remove, "Delete this checkpoint; nothing else ever does");
    on(sub, [this] {
      const bool of_provider = !snapshot.provider.empty();
      if (snapshot.session.empty() && !of_provider)
        throw CLI::ValidationError("SESSION is required, or --provider with --list or --remove");
      if (!snapshot.session.empty() && of_provider)
        throw CLI::ValidationError("SESSION and --provider exclude each other");
      if (of_provider && !snapshot.list && !snapshot.remove)
        throw CLI::ValidationError(
            "--provider needs --list or --remove: only a session is captured");
      if (snapshot.list + snapshot.name.has_value() + snapshot.remove.has_value() > 1)
        throw CLI::ValidationError("--name, --list and --remove exclude each other");
      return Subcommand(snapshot);
    });
  }

  void add_build() {
    auto* sub =
        app.add_subcommand("build", "Build the template that sessions of a repository boot");
    sub->footer(
        "The log is on standard error; the template's id, or with --json the build, on\n"
        "standard output. An interrupt cancels the build. A template in a file is JSON:\n"
        "  {\"schemaVersion\": 1, \"operations\": [\n"
        "    {\"method\": \"from\", \"args\": [\"node:22-slim\"]},\n"
        "    {\"method\": \"aptInstall\", \"args\": [\"git\"]},\n"
        "    {\"method\": \"runCmd\", \"args\": [\"npm install -g typescript\"]}]}\n"
        "Sessions boot it with start --template FILE and run --template FILE.\n\n" +
        std::string(kPlainCodes));
    add_repositories(*sub, build.session);
    add_template(*sub, build.session, "Build this template, in place of one of repositories");
    sub->add_flag("--list", build.list, "List the builds that the provider knows");
    on(sub, [this] {
      const bool repositories = !build.session.repositories.empty();
      const bool document = !build.session.template_file.empty();
      if (repositories + document + build.list != 1)
        throw CLI::ValidationError("either --repo, --template or --list is needed");
      if (document && !build.session.setup.empty())
        throw CLI::ValidationError("--template and --setup exclude each other");
      if (!build.session.ref.empty() && !is_commit(build.session.ref))
        throw CLI::ValidationError("--ref", "a build takes a whole commit, of 40 hex digits");
      check_session(build.session);
      return Subcommand(build);
    });
  }

  void add_remove() {
    auto* sub = app.add_subcommand("rm", "Remove sessions and their machines");
    sub->footer(std::string(kFolderStays) + "\nCheckpoints stay, too: see snapshot --remove.\n\n" +
                kPlainCodes);
    sub->add_option("SESSION", remove.sessions, "The sessions")
        ->required()
        ->type_name("")
        ->transform(unmarked());
    sub->add_flag("-f,--force", remove.force,
                  "Forget a session whose machine cannot be removed; an unknown one is\n"
                  "no error");
    on(sub, [this] { return Subcommand(remove); });
  }

  // Where there is a configuration, its `sandbox` may name the provider.
  void check_named(const std::string& provider) const {
    if (provider.empty() && global.config.empty())
      throw CLI::ValidationError("PROVIDER is required, where no --config names one");
  }

  void add_gc() {
    auto* sub = app.add_subcommand("gc", "Find what no session needs, and remove it");
    sub->footer(
        "Without --remove or --adopt nothing is changed: what would be removed is listed.\n"
        "Found are\n"
        "- sandboxes of the providers that belong to no session of this state folder, such\n"
        "  as after rm --force. A session's sandbox is never touched.\n"
        "- what providers left behind: remains of builds whose host has ended, images of\n"
        "  templates that are old by the provider's options, whichever host made them. --adopt\n"
        "  leaves these.\n"
        "Other hosts may share an engine or an account, and run commands in sandboxes that\n"
        "this one knows nothing of: theirs are left out without --other-hosts. With it, they\n"
        "are ended if they are old enough, whoever uses them: their host is not asked.\n\n" +
        std::string(kPlainCodes));
    sub->add_option("--provider", gc.provider,
                    "Of this provider only; else of all that the configuration\n"
                    "names, or of the default one")
        ->type_name("NAME");
    sub->add_flag("--remove", gc.remove, "Remove what is found");
    sub->add_flag("--adopt", gc.adopt,
                  "Make sessions of the sandboxes again, under the names that they carry");
    sub->add_flag("--other-hosts", gc.other_hosts,
                  "Also sandboxes that other hosts made, or nobody knows who");
    sub->add_option_function<std::string>(
           "--older-than",
           [this](const std::string& text) {
             gc.older_than = value_or_usage("--older-than", parse_duration(text));
           },
           "Spare sandboxes that were made later than that; else 1h, and\n"
           "168h for those of other hosts")
        ->type_name("DURATION");
    on(sub, [this] {
      if (gc.remove && gc.adopt)
        throw CLI::ValidationError("--remove and --adopt exclude each other");
      return Subcommand(gc);
    });
  }

  void add_information() {
    constexpr const char* configured = "The provider; else what the configuration names";
    on(app.add_subcommand("providers", "List the providers that are there"),
       [] { return Subcommand(ProvidersArguments{}); });

    auto* sub = app.add_subcommand("describe", "Show a provider's settings and capabilities");
    sub->add_option("PROVIDER", describe.provider, configured)
        ->type_name("")
        ->transform(unmarked());
    on(sub, [this] {
      check_named(describe.provider);
      return Subcommand(describe);
    });

    auto* group = app.add_subcommand("settings", "Settings of a provider");
    group->require_subcommand(1);
    sub = group->add_subcommand("effective", "Show what a sandbox gets, and where it comes from");
    sub->add_option("PROVIDER", settings.provider, configured)
        ->type_name("")
        ->transform(unmarked());
    on(sub, [this] {
      check_named(settings.provider);
      return Subcommand(settings);
    });

    group = app.add_subcommand("config", "The configuration file");
    group->require_subcommand(1);
    sub = group->add_subcommand("check", "Look for every mistake in a configuration file");
    sub->footer(kCheckCodes);
    sub->add_option("FILE", check.file, "The file")
        ->required()
        ->type_name("")
        ->transform(unmarked());
    on(sub, [this] { return Subcommand(check); });

    group = app.add_subcommand("plugins", "Plugins");
    group->require_subcommand(1);
    sub = group->add_subcommand("doctor", "Load every plugin and report on each");
    sub->footer(kDoctorCodes);
    sub->add_flag("--clear-quarantine", doctor.clear_quarantine,
                  "Let plugins run again whose process was lost too often");
    on(sub, [this] { return Subcommand(doctor); });

    sub = app.add_subcommand("conformance", "Judge a plugin by the cases of the suite");
    add_conformance_options(*sub, conformance);
    on(sub, [this] {
      if (conformance.plugin.empty() && !conformance.list) throw CLI::RequiredError("PLUGIN");
      return Subcommand(conformance);
    });
  }

  void add_fault_proxy() {
    auto* sub = app.add_subcommand("fault-proxy",
                                   "Break connections on purpose, between a client and a server");
    sub->footer(
        "It prints its address as JSON, serves until a signal comes, and then prints what\n"
        "its rules did:\n"
        "  sandforge fault-proxy --listen tcp:127.0.0.1:0 --to unix:/run/docker.sock \\\n"
        "    --rule '{nth: 2, do: cut, after: 100}'\n\n" +
        std::string(kPlainCodes));
    sub->add_option("--listen", fault_proxy.listen, "tcp:IP:PORT (port 0: any) or unix:PATH")
        ->required()
        ->type_name("ADDRESS");
    sub->add_option("--to", fault_proxy.to, "The server, in the same form")
        ->required()
        ->type_name("ADDRESS");
    sub->add_option("--rules", fault_proxy.rules_file,
                    "Rules, YAML or JSON: {rules: [{do: delay, ms: 50}]}")
        ->type_name("FILE");
    sub->add_option("--rule", fault_proxy.rules,
                    "One rule, such as {do: answer, status: 429}; repeatable. do is\n"
                    "delay, cut, black_hole, refuse or answer")
        ->type_name("RULE")
        ->allow_extra_args(false);
    sub->add_flag("--remote", fault_proxy.remote, "Allow addresses that are not loopback");
    on(sub, [this] {
      if (!fault_proxy.rules_file.empty() && !fault_proxy.rules.empty())
        throw CLI::ValidationError("--rules and --rule exclude each other");
      value_or_usage("--listen",
                     proxy::parse_proxy_address(fault_proxy.listen, fault_proxy.remote));
      value_or_usage("--to", proxy::parse_proxy_address(fault_proxy.to, fault_proxy.remote));
      return Subcommand(fault_proxy);
    });
  }

  void add_new() {
    auto* sub = app.add_subcommand("new", "Write a project for a provider of your own");
    sub->add_option_function<std::string>(
           "NAME",
           [this](const std::string& text) {
             made.name = value_or_usage("NAME", parse_project_name(text));
           },
           "What configurations will call it: a-z, 0-9 and dashes")
        ->required()
        ->type_name("");
    sub->add_option("--lang", made.language, "Of the provider: cpp, coroutine (C++20) or c")
        ->type_name("LANGUAGE")
        ->check(CLI::IsMember({"cpp", "coroutine", "c"}).description(""));
    sub->add_option("--dir", made.folder, "Folder of the project, new or empty; else NAME")
        ->type_name("DIR");
    on(sub, [this] { return Subcommand(made); });
  }

  void on(CLI::App* sub, std::function<Subcommand()> make) {
    makers.emplace_back(sub, std::move(make));
  }

  Subcommand finish_run() {
    run.command.argv = command;
    check_session(run.session);
    return run;
  }

  static void check_session(const SessionArguments& session) {
    if (session.repositories.empty() && (!session.ref.empty() || !session.repository_token.empty()))
      throw CLI::ValidationError("--ref and --repo-token need --repo");
    if (session.repositories.size() > 1 && !session.ref.empty())
      throw CLI::ValidationError("--ref needs exactly one --repo");
    auto plan = setup_plan_of(session);
    if (const auto good = normalize(plan); !good) throw CLI::ValidationError(good.error().message);
  }

  CommandLine result() {
    for (const auto& [sub, make] : makers)
      if (sub->parsed()) return {global, make()};
    throw CLI::RequiredError("A subcommand");
  }

  CLI::App app;
  GlobalArguments global;
  RunArguments run;
  PluginsDoctorArguments doctor;
  StartArguments start;
  ExecArguments exec;
  CopyArguments copy;
  std::string copy_from, copy_to;
  PsArguments ps;
  LogsArguments logs;
  std::string logs_from;
  KillArguments kill;
  std::string kill_signal;
  StopArguments stop;
  SnapshotArguments snapshot;
  BuildArguments build;
  GcArguments gc;
  RemoveArguments remove;
  DescribeArguments describe;
  SettingsArguments settings;
  ConfigCheckArguments check;
  ConformanceArguments conformance;
  FaultProxyArguments fault_proxy;
  NewArguments made;
  std::vector<std::string> command;
  std::vector<std::pair<CLI::App*, std::function<Subcommand()>>> makers;
};

// A command is wanted by run and exec, and by nothing else.
std::string command_mistake(const Subcommand& subcommand, bool given) {
  const CommandArguments* command = nullptr;
  if (const auto* run = std::get_if<RunArguments>(&subcommand)) command = &run->command;
  if (const auto* exec = std::get_if<ExecArguments>(&subcommand)) command = &exec->command;
  if (command == nullptr) return {};
  if (command->shell && given) return "--shell and -- COMMAND exclude each other";
  if (!command->shell && command->argv.empty())
    return "there is no command: put it after --, as in: -- make test";
  if (command->stdin_wanted && command->stdin_refused) return "-i and -n exclude each other";
  return {};
}

// The last subcommand that was recognised, or the program itself.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.front());
}

KnownWords known_words(const CLI::App& root) {
  KnownWords known;
  const auto& inner = innermost(root);
  known.command = inner.get_name() == "run" || inner.get_name() == "exec";
  for (const auto* app = &inner; app != nullptr; app = app->get_parent())
    for (const auto* option : app->get_options()) {
      for (const auto& name : option->get_lnames())
        known.options.push_back("--" + name);
      for (const auto& name : option->get_snames())
        known.options.push_back("-" + name);
    }
  for (const auto* sub : inner.get_subcommands(std::function<bool(const CLI::App*)>()))
    known.subcommands.push_back(sub->get_name());
  return known;
}

// A word that nobody knows explains more than what is missing because of it.
std::string message_of(const CLI::ParseError& error, const CLI::App& root) {
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool missing = code == CLI::ExitCodes::ExtrasError || code == CLI::ExitCodes::RequiredError;
  if (const auto unknown = root.remaining(true); missing && !unknown.empty())
    return unexpected_word(unknown.front(), known_words(root));
  return error.what();
}

ParsedArguments usage_mistake(const std::string& message, bool as_json) {
  ParsedArguments out;
  out.exit_code = kUsage;
  if (as_json) {
    json::Object answer;
    answer.set("error", to_json(Error(Status::invalid, to_valid_utf8(message), "cli.usage")));
    out.out = json::write_pretty(answer);
  } else {
    out.err = "sandforge: " + harmless_text(message) + "\nRun with --help for more information.\n";
  }
  return out;
}

// Whether the words, which end before "--", lead to a subcommand that runs what follows. Mistakes
// are for the reading proper.
bool takes_command(const std::vector<std::string>& words) {
  Builder builder;
  try {
    builder.app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Error&) {
  }
  const auto name = innermost(builder.app).get_name();
  return name == "run" || name == "exec";
}

// CLI11 would take the next word for the value, which is a subcommand where a variable was empty.
bool has_no_value(const std::string& word) {
  return word.size() > 3 && word.compare(0, 2, "--") == 0 && word.find('=') + 1 == word.size();
}

}  // namespace

ParsedArguments parse_arguments(const std::vector<std::string>& words) {
  Builder builder;
  const auto mark = std::find(words.begin(), words.end(), "--");
  const bool as_json = std::find(words.begin(), mark, "--json") != mark;
  if (const auto empty = std::find_if(words.begin(), mark, has_no_value); empty != mark)
    return usage_mistake(*empty + " has no value behind its =", as_json);
  std::vector<std::string> ours(words.begin(), mark);
  const bool given = mark != words.end() && takes_command(ours);
  std::vector<std::string> names;
  if (given) {
    builder.command.assign(mark + 1, words.end());
  } else if (mark != words.end()) {
    std::transform(mark + 1, words.end(), std::back_inserter(names), marked);
  }
  ours.insert(ours.end(), names.begin(), names.end());
  std::reverse(ours.begin(), ours.end());  // CLI11 takes the words from the back
  try {
    builder.app.parse(ours);
    ParsedArguments out;
    out.line = builder.result();
    if (auto mistake = command_mistake(out.line->subcommand, given); !mistake.empty())
      return usage_mistake(mistake, as_json);
    return out;
  } catch (const CLI::Success& success) {  // --help and --version
    std::ostringstream text, unused;
    builder.app.exit(success, text, unused);
    ParsedArguments out;
    out.out = text.str();
    return out;
  } catch (const CLI::ParseError& error) {
    const auto unknown = builder.app.remaining(true);
    if (!unknown.empty() && std::find(names.begin(), names.end(), unknown.front()) != names.end())
      return usage_mistake(innermost(builder.app).get_parent() == nullptr
                               ? error.what()
                               : "this subcommand takes no command after --",
                           as_json);
    return usage_mistake(message_of(error, builder.app), as_json);
  }
}

}  // namespace sandforge::cli

// The operations that a plan becomes.
#include "sandforge/support/repo_template.hpp"

#include "sandforge/support/shell.hpp"

namespace sandforge {
namespace {

constexpr const char* kFolder = ".mastra-sandbox";

class RepoWriter {
 public:
  RepoWriter(const RepoPlan& plan, const RepoStyle& style, const Template& base)
      : plan_(plan), style_(style), out_(base) {}

  Template write() {
    sizes_and_environment();
    if (style_.steps == RepoStyle::Steps::isolated) {
      isolated();
    } else {
      layered();
    }
    if (plan_.list_form) {
      for (const std::string& command : plan_.workspace_commands)
        out_ = out_.run_cmd(without_tokens() + command);
      mark("workspace-setup", plan_.workspace_commands);
    }
    return plan_.family.empty() ? out_ : out_.with_family(plan_.family);
  }
  std::string token_name(const PlannedRepository& r) const {
    return plan_.list_form ? style_.token_name + "_" + std::to_string(r.index) : style_.token_name;
  }

 private:
  void sizes_and_environment() {
    if (plan_.resources.cpu_count) out_ = out_.cpu_count(*plan_.resources.cpu_count);
    if (plan_.resources.memory_mb) out_ = out_.memory_mb(*plan_.resources.memory_mb);
    if (style_.install_git) out_ = out_.apt_install({"git", "ca-certificates"});
    if (style_.ephemeral_build_env) {
      out_ = out_.set_ephemeral_envs(plan_.build_env);
    } else {
      out_ = out_.set_envs(plan_.build_env);
    }
    if (style_.steps == RepoStyle::Steps::layered)
      out_ = out_.set_ephemeral_envs(repo_secrets(plan_, style_));
    if (!plan_.working_directory.empty()) out_ = out_.set_workdir(plan_.working_directory);
  }

  template <class Use>
  void each(bool with_token, Use use) {
    for (const PlannedRepository& repository : plan_.repositories)
      if (!repository.token.empty() == with_token) use(repository);
  }

  // Private ones first: no command of a repository has run when a token is there.
  void isolated() {
    if (plan_.working_directory.empty() && !plan_.repositories.empty())
      throw TemplateError(TemplateFault::bad_path,
                          "checkouts that are kept alone need an absolute working directory");
    const auto clone = [&](const PlannedRepository& r) { clone_alone(r); };
    const auto set_up = [&](const PlannedRepository& r) {
      setup(r);
      mark_repository(r);
    };
    each(true, clone);
    each(false, [&](const PlannedRepository& r) {
      clone(r);
      set_up(r);
    });
    each(true, set_up);
  }
  void clone_alone(const PlannedRepository& r) {
    RunWithSecrets step;
    if (!r.token.empty()) {
      step.secrets = {token_name(r)};
      step.commands.push_back(credential(r, "export "));
    }
    const std::string directory = shell_quote(r.directory);
    step.commands.push_back("git clone -- " + shell_quote(r.url) + " " + directory);
    if (r.head) {
      step.commands.push_back("git -C " + directory + " checkout --detach " + *r.head);
    } else if (!r.ref.empty()) {
      // A clone has no branch but the default one, and knows no full name of another.
      step.commands.push_back("git -C " + directory + " fetch origin " + shell_quote(r.ref));
      step.commands.push_back("git -C " + directory + " checkout --detach FETCH_HEAD");
    }
    step.output =
        (plan_.working_directory == "/" ? "" : plan_.working_directory) + "/" + r.directory;
    step.owner = style_.owner;
    out_ = out_.run_with_secrets(std::move(step));
  }

  // As isolated, but for the tokens: they are in the environment of the whole build, so that each
  // command of a repository drops them.
  void layered() {
    const auto finish = [&](const PlannedRepository& r) {
      setup(r);
      mark_repository(r);
    };
    each(true, [&](const PlannedRepository& r) { clone_in_layers(r); });
    each(false, [&](const PlannedRepository& r) {
      clone_in_layers(r);
      finish(r);
    });
    each(true, finish);
  }
  void clone_in_layers(const PlannedRepository& r) {
    const std::string with = r.token.empty() ? "" : credential(r, "");
    const std::string directory = shell_quote(r.directory);
    out_ = out_.run_cmd(with + "git clone --depth=1 --single-branch -- " + shell_quote(r.url) +
                        " " + directory);
    const std::string to = r.head ? *r.head : r.ref.empty() ? "" : shell_quote(r.ref);
    if (to.empty()) return;
    if (style_.setup_twice && r.token.empty()) setup(r);
    out_ = out_.run_cmd(with + "git -C " + directory + " fetch origin " + to);
    out_ = out_.run_cmd("git -C " + directory + " checkout --detach " +
                        (r.head ? to : std::string("FETCH_HEAD")));
  }
  // Before a command that is not to see the tokens; empty: none is there.
  std::string without_tokens() const {
    if (style_.steps != RepoStyle::Steps::layered) return {};
    std::string names;
    for (const PlannedRepository& r : plan_.repositories)
      if (!r.token.empty()) names += " " + token_name(r);
    return names.empty() ? "" : "unset" + names + " && ";
  }

  // Settings of git for one process, or for the shell: in its environment alone, never among its
  // arguments, and sent to no other host. The variables follow `how`; a blank ends them.
  std::string credential(const PlannedRepository& r, const std::string& how) const {
    const std::string user = r.username.empty() ? "x-access-token" : r.username;
    return how +
           "GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=credential.helper "
           "GIT_CONFIG_VALUE_0= GIT_CONFIG_KEY_1=http.followRedirects GIT_CONFIG_VALUE_1=false "
           "GIT_CONFIG_KEY_2=" +
           shell_quote("http." + r.url + ".extraheader") +
           " GIT_CONFIG_VALUE_2=\"AUTHORIZATION: basic $(printf '%s:%s' " + shell_quote(user) +
           " \"$" + token_name(r) + "\" | base64 | tr -d '\\n')\"" + (how.empty() ? " " : "");
  }

  void setup(const PlannedRepository& r) {
    const std::string directory = shell_quote(r.directory);
    for (const std::string& command : r.setup_commands) {
      if (!plan_.continue_on_failure) {
        out_ = out_.run_cmd(without_tokens() + "cd " + directory + " && " + command);
        continue;
      }
      const std::string list = std::string(kFolder) + "/setup-failed";
      out_ = out_.run_cmd(without_tokens() + "( cd " + directory + " && sh -c " +
                          shell_quote(command) + " ) || { " + "mkdir -p " + kFolder +
                          " && { grep -qxF -e " + directory + " " + list +
                          " 2>/dev/null || printf '%s\\n' " + directory + " >> " + list + "; }; }");
    }
  }
  void mark_repository(const PlannedRepository& r) {
    mark(plan_.list_form ? "repos/" + r.directory : "setup", r.setup_commands);
  }
  void mark(const std::string& name, const std::vector<std::string>& commands) {
    const std::string path = std::string(kFolder) + "/" + name;
    out_ = out_.run_cmd("mkdir -p " + shell_quote(path.substr(0, path.rfind('/'))) +
                        " && printf '%s' " + shell_quote(setup_marker(commands)) + " > " +
                        shell_quote(path));
  }

  const RepoPlan& plan_;
  const RepoStyle& style_;
  Template out_;
};

}  // namespace

Template repo_template(const RepoPlan& plan, const RepoStyle& style, const Template& base) {
  return RepoWriter(plan, style, base).write();
}

std::map<std::string, std::string> repo_secrets(const RepoPlan& plan, const RepoStyle& style) {
  const RepoWriter names(plan, style, Template());
  std::map<std::string, std::string> out;
  for (const PlannedRepository& repository : plan.repositories)
    if (!repository.token.empty()) out[names.token_name(repository)] = repository.token;
  return out;
}

}  // namespace sandforge

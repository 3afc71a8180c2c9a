#include "sandforge/support/template_steps.hpp"

#include "sandforge/support/shell.hpp"

namespace sandforge {
namespace {

constexpr const char* kRoot = "0";
constexpr std::size_t kTitleBytes = 120;

std::string join_path(const std::string& base, const std::string& path) {
  if (path.front() == '/' || base.empty()) return path;
  return base.back() == '/' ? base + path : base + "/" + path;
}

// The first line, without half a character at its end.
std::string cut_short(std::string text) {
  if (const auto line = text.find('\n'); line != std::string::npos) text.resize(line);
  if (text.size() <= kTitleBytes) return text;
  std::size_t end = kTitleBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  return text.substr(0, end) + "…";
}

// Each in the same shell, and none that the one before it could swallow by an open quote, a comment
// or a here-document.
std::string in_turn(const std::vector<std::string>& commands) {
  if (commands.size() == 1) return commands.front();
  std::string out;
  for (const std::string& command : commands) {
    if (!out.empty()) out += " &&\n";
    out += "eval " + shell_quote(command);
  }
  return out;
}

std::string words(const std::vector<std::string>& packages) {
  std::string out;
  for (const std::string& package : packages)
    out += " " + shell_quote(package);
  return out;
}

struct Render {
  const StepOptions& options;
  TemplateConfig now;
  TemplateStep step{};

  void operator()(const RunCommands& run) {
    step.title = "run " + run.commands.front();
    step.script = in_turn(run.commands);
  }
  void operator()(const RunWithSecrets& run) {
    step.title = "run with secrets " + run.commands.front();
    step.secrets = run.secrets;
    // Assignments that cat hands on: no value is ever an argument of a process.
    if (!run.secrets.empty()) step.script = "eval \"$(cat)\" &&\n";
    step.script += "eval " + shell_quote(in_turn(run.commands));
    step.output = StepOutput{run.output, run.owner};
  }
  void operator()(const SetWorkdir& set) {
    const std::string from = now.workdir.empty() ? options.workdir : now.workdir;
    step.title = "working directory " + set.path;
    step.user = kRoot;
    now.workdir = join_path(from, set.path);
    // It runs where what is relative is relative to.
    const std::string folder = shell_quote(now.workdir.front() == '/' ? now.workdir : set.path);
    step.script = "mkdir -p -- " + folder;
    if (!options.owner.empty())
      step.script = "[ -d " + folder + " ] || { mkdir -p -- " + folder + " && chown -- " +
                    shell_quote(options.owner) + " " + folder + "; }";
  }
  void operator()(const SetEnvs& set) {
    step.title = "environment";
    for (const auto& [name, value] : set.values) {
      step.title += " " + name;
      now.env[name] = value;
    }
  }
  void operator()(const AptInstall& install) {
    step.title = "apt-get install" + words(install.packages);
    step.user = kRoot;
    step.script = "export DEBIAN_FRONTEND=noninteractive\napt-get update && apt-get install -y";
    if (install.no_install_recommends) step.script += " --no-install-recommends";
    if (install.fix_missing) step.script += " --fix-missing";
    step.script += words(install.packages) + " && rm -rf /var/lib/apt/lists/*";
  }
  void operator()(const PipInstall& install) {
    step.script = "pip install";
    if (install.user) step.script += " --user";
    step.script += install.packages.empty() ? " ." : words(install.packages);
    step.title = step.script;
  }
  void operator()(const NpmInstall& install) {
    step.script = "npm install";
    if (install.global) step.script += " -g";
    if (install.dev && install.packages.empty()) step.script += " --include=dev";
    step.script += words(install.packages);
    step.title = step.script;
  }
};

}  // namespace

std::vector<TemplateStep> template_steps(const Template& of, const StepOptions& options) {
  Render render{options, {}, {}};
  std::vector<TemplateStep> steps;
  for (std::size_t i = 0; i < of.operations().size(); ++i) {
    render.step = TemplateStep{};
    render.step.position = i;
    render.step.workdir = render.now.workdir.empty() ? options.workdir : render.now.workdir;
    std::visit(render, of.operations()[i]);
    TemplateStep& step = render.step;
    step.title = cut_short(std::move(step.title));
    step.env = of.ephemeral_envs();
    step.env.insert(render.now.env.begin(), render.now.env.end());
    steps.push_back(std::move(step));
  }
  return steps;
}

TemplateConfig template_config(const Template& of, const StepOptions& options) {
  Render render{options, {}, {}};
  for (const TemplateOperation& operation : of.operations())
    std::visit(render, operation);
  return std::move(render.now);
}

std::string secrets_input(const TemplateStep& step,
                          const std::map<std::string, std::string>& values) {
  std::string out;
  for (const std::string& name : step.secrets) {
    const auto value = values.find(name);
    if (value == values.end())
      throw TemplateError(TemplateFault::missing_secret,
                          "the build needs the secret " + name + ", which it was not given");
    if (value->second.find('\0') != std::string::npos)
      throw TemplateError(TemplateFault::not_text, "the secret " + name + " holds a NUL byte");
    out += name + "=" + shell_quote(value->second) + "\nexport " + name + "\n";
  }
  return out;
}

}  // namespace sandforge

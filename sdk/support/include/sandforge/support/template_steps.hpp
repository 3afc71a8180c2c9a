// A template as steps for a provider that runs them one after the other in a machine and keeps what
// each leaves behind.
//
// A step is POSIX shell text, run by `sh -c` with nothing on stdin but secrets. What stands in it
// of the template is quoted so that every byte survives; a newline in a command is the shell's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "template.hpp"

namespace sandforge {

struct StepOutput {
  std::string path;   // absolute
  std::string owner;  // user[:group]; empty: as it is
};

struct TemplateStep {
  std::size_t position = 0;  // of Template::operations()
  std::string title;         // for a person: the method, and what it is given, cut short
  // Empty: nothing runs, and only env or workdir differ from the step before.
  std::string script;
  // The environment of the script, beside the machine's own: ephemeral values above serialized
  // ones. Secret.
  std::map<std::string, std::string> env;
  // Where it runs; empty: where the base image says. Relative to that where the template's is, and
  // StepOptions do not tell it.
  std::string workdir;
  std::string user;  // "0" where only root can do it; empty: the one of the base image
  // Names of secrets whose values the script reads from its stdin, as secrets_input writes them.
  std::vector<std::string> secrets;
  // Of all that the step did only this path is kept: it runs on a copy that is thrown away.
  std::optional<StepOutput> output;

  std::vector<std::string> argv() const { return {"/bin/sh", "-c", script}; }
};

struct StepOptions {
  std::string workdir;  // of the base image, where it is known; absolute
  std::string owner;    // of folders that set_workdir makes; empty: root
};

// One step per operation, in order. The environment that a step sets holds for those behind it.
std::vector<TemplateStep> template_steps(const Template& of, const StepOptions& options = {});

// What a machine of the template starts with: no ephemeral value is in it.
struct TemplateConfig {
  std::map<std::string, std::string> env;
  std::string workdir;  // empty: that of the base image
};
TemplateConfig template_config(const Template& of, const StepOptions& options = {});

// What the script of the step reads. Any byte but NUL may be in a value. Throws
// TemplateFault::missing_secret, and not_text for a NUL, which name the secret.
std::string secrets_input(const TemplateStep& step,
                          const std::map<std::string, std::string>& values);

}  // namespace sandforge

// The template of a machine: an immutable value, its canonical text and its identity.
//
//   const Template machine = Template()
//       .from("debian:12").memory_mb(4096).apt_install({"git"}).run_cmd("make -C /srv");
//   machine.identity();
//
// Text: {"family"?, "operations": [{"args": […], "method": "…"}, …], "schemaVersion": 1}. The same
// wish gives the same text: keys are sorted, options that say what holds anyway are left out, and
// what counts only once (from, cpuCount, memoryMB) stands first, with the value that was set last.
// Ephemeral values are in no text: whoever hands the text on hands them on beside it.
//
// Limits: 256 operations, 512 entries of a list or map, 32,768 UTF-16 units of a text, 200 of the
// family, 256 KiB of the whole text. Every text is UTF-8 without NUL; apart from the values of
// environments none is empty. What breaks that is a TemplateError, thrown by the call that brings
// it in.
//
// Source: the template builders of Mastra's Platform and Docker workspaces, whose wire format the
// text is. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "template_error.hpp"

namespace sandforge {

// Shell texts, each of which runs only if those before it succeeded, in one shell.
struct RunCommands {
  std::vector<std::string> commands;
};
// The same, on a machine that is thrown away but for one path: what they do with the secrets leaves
// no other trace.
struct RunWithSecrets {
  std::vector<std::string> commands;
  std::vector<std::string> secrets;  // names of variables, sorted; their values come with the build
  std::string output;                // absolute: the one path that is kept
  std::string owner;                 // of the path: user[:group]; empty: as it is
};
// Makes the folder where it is missing; what follows runs there. Relative to the one before.
struct SetWorkdir {
  std::string path;
};
struct SetEnvs {
  std::map<std::string, std::string> values;
};
struct AptInstall {
  std::vector<std::string> packages;
  bool no_install_recommends = false;
  bool fix_missing = false;
};
struct PipInstall {
  std::vector<std::string> packages;  // empty: the project in the working directory
  bool user = false;                  // for the user alone; the text says {"g": false}
};
struct NpmInstall {
  std::vector<std::string> packages;  // empty: the project in the working directory
  bool global = false;
  bool dev = false;  // of a project: what it needs for its development, too
};
using TemplateOperation = std::variant<RunCommands, RunWithSecrets, SetWorkdir, SetEnvs, AptInstall,
                                       PipInstall, NpmInstall>;

// Absent: the provider's own.
struct TemplateResources {
  std::optional<std::int64_t> cpu_count;
  std::optional<std::int64_t> memory_mb;
  bool empty() const noexcept { return !cpu_count && !memory_mb; }
  friend bool operator==(const TemplateResources& a, const TemplateResources& b) noexcept {
    return a.cpu_count == b.cpu_count && a.memory_mb == b.memory_mb;
  }
};

class Template {
 public:
  using Texts = std::vector<std::string>;
  using Envs = std::map<std::string, std::string>;

  Template();

  // ---- What it is made of. Each call gives a new value.

  // The image to begin with. Without it: the provider's base.
  [[nodiscard]] Template from(std::string image) const;
  // 1 to 2^53 - 1, as the next.
  [[nodiscard]] Template cpu_count(std::int64_t count) const;
  [[nodiscard]] Template memory_mb(std::int64_t mebibytes) const;

  [[nodiscard]] Template run_cmd(std::string command) const;
  [[nodiscard]] Template run_cmds(Texts commands) const;
  [[nodiscard]] Template run_with_secrets(RunWithSecrets step) const;
  [[nodiscard]] Template set_workdir(std::string path) const;
  // Names without '='. Nothing to set is no operation.
  [[nodiscard]] Template set_envs(Envs values) const;
  [[nodiscard]] Template apt_install(Texts packages, bool no_install_recommends = false,
                                     bool fix_missing = false) const;
  [[nodiscard]] Template pip_install(Texts packages = {}, bool user = false) const;
  [[nodiscard]] Template npm_install(Texts packages = {}, bool global = false,
                                     bool dev = false) const;
  // Any of the above, as operations() gives it.
  [[nodiscard]] Template with(TemplateOperation operation) const;

  // For the build alone, above set_envs, and no part of the text or the identity. Secret. Of a name
  // the last value counts.
  [[nodiscard]] Template set_ephemeral_envs(Envs values) const;
  // Images of one family stand in for each other until the exact one is ready. Part of the text,
  // and not of the identity. The last one counts.
  [[nodiscard]] Template with_family(std::string family) const;
  [[nodiscard]] Template without_family() const;

  // ---- What it says

  const std::optional<std::string>& base() const noexcept;
  const TemplateResources& resources() const noexcept;
  const std::vector<TemplateOperation>& operations() const noexcept;
  const std::optional<std::string>& family() const noexcept;
  const Envs& ephemeral_envs() const noexcept;  // secret
  // No operation, no base and no size: at most a family.
  bool empty() const noexcept;

  // JSON of the operation at this position of operations(), as in the text. With the hash of what
  // lies below, this is what the layer of an image is known by.
  const std::string& operation_text(std::size_t position) const;
  std::string text() const;
  // SHA-256 in hex over base, operations and effective resources: those that are not set count with
  // the provider's defaults. It holds within one provider and environment.
  std::string identity(const TemplateResources& defaults = {}) const;

  // Reads a text of whatever origin, also one that is not in canonical form. It is bounded by the
  // limits, and strict: what it does not know is refused.
  static Template parse(std::string_view text);

 private:
  struct State;
  explicit Template(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<State> copy() const;
  std::shared_ptr<const State> state_;
};

}  // namespace sandforge

#include "sandforge/support/template.hpp"

#include <algorithm>

#include "sandforge/support/hash.hpp"
#include "sandforge/support/json.hpp"
#include "template_checks.hpp"

namespace sandforge {

using templates::Place;

struct Template::State {
  std::optional<std::string> base;
  TemplateResources resources;
  std::vector<TemplateOperation> operations;
  std::vector<std::string> texts;  // of the operations
  std::optional<std::string> family;
  Envs ephemeral;

  // What stands before the operations.
  std::vector<std::string> head() const {
    std::vector<std::string> out;
    if (base) out.push_back(templates::method_json("from", *base));
    if (resources.cpu_count)
      out.push_back(
          templates::method_json("cpuCount", static_cast<long long>(*resources.cpu_count)));
    if (resources.memory_mb)
      out.push_back(
          templates::method_json("memoryMB", static_cast<long long>(*resources.memory_mb)));
    return out;
  }
  std::string text() const {
    std::string out = "{";
    if (family) out += "\"family\":" + json::write(json::Value(*family)) + ",";
    out += "\"operations\":[";
    bool first = true;
    const auto add = [&](const std::string& operation) {
      if (!first) out += ',';
      first = false;
      out += operation;
    };
    for (const std::string& operation : head())
      add(operation);
    for (const std::string& operation : texts)
      add(operation);
    return out + "],\"schemaVersion\":1}";
  }
  void check_whole() const {
    const std::size_t count = head().size() + operations.size();
    if (count > templates::kMaxOperations)
      Place("/operations")
          .refuse(TemplateFault::too_many, "a template cannot have more than 256 operations");
    std::size_t bytes = text_overhead();
    for (const std::string& operation : texts)
      bytes += operation.size() + 1;
    if (bytes > templates::kMaxBytes)
      Place("").refuse(TemplateFault::too_large, "a template cannot exceed 262144 bytes");
  }
  void append(TemplateOperation operation) {
    if (auto* run = std::get_if<RunWithSecrets>(&operation)) {
      std::sort(run->secrets.begin(), run->secrets.end());
      run->secrets.erase(std::unique(run->secrets.begin(), run->secrets.end()), run->secrets.end());
    }
    if (auto* install = std::get_if<NpmInstall>(&operation))
      install->dev = install->dev && install->packages.empty();
    const auto* envs = std::get_if<SetEnvs>(&operation);
    if (envs != nullptr && envs->values.empty()) return;
    texts.push_back(templates::operation_json(operation));
    operations.push_back(std::move(operation));
  }

 private:
  // All but the operations. The last of these has no comma behind it.
  std::size_t text_overhead() const {
    State rest;
    rest.base = base;
    rest.resources = resources;
    rest.family = family;
    return rest.text().size() - (texts.empty() || !rest.head().empty() ? 0 : 1);
  }
};

Template::Template() {
  static const auto nothing = std::make_shared<const State>();
  state_ = nothing;
}

std::shared_ptr<Template::State> Template::copy() const {
  return std::make_shared<State>(*state_);
}

Template Template::from(std::string image) const {
  templates::check_text(image, Place::of_operation(0) / "args" / 0U, "the image");
  auto next = copy();
  next->base = std::move(image);
  next->check_whole();
  return Template(std::move(next));
}

Template Template::cpu_count(std::int64_t count) const {
  auto next = copy();
  templates::check_number(count, Place::of_operation(next->base ? 1 : 0) / "args" / 0U,
                          "the number of CPUs");
  next->resources.cpu_count = count;
  next->check_whole();
  return Template(std::move(next));
}

Template Template::memory_mb(std::int64_t mebibytes) const {
  auto next = copy();
  const std::size_t position = (next->base ? 1U : 0U) + (next->resources.cpu_count ? 1U : 0U);
  templates::check_number(mebibytes, Place::of_operation(position) / "args" / 0U,
                          "the memory in MiB");
  next->resources.memory_mb = mebibytes;
  next->check_whole();
  return Template(std::move(next));
}

Template Template::with(TemplateOperation operation) const {
  templates::check_operation(
      operation, Place::of_operation(state_->head().size() + state_->operations.size()));
  auto next = copy();
  next->append(std::move(operation));
  next->check_whole();
  return Template(std::move(next));
}

Template Template::run_cmd(std::string command) const {
  return run_cmds(Texts{std::move(command)});
}
Template Template::run_cmds(Texts commands) const {
  return with(RunCommands{std::move(commands)});
}
Template Template::run_with_secrets(RunWithSecrets step) const {
  return with(std::move(step));
}
Template Template::set_workdir(std::string path) const {
  return with(SetWorkdir{std::move(path)});
}
Template Template::set_envs(Envs values) const {
  return with(SetEnvs{std::move(values)});
}
Template Template::apt_install(Texts packages, bool no_install_recommends, bool fix_missing) const {
  return with(AptInstall{std::move(packages), no_install_recommends, fix_missing});
}
Template Template::pip_install(Texts packages, bool user) const {
  return with(PipInstall{std::move(packages), user});
}
Template Template::npm_install(Texts packages, bool global, bool dev) const {
  return with(NpmInstall{std::move(packages), global, dev});
}

Template Template::set_ephemeral_envs(Envs values) const {
  templates::check_envs(values, Place("/ephemeral"));
  auto next = copy();
  for (auto& [name, value] : values)
    next->ephemeral[name] = std::move(value);
  return Template(std::move(next));
}

Template Template::with_family(std::string family) const {
  templates::check_text(family, Place("/family"), "the family", templates::kMaxFamilyUnits);
  auto next = copy();
  next->family = std::move(family);
  next->check_whole();
  return Template(std::move(next));
}
Template Template::without_family() const {
  auto next = copy();
  next->family.reset();
  return Template(std::move(next));
}

const std::optional<std::string>& Template::base() const noexcept {
  return state_->base;
}
const TemplateResources& Template::resources() const noexcept {
  return state_->resources;
}
const std::vector<TemplateOperation>& Template::operations() const noexcept {
  return state_->operations;
}
const std::optional<std::string>& Template::family() const noexcept {
  return state_->family;
}
const Template::Envs& Template::ephemeral_envs() const noexcept {
  return state_->ephemeral;
}
bool Template::empty() const noexcept {
  return !state_->base && state_->resources.empty() && state_->operations.empty();
}
const std::string& Template::operation_text(std::size_t position) const {
  return state_->texts.at(position);
}
std::string Template::text() const {
  return state_->text();
}

std::string Template::identity(const TemplateResources& defaults) const {
  State effective = *state_;
  effective.family.reset();
  if (!effective.resources.cpu_count) effective.resources.cpu_count = defaults.cpu_count;
  if (!effective.resources.memory_mb) effective.resources.memory_mb = defaults.memory_mb;
  return sha256_hex(effective.text());
}

// ---- Reading

Template Template::parse(std::string_view text) {
  const Place top("");
  if (text.size() > templates::kMaxBytes)
    top.refuse(TemplateFault::too_large, "a template cannot exceed 262144 bytes");
  json::Limits limits;
  limits.bytes = templates::kMaxBytes;
  limits.depth = 6;
  const json::ParseResult parsed = json::parse(text, limits);
  if (!parsed)
    top.refuse(TemplateFault::not_a_template,
               "this is no JSON that a template could be: " + parsed.error.message);
  templates::check_members(parsed.value, top, {"schemaVersion", "operations", "family"});
  const auto* version = parsed.value.find("schemaVersion");
  if (version == nullptr || !version->is_integer() || version->as_integer() != 1)
    Place("/schemaVersion")
        .refuse(TemplateFault::not_a_template, "templates of version 1 are known alone");
  const auto* operations = parsed.value.find("operations");
  if (operations == nullptr || !operations->is_array())
    Place("/operations").refuse(TemplateFault::bad_value, "the operations must be a list");
  if (operations->as_array().size() > templates::kMaxOperations)
    Place("/operations")
        .refuse(TemplateFault::too_many, "a template cannot have more than 256 operations");

  auto state = std::make_shared<State>();
  for (std::size_t i = 0; i < operations->as_array().size(); ++i) {
    const Place at = Place::of_operation(i);
    auto operation =
        templates::read_operation(operations->as_array()[i], at, state->base, state->resources);
    if (operation) state->append(std::move(*operation));
  }
  if (const auto* family = parsed.value.find("family")) {
    if (!family->is_string())
      Place("/family").refuse(TemplateFault::bad_value, "the family must be a text");
    templates::check_text(family->as_string(), Place("/family"), "the family",
                          templates::kMaxFamilyUnits);
    state->family = family->as_string();
  }
  state->check_whole();
  return Template(std::move(state));
}

}  // namespace sandforge

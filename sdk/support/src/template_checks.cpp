#include "template_checks.hpp"

#include <algorithm>

#include "sandforge/support/utf8.hpp"

namespace sandforge {

std::string_view to_string(TemplateFault fault) noexcept {
  switch (fault) {
    case TemplateFault::empty:
      return "template.empty";
    case TemplateFault::too_long:
      return "template.too_long";
    case TemplateFault::too_many:
      return "template.too_many";
    case TemplateFault::too_large:
      return "template.too_large";
    case TemplateFault::not_text:
      return "template.not_text";
    case TemplateFault::bad_value:
      return "template.bad_value";
    case TemplateFault::bad_name:
      return "template.bad_name";
    case TemplateFault::bad_path:
      return "template.bad_path";
    case TemplateFault::unknown:
      return "template.unknown";
    case TemplateFault::not_a_template:
      return "template.not_a_template";
    case TemplateFault::exclusive:
      return "template.exclusive";
    case TemplateFault::bad_url:
      return "template.bad_url";
    case TemplateFault::bad_ref:
      return "template.bad_ref";
    case TemplateFault::bad_command:
      return "template.bad_command";
    case TemplateFault::same_directory:
      return "template.same_directory";
    case TemplateFault::missing_secret:
      return "template.missing_secret";
  }
  return "template.bad_value";
}

namespace templates {
namespace {

// Of valid UTF-8: a sequence of four bytes is two units, any other one.
std::size_t utf16_units(std::string_view text) noexcept {
  std::size_t units = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U) units += byte >= 0xF0U ? 2 : 1;
  }
  return units;
}

bool is_letter(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

// What a machine may be asked to chown to: no option, and nothing that an image could not know.
bool is_owner(std::string_view owner) noexcept {
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part.front() != '-' &&
           std::all_of(part.begin(), part.end(), [](char c) {
             return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
           });
  };
  const auto colon = owner.find(':');
  if (colon == std::string_view::npos) return is_part(owner);
  return is_part(owner.substr(0, colon)) && is_part(owner.substr(colon + 1));
}

// Absolute, below the root, and without a way up.
bool is_output(std::string_view path) noexcept {
  if (path.empty() || path.front() != '/') return false;
  bool below = false;
  for (std::size_t at = 0; at < path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    const auto segment = path.substr(at, end - at);
    if (segment == "..") return false;
    below = below || (!segment.empty() && segment != ".");
    at = end + 1;
  }
  return below;
}

void check_size(std::size_t count, const Place& place, const std::string& what) {
  if (count > kMaxEntries)
    place.refuse(TemplateFault::too_many, what + " cannot have more than 512 entries");
}

// Whatever the text means, it can be kept, shown and handed on.
void check_bytes(const std::string& text, const Place& place, const std::string& what,
                 std::size_t units) {
  if (text.find('\0') != std::string::npos || !is_valid_utf8(text))
    place.refuse(TemplateFault::not_text, what + " must be UTF-8 without a NUL byte");
  if (utf16_units(text) > units)
    place.refuse(TemplateFault::too_long,
                 what + " cannot exceed " + std::to_string(units) + " characters");
}

struct Check {
  const Place& at;

  // In the text a list of one stands as its one entry.
  void list(const std::vector<std::string>& texts, const std::string& what) const {
    const Place first = at / "args" / 0U;
    if (texts.size() == 1) return check_text(texts.front(), first, what);
    check_texts(texts, first, what);
  }

  void operator()(const RunCommands& run) const { list(run.commands, "a command"); }
  void operator()(const RunWithSecrets& run) const {
    list(run.commands, "a command");
    const Place options = at / "args" / 1U;
    check_size(run.secrets.size(), options / "secrets", "the list of secrets");
    for (std::size_t i = 0; i < run.secrets.size(); ++i) {
      const Place here = options / "secrets" / i;
      check_text(run.secrets[i], here, "the name of a secret");
      if (!is_variable_name(run.secrets[i]))
        here.refuse(TemplateFault::bad_name,
                    "the name of a secret has letters, digits and '_', and no digit first");
    }
    check_text(run.output, options / "output", "the output");
    if (!is_output(run.output))
      (options / "output")
          .refuse(TemplateFault::bad_path, "the output must be an absolute path without '..'");
    if (run.owner.empty()) return;
    check_text(run.owner, options / "owner", "the owner");
    if (!is_owner(run.owner))
      (options / "owner").refuse(TemplateFault::bad_name, "the owner must be user[:group]");
  }
  void operator()(const SetWorkdir& set) const {
    check_text(set.path, at / "args" / 0U, "the working directory");
  }
  void operator()(const SetEnvs& set) const { check_envs(set.values, at / "args" / 0U); }
  void operator()(const AptInstall& install) const { list(install.packages, "a package"); }
  void operator()(const PipInstall& install) const { optional_list(install.packages); }
  void operator()(const NpmInstall& install) const { optional_list(install.packages); }
  void optional_list(const std::vector<std::string>& packages) const {
    if (!packages.empty()) list(packages, "a package");
  }
};

json::Value list_json(const std::vector<std::string>& texts) {
  if (texts.size() == 1) return texts.front();
  json::Array all;
  for (const std::string& text : texts)
    all.emplace_back(text);
  return all;
}

struct Write {
  json::Array args;

  const char* operator()(const RunCommands& run) {
    args.push_back(list_json(run.commands));
    return "runCmd";
  }
  const char* operator()(const RunWithSecrets& run) {
    args.push_back(list_json(run.commands));
    json::Array names;
    for (const std::string& name : run.secrets)
      names.emplace_back(name);
    json::Object options;
    options.set("secrets", std::move(names));
    options.set("output", run.output);
    if (!run.owner.empty()) options.set("owner", run.owner);
    args.emplace_back(std::move(options));
    return "runWithSecrets";
  }
  const char* operator()(const SetWorkdir& set) {
    args.emplace_back(set.path);
    return "setWorkdir";
  }
  const char* operator()(const SetEnvs& set) {
    std::vector<json::Member> members;
    for (const auto& [name, value] : set.values)
      members.emplace_back(name, value);
    args.emplace_back(json::Object::adopt(std::move(members)));
    return "setEnvs";
  }
  const char* operator()(const AptInstall& install) {
    packages(install.packages, {{"noInstallRecommends", install.no_install_recommends},
                                {"fixMissing", install.fix_missing}});
    return "aptInstall";
  }
  const char* operator()(const PipInstall& install) {
    packages(install.packages, {});
    if (install.user) {
      if (args.empty()) args.emplace_back(nullptr);
      json::Object options;
      options.set("g", false);
      args.emplace_back(std::move(options));
    }
    return "pipInstall";
  }
  const char* operator()(const NpmInstall& install) {
    packages(install.packages,
             {{"g", install.global}, {"dev", install.dev && install.packages.empty()}});
    return "npmInstall";
  }
  // Of the options those that are on.
  void packages(const std::vector<std::string>& names,
                const std::vector<std::pair<const char*, bool>>& flags) {
    if (!names.empty()) args.push_back(list_json(names));
    json::Object options;
    for (const auto& [name, on] : flags)
      if (on) options.set(name, true);
    if (options.empty()) return;
    if (args.empty()) args.emplace_back(nullptr);
    args.emplace_back(std::move(options));
  }
};

std::string with_method(const char* method, json::Array args) {
  json::Object object;
  object.set("args", std::move(args));
  object.set("method", method);
  return json::write_canonical(json::Value(std::move(object)));
}

}  // namespace

void Place::refuse(TemplateFault fault, const std::string& message) const {
  const std::string where =
      operation_ ? "operation " + std::to_string(*operation_) + " of the template: " : "";
  throw TemplateError(fault, where + message, pointer_, operation_);
}

void check_text(const std::string& text, const Place& place, const std::string& what,
                std::size_t units) {
  if (text.empty()) place.refuse(TemplateFault::empty, what + " cannot be empty");
  check_bytes(text, place, what, units);
}

void check_texts(const std::vector<std::string>& texts, const Place& place,
                 const std::string& what) {
  if (texts.empty()) place.refuse(TemplateFault::empty, what + " is needed: the list is empty");
  check_size(texts.size(), place, "the list");
  for (std::size_t i = 0; i < texts.size(); ++i)
    check_text(texts[i], place / i, what);
}

void check_envs(const std::map<std::string, std::string>& values, const Place& place) {
  check_size(values.size(), place, "the environment");
  for (const auto& [name, value] : values) {
    check_text(name, place, "the name of a variable");
    const bool bad = std::any_of(name.begin(), name.end(), [](char c) {
      return c == '=' || static_cast<unsigned char>(c) < 0x20U || c == 0x7f;
    });
    if (bad)
      (place / name)
          .refuse(TemplateFault::bad_name,
                  "the name of a variable has no '=' and no control character");
    check_bytes(value, place / name, "the value of a variable", kMaxUnits);
  }
}

void check_number(std::int64_t number, const Place& place, const std::string& what) {
  if (number < 1 || number > kMaxNumber)
    place.refuse(TemplateFault::bad_value, what + " must be a whole number from 1 to 2^53 - 1");
}

void check_operation(const TemplateOperation& operation, const Place& at) {
  std::visit(Check{at}, operation);
}

bool is_variable_name(std::string_view name) noexcept {
  return !name.empty() && !is_digit(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

std::string operation_json(const TemplateOperation& operation) {
  Write write;
  const char* method = std::visit(write, operation);
  return with_method(method, std::move(write.args));
}

std::string method_json(const char* method, json::Value argument) {
  json::Array args;
  args.push_back(std::move(argument));
  return with_method(method, std::move(args));
}

}  // namespace templates
}  // namespace sandforge

#include <algorithm>
#include <set>

#include "issues.hpp"
#include "sandforge/host_config.hpp"

namespace sandforge {
namespace {

namespace cd = config_detail;

bool is_variables_pointer(std::string_view pointer) noexcept {
  return pointer.substr(0, 5) == "/env/";
}

// One run of the options schema and what becomes of its issues.
class OptionsCheck {
 public:
  OptionsCheck(const HostConfig& config, const ProviderConfig& provider,
               const CompiledSchema& options)
      : config_(config), provider_(provider), schema_(options) {}

  void whole(const json::Value& options) {
    const json::Value* env = options.find("env");
    if (env == nullptr || !env->is_array()) {
      run(options, "/env");
    } else {
      conditional(options, env->as_array());
    }
    stray_references(options, "");
  }

  // Of resolved options: nothing is spared.
  void resolved(const json::Value& options) {
    final_ = true;
    run(options, "/env");
  }

  void settings(const CompiledSchema& schema, const json::Value& document,
                const std::string& pointer) {
    if (document.is_null()) return;
    for (Issue& issue : schema.validate(document)) {
      const bool secret = schema.is_secret(issue.pointer);
      issue.pointer.insert(0, pointer);
      add(std::move(issue), secret);
    }
  }

  void add_at_option(const std::string& pointer, std::string keyword, std::string message,
                     std::string suggestion = {}) {
    add({provider_.pointer + "/options" + pointer,
         std::move(keyword),
         std::move(message),
         {},
         std::move(suggestion)},
        true);
  }

  std::vector<ConfigIssue> take() { return std::move(issues_); }

 private:
  // The schema of a provider describes `env` as a record. Of a list, each `set` is one, and the
  // rest of the options is checked with an empty one.
  void conditional(const json::Value& options, const json::Array& entries) {
    json::Value copy = options;
    copy.as_object().set("env", json::Object());
    run(copy, "/env");
    const std::size_t known = issues_.size();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const json::Value* set = entries[i].find("set");
      if (set == nullptr) continue;
      copy.as_object().set("env", *set);
      only_variables_ = true;
      run(copy, "/env/" + std::to_string(i) + "/set");
      only_variables_ = false;
      if (issues_.size() > known + 100) return;
    }
  }

  void run(const json::Value& options, const std::string& env_pointer) {
    for (Issue& issue : schema_.validate(options)) {
      const bool variable = is_variables_pointer(issue.pointer);
      if (only_variables_ && !variable) continue;
      const json::Value* value = options.at_pointer(issue.pointer);
      const bool secret = variable || schema_.is_secret(issue.pointer);
      if (!final_ && secret && is_reference(value)) continue;
      // null unsets a variable, whatever the schema of its text is.
      if (variable && value != nullptr && value->is_null()) continue;
      if (variable) issue.pointer = env_pointer + issue.pointer.substr(4);
      issue.pointer.insert(0, provider_.pointer + "/options");
      add(std::move(issue), secret);
    }
  }

  static bool is_reference(const json::Value* value) {
    return value != nullptr && value->is_string() && has_reference(value->as_string());
  }

  // "${NAME}" where nothing resolves it would reach the provider as text.
  void stray_references(const json::Value& value, const std::string& pointer) {
    if (pointer == "/env" || (!pointer.empty() && schema_.is_secret(pointer))) return;
    if (value.is_object()) {
      for (const auto& [name, item] : value.as_object()) {
        stray_references(item, pointer + '/' + json::escape_pointer(name));
      }
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.as_array().size(); ++i) {
        stray_references(value.as_array()[i], pointer + '/' + std::to_string(i));
      }
    } else if (value.is_string() && is_whole_reference(value.as_string())) {
      add_at_option(pointer, "x-secret", "references are resolved in secrets and in env only");
    }
  }

  static bool is_whole_reference(std::string_view text) noexcept {
    return text.size() > 3 && text.substr(0, 2) == "${" && text.find('}') == text.size() - 1;
  }

  void add(Issue issue, bool secret) {
    issues_.push_back(cd::place_issue(config_.source, std::move(issue), secret));
  }

  const HostConfig& config_;
  const ProviderConfig& provider_;
  const CompiledSchema& schema_;
  bool only_variables_ = false;
  bool final_ = false;
  std::vector<ConfigIssue> issues_;
};

json::Value object_or_empty(const json::Value& value) {
  return value.is_null() ? json::Value(json::Object()) : value;
}

// Replaces the references of secrets, in place.
class Resolver {
 public:
  Resolver(const HostConfig& config, const CompiledSchema& schema, const ReferenceSource& source,
           OptionsCheck& check, Unresolved unresolved)
      : config_(config), schema_(schema), source_(source), check_(check), unresolved_(unresolved) {}

  void walk(json::Value& value, const std::string& pointer) {
    if (value.is_object()) {
      std::vector<std::string> missing;
      for (auto& [name, item] : value.as_object()) {
        const std::string at = pointer + '/' + json::escape_pointer(name);
        walk(item, at);
        if (left_out_.erase(at) != 0) missing.push_back(name);
      }
      for (const std::string& name : missing)
        value.as_object().erase(name);
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.as_array().size(); ++i) {
        walk(value.as_array()[i], pointer + '/' + std::to_string(i));
      }
    } else if (value.is_string() && resolves_at(pointer)) {
      replace(value, pointer);
    }
  }

 private:
  bool resolves_at(const std::string& pointer) const {
    return is_variables_pointer(pointer) || schema_.is_secret(pointer);
  }

  void replace(json::Value& value, const std::string& pointer) {
    if (!has_reference(value.as_string())) return;
    ResolvedText resolved = resolve_reference(value.as_string(), config_.directory, source_);
    if (resolved.error.empty()) {
      value = json::Value(std::move(resolved.text));
    } else if (unresolved_ == Unresolved::left_out) {
      left_out_.insert(pointer);
    } else {
      check_.add_at_option(pointer, "x-secret", std::move(resolved.error));
    }
  }

  const HostConfig& config_;
  const CompiledSchema& schema_;
  const ReferenceSource& source_;
  OptionsCheck& check_;
  const Unresolved unresolved_;
  std::set<std::string> left_out_;  // members whose object has still to drop them
};

}  // namespace

std::vector<ConfigIssue> check_provider(const HostConfig& config, const ProviderConfig& provider,
                                        const CompiledSchema& options,
                                        const CompiledSchema* settings) {
  OptionsCheck check(config, provider, options);
  const json::Value given = object_or_empty(provider.options);
  check.whole(given);
  if (settings == nullptr) return check.take();
  check.settings(*settings, provider.settings, provider.pointer + "/settings");
  if (const json::Value* defaults = given.find("defaults")) {
    check.settings(*settings, *defaults, provider.pointer + "/options/defaults");
  }
  return check.take();
}

ResolvedOptions resolve_options(const HostConfig& config, const ProviderConfig& provider,
                                const CompiledSchema& options, const ReferenceSource& source,
                                Unresolved unresolved) {
  ResolvedOptions out;
  out.options = object_or_empty(provider.options);
  const json::Value* env = out.options.find("env");
  if (env != nullptr && env->is_array()) out.options.as_object().erase("env");
  OptionsCheck check(config, provider, options);
  Resolver(config, options, source, check, unresolved).walk(out.options, "");
  out.issues = check.take();
  if (!out.issues.empty() || unresolved == Unresolved::left_out) return out;
  check.resolved(out.options);
  out.issues = check.take();
  return out;
}

}  // namespace sandforge

#include <algorithm>

#include "issues.hpp"
#include "sandforge/host_config.hpp"

namespace sandforge {
namespace {

// A draft with mistakes also comes here: what has not the shape of the schema holds for nobody.
bool holds(const json::Value& entry, std::optional<std::string_view> factory_id) {
  const json::Value* when = entry.find("when");
  if (when == nullptr) return true;
  if (!when->is_object()) return false;
  const json::Value* wanted = when->find("factoryId");
  if (wanted == nullptr) return true;
  if (!factory_id) return false;
  const auto fits = [&](const json::Value& id) {
    return id.is_string() && id.as_string() == *factory_id;
  };
  if (!wanted->is_array()) return fits(*wanted);
  const json::Array& any = wanted->as_array();
  return std::any_of(any.begin(), any.end(), fits);
}

struct Origin {
  const json::Object* values;
  std::string pointer;
};

// The records that apply, the first one first.
std::vector<Origin> applying(const ProviderConfig& provider,
                             std::optional<std::string_view> factory_id) {
  std::vector<Origin> out;
  const json::Value* env = provider.options.find("env");
  if (env == nullptr) return out;
  const std::string at = provider.pointer + "/options/env";
  if (env->is_object()) {
    out.push_back({&env->as_object(), at});
    return out;
  }
  if (!env->is_array()) return out;
  for (std::size_t i = 0; i < env->as_array().size(); ++i) {
    const json::Value& entry = env->as_array()[i];
    const json::Value* set = entry.find("set");
    if (set == nullptr || !set->is_object() || !holds(entry, factory_id)) continue;
    out.push_back({&set->as_object(), at + '/' + std::to_string(i) + "/set"});
  }
  return out;
}

class EnvBuilder {
 public:
  EnvBuilder(const HostConfig& config, const ReferenceSource* source)
      : config_(config), source_(source) {}

  SessionEnv build(const std::vector<Origin>& origins) {
    json::Object env;
    std::vector<std::pair<std::string, std::string>> places;
    for (const Origin& origin : origins) {
      for (const auto& [name, value] : *origin.values) {
        env.set(name, value);
        places.emplace_back(name, origin.pointer + '/' + json::escape_pointer(name));
      }
    }
    SessionEnv out;
    for (auto& [name, value] : env) {
      out.names.push_back(name);
      if (source_ != nullptr && value.is_string()) resolve(value, last_place(places, name), out);
    }
    out.env = std::move(env);
    return out;
  }

 private:
  static std::string last_place(const std::vector<std::pair<std::string, std::string>>& places,
                                const std::string& name) {
    const auto found = std::find_if(places.rbegin(), places.rend(),
                                    [&](const auto& place) { return place.first == name; });
    return found->second;
  }

  void resolve(json::Value& value, const std::string& pointer, SessionEnv& out) {
    if (!has_reference(value.as_string())) return;
    ResolvedText resolved = resolve_reference(value.as_string(), config_.directory, *source_);
    if (resolved.error.empty()) {
      value = json::Value(std::move(resolved.text));
      return;
    }
    Issue issue{pointer, "x-secret", std::move(resolved.error), {}, {}};
    out.issues.push_back(config_detail::place_issue(config_.source, std::move(issue), true));
  }

  const HostConfig& config_;
  const ReferenceSource* source_;
};

}  // namespace

SessionEnv session_env(const HostConfig& config, const ProviderConfig& provider,
                       std::optional<std::string_view> factory_id) {
  return EnvBuilder(config, nullptr).build(applying(provider, factory_id));
}

SessionEnv resolved_session_env(const HostConfig& config, const ProviderConfig& provider,
                                std::optional<std::string_view> factory_id,
                                const ReferenceSource& source) {
  return EnvBuilder(config, &source).build(applying(provider, factory_id));
}

}  // namespace sandforge

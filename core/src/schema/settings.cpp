#include "sandforge/settings.hpp"

#include <algorithm>

#include "impl.hpp"

namespace sandforge {
namespace {

namespace sd = schema_detail;

// 2.0 reads as an integer in JSON Schema; plugins should not have to know.
void make_integers(const sd::Node& root, json::Object& document) {
  for (json::Member& member : document) {
    const sd::Node* node = root.property(member.first);
    if (node == nullptr || member.second.kind() != json::Kind::number) continue;
    const bool integer = sd::resolve(*node).leaf.types == sd::type_integer;
    const double number = member.second.as_number();
    constexpr double exact = 9007199254740992.0;  // 2^53
    if (!integer || !sd::is_integral(member.second) || number > exact || number < -exact) continue;
    member.second = static_cast<std::int64_t>(number);
  }
}

json::Value object_or_empty(const json::Value& value) {
  return value.is_null() ? json::Value(json::Object()) : value;
}

json::Value null_if_empty(json::Value value) {
  if (value.is_object() && value.as_object().empty()) return nullptr;
  return value;
}

std::vector<std::string> undeclared_keys(const CompiledSchema& schema, const json::Value& document,
                                         const json::Value& update) {
  std::vector<std::string> keys;
  if (!document.is_object()) return keys;
  const std::vector<std::string> declared = schema.declared_keys();
  for (const json::Member& member : document.as_object()) {
    const bool known = std::find(declared.begin(), declared.end(), member.first) != declared.end();
    if (!known && update.find(member.first) == nullptr) keys.push_back(member.first);
  }
  return keys;
}

}  // namespace

const char* to_string(SettingOrigin origin) noexcept {
  switch (origin) {
    case SettingOrigin::schema:
      return "schema";
    case SettingOrigin::option:
      return "option";
    case SettingOrigin::stored:
      return "stored";
  }
  return "";
}

EffectiveSettings effective_settings(const CompiledSchema& schema, const json::Value& stored,
                                     const json::Value& host_defaults) {
  EffectiveSettings out;
  out.document = object_or_empty(stored);
  out.issues = schema.validate(out.document);
  if (!out.document.is_object()) return out;
  const std::size_t from_user = out.document.as_object().size();
  if (!schema.apply_defaults(out.document) && out.issues.empty()) {
    out.issues.push_back({"", "default", "the defaults make the document too large", {}, {}});
  }
  json::Object& object = out.document.as_object();
  make_integers(sd::resolve(*schema.impl().program.root), object);
  for (const json::Member& member : object) {
    SettingOrigin origin = SettingOrigin::schema;
    if (host_defaults.find(member.first) != nullptr) origin = SettingOrigin::option;
    if (out.origins.size() < from_user) origin = SettingOrigin::stored;
    out.origins.push_back({member.first, origin});
  }
  return out;
}

SettingsUpdate update_settings(const CompiledSchema& schema, const json::Value& stored,
                               const json::Value& update) {
  SettingsUpdate out;
  out.stored = stored;
  if (!update.is_object()) {
    out.issues.push_back({"", "type", "an update must be an object", "object", {}});
    return out;
  }
  json::Value merged = object_or_empty(stored);
  json::merge_patch(merged, update);
  out.issues = schema.validate(merged);
  if (!out.issues.empty()) {
    const std::vector<std::string> dropped = undeclared_keys(schema, merged, update);
    if (dropped.empty()) return out;
    for (const std::string& key : dropped)
      merged.as_object().erase(key);
    out.issues = schema.validate(merged);
    if (!out.issues.empty()) return out;
    out.dropped = dropped;
  }
  out.accepted = true;
  out.stored = null_if_empty(std::move(merged));
  return out;
}

}  // namespace sandforge

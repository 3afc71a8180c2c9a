#include <algorithm>

#include "lint.hpp"
#include "quote.hpp"

namespace sandforge::schema_detail {
namespace {

struct Bounds {
  const char* low;
  const char* high;
};

void check_order(const json::Object& schema, const std::string& pointer, IssueList& issues) {
  for (const Bounds bounds :
       {Bounds{"minimum", "maximum"}, Bounds{"minLength", "maxLength"},
        Bounds{"minItems", "maxItems"}, Bounds{"minProperties", "maxProperties"}}) {
    const json::Value* low = schema.find(bounds.low);
    const json::Value* high = schema.find(bounds.high);
    if (low == nullptr || high == nullptr || !low->is_number() || !high->is_number()) continue;
    if (compare_numbers(*low, *high) <= 0) continue;
    issues.add(child(pointer, bounds.low), bounds.low,
               std::string(bounds.low) + " " + show(*low) + " is greater than " + bounds.high +
                   " " + show(*high));
  }
}

void check_enum_types(const json::Object& schema, const std::string& pointer, IssueList& issues) {
  const json::Value* list = schema.find("enum");
  const json::Value* type = schema.find("type");
  if (list == nullptr || type == nullptr || !list->is_array()) return;
  std::uint8_t types = 0;
  if (type->is_string()) types = type_bit(type->as_string());
  if (type->is_array()) {
    for (const json::Value& name : type->as_array()) {
      if (name.is_string()) types = static_cast<std::uint8_t>(types | type_bit(name.as_string()));
    }
  }
  if (types == 0) return;
  std::size_t index = 0;
  for (const json::Value& value : list->as_array()) {
    const std::string at = child(pointer, "enum") + '/' + std::to_string(index++);
    if (has_type(types, value)) continue;
    issues.add(at, "enum", show(value) + " is not of the type " + type_names(types));
  }
}

void check_titles(const json::Object& schema, const std::string& pointer, IssueList& issues) {
  const json::Value* titles = schema.find("x-enumTitles");
  if (titles == nullptr) return;
  const json::Value* list = schema.find("enum");
  const bool match = list != nullptr && list->is_array() && titles->is_array() &&
                     list->as_array().size() == titles->as_array().size();
  if (match) return;
  issues.add(child(pointer, "x-enumTitles"), "x-enumTitles",
             "must have one title for each value of \"enum\"");
}

void check_order_list(const json::Object& schema, const std::string& pointer, IssueList& issues) {
  const json::Value* order = schema.find("x-order");
  const json::Value* properties = schema.find("properties");
  if (order == nullptr || !order->is_array()) return;
  std::vector<std::string> declared;
  if (properties != nullptr && properties->is_object()) {
    for (const json::Member& member : properties->as_object())
      declared.push_back(member.first);
  }
  std::size_t index = 0;
  for (const json::Value& name : order->as_array()) {
    const std::string at = child(pointer, "x-order") + '/' + std::to_string(index++);
    if (!name.is_string()) continue;
    if (std::find(declared.begin(), declared.end(), name.as_string()) != declared.end()) continue;
    issues.add(at, "x-order", quote(name.as_string()) + " is not a property",
               suggest_name(name.as_string(), declared));
  }
}

void check_required(const json::Object& schema, const std::string& pointer, IssueList& issues) {
  const json::Value* required = schema.find("required");
  const json::Value* properties = schema.find("properties");
  const json::Value* closed = schema.find("additionalProperties");
  if (required == nullptr || closed == nullptr || !closed->is_bool() || !required->is_array())
    return;
  std::vector<std::string> declared;
  if (properties != nullptr && properties->is_object()) {
    for (const json::Member& member : properties->as_object())
      declared.push_back(member.first);
  }
  std::size_t index = 0;
  for (const json::Value& name : required->as_array()) {
    const std::string at = child(pointer, "required") + '/' + std::to_string(index++);
    if (!name.is_string()) continue;
    if (std::find(declared.begin(), declared.end(), name.as_string()) != declared.end()) continue;
    issues.add(at, "required", quote(name.as_string()) + " is required but not declared",
               suggest_name(name.as_string(), declared));
  }
}

}  // namespace

void check_neighbours(const json::Object& schema, const std::string& pointer, IssueList& issues) {
  check_order(schema, pointer, issues);
  check_enum_types(schema, pointer, issues);
  check_titles(schema, pointer, issues);
  check_order_list(schema, pointer, issues);
  check_required(schema, pointer, issues);
  if (schema.contains("x-patternMessage") && !schema.contains("pattern")) {
    issues.add(child(pointer, "x-patternMessage"), "x-patternMessage",
               "\"x-patternMessage\" has no effect without \"pattern\"");
  }
  const json::Value* secret = schema.find("x-secret");
  const bool is_secret = secret != nullptr && secret->is_bool() && secret->as_bool();
  if (is_secret && schema.contains("default")) {
    issues.add(child(pointer, "default"), "default", "a secret has no default");
  }
}

}  // namespace sandforge::schema_detail

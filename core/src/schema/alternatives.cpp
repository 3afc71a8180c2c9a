#include "alternatives.hpp"

#include <algorithm>

namespace sandforge::schema_detail {
namespace {

const json::Value* constant_of(const Node* node) {
  if (node == nullptr) return nullptr;
  const Node& target = resolve(*node);
  return target.leaf.constant ? &*target.leaf.constant : nullptr;
}

const json::Value* tag_value(const Node* branch, const std::string& tag) {
  return constant_of(resolve(*branch).property(tag));
}

// A member that every branch fixes to a constant.
std::string find_tag(const std::vector<const Node*>& parts) {
  if (parts.size() < 2) return {};
  for (const Property& property : resolve(*parts.front()).properties) {
    const bool everywhere = std::all_of(parts.begin(), parts.end(), [&](const Node* part) {
      return tag_value(part, property.name) != nullptr;
    });
    if (everywhere) return property.name;
  }
  return {};
}

}  // namespace

Choice choose_alternative(const std::vector<const Node*>& parts, const json::Value& value) {
  Choice choice;
  const bool constants = std::all_of(parts.begin(), parts.end(),
                                     [](const Node* part) { return constant_of(part) != nullptr; });
  if (constants) {
    for (const Node* part : parts)
      choice.values.push_back(*constant_of(part));
    return choice;
  }
  if (value.is_object()) {
    const std::string tag = find_tag(parts);
    if (!tag.empty()) {
      choice.branch = selected_by_tag(parts, value);
      if (choice.branch != nullptr) return choice;
      choice.tag = tag;
      for (const Node* part : parts)
        choice.values.push_back(*tag_value(part, tag));
      return choice;
    }
  }
  for (const Node* part : parts) {
    const std::uint8_t types = resolve(*part).leaf.types;
    if (types == 0 || !has_type(types, value)) continue;
    if (choice.branch != nullptr) return {};
    choice.branch = part;
  }
  return choice;
}

const Node* selected_by_tag(const std::vector<const Node*>& parts, const json::Value& value) {
  const std::string tag = find_tag(parts);
  const json::Value* given = tag.empty() ? nullptr : value.find(tag);
  if (given == nullptr) return nullptr;
  for (const Node* part : parts) {
    if (*tag_value(part, tag) == *given) return part;
  }
  return nullptr;
}

std::string join_alternatives(const std::vector<std::string>& descriptions) {
  std::vector<std::string> seen;
  std::string out;
  for (const std::string& text : descriptions) {
    if (text.empty() || std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
    seen.push_back(text);
    if (!out.empty()) out += " or ";
    out += text;
  }
  return out;
}

}  // namespace sandforge::schema_detail

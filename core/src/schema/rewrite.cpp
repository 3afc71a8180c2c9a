#include "engine.hpp"

namespace sandforge::schema_detail {
namespace {

json::Value reference(const Node& node) {
  json::Object object;
  object.set("$ref", "#/d/" + std::to_string(resolve(node).index));
  return object;
}

json::Value references(const std::vector<const Node*>& nodes) {
  json::Array out;
  for (const Node* node : nodes)
    out.push_back(reference(*node));
  return out;
}

// `false` stays as it is, so that valijson can compare counts instead of calling us.
json::Value closed_or_reference(const Node& node) {
  if (node.source->is_bool() && !node.source->as_bool()) return false;
  return reference(node);
}

void add_one(json::Object& out, const char* keyword, const Node* node) {
  if (node != nullptr) out.set(keyword, reference(*node));
}

void add_many(json::Object& out, const char* keyword, const std::vector<const Node*>& nodes) {
  if (!nodes.empty()) out.set(keyword, references(nodes));
}

void add_object_keywords(json::Object& out, const Node& node) {
  if (node.has_properties_keyword && !node.flat) {
    json::Object properties;
    for (const Property& property : node.properties) {
      properties.set(property.name, reference(*property.node));
    }
    out.set("properties", std::move(properties));
  }
  if (node.additional_properties != nullptr && !node.flat) {
    out.set("additionalProperties", closed_or_reference(*node.additional_properties));
  }
  add_one(out, "propertyNames", node.property_names);
  if (node.dependencies.empty()) return;
  json::Object dependencies;
  for (const Dependency& dependency : node.dependencies) {
    if (dependency.node != nullptr) {
      dependencies.set(dependency.name, reference(*dependency.node));
      continue;
    }
    json::Array names;
    for (const std::string& name : dependency.required)
      names.emplace_back(name);
    dependencies.set(dependency.name, std::move(names));
  }
  out.set("dependencies", std::move(dependencies));
}

json::Value rewrite(const Node& node) {
  json::Object out;
  if (node.checks_leaf || node.flat) out.set(leaf_keyword, static_cast<std::int64_t>(node.index));
  if (node.ref != nullptr || node.source->is_bool()) return out;
  add_many(out, "allOf", node.all_of);
  add_many(out, "anyOf", node.any_of);
  add_many(out, "oneOf", node.one_of);
  add_one(out, "not", node.negated);
  add_one(out, "if", node.if_);
  add_one(out, "then", node.then_);
  add_one(out, "else", node.else_);
  add_object_keywords(out, node);
  add_one(out, "contains", node.contains);
  if (node.is_tuple) {
    out.set("items", references(node.tuple));
    if (node.additional_items != nullptr) {
      out.set("additionalItems", closed_or_reference(*node.additional_items));
    }
  } else {
    add_one(out, "items", node.items);
  }
  return out;
}

}  // namespace

json::Value rewrite_for_engine(const Program& program) {
  json::Array all;
  for (const Node& node : program.nodes)
    all.push_back(rewrite(node));
  json::Object root;
  root.set("$ref", "#/d/" + std::to_string(resolve(*program.root).index));
  root.set("d", std::move(all));
  return root;
}

}  // namespace sandforge::schema_detail

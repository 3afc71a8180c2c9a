#include <algorithm>
#include <string>

#include "leaf.hpp"
#include "lint.hpp"
#include "model.hpp"
#include "quote.hpp"

namespace sandforge::schema_detail {
namespace {

std::uint8_t read_types(const json::Value& value) {
  if (value.is_string()) return type_bit(value.as_string());
  std::uint8_t types = 0;
  for (const json::Value& name : value.as_array()) {
    types = static_cast<std::uint8_t>(types | type_bit(name.as_string()));
  }
  return types;
}

std::uint64_t read_count(const json::Value& value) {
  return static_cast<std::uint64_t>(value.as_number());
}

std::vector<std::string> read_names(const json::Value& value) {
  std::vector<std::string> names;
  for (const json::Value& name : value.as_array())
    names.push_back(name.as_string());
  return names;
}

bool is_true(const json::Object& object, std::string_view key) {
  const json::Value* value = object.find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

void read_number_keywords(const json::Object& object, Leaf& leaf) {
  if (const auto* v = object.find("minimum")) leaf.minimum = *v;
  if (const auto* v = object.find("maximum")) leaf.maximum = *v;
  if (const auto* v = object.find("exclusiveMinimum")) leaf.exclusive_minimum = *v;
  if (const auto* v = object.find("exclusiveMaximum")) leaf.exclusive_maximum = *v;
  if (const auto* v = object.find("multipleOf")) leaf.multiple_of = to_decimal(*v);
}

void read_counts(const json::Object& object, Leaf& leaf) {
  if (const auto* v = object.find("minLength")) leaf.min_length = read_count(*v);
  if (const auto* v = object.find("maxLength")) leaf.max_length = read_count(*v);
  if (const auto* v = object.find("minItems")) leaf.min_items = read_count(*v);
  if (const auto* v = object.find("maxItems")) leaf.max_items = read_count(*v);
  if (const auto* v = object.find("minProperties")) leaf.min_properties = read_count(*v);
  if (const auto* v = object.find("maxProperties")) leaf.max_properties = read_count(*v);
}

void read_leaf(const json::Object& object, Leaf& leaf) {
  if (const auto* v = object.find("type")) leaf.types = read_types(*v);
  read_number_keywords(object, leaf);
  read_counts(object, leaf);
  leaf.unique_items = is_true(object, "uniqueItems");
  if (const auto* v = object.find("format")) leaf.format = format_by_name(v->as_string());
  if (const auto* v = object.find("pattern")) {
    std::string error;  // the lint compiled it already
    leaf.pattern = Pattern::compile(v->as_string(), error);
  }
  if (const auto* v = object.find("enum")) {
    leaf.has_enum = true;
    leaf.enumeration = v->as_array();
  }
  if (const auto* v = object.find("const")) leaf.constant = *v;
  if (const auto* v = object.find("required")) leaf.required = read_names(*v);
}

class Builder {
 public:
  explicit Builder(Program& program) : program_(program) {}

  const Node* build(const json::Value& schema, const std::string& pointer) {
    Node& node = program_.nodes.emplace_back();
    node.index = program_.nodes.size() - 1;
    node.pointer = pointer;
    node.source = &schema;
    program_.by_pointer.emplace(pointer, &node);
    if (schema.is_bool()) {
      node.leaf.never = !schema.as_bool();
    } else {
      object(node, schema.as_object(), pointer);
    }
    node.checks_leaf = asserts_anything(node.leaf);
    return &node;
  }

  void link() {
    for (const auto& [node, target] : references_)
      node->ref = program_.by_pointer.at(target);
  }

 private:
  void object(Node& node, const json::Object& schema, const std::string& pointer) {
    for (const char* name : {"definitions", "$defs"}) {
      if (const auto* v = schema.find(name)) {
        for (const json::Member& member : v->as_object()) {
          build(member.second, child(child(pointer, name), member.first));
        }
      }
    }
    if (const auto* ref = schema.find("$ref")) {
      std::string target;
      reference_pointer(ref->as_string(), target);
      references_.emplace_back(&node, target);
      return;
    }
    read_leaf(schema, node.leaf);
    annotations(node, schema);
    object_keywords(node, schema, pointer);
    array_keywords(node, schema, pointer);
    combinators(node, schema, pointer);
  }

  static void annotations(Node& node, const json::Object& schema) {
    node.secret = is_true(schema, "x-secret") || is_true(schema, "writeOnly") ||
                  node.leaf.format == Format::password;
    if (const auto* v = schema.find("default")) node.default_value = *v;
    if (const auto* v = schema.find("title")) node.title = v->as_string();
    if (const auto* v = schema.find("x-patternMessage"); v != nullptr && v->is_string()) {
      node.pattern_message = v->as_string();
    }
  }

  const Node* one(const json::Object& schema, const char* name, const std::string& pointer) {
    const json::Value* value = schema.find(name);
    return value == nullptr ? nullptr : build(*value, child(pointer, name));
  }

  std::vector<const Node*> many(const json::Object& schema, const char* name,
                                const std::string& pointer) {
    std::vector<const Node*> nodes;
    const json::Value* value = schema.find(name);
    if (value == nullptr || !value->is_array()) return nodes;
    const std::string at = child(pointer, name);
    for (std::size_t i = 0; i < value->as_array().size(); ++i) {
      nodes.push_back(build(value->as_array()[i], at + '/' + std::to_string(i)));
    }
    return nodes;
  }

  void object_keywords(Node& node, const json::Object& schema, const std::string& pointer) {
    if (const auto* v = schema.find("properties")) {
      node.has_properties_keyword = true;
      const std::string at = child(pointer, "properties");
      for (const json::Member& member : v->as_object()) {
        node.properties.push_back({member.first, build(member.second, child(at, member.first))});
      }
      for (const Property& property : node.properties)
        node.sorted_properties.push_back(&property);
      std::sort(node.sorted_properties.begin(), node.sorted_properties.end(),
                [](const Property* a, const Property* b) { return a->name < b->name; });
    }
    node.additional_properties = one(schema, "additionalProperties", pointer);
    node.property_names = one(schema, "propertyNames", pointer);
    const json::Value* dependencies = schema.find("dependencies");
    if (dependencies == nullptr) return;
    const std::string at = child(pointer, "dependencies");
    for (const json::Member& member : dependencies->as_object()) {
      Dependency dependency{member.first, {}, nullptr};
      if (member.second.is_array()) {
        dependency.required = read_names(member.second);
      } else {
        dependency.node = build(member.second, child(at, member.first));
      }
      node.dependencies.push_back(std::move(dependency));
    }
  }

  void array_keywords(Node& node, const json::Object& schema, const std::string& pointer) {
    if (const auto* items = schema.find("items")) {
      node.is_tuple = items->is_array();
      if (node.is_tuple) {
        node.tuple = many(schema, "items", pointer);
      } else {
        node.items = build(*items, child(pointer, "items"));
      }
    }
    // Built even where it has no effect, so that references to it work.
    const Node* rest = one(schema, "additionalItems", pointer);
    if (node.is_tuple) node.additional_items = rest;
    node.contains = one(schema, "contains", pointer);
  }

  void combinators(Node& node, const json::Object& schema, const std::string& pointer) {
    node.all_of = many(schema, "allOf", pointer);
    node.any_of = many(schema, "anyOf", pointer);
    node.one_of = many(schema, "oneOf", pointer);
    node.negated = one(schema, "not", pointer);
    node.if_ = one(schema, "if", pointer);
    const Node* then_branch = one(schema, "then", pointer);
    const Node* else_branch = one(schema, "else", pointer);
    if (node.if_ == nullptr) return;
    node.then_ = then_branch;
    node.else_ = else_branch;
  }

  Program& program_;
  std::vector<std::pair<Node*, std::string>> references_;
};

}  // namespace

const Node* Node::property(std::string_view name) const noexcept {
  const auto found = std::lower_bound(
      sorted_properties.begin(), sorted_properties.end(), name,
      [](const Property* property, std::string_view wanted) { return property->name < wanted; });
  return found != sorted_properties.end() && (*found)->name == name ? (*found)->node : nullptr;
}

std::vector<const Node*> member_nodes(const Node& node, std::string_view token) {
  std::string name;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    name += escape ? (token[++i] == '0' ? '~' : '/') : token[i];
  }
  if (const Node* declared = node.property(name)) return {declared};
  std::vector<const Node*> out = node.tuple;
  for (const Node* rest :
       {node.items, node.additional_items, node.contains, node.additional_properties}) {
    if (rest != nullptr) out.push_back(rest);
  }
  return out;
}

const Node& resolve(const Node& node) noexcept {
  const Node* at = &node;
  while (at->ref != nullptr)
    at = at->ref;
  return *at;
}

std::vector<const Node*> in_place_children(const Node& node) {
  if (node.ref != nullptr) return {node.ref};
  std::vector<const Node*> out;
  for (const auto* list : {&node.all_of, &node.any_of, &node.one_of}) {
    out.insert(out.end(), list->begin(), list->end());
  }
  for (const Node* one : {node.negated, node.if_, node.then_, node.else_}) {
    if (one != nullptr) out.push_back(one);
  }
  for (const Dependency& dependency : node.dependencies) {
    if (dependency.node != nullptr) out.push_back(dependency.node);
  }
  return out;
}

std::vector<const Node*> all_children(const Node& node) {
  if (node.ref != nullptr) return {node.ref};
  std::vector<const Node*> out;
  const auto add = [&out](const Node* one) {
    if (one != nullptr) out.push_back(one);
  };
  for (const Node* one : node.all_of)
    add(one);
  for (const Node* one : node.any_of)
    add(one);
  add(node.contains);
  for (const Dependency& dependency : node.dependencies)
    add(dependency.node);
  add(node.items);
  for (const Node* one : node.tuple)
    add(one);
  add(node.additional_items);
  add(node.if_);
  add(node.then_);
  add(node.else_);
  add(node.negated);
  for (const Node* one : node.one_of)
    add(one);
  for (const Property& property : node.properties)
    add(property.node);
  add(node.additional_properties);
  add(node.property_names);
  return out;
}

void build_program(Program& program, std::vector<Issue>& issues) {
  Builder builder(program);
  program.root = builder.build(program.source, "");
  builder.link();
  check_graph(program, issues);
}

}  // namespace sandforge::schema_detail

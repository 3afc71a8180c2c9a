// The compiled form of a schema: one Node per subschema, in a flat list.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decimal.hpp"
#include "formats.hpp"
#include "pattern.hpp"
#include "sandforge/schema.hpp"

namespace sandforge::schema_detail {

// Type names as bits; zero means that every type is allowed.
enum TypeBit : std::uint8_t {
  type_null = 1,
  type_boolean = 2,
  type_integer = 4,
  type_number = 8,
  type_string = 16,
  type_array = 32,
  type_object = 64,
};
std::uint8_t type_bit(std::string_view name) noexcept;  // 0 when it is no type
std::string type_names(std::uint8_t types);             // "string or null"
const char* type_of(const json::Value& value) noexcept;
bool has_type(std::uint8_t types, const json::Value& value) noexcept;

struct Node;

struct Property {
  std::string name;
  const Node* node;
};

struct Dependency {
  std::string name;
  std::vector<std::string> required;
  const Node* node = nullptr;  // either this or the names
};

// The assertions that look at one value only. They are checked by check_leaf, for the verdict and
// for the messages alike.
struct Leaf {
  std::uint8_t types = 0;
  bool never = false;  // the schema `false`
  bool unique_items = false;
  bool has_enum = false;
  Format format = Format::none;
  std::optional<json::Value> minimum, maximum, exclusive_minimum, exclusive_maximum;
  std::optional<Decimal> multiple_of;
  std::optional<std::uint64_t> min_length, max_length, min_items, max_items, min_properties,
      max_properties;
  std::shared_ptr<const Pattern> pattern;
  std::vector<json::Value> enumeration;
  std::optional<json::Value> constant;
  std::vector<std::string> required;
};

struct Node {
  std::size_t index = 0;
  std::string pointer;  // into the schema document
  const json::Value* source = nullptr;
  const Node* ref = nullptr;  // when set, nothing else counts
  Leaf leaf;
  bool checks_leaf = false;  // whether the leaf asserts anything

  std::vector<Property> properties;
  std::vector<const Property*> sorted_properties;  // by name, for look-up
  const Node* additional_properties = nullptr;
  const Node* property_names = nullptr;
  const Node* items = nullptr;
  std::vector<const Node*> tuple;
  const Node* additional_items = nullptr;
  const Node* contains = nullptr;
  std::vector<const Node*> all_of, any_of, one_of;
  const Node* negated = nullptr;
  const Node* if_ = nullptr;
  const Node* then_ = nullptr;
  const Node* else_ = nullptr;
  std::vector<Dependency> dependencies;
  bool has_properties_keyword = false;
  // A closed object whose members are checked by their leaves alone: the common settings schema.
  // It is checked in one go instead of by one constraint for each member.
  bool flat = false;
  bool is_tuple = false;

  bool secret = false;  // x-secret, writeOnly, format password; here or in what applies with it
  std::optional<json::Value> default_value;
  std::string title;
  std::string pattern_message;

  const Node* property(std::string_view name) const noexcept;
};

// Follows references; the result has none.
const Node& resolve(const Node& node) noexcept;

// What this node itself says of a member or item, by its escaped pointer token.
std::vector<const Node*> member_nodes(const Node& node, std::string_view token);

struct Program {
  SchemaProfile profile = SchemaProfile::full;
  json::Value source;
  std::deque<Node> nodes;
  std::unordered_map<std::string, const Node*> by_pointer;
  const Node* root = nullptr;
  std::size_t chain = 1;  // longest run of subschemas that apply to one value

  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
};

// Builds the nodes of a schema that passed the lint; only patterns and bounds on references can
// still fail.
void build_program(Program& program, std::vector<Issue>& issues);

// Refuses reference cycles and explosions; fills in `chain` and spreads `secret`.
void check_graph(Program& program, std::vector<Issue>& issues);

// Subschemas that apply to the same value as their parent.
std::vector<const Node*> in_place_children(const Node& node);
// All direct subschemas, in the order in which valijson's parser visits them.
std::vector<const Node*> all_children(const Node& node);

// A number that JSON Schema counts as an integer: 2 and 2.0 alike.
bool is_integral(const json::Value& value) noexcept;
// Exact order of two numbers of any kind: negative, zero or positive.
int compare_numbers(const json::Value& a, const json::Value& b) noexcept;

}  // namespace sandforge::schema_detail

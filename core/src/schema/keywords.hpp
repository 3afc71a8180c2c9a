// The allow-list: every keyword that a schema may use, where, and what its value must be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/schema.hpp"

namespace sandforge::schema_detail {

enum class Shape : std::uint8_t {
  anything,
  boolean,
  text,
  number,
  positive_number,
  count,  // a whole number from 0
  type_names,
  value_list,   // not empty, no two equal
  name_list,    // strings, no two equal
  examples,     // any array
  draft_uri,    // draft-07
  absolute_id,  // an absolute URI without a fragment
  pattern,
  format,
  reference,
  widget,
  schema,
  closed_or_schema,  // additionalProperties
  schema_or_list,    // items
  schema_list,       // not empty
  schema_map,        // names to schemas
  dependency_map,
};

// Where a subschema stands.
enum Place : std::uint8_t {
  place_root = 1,
  place_field = 2,    // a declared member, item, map value or definition
  place_partial = 4,  // a branch that adds assertions to its parent's value
};

struct Keyword {
  std::string_view name;
  Shape shape;
  std::uint8_t profiles;  // profile_bit
  std::uint8_t places;
  std::uint8_t types;  // TypeBits that it applies to; 0: all
};

std::uint8_t profile_bit(SchemaProfile profile) noexcept;
// Null when the keyword is not on the list of any profile.
const Keyword* find_keyword(std::string_view name) noexcept;
// Names that are allowed at this place, for suggestions.
std::vector<std::string> keyword_names(SchemaProfile profile, std::uint8_t place);
// What to do instead of a keyword of another draft or one that is not supported; empty if unknown.
std::string_view advice_for(std::string_view name) noexcept;

}  // namespace sandforge::schema_detail

#include "keywords.hpp"

#include <array>

#include "model.hpp"

namespace sandforge::schema_detail {
namespace {

constexpr std::uint8_t s = 1;
constexpr std::uint8_t o = 2;
constexpr std::uint8_t f = 4;
constexpr std::uint8_t everywhere = place_root | place_field | place_partial;
constexpr std::uint8_t members = place_field | place_partial;
constexpr std::uint8_t numeric = type_integer | type_number;

constexpr auto keywords = std::to_array<Keyword>({
    {"$schema", Shape::draft_uri, s | o | f, place_root, 0},
    {"$id", Shape::absolute_id, f, place_root, 0},
    {"$comment", Shape::text, s | o | f, everywhere, 0},
    {"$ref", Shape::reference, o | f, everywhere, 0},
    {"$defs", Shape::schema_map, o | f, place_root, 0},
    {"definitions", Shape::schema_map, o | f, place_root, 0},
    {"title", Shape::text, s | o | f, everywhere, 0},
    {"description", Shape::text, s | o | f, everywhere, 0},
    {"default", Shape::anything, s | o | f, members, 0},
    {"examples", Shape::examples, s | o | f, everywhere, 0},
    {"type", Shape::type_names, s | o | f, everywhere, 0},
    {"enum", Shape::value_list, s | o | f, members, 0},
    {"const", Shape::anything, o | f, members, 0},
    {"minimum", Shape::number, s | o | f, members, numeric},
    {"maximum", Shape::number, s | o | f, members, numeric},
    {"exclusiveMinimum", Shape::number, s | o | f, members, numeric},
    {"exclusiveMaximum", Shape::number, s | o | f, members, numeric},
    {"multipleOf", Shape::positive_number, s | o | f, members, numeric},
    {"minLength", Shape::count, s | o | f, members, type_string},
    {"maxLength", Shape::count, s | o | f, members, type_string},
    {"pattern", Shape::pattern, s | o | f, members, type_string},
    {"format", Shape::format, s | o | f, members, type_string},
    {"items", Shape::schema_or_list, o | f, members, type_array},
    {"additionalItems", Shape::schema, f, members, type_array},
    {"contains", Shape::schema, f, members, type_array},
    {"minItems", Shape::count, o | f, members, type_array},
    {"maxItems", Shape::count, o | f, members, type_array},
    {"uniqueItems", Shape::boolean, o | f, members, type_array},
    {"properties", Shape::schema_map, s | o | f, everywhere, type_object},
    {"required", Shape::name_list, o | f, everywhere, type_object},
    {"additionalProperties", Shape::closed_or_schema, s | o | f, everywhere, type_object},
    {"propertyNames", Shape::schema, o | f, everywhere, type_object},
    {"minProperties", Shape::count, o | f, everywhere, type_object},
    {"maxProperties", Shape::count, o | f, everywhere, type_object},
    {"dependencies", Shape::dependency_map, o | f, everywhere, type_object},
    {"allOf", Shape::schema_list, o | f, everywhere, 0},
    {"anyOf", Shape::schema_list, o | f, everywhere, 0},
    {"oneOf", Shape::schema_list, o | f, everywhere, 0},
    {"not", Shape::schema, f, members, 0},
    {"if", Shape::schema, o | f, everywhere, 0},
    {"then", Shape::schema, o | f, everywhere, 0},
    {"else", Shape::schema, o | f, everywhere, 0},
    {"readOnly", Shape::boolean, o | f, members, 0},
    {"writeOnly", Shape::boolean, o | f, members, 0},
    {"x-order", Shape::name_list, s | o | f, everywhere, type_object},
    {"x-group", Shape::text, s | o | f, members, 0},
    {"x-advanced", Shape::boolean, s | o | f, members, 0},
    {"x-widget", Shape::widget, s | o | f, members, 0},
    {"x-unit", Shape::text, s | o | f, members, 0},
    {"x-secret", Shape::boolean, s | o | f, members, 0},
    {"x-restart", Shape::boolean, s | o | f, members, 0},
    {"x-enumTitles", Shape::name_list, s | o | f, members, 0},
    {"x-patternMessage", Shape::text, s | o | f, members, type_string},
});

struct Advice {
  std::string_view name;
  std::string_view text;
};

constexpr auto advices = std::to_array<Advice>({
    {"patternProperties", "use additionalProperties with propertyNames"},
    {"dependentRequired", "from a newer draft: use dependencies"},
    {"dependentSchemas", "from a newer draft: use dependencies"},
    {"prefixItems", "from a newer draft, and tuples are not supported"},
    {"unevaluatedProperties", "from a newer draft: use additionalProperties"},
    {"unevaluatedItems", "from a newer draft"},
    {"minContains", "from a newer draft"},
    {"maxContains", "from a newer draft"},
    {"$anchor", "from a newer draft: reference definitions by #/definitions/NAME"},
    {"$dynamicRef", "from a newer draft"},
    {"$dynamicAnchor", "from a newer draft"},
    {"$recursiveRef", "from a newer draft"},
    {"$recursiveAnchor", "from a newer draft"},
    {"$vocabulary", "from a newer draft"},
    {"deprecated", "from a newer draft: say it in the description"},
    {"id", "from draft 4, and identifiers are not supported"},
    {"$id", "identifiers are not supported: reference definitions by #/definitions/NAME"},
    {"contentEncoding", "it would not be checked"},
    {"contentMediaType", "it would not be checked"},
    {"contentSchema", "it would not be checked"},
    {"extends", "from draft 3: use allOf"},
    {"disallow", "from draft 3"},
    {"divisibleBy", "from draft 3: use multipleOf"},
    {"nullable", "from OpenAPI: use a type list with \"null\""},
    {"example", "from OpenAPI: use examples"},
});

}  // namespace

std::uint8_t profile_bit(SchemaProfile profile) noexcept {
  switch (profile) {
    case SchemaProfile::settings:
      return s;
    case SchemaProfile::options:
      return o;
    case SchemaProfile::full:
      return f;
  }
  return f;
}

const Keyword* find_keyword(std::string_view name) noexcept {
  for (const Keyword& keyword : keywords) {
    if (keyword.name == name) return &keyword;
  }
  return nullptr;
}

std::vector<std::string> keyword_names(SchemaProfile profile, std::uint8_t place) {
  std::vector<std::string> names;
  for (const Keyword& keyword : keywords) {
    const bool allowed = (keyword.profiles & profile_bit(profile)) != 0;
    if (allowed && (keyword.places & place) != 0) names.emplace_back(keyword.name);
  }
  return names;
}

std::string_view advice_for(std::string_view name) noexcept {
  for (const Advice& advice : advices) {
    if (advice.name == name) return advice.text;
  }
  return {};
}

}  // namespace sandforge::schema_detail

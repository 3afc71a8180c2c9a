#include "leaf.hpp"

#include <algorithm>

namespace sandforge::schema_detail {
namespace {

std::uint32_t when(bool failed, LeafFault fault) noexcept {
  return failed ? fault : 0U;
}

std::uint32_t check_number(const Leaf& leaf, const json::Value& value) {
  std::uint32_t faults = 0;
  if (leaf.minimum) faults |= when(compare_numbers(value, *leaf.minimum) < 0, fault_minimum);
  if (leaf.maximum) faults |= when(compare_numbers(value, *leaf.maximum) > 0, fault_maximum);
  if (leaf.exclusive_minimum) {
    faults |= when(compare_numbers(value, *leaf.exclusive_minimum) <= 0, fault_exclusive_minimum);
  }
  if (leaf.exclusive_maximum) {
    faults |= when(compare_numbers(value, *leaf.exclusive_maximum) >= 0, fault_exclusive_maximum);
  }
  if (leaf.multiple_of) {
    faults |= when(!is_multiple(to_decimal(value), *leaf.multiple_of), fault_multiple_of);
  }
  return faults;
}

std::uint32_t check_string(const Leaf& leaf, std::string_view text) {
  std::uint32_t faults = 0;
  if (leaf.min_length || leaf.max_length) {
    const std::size_t length = count_characters(text);
    if (leaf.min_length) faults |= when(length < *leaf.min_length, fault_min_length);
    if (leaf.max_length) faults |= when(length > *leaf.max_length, fault_max_length);
  }
  if (leaf.pattern) faults |= when(!leaf.pattern->found_in(text), fault_pattern);
  if (leaf.format != Format::none) {
    faults |= when(!matches_format(leaf.format, text), fault_format);
  }
  return faults;
}

// Equal values have equal canonical texts. Sorting and not hashing: colliding hashes can be made.
bool has_duplicates(const json::Array& items) {
  if (items.size() < 2) return false;
  std::vector<std::string> texts;
  texts.reserve(items.size());
  for (const json::Value& item : items)
    texts.push_back(json::write_canonical(item));
  std::sort(texts.begin(), texts.end());
  return std::adjacent_find(texts.begin(), texts.end()) != texts.end();
}

std::uint32_t check_array(const Leaf& leaf, const json::Array& items) {
  std::uint32_t faults = 0;
  if (leaf.min_items) faults |= when(items.size() < *leaf.min_items, fault_min_items);
  if (leaf.max_items) faults |= when(items.size() > *leaf.max_items, fault_max_items);
  if (leaf.unique_items) faults |= when(has_duplicates(items), fault_unique_items);
  return faults;
}

std::uint32_t check_object(const Leaf& leaf, const json::Object& object) {
  std::uint32_t faults = 0;
  if (leaf.min_properties)
    faults |= when(object.size() < *leaf.min_properties, fault_min_properties);
  if (leaf.max_properties)
    faults |= when(object.size() > *leaf.max_properties, fault_max_properties);
  for (const std::string& name : leaf.required) {
    if (!object.contains(name)) return faults | fault_required;
  }
  return faults;
}

std::uint32_t check_shape(const Leaf& leaf, const json::Value& value) {
  switch (value.kind()) {
    case json::Kind::integer:
    case json::Kind::number:
      return check_number(leaf, value);
    case json::Kind::string:
      return check_string(leaf, value.as_string());
    case json::Kind::array:
      return check_array(leaf, value.as_array());
    case json::Kind::object:
      return check_object(leaf, value.as_object());
    case json::Kind::null:
    case json::Kind::boolean:
      return 0;
  }
  return 0;
}

}  // namespace

std::size_t count_characters(std::string_view utf8) noexcept {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

bool asserts_anything(const Leaf& leaf) noexcept {
  return leaf.never || leaf.types != 0 || leaf.unique_items || leaf.has_enum || leaf.constant ||
         leaf.format != Format::none || leaf.minimum || leaf.maximum || leaf.exclusive_minimum ||
         leaf.exclusive_maximum || leaf.multiple_of || leaf.min_length || leaf.max_length ||
         leaf.min_items || leaf.max_items || leaf.min_properties || leaf.max_properties ||
         leaf.pattern || !leaf.required.empty();
}

std::uint32_t check_leaf(const Leaf& leaf, const json::Value& value) {
  std::uint32_t faults = when(leaf.never, fault_never);
  if (leaf.types != 0 && !has_type(leaf.types, value)) faults |= fault_type;
  faults |= check_shape(leaf, value);
  if (leaf.has_enum) {
    const bool listed = std::any_of(leaf.enumeration.begin(), leaf.enumeration.end(),
                                    [&](const json::Value& v) { return v == value; });
    faults |= when(!listed, fault_enum);
  }
  if (leaf.constant) faults |= when(*leaf.constant != value, fault_const);
  return faults;
}

std::uint32_t check_leaf(const Leaf& leaf, std::string_view name) {
  std::uint32_t faults = when(leaf.never, fault_never);
  if (leaf.types != 0 && (leaf.types & type_string) == 0) faults |= fault_type;
  faults |= check_string(leaf, name);
  const auto is_name = [&](const json::Value& v) { return v.is_string() && v.as_string() == name; };
  if (leaf.has_enum) {
    faults |=
        when(std::none_of(leaf.enumeration.begin(), leaf.enumeration.end(), is_name), fault_enum);
  }
  if (leaf.constant) faults |= when(!is_name(*leaf.constant), fault_const);
  return faults;
}

}  // namespace sandforge::schema_detail

#include "messages.hpp"
#include "quote.hpp"

namespace sandforge::schema_detail {
namespace {

std::string range(const std::string& low, const std::string& high, const std::string& unit) {
  if (low.empty() && high.empty()) return {};
  if (low.empty()) return "at most " + high + unit;
  if (high.empty()) return "at least " + low + unit;
  return low == high ? "exactly " + low + unit : "from " + low + " to " + high + unit;
}

std::string count_range(const std::optional<std::uint64_t>& low,
                        const std::optional<std::uint64_t>& high, const char* unit) {
  return range(low ? std::to_string(*low) : "", high ? std::to_string(*high) : "", unit);
}

void append(std::string& out, const std::string& more, const char* separator) {
  if (more.empty()) return;
  if (!out.empty()) out += separator;
  out += more;
}

std::string number_bounds(const Leaf& leaf, const json::Value* multiple) {
  std::string out =
      range(leaf.minimum ? show(*leaf.minimum) : "", leaf.maximum ? show(*leaf.maximum) : "", "");
  if (leaf.exclusive_minimum) append(out, "greater than " + show(*leaf.exclusive_minimum), ", ");
  if (leaf.exclusive_maximum) append(out, "less than " + show(*leaf.exclusive_maximum), ", ");
  if (multiple != nullptr) append(out, "a multiple of " + show(*multiple), ", ");
  return out;
}

}  // namespace

std::string describe_allowed(const Node& reference) {
  const Node& node = resolve(reference);
  const Leaf& leaf = node.leaf;
  if (leaf.constant) return show(*leaf.constant);
  if (leaf.has_enum) return list_values(leaf.enumeration);
  std::string out = type_names(leaf.types);
  const json::Value* multiple = node.source->find("multipleOf");
  append(out, number_bounds(leaf, multiple), " ");
  append(out, count_range(leaf.min_length, leaf.max_length, " characters"), " of ");
  append(out, count_range(leaf.min_items, leaf.max_items, " items"), " of ");
  append(out, count_range(leaf.min_properties, leaf.max_properties, " members"), " of ");
  if (leaf.format != Format::none) append(out, format_description(leaf.format), ": ");
  return out;
}

}  // namespace sandforge::schema_detail

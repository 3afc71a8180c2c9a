#include "random.hpp"

#include <algorithm>
#include <string>

namespace sandforge::conformance {

std::int64_t limit_of(const json::Value& field, const char* keyword, std::int64_t otherwise) {
  const auto* limit = field.find(keyword);
  return limit != nullptr && limit->is_integer() ? limit->as_integer() : otherwise;
}

std::optional<json::Value> fitting(const json::Value& field, Random& random) {
  if (const auto* values = field.find("enum"); values != nullptr && !values->as_array().empty())
    return values->as_array()[static_cast<std::size_t>(
        random.between(0, static_cast<std::int64_t>(values->as_array().size()) - 1))];
  const auto* type = field.find("type");
  if (type == nullptr || !type->is_string()) return std::nullopt;
  if (type->as_string() == "boolean") return json::Value(random.coin());
  if (type->as_string() == "integer" || type->as_string() == "number") {
    if (field.find("multipleOf") != nullptr || field.find("exclusiveMinimum") != nullptr ||
        field.find("exclusiveMaximum") != nullptr)
      return std::nullopt;
    const auto low = limit_of(field, "minimum", -1000);
    const auto high = limit_of(field, "maximum", std::max<std::int64_t>(low, 0) + 1000);
    if (low > high) return std::nullopt;
    return json::Value(static_cast<long long>(random.between(low, high)));
  }
  if (type->as_string() == "string") {
    if (field.find("pattern") != nullptr || field.find("format") != nullptr) return std::nullopt;
    const auto low = limit_of(field, "minLength", 0);
    const auto high = std::min(limit_of(field, "maxLength", low + 20), low + 20);
    std::string text;
    for (auto left = random.between(low, std::max(low, high)); left > 0; --left)
      text += static_cast<char>('a' + random.between(0, 25));
    return json::Value(text);
  }
  return std::nullopt;
}

json::Value unfitting(const json::Value& field, Random& random) {
  const auto low = limit_of(field, "minimum", INT64_MIN);
  const auto high = limit_of(field, "maximum", INT64_MAX);
  const auto* type = field.find("type");
  const bool number = type != nullptr && type->is_string() &&
                      (type->as_string() == "integer" || type->as_string() == "number");
  if (number && low != INT64_MIN && random.coin())
    return static_cast<long long>(low - 1 - random.between(0, 1000));
  if (number && high != INT64_MAX && random.coin())
    return static_cast<long long>(high + 1 + random.between(0, 1000));
  return json::Array{json::Value("neither a text nor a number")};
}

json::Object fitting_document(const json::Object& fields, Random& random) {
  json::Object out;
  for (const auto& [name, field] : fields)
    if (random.coin())
      if (auto value = fitting(field, random)) out.set(name, std::move(*value));
  return out;
}

}  // namespace sandforge::conformance

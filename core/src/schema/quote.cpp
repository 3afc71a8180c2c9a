#include "quote.hpp"

#include "sandforge/support/suggest.hpp"

namespace sandforge::schema_detail {
namespace {

constexpr std::size_t shown_bytes = 60;
constexpr std::size_t shown_entries = 12;

template <class List, class Show>
std::string join(const List& list, Show show_one) {
  std::string out;
  std::size_t n = 0;
  for (const auto& entry : list) {
    if (n == shown_entries) return out + ", … (" + std::to_string(list.size()) + " in all)";
    if (n++ != 0) out += ", ";
    out += show_one(entry);
  }
  return out;
}

// Without quotes where that is readable and harmless on a terminal.
std::string bare(const std::string& text) {
  if (text.empty() || text.size() > shown_bytes) return quote(text);
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == ',' || c == 0x7F) return quote(text);
  }
  return text;
}

}  // namespace

std::string quote(std::string_view text) {
  if (text.size() <= shown_bytes) return json::write(json::Value(text));
  std::size_t cut = shown_bytes;
  while (cut != 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U)
    --cut;
  return json::write(json::Value(text.substr(0, cut))) + "…";
}

std::string show(const json::Value& value) {
  if (value.is_string()) return quote(value.as_string());
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return json::write(value);
}

std::string suggest_name(std::string_view name, const std::vector<std::string>& known) {
  const auto near = nearest_name(name, known);
  return near ? "did you mean " + quote(*near) + "?" : std::string();
}

std::string list_values(const std::vector<json::Value>& values) {
  return join(values, [](const json::Value& value) {
    return value.is_string() ? bare(value.as_string()) : show(value);
  });
}

std::string list_names(const std::vector<std::string>& names) {
  return join(names, bare);
}

}  // namespace sandforge::schema_detail

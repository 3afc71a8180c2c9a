// Every document that the JSON reader accepts must survive each writer.
// fuzz-libs: sandforge::support
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "sandforge/support/json.hpp"
#include "sandforge/support/utf8.hpp"

namespace json = sandforge::json;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// Longer than the input may be: indentation and escapes make text grow.
json::Limits roomy() {
  json::Limits limits;
  limits.bytes = std::size_t{1} << 28;
  return limits;
}

void require_same(const json::Value& value, const std::string& text) {
  const json::ParseResult again = json::parse(text, roomy());
  require(again.ok());
  require(again.value == value);
  require(sandforge::is_valid_utf8(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const json::ParseResult result = json::parse(text);
  if (!result.ok()) {
    require(result.error.offset <= size && result.error.line >= 1 && result.error.column >= 1);
    return 0;
  }
  require_same(result.value, json::write(result.value));
  require_same(result.value, json::write_pretty(result.value));
  const std::string canonical = json::write_canonical(result.value);
  require_same(result.value, canonical);
  require(json::write_canonical(json::parse(canonical, roomy()).value) == canonical);

  // Merging a value into itself takes out no more than its nulls, so the second time changes
  // nothing.
  json::Value merged = result.value;
  json::merge_patch(merged, result.value);
  json::Value twice = merged;
  json::merge_patch(twice, result.value);
  require(twice == merged);
  return 0;
}

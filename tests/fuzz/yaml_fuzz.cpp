// The YAML reader: no crash, no unbounded work, and whatever it accepts is JSON within the limits.
// fuzz-libs: sandforge::yaml
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sandforge/yaml.hpp"

namespace {

void demand(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = sandforge::parse_yaml(text);
  if (!result) {
    demand(result.error.at.line >= 1 && result.error.at.column >= 1);
    sandforge::format_diagnostic("f", text, result.error.at, result.error.message);
    return 0;
  }
  const auto again = sandforge::json::parse(sandforge::json::write(result.value));
  demand(again.ok());
  demand(again.value == result.value);
  if (!result.value.is_object()) return 0;
  for (const auto& [name, value] : result.value.as_object()) {
    const std::string pointer = '/' + sandforge::json::escape_pointer(name);
    demand(bool(result.source.key(pointer)));
    demand(bool(result.source.value(pointer)));
  }
  return 0;
}

// Plugin files to their manifest, and manifests as text: a refusal has a reason; what is good stays.
// fuzz-libs: sandforge::manifest
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "sandforge/manifest.hpp"

namespace {

using sandforge::Manifest;

void demand(bool condition) {
  if (!condition) std::abort();
}

void demand_reason(const sandforge::Error& error) {
  demand(!error.message.empty());
  demand(error.reason.substr(0, 7) == "plugin.");
}

void check_text(std::string_view text) {
  const auto manifest = sandforge::parse_manifest(text);
  if (!manifest) return demand_reason(manifest.error());
  demand(!manifest->name.empty() && !manifest->providers.empty());
  const auto written = sandforge::to_json(*manifest);
  const auto again = sandforge::parse_manifest(sandforge::json::write(written));
  demand(again.ok());
  demand(sandforge::to_json(*again) == written);
}

}  // namespace

// What begins like an ELF file is one; all else is the text of a manifest.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.substr(0, 4) !=
      "\x7f"
      "ELF") {
    check_text(bytes);
    return 0;
  }
  const auto text = sandforge::manifest_text(std::as_bytes(std::span(data, size)));
  if (text) {
    demand(text->size() <= size);
    check_text(*text);
  } else {
    demand_reason(text.error());
  }
  return 0;
}

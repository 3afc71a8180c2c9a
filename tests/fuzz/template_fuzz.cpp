// Texts of templates: what is refused has a place, what is taken has one canonical form.
// fuzz-libs: sandforge::support
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sandforge/support/json.hpp"
#include "sandforge/support/template_steps.hpp"

namespace {

using sandforge::Template;

void demand(bool condition) {
  if (!condition) std::abort();
}

void check_taken(const Template& made) {
  const std::string text = made.text();
  demand(text.size() <= 262'144);
  demand(sandforge::json::write_canonical(sandforge::json::parse(text).value) == text);
  const Template again = Template::parse(text);
  demand(again.text() == text);
  demand(again.identity() == made.identity());
  demand(made.without_family().identity() == made.identity());
  const auto steps = sandforge::template_steps(made);
  demand(steps.size() == made.operations().size());
  for (const auto& step : steps) {
    demand(step.script.find('\0') == std::string::npos);
    demand(step.title.size() <= 123);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    check_taken(Template::parse({reinterpret_cast<const char*>(data), size}));
  } catch (const sandforge::TemplateError& error) {
    demand(std::string_view(error.what()).size() > 0);
    demand(error.pointer().empty() || error.pointer().front() == '/');
    demand(to_string(error.fault()).substr(0, 9) == "template.");
  }
  return 0;
}

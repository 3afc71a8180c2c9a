#include "sandforge/support/template_error.hpp"

#include <catch2/catch.hpp>

#include <set>

using sandforge::TemplateError;
using sandforge::TemplateFault;

TEST_CASE("template errors: every fault has a name of its own") {
  std::set<std::string_view> names;
  constexpr int last = static_cast<int>(TemplateFault::missing_secret);
  for (int i = 0; i <= last; ++i) {
    const auto name = to_string(static_cast<TemplateFault>(i));
    CHECK(name.substr(0, 9) == "template.");
    names.insert(name);
  }
  CHECK(names.size() == static_cast<std::size_t>(last) + 1);
  CHECK(to_string(static_cast<TemplateFault>(200)) == "template.bad_value");
}

TEST_CASE("template errors: they say what, where and why") {
  const TemplateError error(TemplateFault::empty, "a command cannot be empty", "/operations/3", 3);
  CHECK(std::string(error.what()) == "a command cannot be empty");
  CHECK(error.fault() == TemplateFault::empty);
  CHECK(error.pointer() == "/operations/3");
  CHECK(error.operation() == std::size_t{3});
  CHECK_FALSE(TemplateError(TemplateFault::bad_url, "no URL").operation());
}

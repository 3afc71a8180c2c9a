#include "default_sandbox.hpp"

#include <catch2/catch.hpp>
#include <map>

using namespace sandforge;
using namespace sandforge::cli;

namespace {

using Variables = std::map<std::string, std::string>;

DefaultSandboxInput input(Variables variables = {}) {
  DefaultSandboxInput in;
  in.env = [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  in.installed = [](const std::string&) { return true; };
  return in;
}

const Variables kComplete = {{"MASTRA_PLATFORM_ACCESS_TOKEN", "t"},
                             {"MASTRA_PROJECT_ID", "p"},
                             {"MASTRA_ENVIRONMENT_ID", "e"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("an explicit provider wins over everything", "[cases.F10]") {
  auto in = input(with(kComplete, "NODE_ENV", "development"));
  in.explicit_provider = "docker";
  in.installed = [](const std::string&) { return false; };
  const auto chosen = choose_default_sandbox(in);
  CHECK(chosen.provider == "docker");
  CHECK(chosen.warning.empty());
}

TEST_CASE("credentials in development mean local", "[cases.F10]") {
  for (const char* name : {"NODE_ENV", "SANDFORGE_ENV"}) {
    const auto chosen = choose_default_sandbox(input(with(kComplete, name, "development")));
    CHECK(chosen.provider == "local");
    CHECK(chosen.warning.empty());
  }
  auto flag = input({{"MASTRA_PLATFORM_SECRET_KEY", "k"}});
  flag.development = true;
  CHECK(choose_default_sandbox(flag).provider == "local");
}

TEST_CASE("credentials without development mean platform", "[cases.F10]") {
  CHECK(choose_default_sandbox(input(kComplete)).provider == "platform");
  CHECK(choose_default_sandbox(input(with(kComplete, "NODE_ENV", "production"))).provider ==
        "platform");
}

TEST_CASE("credentials without the ids turn sandboxes off, and name what is missing",
          "[cases.F10]") {
  const auto chosen = choose_default_sandbox(
      input({{"MASTRA_PLATFORM_ACCESS_TOKEN", "t"}, {"MASTRA_PROJECT_ID", " "}}));
  CHECK(chosen.provider == "none");
  CHECK(chosen.warning.find("MASTRA_PROJECT_ID and MASTRA_ENVIRONMENT_ID") != std::string::npos);
}

TEST_CASE("a provider that is not installed is a warning and off", "[cases.F10]") {
  auto in = input(kComplete);
  in.installed = [](const std::string& name) { return name != "platform"; };
  const auto chosen = choose_default_sandbox(in);
  CHECK(chosen.provider == "none");
  CHECK(chosen.warning.find("'platform' is not installed") != std::string::npos);
}

TEST_CASE("nothing at all is off, without a warning", "[cases.F10]") {
  auto in = input({{"MASTRA_PLATFORM_ACCESS_TOKEN", ""}, {"NODE_ENV", "development"}});
  CHECK(choose_default_sandbox(in).provider == "none");
  in.development = true;
  const auto chosen = choose_default_sandbox(in);
  CHECK(chosen.provider == "none");
  CHECK(chosen.warning.empty());
  CHECK_FALSE(chosen.why.empty());
}

TEST_CASE("a table that is not valid is an error", "[cases.F10]") {
  for (const char* table : {"", "{", R"({"rules": []})", R"({"development": {}})"}) {
    try {
      choose_default_sandbox(input(), table);
      FAIL("no error for " << table);
    } catch (const Exception& e) {
      CHECK(e.error().reason == "cli.bad_table");
    }
  }
}

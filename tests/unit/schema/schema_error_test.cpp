// The mistakes in a document as one Error.
#include "sandforge/schema_error.hpp"

#include <catch2/catch.hpp>

using namespace sandforge;

TEST_CASE("the first mistake is the message, and all of them are details", "[messages]") {
  std::vector<Issue> issues(2);
  issues[0].pointer = "/port";
  issues[0].message = "70000 is greater than the maximum 65535";
  issues[1].pointer = "";
  issues[1].message = "nests too deeply";
  const auto error = issues_error(issues, "the options: ", "options.invalid");
  CHECK(error.code == Status::invalid);
  CHECK(error.reason == "options.invalid");
  CHECK(error.message == "the options: /port: 70000 is greater than the maximum 65535");
  const auto* all = error.details.find("issues");
  REQUIRE(all != nullptr);
  CHECK(json::write(*all) ==
        R"(["/port: 70000 is greater than the maximum 65535","(root): nests too deeply"])");
}

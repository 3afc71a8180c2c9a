#include "sandforge/ids.hpp"

#include <catch2/catch.hpp>
#include <type_traits>
#include <unordered_set>

using namespace sandforge;

TEST_CASE("identifiers of different kinds do not mix") {
  CHECK_FALSE(std::is_convertible_v<SessionId, ProviderSandboxId>);
  CHECK_FALSE(std::is_constructible_v<SessionId, ProviderSandboxId>);
  CHECK_FALSE(std::is_convertible_v<std::string, SessionId>);
  CHECK_FALSE(std::is_same_v<BuildId, TemplateId>);
}

TEST_CASE("identifiers compare and hash as their text") {
  CHECK(SessionId("a") == SessionId("a"));
  CHECK(SessionId("a") < SessionId("b"));
  CHECK(ProcessId().empty());
  CHECK(ProcessId("7").str() == "7");
  const std::unordered_set<SessionId> set = {SessionId("a"), SessionId("b"), SessionId("a")};
  CHECK(set.size() == 2);
  CHECK(set.count(SessionId("b")) == 1);
}

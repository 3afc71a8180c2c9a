#include "proxy_plan.hpp"

#include <catch2/catch.hpp>

#include "proxy_address.hpp"

using namespace sandforge;
using namespace sandforge::proxy;

TEST_CASE("Rules of the proxy are read from YAML and JSON") {
  const auto plan = parse_proxy_plan("rules.yaml",
                                     "rules:\n"
                                     "  - {nth: 2, do: cut, after: 100}\n"
                                     "  - {every: 3, do: delay, ms: 50, direction: up}\n"
                                     "  - {do: answer, status: 429, retryAfter: 7, pattern: POST}\n"
                                     "  - {do: black_hole}\n"
                                     "  - {do: refuse}\n");
  REQUIRE(plan);
  const auto& rules = plan->rules;
  REQUIRE(rules.size() == 5);
  CHECK(rules[0].fault == ProxyFault::cut);
  CHECK(rules[0].nth == 2U);
  CHECK(rules[0].after == 100);
  CHECK(rules[0].direction == Direction::down);
  CHECK(rules[1].every == 3U);
  CHECK(rules[1].delay == std::chrono::milliseconds(50));
  CHECK(rules[1].direction == Direction::up);
  CHECK(rules[2].status == 429);
  CHECK(rules[2].retry_after == 7);
  CHECK(rules[2].pattern == "POST");
  CHECK(rules[2].direction == Direction::up);
  CHECK(rules[3].direction == Direction::both);
  CHECK(rules[4].fault == ProxyFault::refuse);
  CHECK(parse_proxy_plan("r", R"({"rules": [{"do": "refuse"}]})"));
}

TEST_CASE("Rules that cannot be carried out are refused, all at once") {
  const auto plan = parse_proxy_plan("r",
                                     "rules:\n"
                                     "  - {do: delay}\n"
                                     "  - {do: answer, direction: down}\n"
                                     "  - {do: cut, status: 500, nth: 1, every: 2}\n"
                                     "  - {do: cut, after: 3, pattern: x}\n"
                                     "  - {do: refuse, after: 3}\n");
  REQUIRE_FALSE(plan);
  CHECK(plan.error().reason == "proxy.rules");
  std::vector<std::string> texts;
  for (const auto& text : plan.error().details.find("issues")->as_array())
    texts.push_back(text.as_string());
  CHECK(texts == std::vector<std::string>{
                     "/rules/0: \"delay\" needs \"ms\"", "/rules/1: \"answer\" needs \"status\"",
                     "/rules/1/direction: it looks at what the client sends",
                     "/rules/2/status: \"status\" belongs to answer",
                     "/rules/2: only one of nth and every can be given",
                     "/rules/3: only one of after and pattern can be given",
                     "/rules/4/after: give a \"pattern\" to strike later than at once"});
  const auto typo = parse_proxy_plan("r", "rules: [{do: cutt}]\n");
  REQUIRE_FALSE(typo);
  CHECK(typo.error().message.find("cutt") != std::string::npos);
  CHECK_FALSE(parse_proxy_plan("r", "rules: [\n"));
}

TEST_CASE("Addresses of the proxy are loopback unless told otherwise") {
  for (const char* text : {"tcp:127.0.0.1:0", "tcp:127.9.9.9:65535", "tcp:[::1]:80", "unix:/a/b"}) {
    const auto address = parse_proxy_address(text, false);
    INFO(text);
    REQUIRE(address);
    CHECK(to_string(*address) == text);
  }
  CHECK(parse_proxy_address("tcp:10.0.0.1:80", true));
  for (const char* text : {"tcp:10.0.0.1:80", "tcp:0.0.0.0:80", "tcp:[::]:80"}) {
    const auto refused = parse_proxy_address(text, false);
    INFO(text);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Status::forbidden);
  }
  for (const char* text : {"", "127.0.0.1:80", "tcp:80", "tcp:localhost:80",
                           "tcp:127.0.0.1:", "tcp:127.0.0.1:65536", "tcp:127.0.0.1:8x", "unix:"}) {
    const auto refused = parse_proxy_address(text, true);
    INFO(text);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Status::invalid);
  }
  CHECK_FALSE(parse_proxy_address("unix:" + std::string(108, 'x'), false));
}

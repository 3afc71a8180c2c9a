// Which addresses a list of grants opens to a plugin in a process of its own.
#include "services/http_grants.hpp"

#include <catch2/catch.hpp>

#include "plugin/abi_text.hpp"

using namespace sandforge;
using services::check_grants;
using services::HttpGrants;

namespace {

Result<void> check(const HttpGrants& grants, const std::string& url,
                   const std::string& proxy = {}) {
  sf_http_client_options options{};
  options.struct_size = sizeof(options);
  options.base_url = plugin::to_str(url);
  options.proxy_url = plugin::to_str(proxy);
  return check_grants(grants, "p", &options);
}

}  // namespace

TEST_CASE("http grants: hosts") {
  struct Case {
    std::string granted;
    std::string url;
    bool good;
  };
  const auto one = GENERATE(values<Case>({
      {"a.example", "https://a.example/x", true},
      {"a.example", "https://A.Example:8443", true},
      {"a.example", "https://b.a.example", false},
      {"a.example", "https://a.example.evil", false},
      {"a.example", "http://evil/a.example", false},
      {"a.example:443", "https://a.example", true},
      {"a.example:443", "http://a.example", false},
      {"a.example:443", "http://a.example:443", true},
      {"*.example", "https://a.example", true},
      {"*.example", "https://b.a.example", true},
      {"*.example", "https://example", false},
      {"*.example", "https://aexample", false},
      {"*.example:80", "http://a.example", true},
      {"*.example:80", "https://a.example", false},
      {"*", "http://anything:1", true},
      {"*", "http://[::1]", true},
      {"*:443", "https://anything", true},
      {"*:443", "http://anything", false},
      {"127.0.0.1", "http://127.0.0.1:1", true},
      {"127.0.0.1", "http://127.0.0.10", false},
      {"[::1]", "http://[::1]:8080", true},
      {"[::1]:80", "http://[::1]", true},
      {"[::1]:80", "http://[::1]:81", false},
      {"[::1]", "http://[::2]", false},
      {"*", "unix:///run/x", false},
  }));
  INFO(one.granted << " for " << one.url);
  const auto answer = check({{one.granted}, {}}, one.url);
  CHECK(bool(answer) == one.good);
  if (!answer) CHECK(answer.error().code == Status::unsupported);
}

TEST_CASE("http grants: unix sockets, by their path as it is written") {
  CHECK(check({{}, {"/run/x"}}, "unix:///run/x"));
  // Another spelling may lead elsewhere: /run/link/../x is beside what the link stands for.
  CHECK_FALSE(check({{}, {"/run/x"}}, "unix:///run/link/../x"));
  CHECK_FALSE(check({{}, {"/run/x"}}, "unix:///run/./x"));
  CHECK_FALSE(check({{}, {"/run/link/../x"}}, "unix:///run/x"));
  const auto other = check({{"*"}, {"/run/x"}}, "unix:///run/y");
  REQUIRE_FALSE(other);
  CHECK(other.error().reason == "grant.unix_sockets");
  CHECK(other.error().message ==
        "the plugin p may not connect to /run/y: the configuration does not grant it; what grants "
        "it is plugins: {policies: {p: {allow: {unixSockets: [\"/run/y\"]}}}}");
  CHECK_FALSE(check({{}, {"/run"}}, "unix:///run/y"));
}

TEST_CASE("http grants: a proxy needs its own, and its password is not told") {
  CHECK(check({{"a", "proxy"}, {}}, "https://a", "http://u:hidden@proxy:3128"));
  CHECK_FALSE(check({{"proxy"}, {}}, "https://a", "http://proxy:3128"));
  const auto refused = check({{"a"}, {}}, "https://a", "http://u:hidden@proxy:3128");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == "grant.hosts");
  CHECK_THAT(refused.error().message, Catch::Contains("connect to proxy:3128: "));
  CHECK_THAT(refused.error().message, !Catch::Contains("hidden"));
}

TEST_CASE("http grants: what is no address is invalid") {
  CHECK(check({{"*"}, {}}, "ftp://a").error().code == Status::invalid);
  CHECK(check({{"*"}, {}}, "http://a", "socks://b").error().code == Status::invalid);
  CHECK(check_grants({}, "p", nullptr).error().code == Status::invalid);
}

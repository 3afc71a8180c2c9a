#include "environment.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <string>

using namespace sandforge::local;

namespace {

// A host whose only service is env, over a map.
struct FakeHost {
  sf_host base;
  std::map<std::string, std::string> variables;
};

const sf_env_service kEnv = {
    sizeof(sf_env_service),
    [](sf_host* host, sf_str name, const sf_text_sink* value) noexcept -> sf_status {
      const auto& all = reinterpret_cast<FakeHost*>(host)->variables;
      const auto it = all.find(std::string(name.ptr, name.len));
      if (it == all.end()) return SF_NOT_FOUND;
      value->append(value->ctx, sf_str{it->second.data(), it->second.size()});
      return SF_OK;
    }};

const sf_host_vtbl kHost = {sizeof(sf_host_vtbl), SF_ABI_MAJOR, SF_ABI_MINOR,
                            [](sf_host*, sf_str id) noexcept -> const void* {
                              return std::string(id.ptr, id.len) == SF_SERVICE_ENV ? &kEnv
                                                                                   : nullptr;
                            }};

FakeHost make_host(std::map<std::string, std::string> variables) {
  return FakeHost{{&kHost}, std::move(variables)};
}

}  // namespace

TEST_CASE("commands inherit the documented variables and no secret") {
  auto host = make_host({{"PATH", "/p"},
                         {"HOME", "/h"},
                         {"LC_TIME", "C"},
                         {"SSL_CERT_FILE", "/c"},
                         {"AWS_SECRET_ACCESS_KEY", "x"},
                         {"HTTP_PROXY", "y"}});
  const auto env = default_environment(HostEnvironment(&host.base));
  CHECK(env ==
        Environment{{"PATH", "/p"}, {"HOME", "/h"}, {"LC_TIME", "C"}, {"SSL_CERT_FILE", "/c"}});
}

TEST_CASE("a given environment leaves PATH alone, which always exists") {
  auto host = make_host({{"HOME", "/h"}});
  const auto env = path_only(HostEnvironment(&host.base));
  REQUIRE(env.size() == 1);
  CHECK(env.at("PATH").find("/usr/bin") != std::string::npos);
}

TEST_CASE("the root comes from the option, two variables, or the home folder") {
  auto all = make_host(
      {{"HOME", "/h"}, {"MASTRACODE_LOCAL_SANDBOX_ROOT", " /m "}, {"SANDFORGE_LOCAL_ROOT", "/s"}});
  const HostEnvironment host(&all.base);
  CHECK(choose_root("/o", host).path == "/o");
  CHECK(choose_root("~/o", host).path == "/h/o");
  CHECK(choose_root(std::nullopt, host).path == "/m");
  CHECK(choose_root(std::nullopt, host).from == "MASTRACODE_LOCAL_SANDBOX_ROOT");
  CHECK(choose_root("/o", host).from == "option root");
  CHECK(choose_root("  ", host).path == "/m");
  all.variables["MASTRACODE_LOCAL_SANDBOX_ROOT"] = " ";
  CHECK(choose_root(std::nullopt, host).path == "/s");
  CHECK(choose_root(std::nullopt, host).from == "SANDFORGE_LOCAL_ROOT");
  all.variables.erase("SANDFORGE_LOCAL_ROOT");
  CHECK(choose_root(std::nullopt, host).path == "/h/.mastracode/web/sandboxes");
  all.variables.erase("HOME");
  CHECK(choose_root(std::nullopt, host).path.empty());
}

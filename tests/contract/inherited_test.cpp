// A17: what of the host's environment gets inside.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

ExecOptions with_env(EnvMap env) {
  ExecOptions options;
  options.env = std::move(env);
  return options;
}

std::set<std::string> names_of(const std::string& environment) {
  std::set<std::string> names;
  std::istringstream lines(environment);
  for (std::string line; std::getline(lines, line, '\0');)
    names.insert(line.substr(0, line.find('=')));
  return names;
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "A17 PATH stays, can be replaced, and can be unset", "[cases.A17]") {
  const auto sandbox = make();
  CHECK(sandbox->exec({"printenv", "PATH"}).out == host_env().at("PATH") + "\n");
  CHECK(sandbox->exec({"/usr/bin/printenv", "PATH"}, with_env({{"PATH", "/other"}})).out ==
        "/other\n");
  CHECK(
      sandbox->exec({"/usr/bin/env", "-0"}, with_env({{"PATH", std::nullopt}})).out.find("PATH=") ==
      std::string::npos);
}

TEST_CASE_METHOD(LocalFixture, "A17 nothing of the host's own environment gets inside",
                 "[cases.A17]") {
  const std::string secret = "host-secret-" + std::to_string(::getpid());
  REQUIRE(::setenv("SANDFORGE_TEST_SECRET", secret.c_str(), 1) == 0);
  host_env()["AWS_SECRET_ACCESS_KEY"] = secret;
  host_env()["MASTRA_PLATFORM_ACCESS_TOKEN"] = secret;
  host_env()["SSL_CERT_FILE"] = "/certificates";
  const auto sandbox = started();
  const auto inside = sandbox->exec({"env", "-0"});
  CHECK(inside.out.find(secret) == std::string::npos);
  // The allow-list, and nothing but the mark by which a tree is known.
  std::set<std::string> expected = {"PATH", "HOME", "TMPDIR", "SSL_CERT_FILE"};
  std::set<std::string> found = names_of(inside.out);
  for (const auto& name : expected)
    CHECK(found.erase(name) == 1);
  CAPTURE(inside.out);
  CHECK(found.size() <= 1);

  const auto process = sandbox->spawn(argv({"sleep", "20"}));
  for (const pid_t pid : processes())
    CHECK(read_file("/proc/" + std::to_string(pid) + "/environ").find(secret) == std::string::npos);
  process->kill();
}

TEST_CASE_METHOD(LocalFixture, "A17 a given environment replaces the inherited one, PATH stays",
                 "[cases.A17]") {
  json::Object env;
  env.set("GIVEN", "option");
  json::Object options;
  options.set("env", env);
  SandboxConfig config;
  config.id = "s";
  const auto sandbox = make(open(options), config);
  const auto inside = sandbox->exec({"env", "-0"});
  auto found = names_of(inside.out);
  CHECK(found.count("HOME") == 0);
  CHECK(found.count("PATH") == 1);
  CHECK(sandbox->exec({"printenv", "GIVEN"}).out == "option\n");
}

TEST_CASE_METHOD(LocalFixture, "A17 so does one that the session's context gives", "[cases.A17]") {
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId("s");
  context->env = [](const SessionContext&) -> std::optional<EnvMap> {
    return EnvMap{{"GIVEN", "context"}};
  };
  SandboxConfig config;
  config.context = context;
  const auto sandbox = make(config);
  const auto found = names_of(sandbox->exec({"env", "-0"}).out);
  CHECK(found.count("HOME") == 0);
  CHECK(found.count("PATH") == 1);
  CHECK(sandbox->exec({"printenv", "GIVEN"}).out == "context\n");
}

// A17 to A20: the environment and the place that a command runs in.
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

TEST_CASE_METHOD(LocalFixture, "A17 values come through exactly", "[cases.A17]") {
  const auto sandbox = make();
  const auto one = sandbox->exec({"printenv", "A", "B"}, with_env({{"A", "1"}, {"B", "2"}}));
  CHECK(one.out == "1\n2\n");
  const std::string hard = "a b & \"c\" 'd' $HOME `x` \\ \n end";
  CHECK(sandbox->exec({"printenv", "V"}, with_env({{"V", hard}})).out == hard + "\n");
  CHECK(sandbox->execute_command("printf %s \"$V\"", {}, with_env({{"V", hard}})).out == hard);
  const std::string bytes = "\xff\xfe\x80 not text";
  CHECK(sandbox->exec({"printenv", "V"}, with_env({{"V", bytes}})).out == bytes + "\n");
  CHECK(sandbox->exec({"printenv", "EMPTY"}, with_env({{"EMPTY", ""}})).out == "\n");
}

TEST_CASE_METHOD(LocalFixture, "A17 the call goes over the sandbox, for that call only",
                 "[cases.A17]") {
  SandboxConfig config;
  config.id = "s";
  config.env = EnvMap{{"A", "sandbox"}, {"C", "kept"}};
  config.overlay = {{"B", "overlay"}};
  const auto sandbox = make(config);
  const std::vector<std::string> show = {"sh", "-c", "echo ${A-unset} ${B-unset} ${C-unset}"};
  CHECK(sandbox->exec(show).out == "sandbox overlay kept\n");
  CHECK(sandbox->exec(show, with_env({{"A", "call"}, {"B", "call"}})).out == "call call kept\n");
  CHECK(sandbox->exec(show, with_env({{"A", std::nullopt}, {"B", std::nullopt}})).out ==
        "unset unset kept\n");
  CHECK(sandbox->exec(show).out == "sandbox overlay kept\n");

  sandbox->set_env([](EnvMap env) {
    env["B"] = "rotated";
    env["C"] = "rotated";
    return env;
  });
  CHECK(sandbox->exec(show).out == "sandbox rotated rotated\n");
  CHECK(sandbox->env().at("B") == "rotated");
}

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
    CHECK(read_text("/proc/" + std::to_string(pid) + "/environ").find(secret) == std::string::npos);
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

TEST_CASE_METHOD(LocalFixture, "A17 the environment function sees the session's context",
                 "[cases.A17]") {
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId("s");
  context->factory_id = "factory-1";
  context->env = [](const SessionContext& c) -> std::optional<EnvMap> {
    return EnvMap{{"TOKEN", c.factory_id == "factory-1" ? "granted" : "denied"}};
  };
  SandboxConfig config;
  config.context = context;
  const auto sandbox = make(config);
  CHECK(sandbox->exec({"printenv", "TOKEN"}).out == "granted\n");
}

TEST_CASE_METHOD(LocalFixture, "A18 planted shell profiles change nothing", "[cases.A18]") {
  for (const char* file : {".bash_profile", ".bashrc", ".profile", ".shrc"})
    std::ofstream(home() / file) << "echo planted; PATH=/nowhere; export PATH\n";
  const std::string planted = (home() / ".bashrc").string();
  host_env()["BASH_ENV"] = planted;
  host_env()["ENV"] = planted;
  const auto sandbox = started();
  const std::string path = host_env().at("PATH");
  CHECK(sandbox->exec({"printenv", "PATH"}).out == path + "\n");
  CHECK(sandbox->execute_command("echo \"$PATH\"").out == path + "\n");
  CHECK(sh(*sandbox, "echo \"$PATH\"").out == path + "\n");
  if (sh(*sandbox, "command -v bash").success)
    CHECK(sandbox->exec({"bash", "-c", "echo \"$PATH\""}).out == path + "\n");
}

TEST_CASE_METHOD(LocalFixture, "A19 the working directory, absolute and relative", "[cases.A19]") {
  const auto sandbox = started();
  CHECK(sandbox->working_directory() == folder().string());
  CHECK(sandbox->exec({"pwd"}).out == folder().string() + "\n");
  sh(*sandbox, "mkdir -p sub/deep");
  const auto in = [&](const std::string& cwd) {
    ExecOptions options;
    options.cwd = cwd;
    return sandbox->exec({"pwd", "-P"}, options).out;
  };
  CHECK(in("/tmp") == fs::canonical("/tmp").string() + "\n");
  CHECK(in("sub") == (folder() / "sub").string() + "\n");
  CHECK(in("./sub/deep") == (folder() / "sub/deep").string() + "\n");
  CHECK(in(".") == folder().string() + "\n");
  SpawnOptions options;
  options.cwd.emplace("sub");
  CHECK(sandbox->spawn(argv({"pwd", "-P"}), options)->wait().out ==
        (folder() / "sub").string() + "\n");
}

TEST_CASE_METHOD(LocalFixture, "A19 a working directory of the sandbox's own is made at start",
                 "[cases.A19]") {
  SandboxConfig config;
  config.id = "s";
  config.working_directory = (base() / "root" / "elsewhere" / "deep").string();
  const auto sandbox = make(config);
  CHECK(sandbox->start().outcome == StartOutcome::created);
  CHECK(sandbox->exec({"pwd"}).out == *config.working_directory + "\n");
  sh(*sandbox, "mkdir sub");
  ExecOptions options;
  options.cwd = "sub";
  CHECK(sandbox->exec({"pwd"}, options).out == *config.working_directory + "/sub\n");
}

TEST_CASE_METHOD(LocalFixture, "A20 a file in /tmp is there for the next command", "[cases.A20]") {
  const auto sandbox = started();
  const std::string name = "/tmp/sandforge-a20-" + std::to_string(::getpid());
  CHECK(sh(*sandbox, "echo token > " + name).success);
  CHECK(sh(*sandbox, "cat " + name + "; rm " + name).out == "token\n");
  CHECK_FALSE(fs::exists(name));
}

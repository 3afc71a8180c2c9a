// What a plugin in a process of its own gets: what the configuration grants, and nothing else.
#include <fstream>

#include "runner_fixture.hpp"

using namespace sandforge;
using test::RunnerHost;

namespace {

std::string say(Sandbox& sandbox, const std::string& command) {
  return sandbox.execute_command(command).out;
}

}  // namespace

TEST_CASE("nothing is granted by default, and the refusal names the grant", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  CHECK(say(*sandbox, "env UNRULY_GIVEN") == "(not set)");
  CHECK(say(*sandbox, "secret my-token") ==
        "error 12: the secret my-token is not granted to the plugin unruly: list it under "
        "plugins.policies.unruly.allow.secrets");
  // The host takes calls of a plugin in their order: the secret was asked for after this record.
  CHECK(host.log().find("plugins.policies.NAME.allow.env") != std::string::npos);
}

TEST_CASE("what is granted arrives, and only that", "[runner]") {
  PluginPolicy policy;
  policy.env = {"UNRULY_GIVEN", "HOME"};
  policy.secrets = {"my-token", "other"};
  RunnerHost host(policy);
  const auto sandbox = host.make();
  CHECK(say(*sandbox, "env UNRULY_GIVEN") == "value of UNRULY_GIVEN");
  CHECK(say(*sandbox, "env UNRULY_KEPT") == "(not set)");
  CHECK(say(*sandbox, "env HOME").find("error 7") == 0);  // the manifest does not name it
  CHECK(say(*sandbox, "secret my-token") == "my-token of s");
  CHECK(say(*sandbox, "secret your-token").find("error 12") == 0);
  CHECK(say(*sandbox, "secret other").find("error 2") == 0);  // granted, and there is none
}

TEST_CASE("no variable and no secret of the host is in the process's environment or command line",
          "[runner]") {
  ::setenv("SANDFORGE_TEST_SECRET", "not-for-plugins", 1);
  PluginPolicy policy;
  policy.env = {"UNRULY_GIVEN"};
  policy.secrets = {"my-token"};
  RunnerHost host(policy);
  const auto sandbox = host.make();
  CHECK(say(*sandbox, "secret my-token") == "my-token of s");
  const std::string environment = say(*sandbox, "read /proc/self/environ");
  const std::string line = say(*sandbox, "read /proc/self/cmdline");
  CHECK(environment.find("not-for-plugins") == std::string::npos);
  CHECK(environment.find("UNRULY_GIVEN") == std::string::npos);
  CHECK(environment.find("my-token") == std::string::npos);
  CHECK(line == std::string(SANDFORGE_RUNNER) + '\0');
  ::unsetenv("SANDFORGE_TEST_SECRET");
}

TEST_CASE("without the grant no file is written and no program runs, where the kernel can",
          "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make("info");
  const std::string file = (host.folder / "file").string();
  sandbox->start();
  if (host.log().find("the kernel has no Landlock") != std::string::npos) {
    WARN("SKIPPED: this kernel has no Landlock");
    return;
  }
  CHECK(say(*sandbox, "write " + file) == "refused");
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(say(*sandbox, "run true") != "0");
  CHECK(say(*sandbox, "write " + (host.folder / "data/unruly/mine").string()) == "written");
}

TEST_CASE("with the grant files are written and programs run", "[runner]") {
  PluginPolicy policy;
  policy.process = true;
  RunnerHost host(policy);
  const auto sandbox = host.make();
  CHECK(say(*sandbox, "write " + (host.folder / "file").string()) == "written");
  CHECK(say(*sandbox, "run true") == "0");
}

TEST_CASE("a process has the limits of its policy", "[runner]") {
  PluginPolicy policy;
  policy.memory_mb = 512;
  policy.open_files = 77;
  RunnerHost host(policy);
  const auto sandbox = host.make();
  const std::string limits = say(*sandbox, "read /proc/self/limits");
  const auto soft = [&](const std::string& name) {
    const auto line = limits.find(name);
    REQUIRE(line != std::string::npos);
    return std::strtoull(limits.c_str() + line + 26, nullptr, 10);
  };
  CHECK(soft("Max open files") == 77);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("SKIPPED: a sanitizer's memory has no limit");
#else
  CHECK(soft("Max data size") == 512ULL << 20);
#endif
  CHECK(soft("Max core file size") == 0);
  const std::string status = say(*sandbox, "read /proc/self/status");
  CHECK(status.find("NoNewPrivs:\t1\n") != std::string::npos);
}

// The example in coroutines, loaded by core as any plugin and used over the API for hosts.
#include <catch2/catch.hpp>
#include <fstream>

#include "sandforge/registry.hpp"
#include "sandforge/sandbox.hpp"
#include "test_paths.hpp"

using namespace sandforge;

namespace {

int threads_of_this_program() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  }
  return 0;
}

}  // namespace

TEST_CASE("a plugin of coroutines in a real host: commands, time limits, input, many at once") {
  Runtime runtime;
  ProviderRegistry registry(runtime);
  PluginSearchPath plugins;
  plugins.add(EXAMPLE_COROUTINE, "a test");
  REQUIRE(registry.scan(plugins).refused() == 0);
  const auto provider = registry.open("coroutine-cpp");
  SandboxConfig config;
  config.id = "first";
  const auto sandbox = Sandbox::create(runtime, provider, config).value();

  const auto ticked = sandbox->execute_command("tick 3 1");
  CHECK(ticked.out == "tick\ntick\ntick\n");
  CHECK(ticked.exit_code == 0);
  CHECK(sandbox->execute_command("nonsense").exit_code == 127);

  ExecOptions hurried;
  hurried.timeout = std::chrono::milliseconds(20);
  const auto late = sandbox->execute_command("tick 1 3600000", {}, hurried);
  CHECK(late.outcome == Outcome::timed_out);
  CHECK(late.exit_code == 124);

  Command cat;
  cat.argv = {"cat"};
  const auto echo = sandbox->spawn(cat);
  echo->write("to and fro");
  echo->close_stdin();
  CHECK(echo->wait().out == "to and fro");

  const int before = threads_of_this_program();
  REQUIRE(before > 0);
  Command waiting;
  waiting.argv = {"tick", "1", "3600000"};
  std::vector<std::shared_ptr<Process>> many;
  for (int i = 0; i < 200; ++i)
    many.push_back(sandbox->spawn(waiting));
  CHECK(threads_of_this_program() <= before);
  for (const auto& process : many)
    process->kill();
  for (const auto& process : many)
    CHECK(process->wait().outcome != Outcome::exited);
  sandbox->destroy();
}

// A plugin that ends its process takes nothing with it: calls end with typed errors, the next one
// finds another process, and who does it too often is not run any more.
#include <fstream>

#include "runner_fixture.hpp"

using namespace sandforge;
using test::error_of;
using test::RunnerHost;

namespace {

Error end_of(Sandbox& sandbox, const std::string& how) {
  const auto result = sandbox.execute_command("end " + how);
  REQUIRE(result.error);
  return *result.error;
}

}  // namespace

TEST_CASE("a command whose process ends tells how, with the last lines", "[runner][cases.F08]") {
  PluginPolicy policy;
  policy.memory_mb = 512;
  const auto [how, words] = GENERATE(table<std::string, std::string>({
      {"segfault", "was ended by signal 11 (SIGSEGV)"},
      {"kill", "was ended by signal 9 (SIGKILL)"},
      {"abort", "was ended by signal 6 (SIGABRT)"},
      {"exit", "exited with status 7"},
      {"_exit", "exited with status 8"},
      {"eat", "was ended by signal 6 (SIGABRT)"},
  }));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (how == "segfault" || how == "eat") {
    WARN("SKIPPED: a sanitizer ends these in its own way");
    return;
  }
#endif
  RunnerHost host(policy);
  const auto sandbox = host.make();
  sandbox->start();
  const Error error = end_of(*sandbox, how);
  CHECK(error.code == Status::crashed);
  CHECK(error.message == "plugin unruly: its process " + words);
  CHECK(error.may_have_started);
  const json::Value* lines = error.details.find("stderr");
  REQUIRE(lines != nullptr);
  CHECK(lines->as_string() == "about to " + how);

  // Another process finds the machine that runs.
  const auto next = sandbox->execute_command("hello");
  CHECK(next.out == "hello");
  CHECK(sandbox->started()->outcome == StartOutcome::connected);
  CHECK(sandbox->started()->warnings == std::vector<std::string>{"knew machine-s"});
}

TEST_CASE("what runs in other sandboxes of the plugin ends with it, sessions do not", "[runner]") {
  RunnerHost host;
  const auto provider = host.open();
  const auto one = host.make(provider, "one");
  const auto two = host.make(provider, "two");
  Command command;
  command.shell = "wait";
  command.stdin_pipe = true;
  const auto waiting = two->spawn(command);
  end_of(*one, "kill");
  const auto result = waiting->wait();
  REQUIRE(result.error);
  CHECK(result.error->code == Status::crashed);
  CHECK(two->execute_command("hello").out == "hello");
  CHECK(two->started()->outcome == StartOutcome::connected);
  CHECK(one->execute_command("hello").out == "hello");
}

TEST_CASE("a process that ends in open, create or start gives typed errors", "[runner]") {
  RunnerHost host;
  CHECK(error_of([&] { host.open("open-kill"); }).code == Status::crashed);
  CHECK(error_of([&] { host.make("create-kill")->start(); }).code == Status::crashed);
  CHECK(error_of([&] { host.make("start-kill")->start(); }).code == Status::crashed);
  CHECK(host.make()->execute_command("hello").out == "hello");
}

TEST_CASE("three restarts within five minutes, then quarantine by content", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  for (int i = 0; i < 3; ++i) {
    end_of(*sandbox, "kill");
    CHECK(sandbox->execute_command("hello").out == "hello");
  }
  // The first of them is forgotten after five minutes.
  host.clock->advance(std::chrono::minutes(5));
  for (int i = 0; i < 3; ++i) {
    end_of(*sandbox, "kill");
    CHECK(sandbox->execute_command("hello").out == "hello");
  }
  end_of(*sandbox, "kill");
  const Error refused = error_of([&] { sandbox->execute_command("hello"); });
  CHECK(refused.code == Status::unavailable);
  CHECK(refused.reason == "plugin.quarantined");
  CHECK(refused.message ==
        "plugin unruly: is in quarantine: its process was lost 4 times within 5 minutes, at last: "
        "plugin unruly: its process was ended by signal 9 (SIGKILL)");
  CHECK(host.registry->quarantined().size() == 1);

  // Another host with the same state refuses the file, wherever it lies.
  PluginLoader::Options options;
  options.runner.program = SANDFORGE_RUNNER;
  options.runner.quarantine = host.folder / "quarantine";
  options.runner.others.isolation = Isolation::process;
  options.services = std::make_shared<HostServices>();
  PluginLoader other(options);
  PluginSearchPath search;
  const auto copy = host.folder.copy(SANDFORGE_UNRULY, "copy.so");
  std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
  search.add(copy, "a test");
  const auto scan = other.scan(search);
  REQUIRE(scan.files.size() == 1);
  const auto loaded = other.load(scan.files.front());
  CHECK(loaded.plugin == nullptr);
  CHECK(loaded.attempt.stage == LoadStage::quarantined);
  CHECK(loaded.attempt.hint == "sandforge plugins doctor --clear-quarantine lets it run again");
  CHECK(other.clear_quarantine() == 1);
  CHECK(other.quarantined().empty());
}

TEST_CASE("a process that asks for more than the host can do is ended", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  sandbox->start();
  host.hold_log(true);
  const auto result = sandbox->execute_command("flood");
  host.hold_log(false);
  REQUIRE(result.error);
  CHECK(result.error->code == Status::crashed);
  CHECK(result.error->message ==
        "plugin unruly: its process was ended: it makes calls faster than they can be answered");
  CHECK(sandbox->execute_command("hello").out == "hello");
}

TEST_CASE("a process that is killed at any frame loses nothing", "[runner]") {
  test::TempDir relay;
  const auto program = relay / "relay";
  std::filesystem::create_symlink(SANDFORGE_RELAY, program);
  int frames = 0;
  for (;; ++frames) {
    REQUIRE(frames < 60);
    CAPTURE(frames);
    std::ofstream(relay / "frames") << frames;
    RunnerHost host({}, program);
    std::shared_ptr<Sandbox> sandbox;
    std::optional<Error> error;
    try {
      sandbox = host.make();
      sandbox->start();
      const auto result = sandbox->execute_command("hello");
      error = result.error;
      if (!error) sandbox->info();
    } catch (const Exception& e) {
      error = e.error();
    }
    std::filesystem::remove(relay / "frames");
    if (!error) break;  // the next command would be the one that is hit
    CHECK(error->code == Status::crashed);
    CHECK(error->message.find("was ended by signal 9 (SIGKILL)") != std::string::npos);
    // The same objects go on in another process; the machine is the one that was made, if any.
    if (!sandbox) sandbox = host.make();
    const bool made = !test::read_file(host.record()).empty();
    CHECK(sandbox->execute_command("hello").out == "hello");
    if (made) CHECK(sandbox->started()->outcome == StartOutcome::connected);
    CHECK(test::read_file(host.record()) == "machine-s\n");
  }
  CHECK(frames > 8);
}

// A plugin that ends its process takes nothing with it: calls end with typed errors, the next one
// finds another process, and who does it too often is not run any more.
#include <poll.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <future>
#include <thread>

#include "runner/greeting.hpp"
#include "runner_fixture.hpp"
#include "sandforge/abi.h"
#include "sandforge/posix/system.hpp"
#include "test_paths.hpp"

using namespace sandforge;
using test::error_of;
using test::RunnerHost;

namespace {

std::string ready_frame(const runner::Ready& ready) {
  wire::runner::Header header;
  header.kind = wire::runner::Kind::ready;
  std::string bytes;
  wire::runner::append_frame(bytes, header, runner::encode(ready));
  return bytes;
}

// A host whose runner stands behind fixtures/relay.cpp, which does what files beside it say.
struct RelayedHost {
  explicit RelayedHost(PluginPolicy policy = {}) : host(std::move(policy), program()) {}
  std::filesystem::path program() const {
    std::filesystem::create_symlink(SANDFORGE_RELAY, relay / "relay");
    return relay / "relay";
  }
  test::TempDir relay;
  RunnerHost host;
};

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

TEST_CASE("what keeps the host from starting a process is no fault of the plugin", "[runner]") {
  test::TempDir links;
  const auto program = links / "runner";
  std::filesystem::create_symlink(SANDFORGE_RUNNER, program);
  RunnerHost host({}, program);
  const auto sandbox = host.make();
  sandbox->start();
  end_of(*sandbox, "kill");
  std::filesystem::remove(program);
  for (int i = 0; i < 6; ++i) {
    const Error error = error_of([&] { sandbox->execute_command("hello"); });
    CHECK(error.reason == "plugin.no_runner");
    CHECK_THAT(error.message, Catch::Contains("No such file or directory"));
  }
  CHECK(host.registry->quarantined().empty());
  std::filesystem::create_symlink(SANDFORGE_RUNNER, program);
  CHECK(sandbox->execute_command("hello").out == "hello");

  // The program was replaced by one of another build.
  end_of(*sandbox, "kill");
  std::string bytes = ready_frame({});
  char& fingerprint = bytes[wire::runner::kHeaderSize + 8];
  fingerprint = static_cast<char>(fingerprint ^ 1);
  std::filesystem::remove(program);
  links.write("runner", "#!/bin/sh\ncat " + links.write("ready", bytes).string() +
                            " >&0\nexec cat >/dev/null\n");
  std::filesystem::permissions(program, std::filesystem::perms(0700));
  for (int i = 0; i < 6; ++i) {
    const Error error = error_of([&] { sandbox->execute_command("hello"); });
    CHECK(error.reason == "plugin.load_failed");
    CHECK_THAT(error.message, Catch::Contains("is of another version"));
  }
  CHECK(host.registry->quarantined().empty());
  std::filesystem::remove(program);
  std::filesystem::create_symlink(SANDFORGE_RUNNER, program);
  CHECK(sandbox->execute_command("hello").out == "hello");
}

TEST_CASE("descriptors that the host lacks are no fault of the plugin", "[runner]") {
#if defined(__SANITIZE_ADDRESS__)
  WARN("SKIPPED: without descriptors of their own the sanitizers take sound objects for unsound");
#else
  RunnerHost host;
  const auto sandbox = host.make();
  sandbox->start();
  end_of(*sandbox, "kill");
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit none{3, limit.rlim_max};
  for (int i = 0; i < 6; ++i) {  // for its socket, its pipe, or the start itself
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const Error error = error_of([&] { sandbox->execute_command("hello"); });
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(error.reason == "plugin.load_failed");
    CHECK_THAT(error.message, Catch::Contains("Too many open files"));
  }
  CHECK(host.registry->quarantined().empty());
  CHECK(sandbox->execute_command("hello").out == "hello");
#endif
}

TEST_CASE("quarantine names why the last process could not be used", "[runner]") {
  test::TempDir links;
  const auto program = links / "runner";
  std::filesystem::create_symlink(SANDFORGE_RUNNER, program);
  RunnerHost host({}, program);
  const auto sandbox = host.make();
  sandbox->start();
  end_of(*sandbox, "kill");
  std::filesystem::remove(program);
  std::filesystem::create_symlink("/bin/false", program);
  for (int i = 0; i < 3; ++i)
    CHECK(error_of([&] { sandbox->execute_command("hello"); }).reason == "plugin.init_failed");
  CHECK(error_of([&] { sandbox->execute_command("hello"); }).message ==
        "plugin unruly: is in quarantine: its process was lost 4 times within 5 minutes, at last: "
        "plugin unruly: could not be initialised: its process exited with status 1");
}

TEST_CASE("the children of a process neither hide its end nor outlive it", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  sandbox->start();
  const auto child = static_cast<pid_t>(std::stol(sandbox->execute_command("orphan").out));
  const posix::Fd handle = posix::open_pidfd(child);
  REQUIRE(handle);
  CHECK(end_of(*sandbox, "kill").message ==
        "plugin unruly: its process was ended by signal 9 (SIGKILL)");
  pollfd ended{handle.get(), POLLIN, 0};
  CHECK(::poll(&ended, 1, 10'000) == 1);
  CHECK(sandbox->execute_command("hello").out == "hello");
}

TEST_CASE("operations that a process has under way are counted", "[runner]") {
  PluginPolicy policy;
  policy.secrets = {"held-token", "my-token"};
  RunnerHost host(policy);
  const auto sandbox = host.make();
  CHECK(sandbox->execute_command("ask 1100").out ==
        "76 refused with " + std::to_string(SF_UNAVAILABLE));
  host.tokens->release();
  std::string out;  // their answers take a moment to be counted out
  for (int i = 0; i < 1000 && out != "my-token of s"; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    out = sandbox->execute_command("secret my-token").out;
  }
  CHECK(out == "my-token of s");
}

TEST_CASE("a call with the number of one that runs breaks the protocol", "[runner]") {
  PluginPolicy policy;
  policy.secrets = {"held-token"};
  RelayedHost relayed(policy);
  relayed.relay.write("twice", "");
  const auto sandbox = relayed.host.make();
  const auto result = sandbox->execute_command("secret held-token");
  REQUIRE(result.error);
  CHECK(result.error->code == Status::crashed);
  CHECK(result.error->message ==
        "plugin unruly: its process was ended: it sent a frame that breaks the protocol");
}

TEST_CASE("a process that was ready is no failure of the host, whatever it says of itself",
          "[runner]") {
  RelayedHost relayed;
  runner::Ready forged;
  forged.attempt.stage = LoadStage::loaded;
  forged.lacks_thread = true;
  // The second one is what the runner itself sends: it breaks the protocol.
  relayed.relay.write("ready", ready_frame(forged) + ready_frame(forged));
  std::optional<Error> last;
  for (int i = 0; i < 12 && (!last || last->reason != "plugin.quarantined"); ++i)
    last = error_of([&] { relayed.host.make()->start(); });
  CHECK(last->reason == "plugin.quarantined");
  CHECK_THAT(last->message, Catch::EndsWith("it sent a frame that breaks the protocol"));
}

TEST_CASE("a log that takes its time holds up no reader of a process", "[runner]") {
  RelayedHost relayed;
  RunnerHost& host = relayed.host;
  const auto says_hello = [&] {
    return std::async(std::launch::async, [&] { return host.make()->execute_command("hello"); });
  };
  const auto check_answer = [&](auto answer) {
    const bool in_time = answer.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    host.hold_log(false);
    CHECK(in_time);
    CHECK(answer.get().out == "hello");
  };
  host.hold_log(true);
  SECTION("what its kernel lacks") {
    runner::Ready ready;
    ready.attempt.stage = LoadStage::loaded;
    ready.hardening = "no lock on this door";
    relayed.relay.write("ready", ready_frame(ready));
    check_answer(says_hello());
  }
  SECTION("a rule that is broken") {
    relayed.relay.write("twice", "");
    check_answer(says_hello());
    CHECK(host.registry->find("unruly")->faults == 1);
  }
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
  PluginPolicy policy;
  policy.secrets = {"my-token"};
  int frames = 0;
  for (;; ++frames) {
    REQUIRE(frames < 90);
    CAPTURE(frames);
    std::ofstream(relay / "frames") << frames;
    RunnerHost host(policy, program);
    std::shared_ptr<Sandbox> sandbox;
    std::optional<Error> error;
    try {
      sandbox = host.make();
      sandbox->start();
      // The last two call back.
      for (const char* command : {"hello", "secret my-token", "keep v"})
        if (!error) error = sandbox->execute_command(command).error;
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

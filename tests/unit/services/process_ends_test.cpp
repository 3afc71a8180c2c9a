// How commands of the process service end, and their helper program.
#include <sys/stat.h>
#include <csignal>

#include "unit/services/process_fixture.hpp"

using namespace sandforge;
using namespace sandforge::test;

TEST_CASE("process service: the timeout ends the whole tree") {
  Service service;
  const std::string stray = long_sleep();
  auto parts = shell("setsid " + stray + " & " + long_sleep());
  parts.timeout_ms = 300;
  parts.grace_ms = 0;
  const auto process = service.run(parts);
  CHECK(process->exit_.outcome == SF_EXIT_TIMED_OUT);
  CHECK(process->code_ == SF_OK);
  CHECK(eventually([&] { return !runs(stray); }));
}

TEST_CASE("process service: cancel ends the whole tree, with a grace") {
  Service service;
  const std::string stray = long_sleep();
  const TempDir dir;
  auto process = service.spawn(shell("exec 2>/dev/null; trap 'echo bye; echo bye > " +
                                     (dir / "bye").string() + "; exit 5' TERM; setsid " + stray +
                                     " & echo ready; while :; do sleep 0.01; done"));
  REQUIRE(eventually([&] { return process->out() == "ready\n" && runs(stray); }));
  process->cancel();
  process->cancel();
  REQUIRE(process->wait());
  CHECK(process->exit_.outcome == SF_EXIT_CANCELLED);
  CHECK(read_file(dir / "bye") == "bye\n");
  CHECK(process->out_ == "ready\nbye\n");  // there was credit for it
  CHECK(process->end_.dropped == 0);
  CHECK(process->code_ == SF_OK);
  CHECK(eventually([&] { return !runs(stray); }));

  // At once, perhaps before it began: one end all the same.
  for (int i = 0; i < 20; ++i) {
    auto early = service.spawn(shell(long_sleep()));
    early->cancel();
    REQUIRE(early->wait());
    CHECK(early->dones_ == 1);
    CHECK((early->code_ == SF_CANCELLED || early->exit_.outcome == SF_EXIT_CANCELLED));
  }
}

TEST_CASE("process service: a group ends with all that it ran, and with nothing else") {
  Service service;
  Spawned refused(service.lane);
  CHECK(service.try_spawn(shell("true"), refused, nullptr, "box") == SF_CONFLICT);
  CHECK(service.end_group("box") == SF_OK);
  REQUIRE(service.open_group("box") == SF_OK);
  REQUIRE(service.open_group("box") == SF_OK);
  REQUIRE(service.open_group("other") == SF_OK);
  const std::string other = long_sleep(), child = long_sleep(), escaped = long_sleep();
  auto beside = service.spawn(shell(other), "other");
  auto left =
      service.spawn(shell(child + " & (setsid env -i " + escaped + " &) >/dev/null"), "box");
  REQUIRE(left->wait());
  auto running = service.spawn(
      shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done"), "box");
  REQUIRE(eventually(
      [&] { return running->out() == "ready\n" && runs(other) && runs(child) && runs(escaped); }));

  CHECK(service.end_group("box", 20'000) == SF_OK);
  CHECK_FALSE(runs(child));
  CHECK_FALSE(runs(escaped));
  REQUIRE(running->wait());
  CHECK(running->out_ == "ready\nbye\n");
  CHECK(running->exit_.code == 3);
  CHECK(runs(other));
  CHECK(service.try_spawn(shell("true"), refused, nullptr, "box") == SF_CONFLICT);

  REQUIRE(service.open_group("box") == SF_OK);
  auto again = service.spawn(shell("echo again"), "box");
  REQUIRE(again->wait());
  CHECK(again->out_ == "again\n");
  // Whoever waits no longer has ended it all the same.
  auto last = service.spawn(shell(long_sleep()), "box");
  CHECK(service.code_of([&](sf_completion done, sf_op** op) {
    const auto status =
        service.table->end_group(service.host, service.lane, str("box"), 0, done, op, nullptr);
    (*op)->vtbl->cancel(*op);
    return status;
  }) != SF_INTERNAL);
  REQUIRE(last->wait());
  // At once, perhaps before it began: one end all the same.
  for (int i = 0; i < 20; ++i) {
    REQUIRE(service.open_group("box") == SF_OK);
    auto early = service.spawn(shell(long_sleep()), "box");
    CHECK(service.end_group("box") == SF_OK);
    REQUIRE(early->wait());
    CHECK(early->dones_ == 1);
    CHECK((early->code_ != SF_OK || early->exit_.outcome == SF_EXIT_SIGNALED));
  }
  CHECK_FALSE(beside->ended());
  CHECK(service.end_group("other") == SF_OK);
  REQUIRE(beside->wait());
}

TEST_CASE("process service: signals") {
  Service service;
  auto process =
      service.spawn(shell("trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done"));
  REQUIRE(eventually([&] { return process->out() == "ready\n"; }));
  CHECK(service.signal(*process, 0, SF_SIGNAL_LEADER) == SF_INVALID);
  CHECK(service.signal(*process, SIGUSR1, 7) == SF_INVALID);
  CHECK(service.signal(*process, SIGUSR1, SF_SIGNAL_LEADER) == SF_OK);
  REQUIRE(process->wait());
  CHECK(process->exit_.code == 9);
  CHECK(service.signal(*process, SIGUSR1, SF_SIGNAL_LEADER) == SF_GONE);

  const std::string stray = long_sleep();
  auto tree = service.spawn(shell("setsid " + stray + " & echo ready; wait"));
  REQUIRE(eventually([&] { return tree->out() == "ready\n" && runs(stray); }));
  CHECK(service.signal(*tree, SIGKILL, SF_SIGNAL_TREE) == SF_OK);
  REQUIRE(tree->wait());
  CHECK(eventually([&] { return !runs(stray); }));
}

TEST_CASE("process service: the end of the Runtime leaves no process") {
  auto service = std::make_unique<Service>();
  const std::string stray = long_sleep();
  const std::string stubborn = long_sleep();
  auto process = service->spawn(
      shell("trap '' TERM; setsid " + stray + " & echo ready; " + stubborn + "; " + stubborn));
  auto silent = shell("head -c 1000000 /dev/zero; " + long_sleep());
  silent.window = 0;
  auto held = service->spawn(silent);
  REQUIRE(eventually([&] { return process->out() == "ready\n" && runs(stray) && runs(stubborn); }));
  REQUIRE(held->wait_started());
  CHECK(helpers().size() == 1);
  service->bench.reset();
  CHECK(helpers().empty());
  CHECK_FALSE(runs(stray));
  CHECK_FALSE(runs(stubborn));
  CHECK(process->dones_ == 1);
  CHECK(held->dones_ == 1);
  CHECK((process->code_ == SF_CANCELLED || process->exit_.outcome == SF_EXIT_CANCELLED));
  CHECK(process->exit_.outcome != SF_EXIT_EXITED);
  // The handles are still the plugin's.
  process->grant(1);
  process->cancel();
}

TEST_CASE("process service: a plugin's new host, while the former one's commands run") {
  Service service;
  auto process = service.spawn(shell("read x; echo $x"));
  auto parts = shell("read x; echo $x");
  parts.stdin_mode = SF_STDIN_PIPE;
  auto waits = service.spawn(parts);
  REQUIRE(waits->wait_started());
  service.bench->plugin->host.attach(nullptr);
  Spawned refused(service.lane);
  CHECK(service.try_spawn(parts, refused) == SF_UNAVAILABLE);
  std::size_t accepted = 0;
  REQUIRE(service.write(*waits, "still\n", accepted) == SF_OK);
  REQUIRE(waits->wait());
  CHECK(waits->out_ == "still\n");
  REQUIRE(process->wait());
  // Nobody will run anything more through it.
  CHECK(eventually([] { return helpers().empty(); }));
}

TEST_CASE("process service: a helper that is killed") {
  Service service;
  const std::string sleeper = long_sleep();
  auto process = service.spawn(shell("exec " + sleeper));
  auto output = shell("echo all; exec " + sleeper);
  output.window = 0;
  auto held = service.spawn(output);
  REQUIRE(process->wait_started());
  REQUIRE(held->wait_started());
  const auto pids = helpers();
  REQUIRE(pids.size() == 1);
  REQUIRE(::kill(pids[0], SIGKILL) == 0);
  for (auto* one : {process.get(), held.get()}) {
    REQUIRE(one->wait());
    CHECK(one->code_ == SF_TRANSPORT_LOST);
    CHECK(one->may_have_started_);
    CHECK(one->exit_.struct_size == 0);
    CHECK_THAT(one->details_, Catch::Contains("sandforge-guest"));
  }
  CHECK(eventually([&] { return !runs(sleeper); }));
  // The next command gets a new one, and no dead one is left.
  CHECK(service.run(shell("echo again"))->out_ == "again\n");
  CHECK(eventually([&] { return helpers().size() == 1 && helpers() != pids; }));
}

TEST_CASE("process service: helpers that are none") {
  const TempDir dir;
  struct Row {
    std::filesystem::path program;
    sf_status code;
    std::string reason;
  };
  const auto ends = dir.write("ends", "#!/bin/sh\nexit 1\n");
  const auto babbles = dir.write("babbles", "#!/bin/sh\necho hello >&0\n");
  ::chmod(ends.c_str(), 0755);
  ::chmod(babbles.c_str(), 0755);
  for (const Row& row :
       std::vector<Row>{{dir / "absent", SF_UNSUPPORTED, "process.no_helper"},
                        {dir.write("plain", "text"), SF_UNSUPPORTED, "process.no_helper"},
                        {dir.path(), SF_UNSUPPORTED, "process.no_helper"},
                        {ends, SF_INTERNAL, "process.helper_failed"},
                        {babbles, SF_INTERNAL, "process.helper_failed"}}) {
    CAPTURE(row.program);
    Service service(row.program);
    const auto process = service.run(program({"/bin/true"}));
    CHECK(process->code_ == row.code);
    CHECK_THAT(process->details_, Catch::Contains(row.reason));
    CHECK_THAT(process->details_, Catch::Contains(row.program.string()));
    CHECK_THAT(process->message_, Catch::Contains(row.program.string()));
    CHECK_FALSE(process->may_have_started_);
    CHECK(process->exit_.struct_size == 0);
    // And each try is a new one.
    CHECK(service.run(program({"/bin/true"}))->code_ == row.code);
  }
}

TEST_CASE("process service: absent without a helper program") {
  Bench named({"process"});
  CHECK(named.plugin->host.vtbl->service(&named.plugin->host, str(SF_SERVICE_PROCESS)) == nullptr);
  CHECK(named.plugin->faults.total() == 0);
}

TEST_CASE("process service: absent where the manifest is silent") {
  Bench silent;
  silent.services->guest_program = SANDFORGE_GUEST_PATH;
  CHECK(silent.plugin->host.vtbl->service(&silent.plugin->host, str(SF_SERVICE_PROCESS)) ==
        nullptr);
  CHECK(silent.plugin->faults.total() == 0);
}

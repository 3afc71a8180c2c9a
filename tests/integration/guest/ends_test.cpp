// How commands end: cases A07 and B of the conformance list.
#include <catch2/catch.hpp>
#include <csignal>

#include "harness.hpp"

using namespace guest_test;

TEST_CASE("A07 a background child does not hold up its command, and lives on until stop",
          "[cases.A07]") {
  const int variant = GENERATE(range(0, 3));
  const std::string sleeper = long_sleep();
  const std::string scripts[] = {
      sleeper + " & echo hi", "yes " + sleeper + " & echo hi",
      "(while :; do echo t; sleep .1; done) & " + sleeper + " & echo hi"};
  const std::string& script = scripts[variant];
  const std::string clock =
      "(while :; do echo >>ticks; sleep .1; done) >/dev/null 2>&1 </dev/null & ";
  TempFolder folder;
  Guest guest;
  Host& host = guest.host();
  const bool writes_without_pause = script.compare(0, 3, "yes") == 0;
  wire::SpawnRequest r = shell(clock + script);
  r.cwd = folder.path();
  // Credit never runs out, however slow this host is: all time after the exit counts.
  r.window = std::uint64_t{1} << 50;
  const Seen s = host.run(r);
  // Two seconds are some twenty ticks of a child that gets no more of the machine than the guest.
  CHECK(lines_of(contents(folder.file("ticks"))).size() < 60);
  CHECK(s.out.find("hi\n") != std::string::npos);
  CHECK(s.code() == 0);
  REQUIRE(s.end);
  CHECK(s.end->pipes_held);
  CHECK(s.end->background);
  const std::string alive = writes_without_pause ? "yes " + sleeper : sleeper;
  CHECK(runs(alive));
  host.settle(std::chrono::milliseconds(200));
  CHECK(runs(alive));
  const Seen& list = host.wait(host.client.list());
  REQUIRE(list.list);
  REQUIRE(list.list->processes.size() == 1);
  CHECK(list.list->processes[0].background);
  CHECK(list.list->processes[0].state == wire::ProcessState::ended);
  const Seen& stopped = host.wait(host.client.stop_all(wire::StopAllRequest()));
  REQUIRE(stopped.done);
  CHECK(*stopped.done >= 1);
  CHECK_FALSE(runs(alive));
  CHECK(host.run(shell("echo next")).out == "next\n");
}

TEST_CASE("A07 also while credit is withheld", "[cases.A07]") {
  const std::string sleeper = long_sleep();
  Guest guest;
  Host& host = guest.host();
  host.auto_grant = false;
  // Its own word first: what finds the pipe full waits for the credit.
  wire::SpawnRequest r = shell("echo hi; yes " + sleeper + " & exit 3");
  r.window = 1000;
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return host.of(id).exit.has_value(); }));
  host.settle(std::chrono::milliseconds(400));
  CHECK_FALSE(host.of(id).end);
  CHECK(runs("yes " + sleeper));
  host.auto_grant = true;
  host.client.grant(id, 1 << 20);
  const Seen& s = host.wait(id);
  REQUIRE(s.end);
  CHECK(s.code() == 3);
  CHECK(s.end->pipes_held);
  CHECK(runs("yes " + sleeper));
  CHECK(host.wait(host.client.kill(s.started->process, 100)).done);
  CHECK_FALSE(runs("yes " + sleeper));
}

TEST_CASE("B01 signals of a leader are told as such", "[cases.B01]") {
  Guest guest;
  const Seen a = guest.host().run(shell("kill -9 $$"));
  REQUIRE(a.exit);
  CHECK(a.exit->signal == SIGKILL);
  CHECK_FALSE(a.exit->code);
  CHECK_FALSE(a.exit->killed);
  const Seen b = guest.host().run(shell("kill -TERM $$"));
  CHECK(b.exit->signal == SIGTERM);
}

TEST_CASE("B02 a timeout keeps what was written before it", "[cases.B02]") {
  Guest guest;
  wire::SpawnRequest r = shell("printf partial; " + long_sleep());
  r.timeout_ms = 300;
  const auto begin = now_ms();
  const Seen s = guest.host().run(r);
  CHECK(now_ms() - begin >= 300);
  REQUIRE(s.exit);
  CHECK(s.exit->timed_out);
  CHECK(s.exit->killed);
  CHECK(s.exit->signal == SIGTERM);
  CHECK(s.out == "partial");
}

TEST_CASE("B03 a command that ignores SIGTERM is killed after its grace", "[cases.B03]") {
  Guest guest;
  const std::string sleeper = long_sleep();
  wire::SpawnRequest r = shell("trap '' TERM; echo on; while :; do " + sleeper + "; done");
  r.timeout_ms = 300;
  r.grace_ms = 400;
  const auto begin = now_ms();
  const Seen s = guest.host().run(r);
  CHECK(now_ms() - begin >= 700);
  REQUIRE(s.exit);
  CHECK(s.exit->timed_out);
  CHECK(s.exit->signal == SIGKILL);
  CHECK(s.out == "on\n");
  CHECK_FALSE(runs(sleeper));
}

TEST_CASE("B04 B05 a timeout ends the whole tree", "[cases.B04][cases.B05]") {
  const int variant = GENERATE(range(0, 6));
  const std::string sleeper = long_sleep();
  const std::string scripts[] = {
      "(" + sleeper + "; touch late) & wait",
      "setsid " + sleeper + " & wait",
      "(setsid " + sleeper + " &) ; sleep 400",
      "env -i setsid " + sleeper + " & wait",
      "setsid sh -c '(setsid " + sleeper + " &); sleep 401' & sleep 402",
      "trap '' TERM; (trap '' TERM; setsid " + sleeper + ") & wait; wait"};
  const std::string& script = scripts[variant];
  Guest guest;
  Host& host = guest.host();
  TempFolder folder;
  wire::SpawnRequest r = shell(script);
  r.cwd = folder.path();
  r.timeout_ms = 1000;
  r.grace_ms = 300;
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return runs(sleeper) || host.of(id).exit; }));
  const Seen& s = host.wait(id);
  REQUIRE(s.exit);
  CHECK(s.exit->timed_out);
  CHECK(eventually([&] { return !runs(sleeper); }));
  CHECK_FALSE(exists(folder.file("late")));
  CHECK(host.run(shell("true")).code() == 0);
}

TEST_CASE("B05 what left its session outlives the command, and not the stop", "[cases.B05]") {
  const int variant = GENERATE(range(0, 3));
  const std::string sleeper = long_sleep();
  const std::string scripts[] = {
      "setsid " + sleeper + " >/dev/null 2>&1 & echo hi",
      "(setsid " + sleeper + " >/dev/null 2>&1 &); echo hi",
      "env -i setsid -f " + sleeper + " >/dev/null 2>&1 </dev/null; echo hi"};
  const std::string& script = scripts[variant];
  Guest guest;
  Host& host = guest.host();
  const Seen s = host.run(shell(script));
  CHECK(s.out == "hi\n");
  REQUIRE(s.end);
  CHECK_FALSE(s.end->pipes_held);
  REQUIRE(eventually([&] { return runs(sleeper); }));
  REQUIRE(host.wait(host.client.stop_all(wire::StopAllRequest())).done);
  CHECK_FALSE(runs(sleeper));
}

TEST_CASE("B05 one command's strays are not another's", "[cases.B05]") {
  const std::string first = long_sleep(), second = long_sleep();
  Guest guest;
  Host& host = guest.host();
  const Seen a = host.run(shell("setsid " + first + " >/dev/null 2>&1 & echo"));
  const Seen b = host.run(shell("setsid " + second + " >/dev/null 2>&1 & echo"));
  REQUIRE(eventually([&] { return runs(first) && runs(second); }));
  CHECK(host.wait(host.client.kill(a.started->process, 0)).done == std::uint64_t{0});
  CHECK_FALSE(runs(first));
  CHECK(runs(second));
}

TEST_CASE("B06 kill ends leader and child, and answers whether it ran", "[cases.B06]") {
  const std::string a = long_sleep(), b = long_sleep();
  Guest guest;
  Host& host = guest.host();
  const auto id = host.spawn(shell(a + " & " + b));
  REQUIRE(host.until([&] { return runs(a) && runs(b); }));
  const Seen& killed = host.wait(host.client.kill(id, 0));
  CHECK(killed.done == std::uint64_t{1});
  CHECK_FALSE(runs(a));
  CHECK_FALSE(runs(b));
  const Seen s = host.wait(id);
  CHECK(s.exit->killed);
  CHECK(s.exit->signal == SIGKILL);
  CHECK(host.wait(host.client.kill(id, 0)).done == std::uint64_t{0});
  CHECK(host.wait(host.client.kill(s.started->process, 0)).done == std::uint64_t{0});
  const Seen& unknown = host.wait(host.client.kill(wire::ProcessId{999}, 0));
  REQUIRE(unknown.error);
  CHECK(unknown.error->code == wire::ErrorCode::not_found);
}

TEST_CASE("B06 a command that is released while its tree is being ended is ended to the last",
          "[cases.B06]") {
  const std::string child = long_sleep();
  Guest guest;
  Host& host = guest.host();
  const auto id = host.spawn(shell("(trap '' TERM; exec " + child +
                                   ") >/dev/null 2>&1 & trap 'exit 0' TERM; "
                                   "echo ready; while :; do sleep 0.01; done"));
  REQUIRE(host.until([&] { return host.of(id).out == "ready\n" && runs(child); }));
  const auto kill = host.client.kill(id, 1000);
  const Seen s = host.wait(id);
  CHECK(host.wait(host.client.release(s.started->process)).done);
  CHECK(host.wait(kill).done == std::uint64_t{1});
  CHECK_FALSE(runs(child));
  REQUIRE(host.wait(host.client.kill(s.started->process, 0)).error);
}

TEST_CASE("B06 a stopped command is ended too", "[cases.B06]") {
  Guest guest;
  Host& host = guest.host();
  const auto id = host.spawn(shell("echo ready; kill -STOP $$; " + long_sleep()));
  REQUIRE(host.until([&] { return host.of(id).out == "ready\n"; }));
  CHECK(host.wait(host.client.kill(id, 30000)).done == std::uint64_t{1});
  CHECK(host.wait(id).exit->signal == SIGTERM);
}

TEST_CASE("B07 a kill from the first output ends at once with what there was", "[cases.B07]") {
  Guest guest;
  Host& host = guest.host();
  const auto id = host.spawn(shell("echo first; " + long_sleep()));
  bool asked = false;
  host.output_hook = [&](wire::ChannelId from, std::string_view) {
    if (from == id && !std::exchange(asked, true)) host.client.kill(id, 0);
  };
  const Seen& s = host.wait(id);
  CHECK(s.out == "first\n");
  CHECK(s.exit->killed);
}

TEST_CASE("B08 timeouts of every size are defined", "[cases.B08]") {
  Guest guest;
  Host& host = guest.host();
  wire::SpawnRequest r = shell(long_sleep());
  r.timeout_ms = 1;
  CHECK(host.run(r).exit->timed_out);
  for (const std::uint64_t ms : {std::uint64_t{0}, std::uint64_t{1} << 31, ~std::uint64_t{0}}) {
    wire::SpawnRequest quick = shell("echo fine");
    quick.timeout_ms = ms;
    const Seen& s = host.run(quick);
    CHECK(s.out == "fine\n");
    CHECK_FALSE(s.exit->timed_out);
  }
}

TEST_CASE("D02 a stop that ends the guest loses no output and no end", "[cases.D02]") {
  constexpr std::size_t kSize = 5000000;
  for (int round = 0; round < 3; ++round) {
    Guest guest;
    Host& host = guest.host();
    // What it says at the end is more than its pipe and a turn of the guest hold.
    const auto id = host.spawn(
        shell("trap 'head -c 5000000 /dev/zero; exit 3' TERM; echo up; while :; do sleep .02; "
              "done"));
    // In its place: a child that is forked while the signals are sent out would wait for the grace.
    const auto quiet = host.spawn(shell("echo up; exec " + long_sleep()));
    REQUIRE(host.until([&] { return host.of(id).out == "up\n" && host.of(quiet).out == "up\n"; }));
    wire::StopAllRequest stop;
    stop.exit = true;
    stop.grace_ms = 30000;
    CHECK(host.wait(host.client.stop_all(stop)).done);
    for (const auto channel : {id, quiet}) {
      const Seen& s = host.wait(channel);
      CHECK(s.end);
      CHECK_FALSE(s.lost);
      CHECK(s.out.size() == (channel == id ? kSize + 3 : 3));
    }
    CHECK(guest.exit_code() == 0);
  }
}

TEST_CASE("B03 who loses its parent to a stop does not hold it up for the grace", "[cases.B03]") {
  const std::string sleeper = long_sleep();
  Guest guest;
  Host& host = guest.host();
  const auto id =
      host.spawn(shell("trap '" + sleeper + " & exit' TERM; echo up; while :; do sleep .02; done"));
  REQUIRE(host.until([&] { return host.of(id).out == "up\n"; }));
  wire::StopAllRequest stop;
  stop.grace_ms = 3600 * 1000;
  CHECK(host.wait(host.client.stop_all(stop)).done);
  CHECK_FALSE(runs(sleeper));
}

TEST_CASE("signals reach the leader, the group or the tree") {
  Guest guest;
  Host& host = guest.host();
  const auto id =
      host.spawn(shell("trap 'echo usr1; exit 0' USR1; echo ready; while :; do sleep .02; done"));
  REQUIRE(host.until([&] { return host.of(id).out == "ready\n"; }));
  const Seen& sent = host.wait(host.client.signal(id, SIGUSR1, wire::SignalScope::leader));
  CHECK(sent.done == std::uint64_t{1});
  const Seen& s = host.wait(id);
  CHECK(s.out == "ready\nusr1\n");
  CHECK(s.code() == 0);
  CHECK(host.wait(host.client.signal(s.started->process, SIGUSR1)).done == std::uint64_t{0});
  CHECK(host.wait(host.client.signal(s.started->process, 1000)).error);
}

TEST_CASE("a tree that forks as it dies is ended") {
  Guest guest;
  Host& host = guest.host();
  const std::string sleeper = long_sleep();
  // Each process that ends starts two others in sessions of their own, a few levels deep.
  wire::SpawnRequest r =
      shell("f() { [ $1 -gt 4 ] && exec " + sleeper +
            "; for i in 1 2; do setsid sh -c \"$BODY\" sh $(($1+1)) & done; wait; }; f 0");
  r.env.emplace_back("BODY", std::string("f() { [ $1 -gt 4 ] && exec " + sleeper +
                                         "; for i in 1 2; do setsid sh -c \"$BODY\" sh "
                                         "$(($1+1)) & done; wait; }; f $1"));
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return runs(sleeper); }));
  CHECK(host.wait(host.client.kill(id, 0)).done == std::uint64_t{1});
  CHECK_FALSE(runs(sleeper));
}

TEST_CASE("a guest with a main command ends as that does, and with what hosts have started") {
  const TempFolder folder;
  const std::string go = folder.file("go"), sleeping = long_sleep();
  Guest guest({"--own-environment", "--", "/bin/sh", "-c",
               "while [ ! -e " + go + " ]; do sleep 0.02; done; exit 7"});
  wire::SpawnRequest request = shell("echo $GUEST_TEST_GIVEN; " + sleeping);
  const auto command = guest.host().spawn(request);
  REQUIRE(guest.host().until([&] { return guest.host().of(command).out == "a value\n"; }));
  write_text(go, "");
  CHECK(guest.exit_code() == 7);
  CHECK_FALSE(runs(sleeping));
}

TEST_CASE("a main command that is not there ends the guest at once") {
  Guest guest({"--", "/no/such/program"});
  CHECK(guest.exit_code() == 127);
}

TEST_CASE("the guest's own environment is none of its commands', unless it is told") {
  Guest guest;
  CHECK(guest.host().run(shell("echo [$GUEST_TEST_GIVEN]")).out == "[]\n");
}

// The watchers of a host: they tell broken rules.
#include <sandforge/testing/consumer.hpp>

#include <catch2/catch.hpp>

using namespace sandforge::testing;

TEST_CASE("a consumer notices output beyond its credit, and after the end") {
  Consumer greedy(2);
  greedy.grant_back = false;
  const sf_stream_events of_greedy = greedy.events();
  of_greedy.on_data(of_greedy.ctx, SF_CHANNEL_DATA, 0, bytes("abc"));
  CHECK(greedy.overdrawn);
  CHECK_FALSE(greedy.rules_kept());

  Consumer late(8);
  const sf_stream_events of_late = late.events();
  of_late.done(of_late.ctx, nullptr, nullptr);
  CHECK(late.rules_kept());
  of_late.on_data(of_late.ctx, SF_CHANNEL_DATA, 0, bytes("a"));
  CHECK_FALSE(late.rules_kept());

  Consumer twice(8);
  const sf_stream_events of_twice = twice.events();
  of_twice.done(of_twice.ctx, nullptr, nullptr);
  of_twice.done(of_twice.ctx, nullptr, nullptr);
  CHECK_FALSE(twice.rules_kept());
}

TEST_CASE("events of a process out of their order are noticed") {
  const sf_exit exit{sizeof exit, SF_EXIT_EXITED, 0, 0, 0, 0, 0};
  const sf_process_started started{sizeof started, str("p"), 1};
  Running again(8);
  const sf_process_events events = again.process_events();
  events.on_started(events.ctx, &started);
  CHECK_FALSE(again.disorder);
  events.on_started(events.ctx, &started);
  CHECK(again.disorder);

  Running late(8);
  const sf_process_events of_late = late.process_events();
  of_late.on_exit(of_late.ctx, &exit);
  CHECK_FALSE(late.disorder);
  of_late.on_exit(of_late.ctx, &exit);
  CHECK(late.disorder);
}

TEST_CASE("a command line becomes the struct of the boundary") {
  CommandLine line;
  line.argv = {"ls", "-l"};
  line.env = {{"A", "1"}};
  line.timeout_ms = 5;
  const sf_command command = line.view();
  CHECK(command.shell.ptr == nullptr);
  REQUIRE(command.argc == 2);
  CHECK(text(command.argv[1]) == "-l");
  CHECK(text(command.env[0].value) == "1");
  CHECK(command.cwd.ptr == nullptr);
  CHECK(command.timeout_ms == 5);
  line.shell = "ls";
  CHECK(text(line.view().shell) == "ls");
}

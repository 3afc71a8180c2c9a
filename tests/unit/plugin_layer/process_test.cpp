// How a sandbox takes a command.
#include <sandforge/plugin/process.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "stage.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

TEST_CASE("a command is refused, dropped, or passed on") {
  Stage stage;
  testing::CommandLine line;
  testing::Running none(line.window);
  stage.it.spawn = [](Sandbox&, Spawn&) {};
  CHECK(stage.driver->spawn(line, none, stage.failure) == SF_INTERNAL);
  stage.it.spawn = [](Sandbox&, Spawn&) { throw Error(Code::gone, "no machine"); };
  CHECK(stage.driver->spawn(line, none, stage.failure) == SF_GONE);
  CHECK(stage.failure.message == "no machine");
  stage.it.spawn = [](Sandbox&, Spawn& spawn) {
    spawn.accept([](const ProcessIo&) {});
    spawn.accept([](const ProcessIo&) {});
  };
  CHECK(stage.driver->spawn(line, none, stage.failure) == SF_INTERNAL);
  CHECK(none.done == 0);

  stage.it.spawn = [](Sandbox&, Spawn& spawn) { spawn.accept([](const ProcessIo&) {}); };
  const auto dropped = stage.spawn(line);
  stage.end(*dropped);
  CHECK(dropped->failure.message == "the plugin dropped a stream without an end");

  stage.it.spawn = nullptr;
  const auto unsupported = stage.spawn(line);
  stage.end(*unsupported);
  CHECK(unsupported->failure.code == SF_UNSUPPORTED);

  stage.it.spawn = [](Sandbox&, Spawn& spawn) {
    spawn.command().cwd = "/";
    spawn.delegate();
  };
  line.shell = "echo passed on";
  const auto delegated = stage.spawn(line);
  stage.end(*delegated);
  CHECK(delegated->out == "passed on\n");
}

namespace {

// A call of spawn, as the layer makes it.
class Spawning {
 public:
  testing::Running host{100};
  sf_command command{};

  Spawning() { command.struct_size = sizeof command; }
  template <class Decide>
  void take(const Lane& lane, Decide decide) {
    const sf_stream_events io = host.events();
    const sf_process_events events = host.process_events();
    Spawn call(lane, command, &io, &events);
    sf_process* process = nullptr;
    detail::take_process(call, &process, std::chrono::milliseconds(0), [&] { decide(call); });
    host.took(process);
  }
};

}  // namespace

TEST_CASE("what accepts a command begins after the call, on the lane, and may fail there") {
  Ground ground;
  Spawning spawning;
  ground.on_lane([&] {
    spawning.take(ground.lane, [&](Spawn& spawn) {
      spawn.accept([&](const ProcessIo&) {
        CHECK(ground.lane.is_current());
        throw Error(Code::gone, "no machine");
      });
    });
    CHECK(spawning.host.done == 0);
  });
  REQUIRE(ground.wait([&] { return spawning.host.done > 0; }));
  CHECK(spawning.host.failure.message == "no machine");
  CHECK(spawning.host.started == 0);
  spawning.host.release();
}

TEST_CASE("a decision cannot be taken twice, and then nothing of the command is begun") {
  Ground ground;
  Spawning spawning;
  bool begun = false;
  const auto twice = [&](Spawn& spawn) {
    spawn.accept([&](const ProcessIo&) { begun = true; });
    spawn.delegate();
  };
  ground.on_lane([&] {
    CHECK(thrown_by([&] { spawning.take(ground.lane, twice); }) ==
          "16 a command was accepted or passed on twice");
  });
  ground.host.loop.drain();
  CHECK_FALSE(begun);
  CHECK(spawning.host.done == 0);
}

TEST_CASE("a command that was passed on goes on when the call throws afterwards") {
  Ground ground;
  Spawning spawning;
  ground.on_lane([&] {
    spawning.take(ground.lane, [&](Spawn& spawn) {
      Command other;
      other.argv = {"/bin/echo", "passed on"};
      other.cwd = "/";
      spawn.delegate(other);
      throw Error(Code::internal, "too late");
    });
  });
  REQUIRE(ground.wait([&] { return spawning.host.done > 0; }));
  CHECK(spawning.host.out == "passed on\n");
  REQUIRE(ground.host.log().size() == 1);
  CHECK(ground.host.log()[0].fields.at(1).value == "too late");
  spawning.host.release();
}

TEST_CASE("passing a command on needs the service of the host") {
  Ground ground;
  ground.host.absent = {SF_SERVICE_PROCESS};
  detail::services().fill(&ground.host);
  Spawning spawning;
  const auto passes_on = [](Spawn& spawn) { spawn.delegate(); };
  ground.on_lane(
      [&] { CHECK(code_of([&] { spawning.take(ground.lane, passes_on); }) == Code::unsupported); });
  CHECK(spawning.host.done == 0);
}

TEST_CASE("an attach says what to attach to") {
  Ground ground;
  testing::Running host(8);
  const sf_stream_events io = host.events();
  const sf_process_events events = host.process_events();
  sf_cursor from{};
  from.out = 3;
  from.err = 4;
  Attach attach(ground.lane, "p1", from, 8, &io, &events);
  CHECK(attach.id() == "p1");
  CHECK(attach.out_cursor() == 3);
  CHECK(attach.err_cursor() == 4);
  CHECK_FALSE(attach.is_delegated());
  sf_process* none = nullptr;
  CHECK(code_of([&] { attach.publish(&none, std::chrono::milliseconds(0)); }) == Code::internal);
}

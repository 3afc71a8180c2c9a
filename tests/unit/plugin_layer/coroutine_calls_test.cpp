// A plugin of coroutines under the calls of a host: one done for each call, errors with all their
// parts, credit, releases at any time.
#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/plugin/export.hpp>

#include <catch2/catch.hpp>

#include "abi/rehearsal/driver.hpp"
#include "unit/plugin_layer/coroutine_fixture.hpp"

using namespace sandforge::plugin;
using sandforge::test::Counted;
namespace fake = sandforge::fake;

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// What a test lets its sandbox do, and what it saw.
class Script {
 public:
  Task<void> (*destroy)(StopToken) = nullptr;
  Task<Exit> (*run)(Script&, ProcessIo) = nullptr;
  std::atomic<int> written{0};
  std::atomic<bool> waits{false};
  std::atomic<int> off_lane{0};
  std::string note;
  Lane lane;
  void look() {
    if (!lane.is_current()) ++off_lane;
  }
};
Script* script = nullptr;

class Scripted : public CoSandbox {
 public:
  static inline std::atomic<int> live{0};
  Scripted() { ++live; }
  ~Scripted() override {
    --live;
    if (lane() && !lane().is_current()) ++script->off_lane;
  }
  Scripted(const Scripted&) = delete;
  Scripted& operator=(const Scripted&) = delete;

  Task<Started> start(Starting& starting) override {
    script->lane = lane();
    script->look();
    co_await sleep_for(milliseconds(0));
    script->look();
    starting.identify("id-1");
    Started started(Outcome::created, "id-1", "/work");
    started.warnings.emplace_back("slow");
    co_return started;
  }
  // Refuses without being a coroutine at all.
  Task<void> stop(StopToken) override { throw Error(Code::conflict, "never"); }
  Task<void> destroy(StopToken stop) override { return script->destroy(std::move(stop)); }
  Task<Exit> run(Command, ProcessIo io) override { return script->run(*script, std::move(io)); }
};

class ScriptedFactory : public CoFactorySandbox {
 public:
  static constexpr const char* provider = "scripted";
  std::unique_ptr<SandboxBase> create(Context, Settings) override {
    return std::make_unique<Scripted>();
  }
};

// A host with one sandbox that has been started.
class Stage {
 public:
  Script it;
  fake::Host host;
  std::optional<fake::Driver> driver;
  fake::Failure failure;

  Stage() {
    script = &it;
    driver.emplace(host, detail::plugin_of<ScriptedFactory>());
    REQUIRE(driver->open("scripted", "{}", failure) == SF_OK);
    REQUIRE(driver->create(nullptr, "{}", failure) == SF_OK);
    const auto started = driver->start();
    CHECK(started.done == 1);
    CHECK(started.identity == "id-1");
    CHECK_FALSE(started.late_identity);
    CHECK(started.working_directory == "/work");
  }
  // Everything is given back, and nothing ran off the lane.
  void close() {
    driver.reset();
    it.lane = Lane();
    host.join();
    host.loop.drain();
    CHECK(it.off_lane == 0);
    CHECK(Scripted::live == 0);
    CHECK(Counted::live == 0);
    CHECK(fake::Op::live == 0);
    CHECK(fake::Lane::live == 0);
  }
  void spawn(fake::CommandLine& line, fake::Running& running) {
    REQUIRE(driver->spawn(line, running, failure) == SF_OK);
  }
};

Task<void> throws_an_error(StopToken) {
  const Counted counted;
  co_await sleep_for(milliseconds(0));
  throw Error(Code::rate_limited, "too fast")
      .detail("httpStatus", 429)
      .may_have_started(true)
      .retry_after(milliseconds(1500));
}
Task<void> throws_before_it_waits(StopToken) {
  throw std::runtime_error("not one of ours");
  co_return;
}
Task<void> throws_a_number(StopToken) {
  co_await sleep_for(milliseconds(0));
  throw 5;
}
Task<void> throws_from_below(StopToken stop) {
  const Counted counted;
  co_await throws_an_error(stop);
}

}  // namespace

TEST_CASE("what a coroutine throws reaches the host with all of its parts, once") {
  Stage stage;
  for (auto destroy : {throws_an_error, throws_from_below}) {
    stage.it.destroy = destroy;
    const auto result = stage.driver->run(&sf_sandbox_vtbl::destroy);
    CHECK(result.done == 1);
    CHECK(result.failure.code == SF_RATE_LIMITED);
    CHECK(result.failure.message == "too fast");
    CHECK(result.failure.details == R"({"httpStatus":429})");
    CHECK(result.failure.flags == SF_ERROR_MAY_HAVE_STARTED);
    CHECK(result.failure.retry_after_ms == 1500);
  }
  stage.it.destroy = throws_before_it_waits;
  CHECK(stage.driver->run(&sf_sandbox_vtbl::destroy).failure.code == SF_INTERNAL);
  CHECK(stage.driver->run(&sf_sandbox_vtbl::destroy).failure.message == "not one of ours");
  stage.it.destroy = throws_a_number;
  CHECK(stage.driver->run(&sf_sandbox_vtbl::destroy).failure.code == SF_INTERNAL);
  const auto stopped = stage.driver->run(&sf_sandbox_vtbl::stop);
  CHECK(stopped.failure.code == SF_CONFLICT);
  CHECK(stopped.done == 1);
  stage.close();
}

namespace {

// destroy with its handle, as a host that may cancel.
class Destroying {
 public:
  fake::Result result;
  sf_op* op = nullptr;
  bool inside = false;

  explicit Destroying(Stage& stage) {
    stage.driver->call([&] {
      sf_sandbox* sandbox = stage.driver->sandbox;
      CHECK(sandbox->vtbl->destroy(sandbox, fake::completion(result), &op, nullptr) == SF_OK);
      inside = result.done > 0;
    });
  }
};

Task<void> sleeps_long(StopToken) {
  const Counted counted;
  script->waits = true;
  co_await sleep_for(hours(1));
}
Task<void> ends_at_once(StopToken) {
  co_return;
}

}  // namespace

TEST_CASE("done comes once and never from inside the call, also with cancels before and after") {
  Stage stage;
  stage.it.destroy = ends_at_once;
  Destroying quick(stage);
  CHECK_FALSE(quick.inside);
  REQUIRE(stage.driver->wait([&] { return quick.result.done > 0; }));
  CHECK_FALSE(quick.result.failure);
  quick.op->vtbl->cancel(quick.op);
  stage.host.loop.drain();
  CHECK(quick.result.done == 1);
  quick.op->vtbl->release(quick.op);

  stage.it.destroy = sleeps_long;
  Destroying cancelled(stage);
  REQUIRE(stage.driver->wait([&] { return stage.it.waits.load(); }));
  std::thread([&] {
    cancelled.op->vtbl->cancel(cancelled.op);
    cancelled.op->vtbl->cancel(cancelled.op);
  }).join();
  REQUIRE(stage.driver->wait([&] { return cancelled.result.done > 0; }));
  CHECK(cancelled.result.failure.code == SF_CANCELLED);
  cancelled.op->vtbl->release(cancelled.op);
  stage.host.loop.drain();
  CHECK(cancelled.result.done == 1);

  // Cancelled before its first step, and without a handle left.
  stage.it.waits = false;
  Destroying early(stage);
  early.op->vtbl->cancel(early.op);
  early.op->vtbl->release(early.op);
  REQUIRE(stage.driver->wait([&] { return early.result.done > 0; }));
  CHECK(early.result.failure.code == SF_CANCELLED);
  stage.close();
}

TEST_CASE("a sandbox that is released while it is suspended ends its call first") {
  Stage stage;
  stage.it.destroy = sleeps_long;
  Destroying held(stage);
  REQUIRE(stage.driver->wait([&] { return stage.it.waits.load(); }));
  stage.driver->release();
  CHECK(Scripted::live == 1);
  CHECK(held.result.done == 0);
  held.op->vtbl->cancel(held.op);
  REQUIRE(stage.driver->wait([&] { return held.result.done > 0; }));
  held.op->vtbl->release(held.op);
  stage.host.loop.drain();
  CHECK(held.result.failure.code == SF_CANCELLED);
  CHECK(Scripted::live == 0);
  stage.close();
}

namespace {

Task<Exit> writes_ten(Script& it, ProcessIo io) {
  const Counted counted;
  io.started("p");
  for (int i = 0; i < 10; ++i) {
    co_await write_all(io, "0123456789", SF_CHANNEL_STDOUT);
    it.look();
    ++it.written;
  }
  co_return Exit::exited(7);
}

}  // namespace

TEST_CASE("a reader without credit holds the producer back, byte by byte") {
  Stage stage;
  stage.it.run = writes_ten;
  fake::CommandLine line;
  line.window = 0;
  fake::Running running(line.window);
  running.grant_back = false;
  stage.spawn(line, running);
  REQUIRE(stage.driver->wait([&] { return running.started > 0; }));
  stage.host.loop.drain();
  CHECK(stage.it.written == 0);
  for (std::size_t granted = 1; granted < 25; ++granted) {
    running.grant(1);
    REQUIRE(stage.driver->wait([&] { return running.out.size() == granted; }));
    stage.host.loop.drain();
    CHECK(stage.it.written == static_cast<int>(granted / 10));
  }
  std::thread([&] { running.grant(1000); }).join();
  REQUIRE(stage.driver->wait([&] { return running.done > 0; }));
  CHECK(running.out.size() == 100);
  CHECK(running.exit.code == 7);
  CHECK(running.rules_kept());
  CHECK_FALSE(running.disorder);
  CHECK(running.end.delivered == 100);
  running.release();
  stage.close();
}

namespace {

// Echoes until the end of the input, from two coroutines: one reads, two write.
Task<void> copy(ProcessIo io, std::uint32_t channel) {
  for (;;) {
    const std::optional<Piece> piece = co_await read_some(io);
    if (!piece) co_return;
    co_await write_all(io, piece->data, channel);
  }
}
Task<void> chatter(ProcessIo io) {
  for (int i = 0; i < 20; ++i)
    co_await write_all(io, "err", SF_CHANNEL_STDERR);
}
Task<Exit> echoes(Script& it, ProcessIo io) {
  const Counted counted;
  io.started("p");
  it.waits = true;
  co_await all(copy(io, SF_CHANNEL_STDOUT), chatter(io));
  it.look();
  co_return Exit::exited(0);
}
Task<Exit> waits_for_input(Script& it, ProcessIo io) {
  const Counted counted;
  io.started("p");
  it.waits = true;
  const std::optional<Piece> piece = co_await read_some(io);
  it.look();
  it.note = piece ? piece->data : "end of input";
  co_return Exit::exited(piece ? 1 : 0);
}
Task<Exit> sleeps_in_run(Script& it, ProcessIo io) {
  const Counted counted;
  io.started("p");
  it.waits = true;
  co_await sleep_for(hours(1));
  co_return Exit::exited(0);
}

}  // namespace

TEST_CASE("coroutines that read and write one stream side by side, with little credit") {
  Stage stage;
  stage.it.run = echoes;
  fake::CommandLine line;
  line.window = 2;
  line.stdin_mode = SF_STDIN_PIPE;
  fake::Running running(line.window);
  stage.spawn(line, running);
  const std::string text(500, 't');
  stage.driver->call([&] {
    std::size_t accepted = 0;
    CHECK(running.stream->vtbl->write(running.stream, fake::bytes(text), 0, &accepted, nullptr) ==
          SF_OK);
    CHECK(accepted == text.size());
    CHECK(running.stream->vtbl->shutdown_write(running.stream, nullptr) == SF_OK);
  });
  REQUIRE(stage.driver->wait([&] { return running.done > 0; }));
  CHECK(running.out == text);
  CHECK(running.err.size() == 60);
  CHECK(running.rules_kept());
  running.release();
  stage.close();
}

TEST_CASE("a cancel ends a command wherever its coroutine waits") {
  for (auto run : {writes_ten, echoes, waits_for_input, sleeps_in_run}) {
    Stage stage;
    stage.it.run = run;
    fake::CommandLine line;
    line.window = 0;
    line.stdin_mode = SF_STDIN_PIPE;
    fake::Running running(line.window);
    stage.spawn(line, running);
    REQUIRE(stage.driver->wait([&] { return running.started > 0; }));
    stage.host.loop.drain();
    running.stream->vtbl->cancel(running.stream);
    REQUIRE(stage.driver->wait([&] { return running.done > 0; }));
    CHECK(running.exit.outcome == SF_EXIT_CANCELLED);
    CHECK(running.exited == 1);
    stage.host.loop.drain();
    CHECK(running.rules_kept());
    running.release();
    stage.close();
  }
}

TEST_CASE("a time limit ends a command as timed out") {
  for (auto run : {writes_ten, waits_for_input, sleeps_in_run}) {
    Stage stage;
    stage.it.run = run;
    fake::CommandLine line;
    line.window = 0;
    line.timeout_ms = 1;
    line.stdin_mode = SF_STDIN_PIPE;
    fake::Running running(line.window);
    stage.spawn(line, running);
    REQUIRE(stage.driver->wait([&] { return running.done > 0; }));
    CHECK(running.exit.outcome == SF_EXIT_TIMED_OUT);
    CHECK_FALSE(running.failure);
    running.release();
    stage.close();
  }
}

TEST_CASE("a process whose handle is dropped goes on to its end and leaves nothing") {
  Stage stage;
  fake::CommandLine line;
  line.window = 15;
  line.stdin_mode = SF_STDIN_PIPE;
  stage.it.run = writes_ten;
  fake::Running writer(line.window);
  writer.grant_back = false;
  stage.spawn(line, writer);
  REQUIRE(stage.driver->wait([&] { return stage.it.written == 1; }));
  writer.release();
  REQUIRE(stage.driver->wait([&] { return writer.done > 0; }));
  CHECK(writer.out.size() == 15);
  CHECK(writer.end.dropped == 85);
  CHECK(writer.exit.code == 7);

  // Nobody can write to it any more: that is the end of its input.
  stage.it.run = waits_for_input;
  fake::Running reader(line.window);
  stage.spawn(line, reader);
  REQUIRE(stage.driver->wait([&] { return stage.it.waits.load(); }));
  reader.release();
  REQUIRE(stage.driver->wait([&] { return reader.done > 0; }));
  CHECK(stage.it.note == "end of input");
  CHECK(reader.exit.code == 0);
  stage.close();
}

namespace {

Task<void> waits_until_the_end(Script& it, ProcessIo io) {
  const std::optional<Piece> piece = co_await read_some(io);
  it.note = piece ? "input" : "the end";
}
Task<void> finishes(ProcessIo io) {
  co_await sleep_for(milliseconds(0));
  io.finish(Exit::exited(4));
}
Task<Exit> ends_its_stream_itself(Script& it, ProcessIo io) {
  const Counted counted;
  co_await all(waits_until_the_end(it, io), finishes(io));
  co_return Exit::exited(1);
}

}  // namespace

TEST_CASE("a stream that one coroutine has ended wakes the others, and ends once") {
  Stage stage;
  stage.it.run = ends_its_stream_itself;
  fake::CommandLine line;
  line.stdin_mode = SF_STDIN_PIPE;
  fake::Running running(line.window);
  stage.spawn(line, running);
  REQUIRE(stage.driver->wait([&] { return running.done > 0; }));
  REQUIRE(stage.driver->wait([&] { return Counted::live == 0; }));
  CHECK(stage.it.note == "the end");
  CHECK(running.exit.code == 4);
  stage.host.loop.drain();
  CHECK(running.done == 1);
  CHECK(running.exited == 1);
  running.release();
  stage.close();
}

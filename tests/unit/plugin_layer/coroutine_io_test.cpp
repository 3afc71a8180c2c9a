// Commands of a plugin of coroutines: credit, input, cancels, time limits, handles that are
// dropped.
#include <sandforge/plugin/coroutine.hpp>

#include <catch2/catch.hpp>

#include "unit/plugin_layer/coroutine_stage.hpp"

using namespace sandforge::plugin;
using namespace sandforge::test;
namespace testing = sandforge::testing;

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

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
  CoStage stage;
  stage.it.run = writes_ten;
  testing::CommandLine line;
  line.window = 0;
  testing::Running running(line.window);
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
  CoStage stage;
  stage.it.run = echoes;
  testing::CommandLine line;
  line.window = 2;
  line.stdin_mode = SF_STDIN_PIPE;
  testing::Running running(line.window);
  stage.spawn(line, running);
  const std::string text(500, 't');
  stage.driver->call([&] {
    std::size_t accepted = 0;
    CHECK(running.stream->vtbl->write(running.stream, testing::bytes(text), 0, &accepted,
                                      nullptr) == SF_OK);
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
    CoStage stage;
    stage.it.run = run;
    testing::CommandLine line;
    line.window = 0;
    line.stdin_mode = SF_STDIN_PIPE;
    testing::Running running(line.window);
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
    CoStage stage;
    stage.it.run = run;
    testing::CommandLine line;
    line.window = 0;
    line.timeout_ms = 1;
    line.stdin_mode = SF_STDIN_PIPE;
    testing::Running running(line.window);
    stage.spawn(line, running);
    REQUIRE(stage.driver->wait([&] { return running.done > 0; }));
    CHECK(running.exit.outcome == SF_EXIT_TIMED_OUT);
    CHECK_FALSE(running.failure);
    running.release();
    stage.close();
  }
}

TEST_CASE("a process whose handle is dropped goes on to its end and leaves nothing") {
  CoStage stage;
  testing::CommandLine line;
  line.window = 15;
  line.stdin_mode = SF_STDIN_PIPE;
  stage.it.run = writes_ten;
  testing::Running writer(line.window);
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
  testing::Running reader(line.window);
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
  CoStage stage;
  stage.it.run = ends_its_stream_itself;
  testing::CommandLine line;
  line.stdin_mode = SF_STDIN_PIPE;
  testing::Running running(line.window);
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

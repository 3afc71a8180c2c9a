// Streams that a plugin gives to the host: credit, input, the end.
#include <sandforge/plugin/io.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "stage.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

TEST_CASE("a blocking command writes under credit, reads its input, and ends once") {
  Stage stage;
  std::atomic<std::size_t> taken{0};
  std::atomic<bool> went_on{false};
  stage.it.run = [&](Sandbox&, ProcessIo io) {
    io.started("p", 5);
    io.out("0123456789");
    io.out("0123456789");
    taken = io.try_write("0123456789", SF_CHANNEL_STDOUT);
    io.out("56789");
    went_on = true;
    std::string input;
    while (const std::optional<Piece> piece = io.read())
      input += piece->data;
    io.err(input);
    return Exit::exited(static_cast<std::int32_t>(input.size()));
  };
  testing::CommandLine line;
  line.window = 25;
  line.stdin_mode = SF_STDIN_PIPE;
  const auto running = stage.spawn(line, false);
  REQUIRE(stage.driver->wait([&] { return taken > 0; }));
  CHECK(taken == 5);
  CHECK_FALSE(went_on);
  running->grant(1000);
  stage.driver->call([&] {
    std::size_t accepted = 0;
    sf_stream* io = running->stream;
    CHECK(io->vtbl->write(io, testing::bytes("abc"), 0, &accepted, nullptr) == SF_OK);
    CHECK(io->vtbl->shutdown_write(io, nullptr) == SF_OK);
    CHECK(io->vtbl->write(io, testing::bytes("x"), 0, &accepted, nullptr) == SF_CONFLICT);
  });
  stage.end(*running);
  CHECK(running->out.size() == 30);
  CHECK(running->err == "abc");
  CHECK(running->pid == 5);
  CHECK(running->exit.code == 3);
}

TEST_CASE("input beyond the limit is taken in parts, as the command reads") {
  Stage stage;
  std::atomic<bool> may_read{false};
  stage.it.run = [&](Sandbox&, ProcessIo io) {
    io.started("p");
    stage.it.began = true;
    while (!may_read)
      std::this_thread::yield();
    std::size_t all = 0;
    while (const std::optional<Piece> piece = io.read())
      all += piece->data.size();
    return Exit::exited(static_cast<std::int32_t>(all / 1024));
  };
  testing::CommandLine line;
  line.stdin_mode = SF_STDIN_PIPE;
  const auto running = stage.spawn(line);
  REQUIRE(stage.driver->wait([&] { return stage.it.began.load(); }));
  const std::string text(100 * 1024, 'i');
  std::size_t accepted = 0;
  const auto write = [&](std::size_t from) {
    stage.driver->call([&] {
      sf_stream* io = running->stream;
      CHECK(io->vtbl->write(io, testing::bytes(std::string_view(text).substr(from)), 0, &accepted,
                            nullptr) == SF_OK);
    });
  };
  write(0);
  CHECK(accepted == 64 * 1024);
  may_read = true;
  REQUIRE(stage.driver->wait([&] { return running->writable > 0; }));
  write(accepted);
  CHECK(accepted == 36 * 1024);
  stage.driver->call([&] { running->stream->vtbl->shutdown_write(running->stream, nullptr); });
  stage.end(*running);
  CHECK(running->exit.code == 100);
}

TEST_CASE("a command that waits for input of a dropped handle reads the end of it") {
  Stage stage;
  stage.it.run = [&](Sandbox&, ProcessIo io) {
    io.started("p");
    stage.it.began = true;
    return Exit::exited(io.read() ? 1 : 0);
  };
  testing::CommandLine line;
  line.stdin_mode = SF_STDIN_PIPE;
  const auto running = stage.spawn(line);
  REQUIRE(stage.driver->wait([&] { return stage.it.began.load(); }));
  running->release();
  stage.end(*running);
  CHECK(running->exit.code == 0);
}

namespace {

// A process of a host that has taken its handle; the test drops it.
class Taken {
 public:
  Ground ground;
  testing::Running host;
  detail::Channel* channel = nullptr;

  explicit Taken(std::uint64_t window) : host(window) {
    const sf_stream_events events = host.events();
    const sf_process_events process = host.process_events();
    channel = new detail::Channel(ground.lane, events, &process, window);
    host.took(channel->process());
  }
};

}  // namespace

TEST_CASE("copies of a stream share it, and it fails when the last one goes without an end") {
  Taken taken(10);
  {
    const Io io(taken.channel);
    {
      const Io copy = io;
      CHECK(copy.try_write("abc") == 3);
    }
    CHECK(taken.host.done == 0);
  }
  CHECK(taken.host.done == 1);
  CHECK(taken.host.failure.message == "the plugin dropped a stream without an end");
  taken.host.release();
}

TEST_CASE("calls that wait are refused on the lane, the others are not") {
  Taken taken(2);
  {
    const ProcessIo io(taken.channel);
    taken.ground.on_lane([&] {
      CHECK(code_of([&] { io.out("x"); }) == Code::internal);
      CHECK(code_of([&] { io.read(); }) == Code::internal);
      CHECK(io.try_write("xy", SF_CHANNEL_STDERR) == 2);
      CHECK_FALSE(io.try_read());
      CHECK_FALSE(io.input_at_end());
    });
    io.finish(Exit::exited(6));
    io.fail(Error(Code::internal, "too late"));
  }
  CHECK(taken.host.done == 1);
  CHECK_FALSE(taken.host.failure);
  CHECK(taken.host.err == "xy");
  CHECK(taken.host.exit.code == 6);
  taken.host.release();
}

namespace {

// How a process is told to have ended, after a stop for this reason, by what run returned or threw.
std::string settled(StopReason why, const Exit* exit, bool has_started = true) {
  Taken taken(0);
  const ProcessIo io(taken.channel);
  if (has_started) io.started("p");
  if (why == StopReason::cancelled) taken.host.stream->vtbl->cancel(taken.host.stream);
  if (why == StopReason::timed_out) {
    taken.ground.on_lane([&] { taken.channel->limit_time(std::chrono::milliseconds(0)); });
    REQUIRE(taken.ground.wait([&] { return io.stop_reason() != StopReason::none; }));
  }
  io.settle(exit == nullptr ? std::make_exception_ptr(Error(Code::gone, "gone")) : nullptr, exit);
  taken.host.release();
  const std::string end = taken.host.failure ? std::to_string(taken.host.failure.code) : "ok";
  return (taken.host.exited > 0 ? std::to_string(taken.host.exit.outcome) : "-") + " " + end;
}

}  // namespace

TEST_CASE("how run ended becomes how the process ended") {
  const Exit exited = Exit::exited(0);
  const Exit signaled = Exit::signaled(9);
  const auto told = [](std::uint32_t outcome) { return std::to_string(outcome) + " ok"; };
  const std::string gone = std::to_string(SF_GONE);
  CHECK(settled(StopReason::none, &exited) == told(SF_EXIT_EXITED));
  CHECK(settled(StopReason::none, &signaled) == told(SF_EXIT_SIGNALED));
  CHECK(settled(StopReason::cancelled, &exited) == told(SF_EXIT_EXITED));
  CHECK(settled(StopReason::cancelled, &signaled) == told(SF_EXIT_CANCELLED));
  CHECK(settled(StopReason::timed_out, &exited) == told(SF_EXIT_TIMED_OUT));
  CHECK(settled(StopReason::timed_out, nullptr) == told(SF_EXIT_TIMED_OUT));
  CHECK(settled(StopReason::none, nullptr) == "- " + gone);
  CHECK(settled(StopReason::timed_out, nullptr, false) == "- " + gone);
  CHECK(settled(StopReason::cancelled, nullptr) == std::to_string(SF_EXIT_CANCELLED) + " " + gone);
}

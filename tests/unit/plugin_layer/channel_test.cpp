// The plugin's side of a stream: no byte beyond the credit, one end, and input up to a limit.
#include <sandforge/plugin/channel.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;
using std::chrono::milliseconds;

namespace {

// A channel with both of its references, ended by the test.
class Opened {
 public:
  Ground ground;
  testing::Running host;
  detail::Channel* channel = nullptr;

  explicit Opened(std::uint64_t window, bool is_process = true) : host(window) {
    host.grant_back = false;
    const sf_stream_events io = host.events();
    const sf_process_events events = host.process_events();
    channel = new detail::Channel(ground.lane, io, is_process ? &events : nullptr, window);
    host.stream = channel->stream();
    if (is_process) host.process = channel->process();
  }
  ~Opened() {
    CHECK(host.done == 1);
    CHECK(host.rules_kept());
    CHECK_FALSE(host.disorder);
    if (host.process != nullptr) {
      host.release();
    } else if (host.stream != nullptr) {
      host.stream->vtbl->release(host.stream);
    }
    ground.host.loop.drain();
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  std::size_t put(std::string_view data, std::uint32_t flags = 0) const {
    return channel->put(SF_CHANNEL_STDOUT, flags, data);
  }
  sf_status write(std::string_view data, std::size_t& accepted, std::uint32_t flags = 0) const {
    return host.stream->vtbl->write(host.stream, testing::bytes(data), flags, &accepted, nullptr);
  }
};

}  // namespace

TEST_CASE("output stops at the credit and goes on with a grant, once for each waiter") {
  Opened open(5);
  int credit = 0;
  CHECK(open.put("1234567") == 5);
  CHECK(open.host.started == 1);  // by itself, before the first byte
  CHECK(open.put("67") == 0);
  open.channel->when_credit([&] { credit += open.ground.lane.is_current() ? 1 : 100; });
  open.ground.host.loop.drain();
  CHECK(credit == 0);
  open.host.grant(1);
  open.ground.host.loop.drain();
  CHECK(credit == 1);
  open.channel->stream()->vtbl->grant(open.channel->stream(), UINT64_MAX);  // does not wrap around
  open.host.granted += 1;
  open.ground.host.loop.drain();
  CHECK(credit == 1);
  CHECK(open.put("67") == 2);
  open.channel->finish(nullptr);
  CHECK(open.host.out == "1234567");
  CHECK(open.host.end.delivered == 7);
  CHECK(open.host.end.dropped == 0);
}

TEST_CASE("a message ends with its last byte, also when that comes with later credit") {
  Opened open(3, false);
  CHECK(open.put("abcd", SF_DATA_TEXT | SF_DATA_END) == 3);
  CHECK(open.host.messages.empty());
  open.host.grant(1);
  CHECK(open.put("d", SF_DATA_TEXT | SF_DATA_END) == 1);
  CHECK(open.put("", SF_DATA_TEXT | SF_DATA_END) == 0);
  CHECK(open.host.messages == std::vector<std::string>{"abcd", ""});
  open.channel->finish(nullptr);
}

TEST_CASE("a stream ends once, and what comes later is refused or does nothing") {
  Opened open(10);
  int waiters = 0;
  open.channel->when_input([&] { ++waiters; });
  open.channel->started("p", 7);
  open.channel->exited(Exit::exited(1));
  open.channel->exited(Exit::exited(2));
  open.channel->finish(std::make_exception_ptr(Error(Code::crashed, "broken")));
  open.channel->finish(nullptr);
  open.ground.host.loop.drain();
  CHECK(waiters == 1);
  CHECK(open.channel->is_over());
  CHECK(open.host.id == "p");
  CHECK(open.host.pid == 7);
  CHECK(open.host.exit.code == 1);
  CHECK(open.host.failure.code == SF_CRASHED);
  CHECK(thrown_by([&] { open.put("late"); }) == "16 output after the end");
  CHECK_FALSE(open.channel->take_input());
  CHECK(open.channel->input_at_end());
  std::size_t accepted = 0;
  CHECK(open.write("late", accepted) == SF_CONFLICT);
  open.host.stream->vtbl->cancel(open.host.stream);
  CHECK(open.channel->stop_reason() == StopReason::none);
}

TEST_CASE("after a cancel output is dropped and counted, and the token is told on the lane") {
  Opened open(2);
  bool told_on_lane = false;
  const StopCallback told(open.channel->stop().token(),
                          [&] { told_on_lane = open.ground.lane.is_current(); });
  CHECK(open.put("abc") == 2);
  open.host.stream->vtbl->cancel(open.host.stream);
  CHECK(open.channel->stop_reason() == StopReason::cancelled);
  CHECK_FALSE(open.channel->stop().stop_requested());
  CHECK(open.put("cdef") == 4);
  open.ground.host.loop.drain();
  CHECK(told_on_lane);
  open.channel->finish(nullptr);
  CHECK(open.host.out == "ab");
  CHECK(open.host.end.dropped == 4);
}

TEST_CASE("after a cancel the credit that is left still delivers what a command says of its end") {
  Opened open(6);
  CHECK(open.put("ab") == 2);
  open.host.stream->vtbl->cancel(open.host.stream);
  CHECK(open.put("bye!xyz") == 7);
  CHECK(open.put("more") == 4);
  open.ground.host.loop.drain();
  open.channel->finish(nullptr);
  CHECK(open.host.out == "abbye!");
  CHECK(open.host.end.delivered == 6);
  CHECK(open.host.end.dropped == 7);
}

TEST_CASE("input is stored up to its limit, and room is told once half of it was read") {
  Opened open(0);
  const std::string text(24 * 1024, 'i');
  std::size_t accepted = 0;
  CHECK(open.write(text, accepted) == SF_OK);
  CHECK(accepted == text.size());
  CHECK(open.write(text + text, accepted, SF_DATA_END) == SF_OK);
  CHECK(accepted == 40 * 1024);
  CHECK(open.write("x", accepted) == SF_OK);
  CHECK(accepted == 0);
  const std::optional<Piece> first = open.channel->take_input();
  REQUIRE(first);
  CHECK(first->data == text);
  open.ground.host.loop.drain();
  CHECK(open.host.writable == 0);  // more than half is left
  const std::optional<Piece> second = open.channel->take_input();
  REQUIRE(second);
  CHECK(second->data.size() == 40 * 1024);
  CHECK(second->flags == 0);       // the end of the message was not taken
  CHECK(open.host.writable == 0);  // never from inside a call of the plugin
  open.ground.host.loop.drain();
  CHECK(open.host.writable == 1);
  CHECK_FALSE(open.channel->take_input());
  CHECK_FALSE(open.channel->input_at_end());
  open.channel->close_input();
  CHECK(open.channel->input_at_end());
  CHECK(open.write("x", accepted) == SF_CONFLICT);
  open.channel->finish(nullptr);
}

TEST_CASE("without its handle a process reads the end, and another stream an error") {
  {
    Opened open(0);
    open.host.release();
    CHECK(open.channel->input_at_end());
    CHECK(open.put("nobody") == 6);
    open.channel->finish(nullptr);
    CHECK(open.host.end.dropped == 6);
  }
  {
    Opened open(0, false);
    open.host.stream->vtbl->release(std::exchange(open.host.stream, nullptr));
    CHECK_FALSE(open.channel->input_at_end());
    CHECK(thrown_by([&] { open.channel->take_input(); }) ==
          "13 the host gave up its input half way");
    open.channel->finish(nullptr);
  }
}

TEST_CASE("a time limit requests a stop, unless the stream ends before") {
  {
    Opened open(10);
    open.ground.on_lane([&] { open.channel->limit_time(milliseconds(0)); });
    REQUIRE(open.ground.wait([&] { return open.channel->stop().stop_requested(); }));
    CHECK(open.channel->stop_reason() == StopReason::timed_out);
    CHECK(open.put("last words") == 10);  // of a process that is ended by it
    open.channel->finish(nullptr);
    CHECK(open.host.out == "last words");
  }
  Opened open(10);
  open.ground.on_lane([&] { open.channel->limit_time(std::chrono::hours(1)); });
  open.channel->finish(nullptr);
  open.ground.host.loop.drain();
  CHECK(open.channel->stop_reason() == StopReason::none);
}

TEST_CASE("signals go to the handler of a process that runs") {
  Opened open(0);
  testing::Result result;
  const auto signal = [&] {
    sf_process* p = open.host.process;
    return p->vtbl->signal(p, 15, SF_SIGNAL_TREE, testing::completion(result), nullptr, nullptr);
  };
  CHECK(signal() == SF_UNSUPPORTED);
  std::int32_t number = 0;
  open.channel->on_signal([&](std::int32_t n, SignalScope scope, Reply reply) {
    number = scope == SignalScope::tree ? n : 0;
    reply.ok();
  });
  CHECK(signal() == SF_OK);
  CHECK(number == 15);
  open.ground.host.loop.drain();
  CHECK(result.done == 1);
  open.channel->on_resize([](std::uint32_t, std::uint32_t, Reply reply) { reply.ok(); });
  CHECK(open.channel->resize_handler());
  open.channel->finish(nullptr);
  CHECK_FALSE(open.channel->resize_handler());
  CHECK(signal() == SF_GONE);
  CHECK(result.done == 1);
  CHECK(detail::Channel::of(open.host.process) == open.channel);
}

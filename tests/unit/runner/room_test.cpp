// The runner's end without a process: what it keeps for its host.
#include "runner/room.hpp"

#include <sys/socket.h>

#include <future>
#include <memory>

#include <catch2/catch.hpp>

#include "plugin/abi_call.hpp"

using namespace sandforge;
using runner::Connection;

namespace {

const sf_plugin kRefuses = {
    sizeof(sf_plugin), SF_ABI_MAJOR, SF_ABI_MINOR,
    [](sf_host*, const sf_error_sink*) noexcept { return SF_OK; },
    [](const sf_open_request*, sf_provider**, const sf_error_sink* err) noexcept {
      return plugin::refuse(err, Error(Status::invalid, "not so"));
    }};

// Counts the ends of a call, and those that come elsewhere than on its lane.
struct Ends final : runner::Callbacks {
  Outcome invoke(plugin::Plugin&, runner::Method, runner::wire::Reader&) override {
    count(answers);
    return Outcome::last;
  }
  void fail(plugin::Plugin&, const sf_error&) override { count(failures); }
  void count(int& ends) {
    ++ends;
    if (!lane.is_current()) ++elsewhere;
  }
  int answers = 0, failures = 0, elsewhere = 0;
};

}  // namespace

TEST_CASE("room: a call of the plugin ends once and on its lane, whatever the host says",
          "[runner]") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const posix::Fd host(pair[1]);
  plugin::Plugin& plugin = *plugin::Plugin::reserve(Manifest(), "nowhere").value();
  auto runtime = std::make_unique<Runtime>();
  const auto peer = std::make_shared<runner::RunnerPeer>(
      plugin, *runtime, std::make_shared<Connection>(posix::Fd(pair[0]), Connection::Full::wait));
  const auto answered = std::make_shared<Ends>(), open = std::make_shared<Ends>();
  answered->lane = open->lane = runtime->make_lane();
  REQUIRE(peer->expect(1, answered));
  REQUIRE(peer->expect(3, open));
  std::promise<void> all_said;
  answered->lane.post([said = all_said.get_future().share()] { said.wait(); });
  runner::wire::FrameView frame;
  frame.header.kind = runner::wire::Kind::event;
  frame.header.target = 1;
  CHECK(peer->on_frame(frame));
  CHECK(peer->on_frame(frame));
  peer->lose(Error(Status::unavailable, "the host has gone"));
  all_said.set_value();
  runtime.reset();
  CHECK(answered->answers == 1);
  CHECK(answered->failures == 0);
  CHECK(open->failures == 1);
  CHECK(answered->elsewhere + open->elsewhere == 0);
}

TEST_CASE("room: a provider that was not opened leaves nothing behind", "[runner]") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const posix::Fd host(pair[1]);
  plugin::Plugin& plugin = *plugin::Plugin::reserve(Manifest(), "nowhere").value();
  plugin.api = &kRefuses;
  auto runtime = std::make_unique<Runtime>();
  const auto peer = std::make_shared<runner::RunnerPeer>(
      plugin, *runtime, std::make_shared<Connection>(posix::Fd(pair[0]), Connection::Full::wait));
  sf_open_request request{};
  request.struct_size = sizeof request;
  request.provider = {"p", 1};
  request.options = {"{}", 2};
  runner::wire::Writer out(peer->handles());
  out.value(request);
  Connection answers(posix::Fd(::dup(host.get())), Connection::Full::wait);
  for (runner::Id id = 2; id < 8; id += 2) {
    runner::wire::FrameView frame;
    frame.header.kind = runner::wire::Kind::call;
    frame.header.method = runner::wire::method_of(&sf_plugin::open);
    frame.header.lane = frame.header.target = id;
    frame.header.id = id + 100;
    frame.payload = out.out;
    REQUIRE(peer->on_frame(frame));
    REQUIRE(answers.first(frame) == runner::wire::ParseResult::frame);
    CHECK(frame.header.kind == runner::wire::Kind::reply);
    CHECK(frame.header.target == id + 100);
    CHECK(frame.payload.front() == 1);
  }
  runtime.reset();
  CHECK(peer.use_count() == 1);
  peer->clear();
}

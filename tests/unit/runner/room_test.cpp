// The runner's end without a process: what it keeps for its host.
#include "runner/room.hpp"

#include <sys/socket.h>

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

}  // namespace

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

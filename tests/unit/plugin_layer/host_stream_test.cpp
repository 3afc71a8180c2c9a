// Streams and processes of the host, read and written by coroutines.
#include <sandforge/plugin/host_stream.hpp>

#include <sys/socket.h>

#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>
#include "unit/plugin_layer/coroutine_fixture.hpp"

using namespace sandforge::plugin;
using namespace sandforge::test;
namespace testing = sandforge::testing;

namespace {

using std::chrono::milliseconds;

Task<void> process(Trail& trail) {
  const Lane lane = co_await current_lane();
  HostProcess child = HostProcess::spawn(lane, shell("cat; echo end >&2; exit 3", true));
  co_await child.write_all("hello");
  trail.at("write_all");
  const std::optional<Output> echoed = co_await child.read_some();
  trail.at("read_some=" + (echoed ? echoed->data : "none"));
  child.shutdown_write();
  const std::optional<Output> error = co_await child.read_some();
  trail.at("channel=" + std::to_string(error ? error->channel : 99));
  const std::optional<Output> end = co_await child.read_some();
  trail.at(end ? "more" : "end");
  const Exit exit = co_await child.finish();
  trail.at("exit=" + std::to_string(exit.code));
}

}  // namespace

TEST_CASE("a process of the host is written to, read from and ended, all on the lane") {
  {
    Bench bench;
    Trail running(bench.lane());
    CHECK_FALSE(bench.run<void>([&] { return process(running); }).code);
    CHECK(running.places() == "write_all read_some=hello channel=2 end exit=3");
  }
  nothing_is_left();
}

namespace {

Task<std::size_t> slow_reader(Bench& bench, std::uint64_t window, std::size_t& most) {
  Command command = shell("head -c 300000 /dev/zero");
  command.window = window;
  HostProcess child = HostProcess::spawn(bench.lane(), command);
  std::size_t all = 0;
  for (;;) {
    co_await sleep_for(milliseconds(0));
    const std::optional<Output> piece = co_await child.read_some();
    if (!piece) co_return all;
    most = std::max(most, piece->data.size());
    all += piece->data.size();
  }
}

Task<std::string> half_of_a_socket(int descriptor) {
  const Lane lane = co_await current_lane();
  HostStream stream = HostStream::adopt_descriptor(lane, descriptor);
  co_await stream.write_all("ping");
  const std::optional<Output> answer = co_await stream.read_some();
  stream.shutdown_write();
  co_await stream.finish();
  co_return answer ? answer->data : "none";
}

Task<std::int32_t> signalled() {
  const Lane lane = co_await current_lane();
  HostProcess child = HostProcess::spawn(lane, shell("echo up; read never", true));
  const std::optional<Output> up = co_await child.read_some();
  if (!up) co_return -1;
  co_await child.signal(9);
  const Exit exit = co_await child.finish();
  co_return exit.signal;
}

Task<Exit> not_there() {
  const Lane lane = co_await current_lane();
  Command command;
  command.argv = {"/no/such/program"};
  HostProcess child = HostProcess::spawn(lane, command);
  const Exit exit = co_await child.finish();
  co_return exit;
}

Task<std::string> write_after_the_end() {
  const Lane lane = co_await current_lane();
  HostProcess child = HostProcess::spawn(lane, shell("exit 0", true));
  const Exit exit = co_await child.finish();
  std::string answer = std::to_string(exit.code);
  try {
    co_await child.write_all("late");
  } catch (const Error& e) {
    answer += e.code() == Code::conflict ? " conflict" : " another error";
  }
  co_return answer;
}

}  // namespace

TEST_CASE("streams and processes of the host") {
  {
    Bench bench;
    std::size_t most = 0;
    CHECK(bench.run<std::size_t>([&] { return slow_reader(bench, 1000, most); }).value == 300000);
    CHECK(most <= 1000);

    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    std::thread peer([end = ends[1]] {
      std::array<char, 16> buffer{};
      const ssize_t n = ::read(end, buffer.data(), buffer.size());
      if (n > 0 && ::write(end, "pong", 4) == 4) ::shutdown(end, SHUT_WR);
      ::close(end);
    });
    CHECK(bench.run<std::string>([&] { return half_of_a_socket(ends[0]); }).value == "pong");
    peer.join();

    CHECK(bench.run<std::int32_t>([] { return signalled(); }).value == 9);
    CHECK(bench.run<Exit>([] { return not_there(); }).code == Code::not_found);
    CHECK(bench.run<std::string>([] { return write_after_the_end(); }).value == "0 conflict");
  }
  nothing_is_left();
}

TEST_CASE("streams and processes that the host does not offer are typed errors") {
  Bench bench;
  bench.host.absent = {SF_SERVICE_EXECUTOR, SF_SERVICE_PROCESS};
  detail::services().fill(&bench.host);
  CHECK(bench.run<Exit>([] { return not_there(); }).code == Code::unsupported);
  CHECK(bench.run<std::string>([] { return half_of_a_socket(-1); }).code == Code::unsupported);
}

namespace {

Task<Exit> exit_of_the_stopped(Bench& bench) {
  HostProcess child = HostProcess::spawn(bench.lane(), shell("read never", true));
  bench.lane().post([&bench] { bench.stop().request_stop(); });
  const Exit exit = co_await child.finish();
  co_return exit;
}

}  // namespace

TEST_CASE("a process that was stopped still says how it ended") {
  {
    Bench bench;
    const auto ended = bench.run<Exit>([&] { return exit_of_the_stopped(bench); });
    REQUIRE(ended.value);
    CHECK(ended.value->outcome == ExitOutcome::cancelled);
  }
  nothing_is_left();
}

TEST_CASE("a process that nobody reads any more is ended, also while a reader waits elsewhere") {
  {
    Bench bench;
    const auto ended = bench.run<int>([&]() -> Task<int> {
      const Lane lane = co_await current_lane();
      HostProcess dropped = HostProcess::spawn(lane, shell("read never", true));
      HostProcess kept = HostProcess::spawn(lane, shell("echo kept"));
      dropped = std::move(kept);
      const std::optional<Output> piece = co_await dropped.read_some();
      const Exit exit = co_await dropped.finish();
      co_return exit.code + (piece ? 10 : 0);
    });
    CHECK(ended.value == 10);
  }
  nothing_is_left();
}

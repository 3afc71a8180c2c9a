// Profiles of containers and older kernels: calls that are refused, whatever they answer.
#include <fcntl.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>

#include "harness.hpp"

using namespace guest_test;

namespace {

bool has(const Host& host, std::uint64_t feature) {
  return host.hello && (host.hello->features & feature) != 0;
}

}  // namespace

TEST_CASE("B05 every promise holds where newer system calls are blocked", "[cases.B05]") {
  BlockedCalls blocked;
  blocked.error_number = GENERATE(ENOSYS, EPERM);
  const Fd leaking(::open("/dev/null", O_RDONLY));  // not to be seen by any command
  auto guest = Guest::filtered(blocked);
  if (!guest) {
    WARN("SKIPPED: system calls cannot be filtered here");
    return;
  }
  Host& host = guest->host();
  CHECK(host.run(shell("echo out; echo err >&2; exit 7")).code() == 7);
  CHECK(has(host, wire::kFeatureSubreaper));
  CHECK_FALSE(has(host, wire::kFeaturePidfd));
  CHECK_FALSE(has(host, wire::kFeatureCgroup));
  CHECK(host.run(argv({"ls", "/proc/self/fd"})).out == "0\n1\n2\n3\n");
  CHECK(host.run(argv({"no-such-program"})).error->code == wire::ErrorCode::no_command);
  wire::SpawnRequest elsewhere = shell("true");
  elsewhere.cwd = "/no/such/folder";
  CHECK(host.run(elsewhere).error->code == wire::ErrorCode::no_directory);
  wire::SpawnRequest terminal = shell("stty size");
  terminal.tty.emplace();
  terminal.tty->cols = 90;
  terminal.tty->rows = 30;
  CHECK(host.run(terminal).out == "30 90\r\n");

  const std::string one = long_sleep(), two = long_sleep(), three = long_sleep();
  wire::SpawnRequest tree = shell("setsid " + one + " & (setsid " + two + " &); sleep 400");
  const auto id = host.spawn(tree);
  REQUIRE(host.until([&] { return runs(one) && runs(two); }));
  CHECK(host.wait(host.client.kill(id, 100)).done == std::uint64_t{1});
  CHECK_FALSE(runs(one));
  CHECK_FALSE(runs(two));
  wire::SpawnRequest late = shell("trap '' TERM; (setsid env -i " + three + " &); sleep 401");
  late.timeout_ms = 300;
  late.grace_ms = 100;
  CHECK(host.run(late).exit->timed_out);
  host.run(shell("env -i setsid -f " + three + " </dev/null >/dev/null 2>&1"));
  CHECK(host.wait(host.client.stop_all(wire::StopAllRequest())).done);
  CHECK_FALSE(runs(three));
}

TEST_CASE("B05 without a subreaper, members are known by session and mark", "[cases.B05]") {
  BlockedCalls blocked;
  blocked.error_number = EPERM;
  blocked.no_subreaper = true;
  auto guest = Guest::filtered(blocked);
  if (!guest) {
    WARN("SKIPPED: system calls cannot be filtered here");
    return;
  }
  Host& host = guest->host();
  CHECK(host.run(shell("echo ok")).out == "ok\n");
  CHECK_FALSE(has(host, wire::kFeatureSubreaper));
  const std::string one = long_sleep(), two = long_sleep();
  const auto id = host.spawn(shell("(" + one + " &); (setsid " + two + " &); sleep 402"));
  REQUIRE(host.until([&] { return runs(one) && runs(two); }));
  CHECK(host.wait(host.client.kill(id, 0)).done == std::uint64_t{1});
  CHECK(eventually([&] { return !runs(one) && !runs(two); }));
  host.run(shell("setsid -f " + two + " </dev/null >/dev/null 2>&1"));
  REQUIRE(host.until([&] { return runs(two); }));
  CHECK(host.wait(host.client.stop_all(wire::StopAllRequest())).done);
  CHECK(eventually([&] { return !runs(two); }));
}

// Streams: back-pressure, input, volume, terminals.
#include <sys/stat.h>
#include <catch2/catch.hpp>

#include "harness.hpp"

using namespace guest_test;

namespace {}  // namespace

TEST_CASE("A09 input arrives whole, and its end too", "[cases.A09]") {
  Guest guest;
  Host& host = guest.host();
  wire::SpawnRequest r = shell("cat | cksum; echo done");
  r.stdin_mode = wire::StdinMode::pipe;
  const auto id = host.spawn(r);
  const std::string piece(64 * 1024, 'p');
  std::size_t left = 5 * 1024 * 1024;
  while (left > 0) {
    const auto n = host.client.write_stdin(id, std::string_view(piece).substr(0, left));
    REQUIRE(n);
    left -= *n;
    if (*n == 0) REQUIRE(host.until([&] { return host.client.stdin_room(id) > 0; }));
  }
  host.client.close_stdin(id);
  CHECK_FALSE(host.client.write_stdin(id, "x"));
  const Seen& s = host.wait(id);
  CHECK(s.code() == 0);
  CHECK(s.out == host.run(shell("head -c 5242880 /dev/zero | tr '\\0' p | cksum; echo done")).out);
  CHECK_FALSE(host.client.write_stdin(id, "x"));
}

TEST_CASE("A09 a reader that closes its input is told of, and ends no connection", "[cases.A09]") {
  Guest guest;
  Host& host = guest.host();
  TempFolder folder;
  wire::SpawnRequest r =
      shell("exec <&-; echo closed; until [ -e " + folder.file("go") + " ]; do sleep .01; done");
  r.stdin_mode = wire::StdinMode::pipe;
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return host.of(id).stdin_closed.has_value(); }));
  CHECK(*host.of(id).stdin_closed == EPIPE);
  CHECK_FALSE(host.client.write_stdin(id, "x"));
  write_text(folder.file("go"), "");
  CHECK(host.wait(id).code() == 0);
}

TEST_CASE("A11 a gigabyte passes, and the guest stays small", "[cases.A11]") {
  Guest guest;
  Host& host = guest.host();
  host.keep_output = false;
  const Seen& s = host.run(shell("yes | head -c 1073741824"));
  CHECK(s.code() == 0);
  CHECK(host.counted == 1073741824);
  REQUIRE(s.end);
  CHECK(s.end->total.out == 1073741824);
  CHECK(s.end->dropped.out == 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(resident_kib(guest.pid()) < 32 * 1024);
#endif
}

TEST_CASE("A12 without credit the producer is held back", "[cases.A12]") {
  Guest guest;
  Host& host = guest.host();
  host.auto_grant = false;
  TempFolder folder;
  constexpr std::size_t kTotal = 16 * 1024 * 1024;
  wire::SpawnRequest r = shell("head -c 16777216 /dev/zero; echo > " + folder.file("written"));
  r.window = 64 * 1024;
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return host.counted == r.window; }));
  host.settle(std::chrono::milliseconds(300));
  CHECK(host.counted == r.window);
  CHECK_FALSE(exists(folder.file("written")));
  CHECK_FALSE(host.of(id).exit);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(resident_kib(guest.pid()) < 16 * 1024);
#endif
  while (host.counted < kTotal) {
    const std::uint64_t before = host.counted;
    host.client.grant(id, 1024 * 1024);
    REQUIRE(host.until(
        [&] { return host.counted == std::min<std::uint64_t>(before + 1024 * 1024, kTotal); }));
  }
  const Seen& s = host.wait(id);
  CHECK(s.code() == 0);
  CHECK(s.out == std::string(kTotal, '\0'));
}

TEST_CASE("a command without output ends without credit") {
  Guest guest;
  wire::SpawnRequest r = shell("true");
  r.window = 0;
  CHECK(guest.host().run(r).code() == 0);
}

TEST_CASE("output without credit delays the end until it is granted") {
  Guest guest;
  Host& host = guest.host();
  host.auto_grant = false;
  wire::SpawnRequest r = shell("echo hello");
  r.window = 2;
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return host.of(id).exit && host.of(id).out == "he"; }));
  host.settle(std::chrono::milliseconds(300));
  CHECK_FALSE(host.of(id).end);
  host.client.grant(id, 100);
  CHECK(host.wait(id).out == "hello\n");
}

TEST_CASE("a slow channel does not hold up the others") {
  Guest guest;
  Host& host = guest.host();
  host.auto_grant = false;
  wire::SpawnRequest r = shell("yes");
  r.window = 1024;
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return host.of(id).out.size() == 1024; }));
  CHECK(host.run(shell("echo quick")).out == "quick\n");
  CHECK(host.wait(host.client.kill(id, 0)).done.value_or(0) == 1);
  // The end still waits for output that nobody took.
  host.client.leave(id);
  CHECK(host.run(shell("echo again")).out == "again\n");
}

TEST_CASE("a terminal has a size, a type, echo and an end of input") {
  Guest guest;
  Host& host = guest.host();
  wire::SpawnRequest r = shell("tty; stty size; echo $TERM; read line; echo \"got $line\"; cat");
  r.tty.emplace();
  r.tty->cols = 132;
  r.tty->rows = 43;
  r.tty->term = "xterm-256color";
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return host.of(id).out.find("xterm-256color") != std::string::npos; }));
  CHECK(host.of(id).out.find("/dev/pts/") != std::string::npos);
  CHECK(host.of(id).out.find("43 132") != std::string::npos);
  REQUIRE(host.until([&] { return host.client.stdin_room(id) > 0; }));
  REQUIRE(host.client.write_stdin(id, "word\n") == std::size_t{5});
  REQUIRE(host.until([&] { return host.of(id).out.find("got word") != std::string::npos; }));
  host.client.close_stdin(id);
  CHECK(host.wait(id).code() == 0);
}

TEST_CASE("a terminal is resized, and hangs up its group") {
  Guest guest;
  Host& host = guest.host();
  wire::SpawnRequest r =
      shell("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep .05; done");
  r.tty.emplace();
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return host.of(id).out.find("ready") != std::string::npos; }));
  host.client.resize(id, 100, 50);
  CHECK(host.wait(id).code() == 0);
  CHECK(host.of(id).out.find("50 100") != std::string::npos);
}

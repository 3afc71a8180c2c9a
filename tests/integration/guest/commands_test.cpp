// Commands and their output: cases A of the conformance list, as the guest alone shows them.
#include <catch2/catch.hpp>

#include "harness.hpp"

using namespace guest_test;

TEST_CASE("A01 output and exit codes are exact") {
  Guest guest;
  const Seen& a = guest.host().run(shell("echo hello"));
  CHECK(a.out == "hello\n");
  CHECK(a.err.empty());
  CHECK(a.code() == 0);
  REQUIRE(a.end);
  CHECK(a.end->total.out == 6);
  CHECK_FALSE(a.end->pipes_held);
  const Seen& b = guest.host().run(shell("echo out; echo err >&2; exit 42"));
  CHECK(b.out == "out\n");
  CHECK(b.err == "err\n");
  CHECK(b.code() == 42);
}

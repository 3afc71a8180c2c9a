#include "sandforge/posix/procfs.hpp"

#include <unistd.h>
#include <algorithm>
#include <catch2/catch.hpp>

using namespace sandforge::posix;

TEST_CASE("a stat line is read whatever its command is called") {
  const std::string tail =
      " 11 22 33 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 100 200 18446744073709551615";
  ProcessStat stat;
  for (const std::string& name :
       {std::string("sh"), std::string("a) R 1 2 3 (b"), std::string("x\ny) S"), std::string("")}) {
    REQUIRE(parse_stat("4242 (" + name + ") S" + tail, stat));
    CHECK(stat.pid == 4242);
    CHECK(stat.state == 'S');
    CHECK(stat.parent == 11);
    CHECK(stat.group == 22);
    CHECK(stat.session == 33);
    CHECK(stat.start_time == 987654);
  }
  // The state is that of the first thread: where others go on, the process has not ended.
  REQUIRE(parse_stat("1 (a) Z" + tail, stat));
  CHECK(stat.state == 'Z');
  REQUIRE(parse_stat("1 (a) Z 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 3 0 5 6", stat));
  CHECK(stat.state != 'Z');
  CHECK(stat.start_time == 5);
  CHECK_FALSE(parse_stat("", stat));
  CHECK_FALSE(parse_stat("12 (sh", stat));
  CHECK_FALSE(parse_stat("12 (sh) S", stat));
  CHECK_FALSE(parse_stat("12 (sh) S 1 2", stat));
}

TEST_CASE("the calling process finds itself") {
  const Procfs proc;
  REQUIRE(proc);
  ProcessStat stat;
  REQUIRE(proc.stat(::getpid(), stat));
  CHECK(stat.parent == ::getppid());
  const auto all = proc.processes();
  CHECK(std::any_of(all.begin(), all.end(),
                    [](const ProcessStat& p) { return p.pid == ::getpid(); }));
  CHECK_FALSE(proc.stat(1 << 30, stat));
}

#include "sandforge/posix/drain.hpp"

#include <catch2/catch.hpp>

using sandforge::posix::DrainRule;

TEST_CASE("a command whose pipes are idle is over 100 ms after its exit") {
  DrainRule rule;
  rule.data(10);
  CHECK_FALSE(rule.deadline());
  rule.leader_exited(1000);
  CHECK(rule.deadline() == 1100);
  CHECK_FALSE(rule.over(1099));
  CHECK(rule.over(1100));
}

TEST_CASE("data puts the end off, up to two seconds") {
  DrainRule rule;
  rule.leader_exited(1000);
  for (std::int64_t t = 1050; t <= 2950; t += 50) {
    rule.data(t);
    CHECK_FALSE(rule.over(t + 49));
  }
  CHECK(rule.deadline() == 3000);
  rule.data(2999);
  CHECK(rule.over(3000));
}

TEST_CASE("time without credit does not count") {
  DrainRule rule;
  rule.leader_exited(1000);
  rule.data(1050);
  rule.credit(false, 1050);
  CHECK_FALSE(rule.deadline());
  CHECK_FALSE(rule.over(100000));
  rule.credit(true, 100000);
  CHECK(rule.deadline() == 100100);
  for (std::int64_t t = 100000; t < 101900; t += 50)
    rule.data(t);
  CHECK(rule.deadline() == 101950);  // 50 ms were counted before
}

TEST_CASE("credit that comes back at once, again and again, withholds nothing") {
  DrainRule rule;
  rule.leader_exited(0);
  std::int64_t t = 0;
  for (; t < 10000 && !rule.over(t); t += 2) {
    rule.data(t);
    rule.credit(false, t);
    rule.credit(true, t + 2);
  }
  CHECK(t >= 1900);
  CHECK(t <= 2100);
}

TEST_CASE("credit before the exit is no matter") {
  DrainRule rule;
  rule.credit(false, 5);
  rule.leader_exited(1000);
  CHECK_FALSE(rule.deadline());
  rule.credit(true, 1500);
  CHECK(rule.deadline() == 1600);
}

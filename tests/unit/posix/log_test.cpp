#include "sandforge/posix/log.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

using sandforge::posix::LogBudget;
using sandforge::posix::OutputLog;

namespace {

// Everything from `at` on, per stream, and the first offset of each.
struct Replay {
  std::string text[2];
  std::uint64_t from[2] = {0, 0};
};

Replay replay(const OutputLog& log, OutputLog::Position at = 0) {
  Replay out;
  OutputLog::Slice slice;
  while (log.look(at, 1000, slice)) {
    std::string& text = out.text[slice.stream];
    if (text.empty()) out.from[slice.stream] = slice.offset;
    REQUIRE(slice.offset == out.from[slice.stream] + text.size());
    text.append(slice.data, slice.size);
    at += slice.size;
  }
  return out;
}

std::size_t put(OutputLog& log, int stream, const std::string& text, OutputLog::Position keep) {
  return log.append(stream, text.data(), text.size(), keep);
}

}  // namespace

TEST_CASE("streams share a log and keep their offsets") {
  LogBudget budget;
  OutputLog log(budget, 1 << 20);
  CHECK(log.capacity() == 0);
  put(log, 0, "one", 0);
  put(log, 1, "ERR", 0);
  put(log, 0, "two", 0);
  OutputLog::Position at = 0;
  OutputLog::Slice slice;
  REQUIRE(log.look(at, 100, slice));
  CHECK(std::string(slice.data, slice.size) == "one");
  at += slice.size;
  REQUIRE(log.look(at, 2, slice));
  CHECK(slice.stream == 1);
  CHECK(slice.size == 2);
  const Replay all = replay(log);
  CHECK(all.text[0] == "onetwo");
  CHECK(all.text[1] == "ERR");
  CHECK(log.total(0) == 6);
  CHECK(log.first(1) == 0);
  CHECK(log.capacity() == OutputLog::kMinimum);
}

TEST_CASE("the oldest bytes go first, and only as many as needed") {
  LogBudget budget;
  OutputLog log(budget, OutputLog::kMinimum);
  put(log, 1, "early", 0);
  put(log, 0, std::string(OutputLog::kMinimum - 5, 'a'), log.end());
  CHECK(log.first(1) == 0);
  put(log, 0, "xy", log.end());
  CHECK(log.first(1) == 2);
  CHECK(log.end() - log.begin() == OutputLog::kMinimum);
  put(log, 0, std::string(10, 'b'), log.end());
  CHECK(log.first(1) == 5);
  CHECK(log.first(0) == 7);
  CHECK(log.total(0) == OutputLog::kMinimum - 5 + 12);
}

TEST_CASE("room that a read does not fill costs nothing") {
  LogBudget budget;
  OutputLog log(budget, OutputLog::kMinimum);
  put(log, 0, std::string(OutputLog::kMinimum, 'a'), 0);
  struct iovec areas[2];
  CHECK(log.prepare(4096, log.end(), areas) == 4096);
  static_cast<char*>(areas[0].iov_base)[0] = 'z';
  log.commit(0, 1);
  CHECK(log.first(0) == 1);
  const Replay all = replay(log);
  CHECK(all.text[0] == std::string(OutputLog::kMinimum - 1, 'a') + "z");
}

TEST_CASE("what must be kept holds back the writer") {
  LogBudget budget;
  OutputLog log(budget, OutputLog::kMinimum);
  CHECK(put(log, 0, std::string(5000, 'a'), 0) == OutputLog::kMinimum);
  CHECK(put(log, 0, "b", 0) == 0);
  CHECK(put(log, 0, "bcd", 2) == 2);
  CHECK(replay(log).text[0].substr(OutputLog::kMinimum - 4) == "aabc");
}

TEST_CASE("acknowledged stretches are dropped from the front") {
  LogBudget budget;
  OutputLog log(budget, 1 << 20);
  put(log, 0, "aaaa", 0);
  put(log, 1, "bbbb", 0);
  put(log, 0, "cccc", 0);
  const std::uint64_t first[2] = {2, 4};
  log.acknowledge(first);
  CHECK(log.first(0) == 2);
  CHECK(log.begin() == 2);
  const std::uint64_t second[2] = {6, 4};
  log.acknowledge(second);
  CHECK(replay(log).text[0] == "cc");
  CHECK(log.first(1) == 4);
  const std::uint64_t beyond[2] = {600, 400};
  log.acknowledge(beyond);
  CHECK(log.begin() == log.end());
  CHECK(log.total(0) == 8);
}

TEST_CASE("all logs share one budget, and each keeps its minimum") {
  LogBudget budget;
  budget.limit = 20000;
  {
    OutputLog a(budget, 1 << 20), b(budget, 1 << 20), c(budget, 1 << 20);
    put(a, 0, std::string(9000, 'a'), a.end());
    CHECK(a.capacity() == 16384);
    put(b, 0, std::string(9000, 'b'), b.end());
    CHECK(b.capacity() == OutputLog::kMinimum);
    put(c, 0, std::string(100, 'c'), c.end());
    CHECK(c.capacity() == OutputLog::kMinimum);
    CHECK(budget.used == 16384 + 2 * OutputLog::kMinimum);
    a.clear();
    CHECK(budget.used == 2 * OutputLog::kMinimum);
    CHECK(a.total(0) == 9000);
    put(a, 0, "again", a.end());
    CHECK(a.first(0) == 9000);
  }
  CHECK(budget.used == 0);
}

TEST_CASE("streams that alternate byte by byte stay within bounds") {
  LogBudget budget;
  OutputLog log(budget, 1 << 20);
  for (int i = 0; i < 100000; ++i) {
    CHECK(put(log, i % 2, "x", log.end()) == 1);
  }
  CHECK(log.total(0) == 50000);
  CHECK(log.end() - log.begin() <= 16384);
  // With everything to be kept, it holds back and does not drop.
  const std::uint64_t first = log.first(0);
  CHECK(put(log, 0, "x", 0) == 0);
  CHECK(log.first(0) == first);
}

TEST_CASE("a log behaves like a plain list of bytes") {
  std::mt19937 random(7);
  LogBudget budget;
  OutputLog log(budget, 16384);
  std::string written[2];
  OutputLog::Position reader = 0;
  std::string read[2];
  for (int step = 0; step < 20000; ++step) {
    const int stream = static_cast<int>(random() % 2);
    const std::string text(random() % 700, static_cast<char>('a' + random() % 26));
    const std::size_t taken = put(log, stream, text, reader);
    written[stream].append(text, 0, taken);
    for (std::size_t n = random() % 900; n > 0;) {
      OutputLog::Slice slice;
      if (!log.look(reader, n, slice)) break;
      REQUIRE(slice.offset == read[slice.stream].size());
      read[slice.stream].append(slice.data, slice.size);
      reader += slice.size;
      n -= slice.size;
    }
  }
  for (int stream = 0; stream < 2; ++stream)
    CHECK(written[stream].compare(0, read[stream].size(), read[stream]) == 0);
  const Replay rest = replay(log, reader);
  for (int stream = 0; stream < 2; ++stream)
    CHECK(read[stream] + rest.text[stream] == written[stream]);
}

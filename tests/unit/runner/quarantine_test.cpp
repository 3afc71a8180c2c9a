// What is kept about plugins that are not to run, and what counts when it is damaged.
#include "runner/quarantine.hpp"

#include <algorithm>
#include <fstream>
#include <future>
#include <iterator>
#include <vector>

#include <catch2/catch.hpp>

#include "support/temp_dir.hpp"

using namespace sandforge;
using runner::Quarantine;

namespace {

runner::Quarantined entry(const std::string& sha256) {
  runner::Quarantined out;
  out.sha256 = sha256;
  out.plugin = "unruly";
  out.path = "/plugins/unruly.so";
  out.reason = "it fell too often";
  out.at_ns = 5;
  return out;
}

}  // namespace

TEST_CASE("quarantine: an entry comes back whole, and another host sees it", "[runner]") {
  test::TempDir folder;
  Quarantine one(folder / "state/quarantine");
  Quarantine two(folder / "state/quarantine");
  CHECK_FALSE(one.find("ab"));
  CHECK(one.list().empty());
  REQUIRE(one.add(entry("ab")).ok());
  const auto found = two.find("ab");
  REQUIRE(found);
  CHECK(found->plugin == "unruly");
  CHECK(found->path == "/plugins/unruly.so");
  CHECK(found->reason == "it fell too often");
  CHECK(found->at_ns == 5);
  CHECK(two.clear() == 1);
  CHECK_FALSE(one.find("ab"));
}

TEST_CASE("quarantine: hosts that lose the same plugin at once do not disturb each other",
          "[runner]") {
  test::TempDir folder;
  REQUIRE(Quarantine(folder.path()).add(entry("ab")).ok());
  std::vector<std::future<int>> hosts;
  for (int host = 0; host < 4; ++host)
    hosts.push_back(std::async(std::launch::async, [&] {
      Quarantine quarantine(folder.path());
      int disturbed = 0;
      for (int i = 0; i < 200; ++i) {
        if (!quarantine.add(entry("ab"))) ++disturbed;
        const auto found = quarantine.find("ab");
        if (!found || found->reason != "it fell too often") ++disturbed;
      }
      return disturbed;
    }));
  for (auto& host : hosts)
    CHECK(host.get() == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("quarantine: an entry that cannot be understood still holds", "[runner]") {
  test::TempDir folder;
  Quarantine quarantine(folder.path());
  std::ofstream(folder / "aa.json") << "{";
  std::ofstream(folder / "bb.json") << "{\"reason\": \"" << std::string(100'000, 'x') << "\"}";
  std::filesystem::create_directory(folder / "cc.json");
  folder.write("dd.json", "");
  for (const char* sha256 : {"aa", "bb", "cc", "dd"}) {
    CAPTURE(sha256);
    const auto found = quarantine.find(sha256);
    REQUIRE(found);
    CHECK(found->sha256 == sha256);
    CHECK(found->reason == "its entry in the quarantine is damaged");
  }
  CHECK(quarantine.list().size() == 4);
}

TEST_CASE("quarantine: restarts are counted over all hosts, and forgotten in time", "[runner]") {
  test::TempDir folder;
  Quarantine one(folder / "state/quarantine");
  Quarantine two(folder / "state/quarantine");
  using namespace std::chrono_literals;
  constexpr std::int64_t second = 1'000'000'000;
  CHECK(one.restarts("ab", 100 * second, 10s) == 0);
  one.add_restart("ab", 100 * second);
  two.add_restart("ab", 105 * second);
  two.add_restart("cd", 105 * second);
  CHECK(one.restarts("ab", 106 * second, 10s) == 2);
  CHECK(one.restarts("ab", 110 * second, 10s) == 1);
  CHECK(one.restarts("ab", 115 * second, 10s) == 0);
  CHECK(one.restarts("ab", 101 * second, 10s) == 1);  // a clock that was set back
  CHECK(one.list().empty());
  CHECK_FALSE(one.find("ab"));
  CHECK(one.clear() == 0);
  CHECK(two.restarts("ab", 106 * second, 10s) == 0);

  SECTION("the file stays small, whoever writes to it") {
    for (int i = 0; i < 1000; ++i) {
      one.add_restart("ab", i * second);
      CHECK(one.restarts("ab", i * second, 4s) == static_cast<std::size_t>(std::min(i + 1, 4)));
    }
    CHECK(std::filesystem::file_size(folder / "state/quarantine/ab.restarts") < 512);
    CHECK(one.restarts("ab", 999 * second, 1000s) > 0);
  }
  SECTION("what is no time does not count") {
    std::ofstream(folder / "state/quarantine/ab.restarts") << "x\n\n5\n-\n99999999999999999999\n6";
    CHECK(one.restarts("ab", 10, 10s) == 2);
  }
  SECTION("without a folder nothing is kept") {
    Quarantine none{std::filesystem::path()};
    none.add_restart("ab", 5);
    CHECK(none.restarts("ab", 6, 10s) == 0);
  }
}

TEST_CASE("quarantine: what could not be let out is not counted", "[runner]") {
  test::TempDir folder;
  Quarantine quarantine(folder.path());
  REQUIRE(quarantine.add(entry("aa")).ok());
  std::filesystem::create_directories(folder / "cc.json/inside");
  CHECK(quarantine.clear() == 1);
  CHECK_FALSE(quarantine.find("aa"));
  CHECK(quarantine.find("cc"));
}

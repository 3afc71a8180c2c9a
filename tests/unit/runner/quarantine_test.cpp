// What is kept about plugins that are not to run, and what counts when it is damaged.
#include "runner/quarantine.hpp"

#include <fstream>

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

TEST_CASE("quarantine: what could not be let out is not counted", "[runner]") {
  test::TempDir folder;
  Quarantine quarantine(folder.path());
  REQUIRE(quarantine.add(entry("aa")).ok());
  std::filesystem::create_directories(folder / "cc.json/inside");
  CHECK(quarantine.clear() == 1);
  CHECK_FALSE(quarantine.find("aa"));
  CHECK(quarantine.find("cc"));
}

// Each way in which a plugin file can be bad: one clear report with path, stage, reason and hint,
// and the plugins beside it work.
#include <future>
#include <map>

#include <unistd.h>
#include <catch2/catch.hpp>

#include "sandforge/registry.hpp"
#include "support/temp_dir.hpp"
#include "unit/loader/fixture_path.hpp"

using namespace sandforge;
using test::fixture;
using test::TempDir;

namespace {

// What the scan, and if it is content the load, says of one path.
LoadAttempt attempt(const std::filesystem::path& path, const std::string& sha256 = {}) {
  PluginSearchPath search;
  search.add(path, "a test", sha256);
  PluginLoader::Options options;
  options.check_options_schema = check_options_schema;
  PluginLoader loader(options);
  auto scan = loader.scan(search);
  REQUIRE(scan.report.attempts.size() == 1);
  return scan.files.empty() ? scan.report.attempts[0] : loader.load(scan.files[0]).attempt;
}

}  // namespace

TEST_CASE("load stages: a file that may not be read") {
  if (::geteuid() == 0) {
    WARN("SKIPPED: root may read every file");
    return;
  }
  const TempDir dir;
  const auto file = dir.copy(fixture("good_b"), "b.so");
  std::filesystem::permissions(file, std::filesystem::perms(0));
  CHECK(attempt(file).stage == LoadStage::not_readable);
}

TEST_CASE("load stages: all bad plugins at once, and the two good ones work") {
  const std::map<std::string, std::string> expected = {
      {"twin_of_a", "duplicate_provider"},
      {"no_manifest", "no_manifest"},
      {"bad_manifest", "manifest_invalid"},
      {"other_major", "abi_major"},
      {"bad_schema", "schema_invalid"},
      {"code_major", "abi_major"},
      {"no_entry", "no_entry"},
      {"null_entry", "missing_member"},
      {"short_table", "missing_member"},
      {"null_open", "missing_member"},
      {"init_fails", "init_failed"},
      {"undefined_symbol", "undefined_symbol"},
      {"missing_dependency", "missing_dependency"}};
  Runtime runtime;
  ProviderRegistry::Options options;
  options.check_options = check_options_schema;
  ProviderRegistry registry(runtime, options);
  PluginSearchPath search;
  search.add(fixture("good_a"), "a test");
  for (const auto& [name, stage] : expected)
    search.add(fixture(name), "a test");
  search.add(fixture("good_b"), "a test");
  registry.scan(search);
  const auto report = registry.load_all();
  CHECK(report.refused() == expected.size());

  std::map<std::string, std::string> stages;
  for (const LoadAttempt& entry : report.attempts) {
    if (entry.usable()) continue;
    const std::string name = entry.path.stem().string();
    CAPTURE(name);
    stages[name] = to_string(entry.stage);
    CHECK(entry.path == fixture(name));
    CHECK(entry.origin == "a test");
    CHECK_FALSE(entry.message.empty());
    CHECK_FALSE(entry.hint.empty());
    const bool loader_spoke = entry.stage == LoadStage::undefined_symbol ||
                              entry.stage == LoadStage::missing_dependency ||
                              entry.stage == LoadStage::no_entry;
    CHECK(entry.loader_text.empty() != loader_spoke);
    const Error error = entry.to_error();
    CHECK(error.details.find("path")->as_string() == fixture(name).string());
    CHECK(error.details.find("hint")->as_string() == entry.hint);
  }
  CHECK(stages == expected);

  for (const char* name : {"fixture-good-a", "fixture-good-b"}) {
    const auto provider = registry.open(name);
    const auto description = await_result<Description>([&](Handler<Description> handler) {
      provider->lane().post([provider, handler = std::move(handler)]() mutable {
        provider->describe(std::move(handler));
      });
    });
    CHECK(description.features == std::vector<std::string>{"spawn.stdin"});
  }
}

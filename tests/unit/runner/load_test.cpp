// Loading a plugin into a process of its own, where that fails.
#include "sandforge/plugin_loader.hpp"

#include <catch2/catch.hpp>

#include "plugin/plugin.hpp"
#include "sandforge/registry.hpp"
#include "support/temp_dir.hpp"
#include "test_paths.hpp"

using namespace sandforge;

namespace {

std::uint32_t next_index() {
  return plugin::Plugin::reserve(Manifest(), "nowhere").value()->index;
}

}  // namespace

TEST_CASE("a load that fails again and again takes one place", "[runner]") {
  test::TempDir folder;
  const auto program = folder / "runner";
  Runtime runtime;
  PluginLoader::Options options;
  auto services = std::make_shared<HostServices>();
  services->runtime = &runtime;
  options.services = services;
  options.runner.program = program;
  options.runner.others.isolation = Isolation::process;
  PluginLoader loader(options);
  PluginSearchPath search;
  search.add(folder.copy(SANDFORGE_UNRULY, "unruly.so"), "a test");
  std::filesystem::permissions(folder / "unruly.so", std::filesystem::perms(0755));
  const auto scan = loader.scan(search);
  REQUIRE(scan.files.size() == 1);
  const auto before = next_index();
  for (int i = 0; i < 3; ++i) {
    const auto loaded = loader.load(scan.files.front());
    CHECK(loaded.plugin == nullptr);
    CHECK(loaded.attempt.stage == LoadStage::no_runner);
  }
  CHECK(next_index() == before + 2);

  // What kept it from running is gone: the same place is used.
  std::filesystem::create_symlink(SANDFORGE_RUNNER, program);
  const auto loaded = loader.load(scan.files.front());
  REQUIRE(loaded.plugin != nullptr);
  CHECK(loaded.plugin->index == before + 1);
  CHECK(loader.load(scan.files.front()).plugin == loaded.plugin);
}

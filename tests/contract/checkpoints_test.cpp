// E01 to E03 and D02 where the plugin runs inside the host and where it runs in a process of its
// own, and what is left on disk afterwards.
#include "contract/local_fixture.hpp"

#include <unistd.h>

#include <csignal>

using namespace sandforge;
using namespace sandforge::contract;

namespace {

std::vector<std::string> names_of(Sandbox& sandbox) {
  std::vector<std::string> out;
  for (const auto& one : sandbox.list_checkpoints())
    out.push_back(one.name);
  return out;
}

using Names = std::vector<std::string>;

pid_t parent_of(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(") ");
  // After the state, one letter.
  return name_end == std::string::npos ? -1 : std::stoi(stat.substr(name_end + 4));
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "E01 five rounds of write, snapshot, destroy and start",
                 "[cases.E01]") {
  const auto sandbox = started();
  for (int round = 1; round <= 5; ++round) {
    CHECK(sandbox->exec({"touch", "round-" + std::to_string(round)}).success);
    REQUIRE(sandbox->snapshot().checkpoint.has_value());
    sandbox->destroy();
    const auto again = sandbox->start();
    CHECK(again.outcome == StartOutcome::created);
    CHECK(again.provenance == Provenance::checkpoint);
  }
  for (int round = 1; round <= 5; ++round)
    CHECK(fs::exists(folder() / ("round-" + std::to_string(round))));
  CHECK(names_of(*sandbox) == Names{"s"});
  sandbox->remove_checkpoint("s");
  CHECK(names_of(*sandbox).empty());
}

TEST_CASE_METHOD(LocalFixture, "E02 the seed is for a session without a checkpoint of its own",
                 "[cases.E02]") {
  const auto first = started("first");
  CHECK(first->exec({"touch", "of-the-seed"}).success);
  REQUIRE(first->snapshot().checkpoint.has_value());
  SandboxConfig config;
  config.id = "second";
  config.seed_checkpoint_name = "first";
  const auto second = make(config);
  CHECK(second->start().provenance == Provenance::seed);
  CHECK(second->exec({"mv", "of-the-seed", "own"}).success);
  CHECK(second->snapshot().checkpoint->name == "second");
  second->destroy();
  CHECK(second->start().provenance == Provenance::checkpoint);
  CHECK(fs::exists(folder("second") / "own"));
  CHECK_FALSE(fs::exists(folder("second") / "of-the-seed"));
  const auto third = make("third");
  third->start_from("first");
  CHECK(third->start().provenance == Provenance::checkpoint);
  CHECK(fs::exists(folder("third") / "of-the-seed"));
  for (const auto* name : {"first", "second"})
    third->remove_checkpoint(name);
}

TEST_CASE_METHOD(LocalFixture, "E03 nothing is captured without a name, and of what does not run",
                 "[cases.E03]") {
  const auto sandbox = make();
  const auto captures_nothing = [&](Sandbox& of) {
    const auto result = of.snapshot();
    CHECK_FALSE(result.checkpoint.has_value());
    CHECK_FALSE(result.why_not.empty());
  };
  captures_nothing(*sandbox);
  sandbox->start();
  sandbox->stop();
  captures_nothing(*sandbox);
  const auto nameless = make(SandboxConfig());
  nameless->start();
  captures_nothing(*nameless);
  // A guest that was ended from outside runs no more, whatever its host believes.
  sandbox->start();
  make()->stop();
  CHECK(eventually([&] { return !sandbox->snapshot().checkpoint.has_value(); }));
  sandbox->remove_checkpoint("s");
  CHECK_FALSE(fs::exists(root() / ".checkpoints"));
}

TEST_CASE_METHOD(LocalFixture,
                 "E01 a plugin whose process was lost never says that nothing is there to capture",
                 "[cases.E01]") {
  const auto sandbox = started();
  const auto why_not_captured = [&]() -> std::string {
    try {
      const auto result = sandbox->snapshot();
      CHECK(result.checkpoint.has_value());
      return {};
    } catch (const Exception& e) {
      return e.error().reason;
    }
  };
  for (const pid_t pid : processes_with("sandforge-runner"))
    if (parent_of(pid) == ::getpid()) ::kill(pid, SIGKILL);
  if (in_process()) CHECK(eventually([&] { return why_not_captured() == "plugin.restarted"; }));
  // A command connects the machine again.
  CHECK(sandbox->exec({"true"}).success);
  CHECK(why_not_captured().empty());
  sandbox->remove_checkpoint("s");
}

TEST_CASE_METHOD(LocalFixture,
                 "D02 what came after the checkpoint is set aside, and no destroy removes it",
                 "[cases.D02]") {
  const auto sandbox = started();
  CHECK(sandbox->exec({"touch", "before"}).success);
  REQUIRE(sandbox->snapshot().checkpoint.has_value());
  CHECK(sandbox->exec({"touch", "after"}).success);
  sandbox->destroy();
  CHECK(fs::exists(folder() / "after"));
  const auto again = sandbox->start();
  CHECK(again.outcome == StartOutcome::created);
  REQUIRE(again.warnings.size() == 1);
  CHECK(sandbox->exec({"ls"}).out == "before\n");
  const auto aside = root() / ".before-checkpoint/s";
  CHECK(again.warnings[0].find(aside.string()) != std::string::npos);
  CHECK(fs::exists(aside / "after"));
  sandbox->stop();
  CHECK(sandbox->start().outcome == StartOutcome::connected);
  CHECK(fs::exists(aside / "after"));
  sandbox->remove_checkpoint("s");
  sandbox->destroy();
  CHECK(fs::exists(aside / "after"));
}

// The commands of a folder on the host's machine.
#include <sandforge/plugin/host_commands.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "stage.hpp"
#include "support/temp_dir.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

namespace {

// A sandbox whose commands are passed on.
class Box {
 public:
  TempDir root;
  Stage stage;
  HostCommands commands{"box-1"};

  Box() {
    stage.it.spawn = [this](Sandbox&, Spawn& spawn) { commands.run(spawn); };
    stage.it.stop = [this](Sandbox& box, StopToken stop) { commands.end(box.lane()).get(stop); };
  }
  std::string folder() const { return root.str() + "/made/here"; }
  sf_status try_spawn(testing::CommandLine line) {
    testing::Running none(line.window);
    return stage.driver->spawn(line, none, stage.failure);
  }
};

testing::CommandLine shell(const std::string& text) {
  testing::CommandLine line;
  line.shell = text;
  return line;
}

}  // namespace

TEST_CASE("commands run in the folder, with the sandbox's environment below their own") {
  Box box;
  box.commands.open(box.folder(), {EnvEntry("A", "sandbox"), EnvEntry("B", "sandbox")});
  auto line = shell("pwd; echo $A $B");
  line.env = {{"B", "command"}};
  const auto here = box.stage.spawn(line);
  box.stage.end(*here);
  CHECK(here->out == box.folder() + "\nsandbox command\n");
  std::filesystem::create_directory(box.folder() + "/sub");
  line.cwd = "sub";
  const auto below = box.stage.spawn(line);
  box.stage.end(*below);
  CHECK(below->out == box.folder() + "/sub\nsandbox command\n");
  line.cwd = "/";
  const auto root = box.stage.spawn(line);
  box.stage.end(*root);
  CHECK(root->out == "/\nsandbox command\n");
}

TEST_CASE("what runs ends with the sandbox, and later commands are refused until the next start") {
  Box box;
  CHECK(box.try_spawn(shell("true")) == SF_GONE);
  box.commands.open(box.folder(), {});
  const auto waiting = box.stage.spawn(shell("exec sleep 60"));
  CHECK_FALSE(box.stage.driver->run(&sf_sandbox_vtbl::stop).failure);
  box.stage.end(*waiting);
  CHECK(waiting->exit.outcome == SF_EXIT_SIGNALED);
  CHECK(box.try_spawn(shell("true")) == SF_CONFLICT);
  CHECK_FALSE(box.stage.driver->run(&sf_sandbox_vtbl::stop).failure);

  box.commands.open(box.folder(), {});
  const auto again = box.stage.spawn(shell("echo again"));
  box.stage.end(*again);
  CHECK(again->out == "again\n");
  std::filesystem::remove_all(box.folder());
  CHECK(box.try_spawn(shell("true")) == SF_GONE);
}

TEST_CASE("another object of the session ends what the first one began") {
  Box box;
  HostCommands other("box-1");
  box.commands.open(box.folder(), {});
  box.stage.it.stop = [&](Sandbox& one, StopToken stop) { other.end(one.lane()).get(stop); };
  CHECK_FALSE(box.stage.driver->run(&sf_sandbox_vtbl::stop).failure);
  CHECK(box.try_spawn(shell("true")) == SF_CONFLICT);
}

TEST_CASE("a host that knows no groups still has its process service") {
  Ground ground;
  ground.host.process.struct_size = offsetof(sf_process_service, open_group);
  detail::services().fill(&ground.host);
  CHECK(detail::services().process != nullptr);
  HostCommands commands("box-1");
  CHECK(thrown_by([&] { commands.open("/tmp", {}); }).find("too old") != std::string::npos);
  CHECK(code_of([&] { static_cast<void>(commands.end(ground.lane)); }) == Code::unsupported);
}

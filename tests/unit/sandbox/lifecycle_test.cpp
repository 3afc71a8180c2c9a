#include "fixture.hpp"

namespace sandforge {

TEST_CASE("a sandbox starts, runs a command, stops and is destroyed") {
  Fixture f;
  CHECK(f.sandbox->status() == SandboxStatus::pending);
  CHECK(f.world->counts().creates == 0);

  const StartedInfo info = f.sandbox->start();
  CHECK(info.outcome == StartOutcome::created);
  CHECK(info.generation == 1);
  CHECK(f.sandbox->status() == SandboxStatus::running);
  CHECK(f.sandbox->sandbox_id() == ProviderSandboxId("m1"));
  CHECK(f.sandbox->working_directory() == "/work");

  const CommandResult result = f.sandbox->execute_command("echo", {"hello"});
  CHECK(result.outcome == Outcome::exited);
  CHECK(result.success);
  CHECK(result.exit_code == 0);
  CHECK(result.out == "hello\n");
  CHECK(result.command == "echo hello");

  f.sandbox->stop();
  CHECK(f.sandbox->status() == SandboxStatus::stopped);
  f.sandbox->destroy();
  CHECK(f.sandbox->status() == SandboxStatus::destroyed);
  CHECK_FALSE(f.sandbox->sandbox_id().has_value());
  CHECK(f.world->machine_count() == 0);
}

}  // namespace sandforge

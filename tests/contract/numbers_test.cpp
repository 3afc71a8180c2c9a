// What needs to look at the machine behind a process.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

TEST_CASE_METHOD(LocalFixture, "C an unknown id is absent", "[cases.C_unknown]") {
  const auto sandbox = started();
  for (const std::string id : {"1", "999999999", "no-such", "", "-1", "18446744073709551616"}) {
    CAPTURE(id);
    CHECK(sandbox->get_process(ProcessId(id)) == nullptr);
    CHECK_FALSE(sandbox->kill_process(ProcessId(id)));
  }
  // A process of the host's is no process of the sandbox.
  CHECK(sandbox->get_process(ProcessId(std::to_string(::getpid()))) == nullptr);
  CHECK_FALSE(sandbox->kill_process(ProcessId(std::to_string(::getppid()))));
}

TEST_CASE_METHOD(LocalFixture, "C a pid that the system uses again is never killed by mistake",
                 "[cases.C_pid_reuse]") {
  // Only who may choose the next pid can bring the collision about.
  const char* const last_pid = "/proc/sys/kernel/ns_last_pid";
  if (::access(last_pid, W_OK) != 0) {
    WARN("SKIPPED: ns_last_pid cannot be written here");
    return;
  }
  const auto sandbox = started();
  const auto process = sandbox->spawn(argv({"true"}));
  const auto reused = static_cast<pid_t>(process->pid());
  process->wait();
  REQUIRE(eventually([&] { return ::kill(reused, 0) != 0; }));

  pid_t stranger = 0;
  std::string sleep = "sleep", long_time = "60";
  char* words[] = {sleep.data(), long_time.data(), nullptr};
  for (int tries = 0; tries < 200 && stranger != reused; ++tries) {
    if (stranger != 0) {
      ::kill(stranger, SIGKILL);
      ::waitpid(stranger, nullptr, 0);
    }
    std::ofstream(last_pid) << reused - 1;
    REQUIRE(::posix_spawnp(&stranger, "sleep", nullptr, nullptr, words, environ) == 0);
  }
  const bool collided = stranger == reused;
  if (collided) {
    CHECK_FALSE(process->kill());
    CHECK_FALSE(sandbox->kill_process(process->id()));
    CHECK(error_of([&] { process->signal(SIGKILL, true); }).reason == "process.ended");
    sandbox->stop();
    CHECK(alive(stranger));
  }
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
  if (!collided) WARN("SKIPPED: the pid was not given out again");
}

TEST_CASE_METHOD(LocalFixture, "A17 an environment that is too much for a message is a typed error",
                 "[cases.A17]") {
  SandboxConfig config;
  config.id = "s";
  config.env.emplace();
  for (int i = 0; i < 90; ++i)
    config.env->emplace("LONG_" + std::to_string(i), std::string(100'000, 'x'));
  const auto sandbox = make(std::move(config));
  const Error refused = error_of([&] { sandbox->exec({"true"}); });
  CHECK(refused.code == Status::invalid);
  // A plugin in a process of its own is not even reached: its messages have the same bound.
  if (!in_process()) CHECK(refused.reason == "command.too_large");
  CHECK_FALSE(refused.may_have_started);
}

TEST_CASE_METHOD(LocalFixture, "A04 the longest argument works, a longer one is a typed error",
                 "[cases.A04]") {
  const auto sandbox = make();
  const std::string longest(131'071, 'x');
  const auto fits = sandbox->exec({"sh", "-c", "printf %s \"$1\" | wc -c", "sh", longest});
  CHECK(fits.exit_code == 0);
  CHECK(std::stoul(fits.out) == longest.size());

  const std::string longer(200'000, 'x');
  const Error refused = error_of([&] { sandbox->exec({"printf", "%s", longer}); });
  CHECK(refused.code == Status::invalid);
  CHECK(refused.reason == "command.too_large");
  CHECK_FALSE(refused.may_have_started);
  const Error as_text = error_of([&] { sandbox->execute_command("printf %s", {longer}); });
  CHECK(as_text.reason == "command.too_large");
  ExecOptions environment;
  environment.env["LONG"] = longer;
  CHECK(error_of([&] { sandbox->exec({"true"}, environment); }).reason == "command.too_large");

  CHECK(sandbox->exec({"true"}).success);
}

// The guest behind a session: it can be lost, stopped, or have something put in its place. What
// runs then is told truly, and the host can end the session nevertheless.
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

// A host that comes later, and knows no more than the session's id.
std::shared_ptr<Sandbox> later_host(LocalFixture& fixture) {
  SandboxConfig config;
  config.id = "s";
  return Sandbox::create(fixture.runtime(), fixture.provider(), std::move(config)).value();
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "a guest that was stopped by a signal is ended with the session") {
  const auto first = started();
  const auto guests = processes();
  REQUIRE(guests.size() == 1);
  REQUIRE(::kill(guests.front(), SIGSTOP) == 0);
  CHECK_NOTHROW(later_host(*this)->destroy());
  CHECK(nothing_runs());
}

TEST_CASE_METHOD(LocalFixture,
                 "a guest that a command stopped is lost, and the next call has a new one") {
  json::Object options;
  options.set("guestSilenceMs", 400);
  SandboxConfig config;
  config.id = "s";
  config.env = {{"MINE", std::string("kept")}};
  const auto sandbox = make(open(options), std::move(config));
  sandbox->start();
  const auto process =
      sandbox->spawn(shell("echo $$ > leader; setsid sh -c 'echo $$ > escaped; exec sleep 999' & "
                           "until test -s escaped; do :; done; kill -STOP $PPID; sleep 999"));
  const pid_t leader = read_pid(folder() / "leader");
  const pid_t escaped = read_pid(folder() / "escaped");
  const auto result = process->wait();
  CHECK(result.outcome == Outcome::transport_lost);
  CHECK(result.command_may_have_started);
  CHECK_FALSE(result.exit_code);
  // All of it has ended when that is told.
  CHECK(eventually([&] { return !alive(leader) && !alive(escaped); }));
  CHECK(sh(*sandbox, "echo $MINE").out == "kept\n");
}

TEST_CASE_METHOD(LocalFixture, "a guest that answers is kept, however quiet its commands are") {
  json::Object options;
  options.set("guestSilenceMs", 2000);
  SandboxConfig config;
  config.id = "s";
  const auto sandbox = make(open(options), std::move(config));
  sandbox->start();
  const pid_t guest = guest_of(folder().string());
  CHECK(sh(*sandbox, "sleep 3; echo done").out == "done\n");
  CHECK(guest_of(folder().string()) == guest);
}

TEST_CASE_METHOD(LocalFixture, "a guest whose socket was removed is ended with the session") {
  const auto first = started();
  sh(*first, "setsid sleep 1000 >/dev/null 2>&1 & rm ../.sandforge/s/guest");
  CHECK_NOTHROW(later_host(*this)->destroy());
  CHECK(nothing_runs());
}

TEST_CASE_METHOD(LocalFixture, "a guest whose folder was removed ends what it runs") {
  for (const char* remove : {"rm -r ../.sandforge", "rm -r ../.sandforge/s"}) {
    const auto first = started();
    sh(*first, std::string("setsid sleep 1000 >/dev/null 2>&1 & (sleep 0.1; ") + remove +
                   ") >/dev/null 2>&1 & true");
    CHECK(eventually([&] { return nothing_runs(); }));
    CHECK(sh(*later_host(*this), "echo up").out == "up\n");
    CHECK_NOTHROW(later_host(*this)->destroy());
    CHECK(nothing_runs());
  }
}

TEST_CASE_METHOD(LocalFixture, "a guest whose folder was moved away ends what it runs") {
  for (const auto& moved : {root() / ".sandforge" / "s", root() / ".sandforge", root()}) {
    const auto first = started();
    sh(*first, "setsid sleep 1000 >/dev/null 2>&1 & true");
    fs::rename(moved, base() / "away");
    CHECK(eventually([&] { return nothing_runs(); }));
    CHECK_NOTHROW(later_host(*this)->destroy());
    fs::remove_all(base() / "away");
  }
}

TEST_CASE_METHOD(LocalFixture, "a guest whose folder is moved and put back goes on") {
  const auto first = started();
  const pid_t guest = guest_of(folder().string());
  fs::rename(root() / ".sandforge", root() / "away");
  fs::rename(root() / "away", root() / ".sandforge");
  CHECK(sh(*first, "sleep 1; echo up").out == "up\n");
  CHECK(guest_of(folder().string()) == guest);
}

TEST_CASE_METHOD(LocalFixture,
                 "folders in place of the guest's files do not keep it from starting") {
  for (const char* name : {"guest", "guest.instance"}) {
    const auto first = started();
    first->stop();
    REQUIRE(fs::create_directories(root() / ".sandforge" / "s" / name / "in" / "it"));
    CHECK(sh(*later_host(*this), "echo up").out == "up\n");
    later_host(*this)->stop();
    fs::remove(root() / ".sandforge" / "s" / name);
    REQUIRE(fs::create_directories(root() / ".sandforge" / "s" / name / "in" / "it"));
    CHECK_NOTHROW(later_host(*this)->destroy());
    CHECK_FALSE(fs::exists(root() / ".sandforge"));
  }
}

TEST_CASE_METHOD(LocalFixture, "a file in place of the guest's folder does not keep the session") {
  for (const char* name : {".sandforge", ".sandforge/s"}) {
    started()->stop();
    fs::remove_all(root() / name);
    std::ofstream(root() / name) << "mine";
    CHECK_NOTHROW(later_host(*this)->destroy());
    fs::remove(root() / ".sandforge");
  }
}

TEST_CASE_METHOD(LocalFixture, "folders that commands put beside the guest go with the session") {
  const auto first = started();
  sh(*first, "mkdir -p ../.sandforge/s/a/b; ln -s / ../.sandforge/s/a/link");
  CHECK_NOTHROW(first->destroy());
  CHECK_FALSE(fs::exists(root() / ".sandforge"));
}

TEST_CASE_METHOD(LocalFixture, "a pipe in place of the guest's instance keeps no start waiting") {
  const auto first = started();
  first->stop();
  REQUIRE(fs::create_directories(root() / ".sandforge" / "t"));
  REQUIRE(::chmod((root() / ".sandforge" / "t").c_str(), 0700) == 0);
  REQUIRE(::mkfifo((root() / ".sandforge" / "t" / "guest.instance").c_str(), 0600) == 0);
  const auto second = started("t");
  CHECK(sh(*second, "echo up").out == "up\n");
}

TEST_CASE_METHOD(LocalFixture, "B10 a command whose connection breaks is never an exit of 0",
                 "[cases.B10]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  REQUIRE(eventually([&] { return process->out() == "up\n"; }));
  const pid_t guest = guest_of(folder().string());
  REQUIRE(guest != 0);
  REQUIRE(::kill(guest, SIGKILL) == 0);
  const auto result = process->wait();
  CHECK(result.outcome == Outcome::transport_lost);
  CHECK_FALSE(result.success);
  CHECK_FALSE(result.exit_code);
  CHECK(result.command_may_have_started);
  CHECK(result.out == "up\n");
  REQUIRE(result.error);
  CHECK(result.error->may_have_started);
  // Its tree ends with the guest that owned it.
  CHECK(eventually([&] { return !alive(static_cast<pid_t>(process->pid())); }));
}

TEST_CASE_METHOD(LocalFixture, "B10 what a lost guest left behind ends with the session",
                 "[cases.B10]") {
  const auto sandbox = started();
  const auto process =
      sandbox->spawn(shell("setsid sh -c 'echo $$ > escaped; exec sleep 99' & sleep 60"));
  const pid_t escaped = read_pid(folder() / "escaped");
  REQUIRE(::kill(guest_of(folder().string()), SIGKILL) == 0);
  CHECK(process->wait().outcome == Outcome::transport_lost);
  sandbox->destroy();
  CHECK(eventually([&] { return !alive(escaped); }));
}
TEST_CASE_METHOD(LocalFixture, "A09 input of many commands at once arrives whole", "[cases.A09]") {
  const auto sandbox = started();
  SpawnOptions options;
  options.timeout = 60s;
  const std::string input(1U << 20, 'x');
  std::vector<std::shared_ptr<Process>> processes;
  for (int i = 0; i < 24; ++i)
    processes.push_back(sandbox->spawn(shell("wc -c"), options));
  // For a while the guest takes nothing: more is to be written than waits on the way.
  const auto pause =
      sandbox->spawn(shell("kill -STOP $PPID; sleep 0.5; kill -CONT $PPID"), options);
  for (const auto& process : processes)
    process->async_write(input, [process](const Result<void>& written) {
      if (written.ok()) process->async_close_stdin([](const Result<void>&) {});
    });
  for (const auto& process : processes) {
    const auto result = process->wait();
    CHECK(result.outcome == Outcome::exited);
    CHECK(result.out == "1048576\n");
  }
  CHECK(pause->wait().success);
}

TEST_CASE_METHOD(LocalFixture, "D04 a machine that was stopped from outside is started again",
                 "[cases.D04]") {
  int starts = 0;
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    ++starts;
    std::move(done)(Result<void>());
  };
  const auto sandbox = make(config);
  sandbox->start();
  sh(*sandbox, "echo kept > file");
  REQUIRE(::kill(guest_of(folder().string()), SIGTERM) == 0);
  REQUIRE(eventually([&] { return guest_of(folder().string()) == 0; }));
  CHECK(sh(*sandbox, "cat file").out == "kept\n");
  CHECK(sandbox->status() == SandboxStatus::running);
  CHECK(starts == 2);
}

TEST_CASE_METHOD(LocalFixture,
                 "D04 a machine that was destroyed from outside is never replaced silently",
                 "[cases.D04]") {
  const auto sandbox = started();
  SECTION("its folder alone") {
    fs::remove_all(folder());
  }
  SECTION("its guest and its folder") {
    REQUIRE(::kill(guest_of(folder().string()), SIGKILL) == 0);
    REQUIRE(eventually([&] { return guest_of(folder().string()) == 0; }));
    fs::remove_all(folder());
  }
  const fs::path proof = home() / "proof";
  CHECK_THROWS_AS(sh(*sandbox, "touch " + proof.string()), SandboxDestroyedError);
  CHECK_FALSE(fs::exists(proof));
  // The next one provisions anew.
  CHECK(sh(*sandbox, "echo again").out == "again\n");
  CHECK(sandbox->started()->outcome == StartOutcome::created);
  CHECK(sandbox->start().outcome == StartOutcome::connected);
}

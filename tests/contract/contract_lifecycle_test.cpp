// The checks of groups B and E of the shared contract suite: life cycle and reconnection.
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

void kill_from_outside(const LocalFixture& host) {
  const std::string folder = host.folder().string();
  REQUIRE(::kill(guest_of(folder), SIGKILL) == 0);
  REQUIRE(eventually([&] { return guest_of(folder) == 0; }));
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "contract B1 id, name, provider and status are there",
                 "[contract.B1]") {
  const auto sandbox = make();
  CHECK_FALSE(sandbox->id().empty());
  CHECK_FALSE(sandbox->name().empty());
  CHECK(sandbox->provider() == "local");
  CHECK_FALSE(to_string(sandbox->status()).empty());
}

TEST_CASE_METHOD(LocalFixture, "contract B2 ids differ between instances", "[contract.B2]") {
  const auto one = make(SandboxConfig{});
  const auto two = make(SandboxConfig{});
  CHECK(one->id() != two->id());
}

TEST_CASE_METHOD(LocalFixture, "contract B3 B7 a fresh sandbox is pending, and does not run",
                 "[contract.B3][contract.B7]") {
  CHECK(make()->status() == SandboxStatus::pending);
}

TEST_CASE_METHOD(LocalFixture, "contract B4 B5 it runs after start, also after a second one",
                 "[contract.B4][contract.B5]") {
  const auto sandbox = make();
  sandbox->start();
  CHECK(sandbox->status() == SandboxStatus::running);
  CHECK_NOTHROW(sandbox->start());
  CHECK(sandbox->status() == SandboxStatus::running);
}

TEST_CASE_METHOD(LocalFixture, "contract B6 it is stopped after stop", "[contract.B6]") {
  const auto sandbox = started();
  sandbox->stop();
  CHECK(sandbox->status() == SandboxStatus::stopped);
}

TEST_CASE_METHOD(LocalFixture, "contract B8 B9 info agrees with the sandbox",
                 "[contract.B8][contract.B9]") {
  const auto sandbox = started();
  const auto info = sandbox->info();
  CHECK(info.id == sandbox->id());
  CHECK(info.name == sandbox->name());
  CHECK(info.provider == sandbox->provider());
  CHECK(info.status == SandboxStatus::running);
  CHECK(info.status == sandbox->status());
}

TEST_CASE_METHOD(LocalFixture,
                 "contract B10 B11 a start that cannot work fails, a good one follows",
                 "[contract.B10][contract.B11]") {
  json::Object bad;
  bad.set("root", "/dev/null/nowhere");
  SandboxConfig config;
  config.id = "s";
  const auto broken = make(open(bad), config);
  CHECK_THROWS_AS(broken->start(), Exception);
  CHECK(broken->status() == SandboxStatus::error);
  const auto good = make();
  good->start();
  CHECK(good->execute_command("echo good").out == "good\n");
}

TEST_CASE_METHOD(LocalFixture, "contract E1 E2 the id is there and stays over a restart",
                 "[contract.E1][contract.E2]") {
  const auto sandbox = started();
  const auto id = sandbox->info().id;
  CHECK_FALSE(id.empty());
  sandbox->stop();
  sandbox->start();
  CHECK(sandbox->info().id == id);
}

TEST_CASE_METHOD(LocalFixture, "contract E3 a file in /tmp survives a restart", "[contract.E3]") {
  const auto sandbox = started();
  const std::string name = "/tmp/sandforge-e3-" + std::to_string(::getpid());
  sh(*sandbox, "echo kept > " + name);
  sandbox->stop();
  sandbox->start();
  CHECK(sh(*sandbox, "cat " + name + "; rm " + name).out == "kept\n");
}

TEST_CASE_METHOD(LocalFixture, "contract E4 pwd works after a restart", "[contract.E4]") {
  const auto sandbox = started();
  sandbox->stop();
  sandbox->start();
  CHECK(sandbox->execute_command("pwd").out == folder().string() + "\n");
}

TEST_CASE_METHOD(LocalFixture, "contract E6 E7 E8 a command starts a stopped sandbox",
                 "[contract.E6][contract.E7][contract.E8]") {
  const auto sandbox = started();
  sandbox->stop();
  for (const std::string word : {"one", "two", "three"})
    CHECK(sandbox->execute_command("echo " + word).out == word + "\n");
  CHECK(sandbox->status() == SandboxStatus::running);
  sandbox->stop();
  CHECK(sandbox->spawn(argv({"echo", "spawned"}))->wait().out == "spawned\n");
}

TEST_CASE_METHOD(LocalFixture, "contract E9 three rounds of stop and start each run a command",
                 "[contract.E9]") {
  const auto sandbox = started();
  for (int i = 0; i < 3; ++i) {
    sandbox->stop();
    CHECK(sandbox->status() == SandboxStatus::stopped);
    sandbox->start();
    CHECK(sandbox->execute_command("echo " + std::to_string(i)).out == std::to_string(i) + "\n");
  }
}

TEST_CASE_METHOD(LocalFixture, "contract E12 a command recovers from a kill from outside",
                 "[contract.E12]") {
  const auto sandbox = started();
  kill_from_outside(*this);
  CHECK(sandbox->execute_command("echo back").out == "back\n");
  CHECK(sandbox->status() == SandboxStatus::running);
}

TEST_CASE_METHOD(LocalFixture, "contract E13 a spawn recovers from a kill from outside",
                 "[contract.E13]") {
  const auto sandbox = started();
  kill_from_outside(*this);
  CHECK(sandbox->spawn(argv({"echo", "back"}))->wait().out == "back\n");
}

TEST_CASE_METHOD(LocalFixture, "contract hooks run in order and are told what was booted") {
  std::vector<std::string> order;
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo info, Handler<void> done) {
    order.push_back("start " + std::string(to_string(info.outcome)));
    std::move(done)(Result<void>());
  };
  config.hooks.on_stop = [&](std::shared_ptr<Sandbox>, Handler<void> done) {
    order.push_back(fs::exists(folder() / "up") ? "stop after up" : "stop");
    std::move(done)(Result<void>());
  };
  config.hooks.on_destroy = [&](std::shared_ptr<Sandbox>, Handler<void> done) {
    order.push_back("destroy");
    std::move(done)(Result<void>());
  };
  const auto sandbox = make(config);
  sandbox->start();
  sh(*sandbox, "touch up");
  sandbox->stop();
  sandbox->start();
  sandbox->destroy();
  CHECK(order ==
        std::vector<std::string>{"start created", "stop after up", "start connected", "destroy"});
}

TEST_CASE_METHOD(LocalFixture,
                 "contract a failed stop hook fails the stop, which can be tried again") {
  bool fail = true;
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_stop = [&](std::shared_ptr<Sandbox>, Handler<void> done) {
    if (fail) return std::move(done)(Error(Status::internal, "not yet"));
    std::move(done)(Result<void>());
  };
  const auto sandbox = make(config);
  sandbox->start();
  CHECK(error_of([&] { sandbox->stop(); }).message.find("not yet") != std::string::npos);
  CHECK(sandbox->status() == SandboxStatus::error);
  fail = false;
  CHECK_NOTHROW(sandbox->stop());
  CHECK(sandbox->status() == SandboxStatus::stopped);
}

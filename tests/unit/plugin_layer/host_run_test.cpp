// Short commands of the host, taken whole.
#include <sandforge/plugin/host_run.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

namespace {

Command host_shell(const std::string& text) {
  Command command;
  command.shell = text;
  command.env.emplace_back("PATH", "/usr/bin:/bin");
  command.cwd = "/";
  return command;
}

std::string run_whole(Ground& ground, const Command& command, std::size_t most = 1 << 20,
                      const StopToken& stop = {}) {
  std::string all;
  ground.off_lane([&] {
    all = thrown_by([&] {
      const HostAnswer answer = run_on_host(ground.lane, command, most).get(stop);
      all = std::to_string(answer.exit.code) + "|" + answer.out + "|" + answer.err;
      throw Error(Code::invalid, all);
    });
  });
  return all;
}

}  // namespace

TEST_CASE("a command of the host is an answer, whatever its exit") {
  Ground ground;
  CHECK(run_whole(ground, host_shell("echo out; echo err >&2; exit 3")) == "1 3|out\n|err\n");
  // More than a window.
  CHECK(run_whole(ground, host_shell("head -c 300000 /dev/zero | tr '\\0' x")).size() ==
        300'000 + 5);
}

TEST_CASE("output beyond the bound ends the command") {
  Ground ground;
  CHECK(run_whole(ground, host_shell("yes"), 4096) ==
        std::to_string(SF_NO_SPACE) + " the command of the host wrote more than 4096 bytes");
}

TEST_CASE("a stop ends a command of the host") {
  Ground ground;
  StopSource stop;
  std::atomic<bool> asked{false};
  ground.host.process.handler = [&](const std::shared_ptr<testing::Invocation>& command) {
    command->started();
    asked = true;
    stop.request_stop();
  };
  CHECK(run_whole(ground, host_shell("sleep 60"), 4096, stop.token()) ==
        std::to_string(SF_CANCELLED) + " cancelled");
  CHECK(asked);
}

TEST_CASE("a stop before it begins runs nothing") {
  Ground ground;
  StopSource stop;
  stop.request_stop();
  CHECK(run_whole(ground, host_shell("touch /never"), 4096, stop.token()) ==
        std::to_string(SF_CANCELLED) + " cancelled");
}

TEST_CASE("a command that cannot run, and a host without the service, are typed errors") {
  Ground ground;
  ground.host.process.handler = [](const std::shared_ptr<testing::Invocation>& command) {
    command->refuse(testing::Failure(SF_NOT_FOUND, "no such program"));
  };
  CHECK(run_whole(ground, host_shell("x")) == "2 no such program");
  detail::services().process = nullptr;
  CHECK(run_whole(ground, host_shell("x")).substr(0, 3) == std::to_string(SF_UNSUPPORTED) + " ");
}

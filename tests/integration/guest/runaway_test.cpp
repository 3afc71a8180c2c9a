// Trees that run from the signal: with a control group, and one process at a time.
#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

#include "harness.hpp"
#include "test_paths.hpp"

using namespace guest_test;

namespace {

std::vector<std::string> options_of(bool group) {
  return group ? std::vector<std::string>() : std::vector<std::string>{"--no-cgroup"};
}

const std::string runaway = SANDFORGE_RUNAWAY_PATH;

enum class Place { group, no_group, crowd };

std::optional<Guest> guest_in(Place place) {
  if (place != Place::crowd) return Guest(options_of(place == Place::group));
  auto guest = Guest::crowded();
  if (!guest) WARN("SKIPPED: a pid namespace with numbers of our choice cannot be had here");
  return guest;
}

// Whether any process runs the helper with this file.
bool runaway_runs(const std::string& mode, const std::string& file, const std::string& number) {
  return runs(runaway + " " + mode + " " + file + " " + number);
}

std::string group_of(Host& host) {
  for (const std::string& line : lines_of(host.run(shell("cat /proc/self/cgroup")).out))
    if (line.compare(0, 3, "0::") == 0) return line.substr(3);
  return std::string();
}

}  // namespace

TEST_CASE("B05 a tree that flees from process to process is caught", "[cases.B05]") {
  const Place place = GENERATE(Place::group, Place::no_group, Place::crowd);
  CAPTURE(static_cast<int>(place));
  TempFolder folder;
  const std::string file = folder.file("escaped"), hops = "8000";
  auto guest = guest_in(place);
  if (!guest) return;
  Host& host = guest->host();
  const auto id = host.spawn(
      shell("for i in 1 2; do " + runaway + " flee " + file + " " + hops + " & done; sleep 900"));
  REQUIRE(host.until([&] { return exists(file + ".up"); }));
  CHECK(host.wait(host.client.kill(id, 0)).done == std::uint64_t{1});
  CHECK_FALSE(runaway_runs("flee", file, hops));
  CHECK_FALSE(exists(file));
}

TEST_CASE("B05 a bomb is caught while it grows", "[cases.B05]") {
  const bool group = GENERATE(true, false);
  CAPTURE(group);
  TempFolder folder;
  const std::string file = folder.file("escaped"), count = "2000";
  Guest guest(options_of(group));
  Host& host = guest.host();
  const auto id = host.spawn(argv({SANDFORGE_RUNAWAY_PATH, "bomb", file, count}));
  REQUIRE(host.until([&] { return runaway_runs("bomb", file, count); }));
  CHECK(host.wait(host.client.kill(id, 0)).done == std::uint64_t{1});
  CHECK_FALSE(runaway_runs("bomb", file, count));
  CHECK_FALSE(exists(file));
}

TEST_CASE("B05 stop ends what flees without a mark", "[cases.B05]") {
  const Place place = GENERATE(Place::group, Place::no_group, Place::crowd);
  CAPTURE(static_cast<int>(place));
  TempFolder folder;
  const std::string file = folder.file("escaped"), hops = "8000";
  auto guest = guest_in(place);
  if (!guest) return;
  Host& host = guest->host();
  host.run(shell("env -i setsid -f " + runaway + " flee " + file + " " + hops +
                 " </dev/null >/dev/null 2>&1"));
  REQUIRE(host.until([&] { return exists(file + ".up"); }));
  wire::StopAllRequest stop;
  stop.grace_ms = 50;
  CHECK(host.wait(host.client.stop_all(stop)).done);
  CHECK_FALSE(runaway_runs("flee", file, hops));
  CHECK_FALSE(exists(file));
  CHECK(host.run(shell("echo next")).out == "next\n");
}

TEST_CASE("B05 a process whose first thread has ended is ended too", "[cases.B05]") {
  const bool stop = GENERATE(true, false);
  CAPTURE(stop);
  TempFolder folder;
  Guest guest({"--no-cgroup"});
  Host& host = guest.host();
  const auto id =
      host.spawn(shell(runaway + " headless " + folder.file("up") + " 1 & echo $!; wait"));
  REQUIRE(host.until([&] { return !host.of(id).out.empty() && exists(folder.file("up")); }));
  const pid_t pid = std::atoi(host.of(id).out.c_str());
  const std::string stat = "/proc/" + std::to_string(pid) + "/stat";
  REQUIRE(eventually([&] { return contents(stat).find(") Z ") != std::string::npos; }));
  if (stop)
    CHECK(host.wait(host.client.stop_all(wire::StopAllRequest())).done);
  else
    CHECK(host.wait(host.client.kill(id, 0)).done == std::uint64_t{1});
  CHECK(::kill(pid, 0) == -1);
}

TEST_CASE("a guest has a control group of its own, and takes it away") {
  std::string path;
  {
    Guest guest;
    Host& host = guest.host();
    host.run(shell("true"));
    REQUIRE(host.hello);
    if ((host.hello->features & wire::kFeatureCgroup) == 0) {
      WARN("SKIPPED: no control group can be made here");
      return;
    }
    path = group_of(host);
    CHECK(path.find("/sandforge-guest-" + host.hello->instance) != std::string::npos);
    // After a stop, commands are in it as before.
    CHECK(host.wait(host.client.stop_all(wire::StopAllRequest())).done);
    host.run(shell("(setsid " + long_sleep() + " &)"));
    CHECK(host.wait(host.client.stop_all(wire::StopAllRequest())).done);
    CHECK(group_of(host) == path);
  }
  Guest other({"--no-cgroup"});
  CHECK(group_of(other.host()).find("sandforge-guest") == std::string::npos);
  const std::string name = path.substr(path.rfind('/') + 1);
  CHECK(other.host().run(shell("find /sys/fs/cgroup -name " + name)).out.empty());
}

TEST_CASE("what a killed guest leaves behind is ended by the next one") {
  const bool group = GENERATE(true, false);
  CAPTURE(group);
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  const std::string plain = long_sleep(), escaped = long_sleep(), unmarked = long_sleep(),
                    strange = long_sleep();
  Guest bystander;
  bystander.host().spawn(shell("setsid " + strange + " & wait"));
  REQUIRE(bystander.host().until([&] { return runs(strange); }));
  bool grouped = false;
  {
    Guest guest = Guest::listening(socket, options_of(group));
    Host host(connect_socket(socket));
    wire::SpawnRequest r =
        shell(plain + " & (setsid " + escaped + " &); env -i setsid -f " + unmarked + "; wait");
    r.detach = true;
    host.spawn(r);
    REQUIRE(host.until([&] { return runs(plain) && runs(escaped) && runs(unmarked); }));
    grouped = (host.hello->features & wire::kFeatureCgroup) != 0;
    ::kill(guest.pid(), SIGKILL);
    REQUIRE(guest.exit_code() == 137);
  }
  CHECK(runs(escaped));
  Guest next = Guest::listening(socket);
  CHECK_FALSE(runs(plain));
  CHECK_FALSE(runs(escaped));
  // Without its mark only the group tells whose it is.
  CHECK(runs(unmarked) == !grouped);
  CHECK(runs(strange));
  Host host(connect_socket(socket));
  CHECK(host.run(shell("echo ok")).out == "ok\n");
  if (!grouped) {
    CHECK(::kill(find_process(unmarked), SIGKILL) == 0);
    CHECK(eventually([&] { return !runs(unmarked); }));
  }
}

// Connections: what is lost with one, what outlives it, and what a later one finds.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

#include "harness.hpp"

using namespace guest_test;

namespace {

const std::vector<wire::ProcessInfo>& processes(Host& host, std::vector<wire::ProcessInfo>& out) {
  const Seen& s = host.wait(host.client.list());
  REQUIRE(s.list);
  return out = s.list->processes;
}

}  // namespace

TEST_CASE("serve --fd ends with its connection, and its commands with it") {
  const std::string sleeper = long_sleep();
  Guest guest;
  guest.host().spawn(shell("setsid " + sleeper + " & wait"));
  REQUIRE(guest.host().until([&] { return runs(sleeper); }));
  guest.host().cut();
  CHECK(guest.exit_code() == 0);
  CHECK_FALSE(runs(sleeper));
}

TEST_CASE("serve --fd leaves detached commands alone") {
  const std::string sleeper = long_sleep();
  Guest guest;
  wire::SpawnRequest r = shell("exec " + sleeper);
  r.detach = true;
  const auto id = guest.host().spawn(r);
  REQUIRE(guest.host().until([&] { return runs(sleeper) && guest.host().of(id).started; }));
  const pid_t pid = guest.host().of(id).started->pid;
  guest.host().cut();
  CHECK(guest.exit_code() == 0);
  CHECK(runs(sleeper));
  CHECK(::kill(pid, SIGKILL) == 0);
  CHECK(eventually([&] { return !runs(sleeper); }));
}

TEST_CASE("a lost connection ends what is not detached, and a later host finds the rest") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  const std::string foreground = long_sleep(), detached = long_sleep();
  {
    Host host(connect_socket(socket));
    host.spawn(shell(foreground));
    wire::SpawnRequest r = shell("echo started; echo oops >&2; exec " + detached);
    r.detach = true;
    r.tag = "web";
    const auto id = host.spawn(r);
    REQUIRE(host.until([&] { return host.of(id).err == "oops\n" && runs(foreground); }));
    host.cut();
  }
  CHECK(eventually([&] { return !runs(foreground); }));
  CHECK(runs(detached));

  Host host(connect_socket(socket));
  std::vector<wire::ProcessInfo> list;
  REQUIRE(processes(host, list).size() == 2);
  CHECK(list[0].state != wire::ProcessState::running);
  CHECK(list[0].exit->killed);
  CHECK(list[1].tag == "web");
  CHECK(list[1].detached);
  CHECK(list[1].state == wire::ProcessState::running);
  CHECK(list[1].command.find("echo started") == 0);

  wire::AttachRequest a;
  a.process = list[1].process;
  a.window = 1 << 20;
  const auto id = host.client.attach(a);
  REQUIRE(
      host.until([&] { return host.of(id).out == "started\n" && host.of(id).err == "oops\n"; }));
  wire::AttachRequest b;
  b.request_id = list[1].request_id;
  b.from = wire::Cursor(3, 5);
  b.window = 1 << 20;
  const auto later = host.client.attach(b);
  REQUIRE(host.until([&] { return host.of(later).out == "rted\n"; }));
  CHECK(host.of(later).err.empty());
  CHECK(host.wait(host.client.kill(id, 1000)).done == std::uint64_t{1});
  CHECK(host.wait(id).exit->killed);
  CHECK(host.wait(later).exit);
  CHECK_FALSE(runs(detached));
}

TEST_CASE("with keep, every command outlives its connection, with its timeout") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket, {"--on-disconnect", "keep"});
  const std::string sleeper = long_sleep();
  std::string request;
  {
    Host host(connect_socket(socket));
    wire::SpawnRequest r = shell("echo before; " + sleeper);
    r.timeout_ms = 700;
    request = r.request_id;
    host.spawn(r);
    REQUIRE(host.until([&] { return runs(sleeper); }));
    host.cut();
  }
  CHECK(eventually([&] { return !runs(sleeper); }));
  Host host(connect_socket(socket));
  wire::AttachRequest a;
  a.request_id = request;
  a.window = 1 << 20;
  const Seen& s = host.wait(host.client.attach(a));
  CHECK(s.out == "before\n");
  REQUIRE(s.exit);
  CHECK(s.exit->timed_out);
}

TEST_CASE("the retained log is bounded, and what was dropped is counted exactly") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket, {"--log-bytes", "65536"});
  wire::SpawnRequest r = shell("yes | head -c 1000000; printf end; echo err >&2; touch " +
                               folder.file("done") + "; exec " + long_sleep());
  r.detach = true;
  r.window = 10;
  {
    Host host(connect_socket(socket));
    host.auto_grant = false;
    const auto id = host.spawn(r);
    REQUIRE(host.until([&] { return host.of(id).out.size() == 10; }));
    host.cut();
  }
  REQUIRE(eventually([&] { return exists(folder.file("done")); }));
  Host host(connect_socket(socket));
  wire::AttachRequest a;
  a.request_id = r.request_id;
  a.from = wire::Cursor(10, 0);
  a.window = 1 << 20;
  const auto id = host.client.attach(a);
  REQUIRE(host.until([&] { return host.of(id).err == "err\n"; }));
  const Seen& s = host.of(id);
  CHECK(s.out.size() + s.gap[0] == 1000003 - 10);
  CHECK(s.out.size() <= 65536);
  CHECK(s.out.size() > 60000);
  CHECK(s.out.compare(s.out.size() - 3, 3, "end") == 0);
  CHECK(s.gap[1] == 0);
}

TEST_CASE("acknowledged output is given up first") {
  Guest guest;
  Host& host = guest.host();
  wire::SpawnRequest r = shell("echo one; read x; echo two");
  r.stdin_mode = wire::StdinMode::pipe;
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return host.of(id).out == "one\n"; }));
  host.client.acknowledge(id, wire::Cursor(4, 0));
  REQUIRE(host.wait(host.client.info()).info);
  host.client.close_stdin(id);
  host.wait(id);
  wire::AttachRequest a;
  a.process = host.of(id).started->process;
  a.window = 100;
  const Seen& s = host.wait(host.client.attach(a));
  CHECK(s.gap[0] == 4);
  CHECK(s.out == "two\n");
  CHECK(s.end->dropped.out == 4);
}

TEST_CASE("two hosts see the same process") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  Host one(connect_socket(socket)), two(connect_socket(socket));
  wire::EnvSetRequest set;
  set.entries.emplace_back("TOKEN", std::string("from one"));
  REQUIRE(one.wait(one.client.env_set(set)).done);
  CHECK(two.run(shell("echo $TOKEN")).out == "from one\n");
  wire::SpawnRequest r = shell("echo hi; read x");
  r.stdin_mode = wire::StdinMode::pipe;
  const auto id = one.spawn(r);
  REQUIRE(one.until([&] { return one.of(id).out == "hi\n"; }));
  wire::AttachRequest a;
  a.request_id = r.request_id;
  a.window = 100;
  const auto watch = two.client.attach(a);
  REQUIRE(two.until([&] { return two.of(watch).out == "hi\n"; }));
  one.client.close_stdin(id);
  CHECK(one.wait(id).exit);
  CHECK(two.wait(watch).exit);
}

TEST_CASE("a burst of commands does not keep another host waiting") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  Host busy(connect_socket(socket)), other(connect_socket(socket));
  busy.wait(busy.client.info());
  other.wait(other.client.info());
  // Stopped, so that both requests lie there when it looks: the burst first.
  REQUIRE(::kill(guest.pid(), SIGSTOP) == 0);
  REQUIRE(::waitpid(guest.pid(), nullptr, WUNTRACED) == guest.pid());
  std::vector<wire::ChannelId> burst;
  for (int i = 0; i < 100; ++i)
    burst.push_back(busy.spawn(shell("exit 5")));
  REQUIRE(busy.until([&] { return busy.client.output().empty(); }));
  const auto info = other.client.info();
  REQUIRE(other.until([&] { return other.client.output().empty(); }));
  REQUIRE(::kill(guest.pid(), SIGCONT) == 0);
  const Seen& seen = other.wait(info);
  REQUIRE(seen.info);
  CHECK(seen.info->spawned < burst.size());
  for (const auto id : burst)
    CHECK(busy.wait(id).code() == 5);
}

TEST_CASE("a later host takes over the input") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  wire::SpawnRequest r = shell("read a; read b; echo $a-$b");
  r.stdin_mode = wire::StdinMode::pipe;
  r.detach = true;
  {
    Host one(connect_socket(socket));
    const auto id = one.spawn(r);
    REQUIRE(one.until([&] { return one.client.stdin_room(id) > 0; }));
    REQUIRE(one.client.write_stdin(id, "first\n") == std::size_t{6});
    REQUIRE(one.wait(one.client.info()).info);
    one.cut();
  }
  Host two(connect_socket(socket));
  wire::AttachRequest a;
  a.request_id = r.request_id;
  a.window = 1000;
  a.take_stdin = true;
  const auto id = two.client.attach(a);
  REQUIRE(two.until([&] { return two.client.stdin_room(id) > 0; }));
  REQUIRE(two.client.write_stdin(id, "second\n") == std::size_t{7});
  CHECK(two.wait(id).out == "first-second\n");
}

TEST_CASE("only one guest serves a socket, and a stale one is replaced") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  {
    Guest first = Guest::listening(socket);
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const pid_t second = start_program({"serve", "--socket", socket}, null.get(), null.get());
    CHECK(wait_program(second) == 3);
    struct stat st = {};
    REQUIRE(::stat(socket.c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0600);
    REQUIRE(::stat(folder.file("s").c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0700);
    ::kill(first.pid(), SIGKILL);
    CHECK(first.exit_code() == 137);
    CHECK(exists(socket));
  }
  {
    Guest third = Guest::listening(socket);
    Host host(connect_socket(socket));
    CHECK(host.run(shell("echo ok")).out == "ok\n");
  }
  CHECK_FALSE(exists(socket));
}

TEST_CASE("an open folder is refused for the socket") {
  TempFolder folder;
  REQUIRE(::mkdir(folder.file("open").c_str(), 0755) == 0);
  REQUIRE(::chmod(folder.file("open").c_str(), 0755) == 0);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const pid_t pid =
      start_program({"serve", "--socket", folder.file("open/s.sock")}, null.get(), null.get());
  CHECK(wait_program(pid) == 1);
}

TEST_CASE("D12 idle: a foreground command counts, a background process does not", "[cases.D12]") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket, {"--on-disconnect", "keep", "--idle-ms", "500"});
  const std::string sleeper = long_sleep();
  {
    Host host(connect_socket(socket));
    const wire::SpawnRequest r =
        shell("setsid " + sleeper + " >/dev/null 2>&1 & until [ -e " + folder.file("go") +
              " ]; do sleep .02; done; touch " + folder.file("completed"));
    host.spawn(r);
    REQUIRE(host.until([&] { return runs(sleeper); }));
    host.cut();
  }
  CHECK_FALSE(guest.exit_code(std::chrono::milliseconds(1500)));
  write_text(folder.file("go"), "");
  CHECK(guest.exit_code() == 0);
  CHECK(exists(folder.file("completed")));
  CHECK_FALSE(runs(sleeper));
  CHECK_FALSE(exists(socket));
}

TEST_CASE("D12 idle: a host that asks for nothing keeps nobody awake", "[cases.D12]") {
  TempFolder folder;
  Guest guest = Guest::listening(folder.file("s/guest.sock"), {"--idle-ms", "300"});
  Host host(connect_socket(folder.file("s/guest.sock")));
  // A channel that is open is in use, beyond the time.
  const auto id = host.spawn(shell("sleep 1; printf whole"));
  CHECK(host.wait(id).out == "whole");
  CHECK(guest.exit_code() == 0);
}

TEST_CASE("a guest that nobody uses goes away") {
  TempFolder folder;
  Guest guest =
      Guest::listening(folder.file("s/guest.sock"), {"--exit-when-idle-and-unused-ms", "100"});
  CHECK(guest.exit_code() == 0);
}

TEST_CASE("SIGTERM to the guest ends everything first") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  const std::string sleeper = long_sleep();
  Host host(connect_socket(socket));
  wire::SpawnRequest r = shell("(setsid " + sleeper + " &); trap '' TERM; sleep 403");
  r.detach = true;
  host.spawn(r);
  REQUIRE(host.until([&] { return runs(sleeper); }));
  ::kill(guest.pid(), SIGTERM);
  CHECK(guest.exit_code() == 0);
  CHECK_FALSE(runs(sleeper));
}

TEST_CASE("stop with exit ends the guest after its answer") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  Host host(connect_socket(socket));
  host.run(shell(long_sleep() + " & true"));
  wire::StopAllRequest stop;
  stop.exit = true;
  CHECK(host.wait(host.client.stop_all(stop)).done == std::uint64_t{1});
  CHECK(guest.exit_code() == 0);
}

// A guest that listens, and a pair of sockets for a relay to it.
struct Relayed {
  Relayed() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    ours = Fd(ends[0]);
    theirs = Fd(ends[1]);
  }
  pid_t start() const {
    return start_program({"relay", "--socket", socket}, theirs.get(), theirs.get());
  }
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  Fd ours, theirs;
};

TEST_CASE("the relay bridges to the socket") {
  Relayed relayed;
  const pid_t relay = relayed.start();
  relayed.theirs.reset();
  {
    Host host(std::move(relayed.ours));
    CHECK(host.run(shell("echo through; exit 7")).code() == 7);
    host.keep_output = false;
    host.run(shell("head -c 50000000 /dev/zero"));
    CHECK(host.counted == 50000000 + 8);
  }
  CHECK(wait_program(relay) == 0);
}

TEST_CASE("the relay leaves the flags of its streams as they were") {
  const bool blocking = GENERATE(true, false);
  CAPTURE(blocking);
  Relayed relayed;
  const int theirs = relayed.theirs.get();
  REQUIRE(sandforge::posix::set_nonblocking(theirs, !blocking));
  const pid_t relay = relayed.start();
  {
    Host host(std::move(relayed.ours));
    CHECK(host.run(shell("exit 7")).code() == 7);
    CHECK((::fcntl(theirs, F_GETFL) & O_NONBLOCK) != 0);
  }
  CHECK(wait_program(relay) == 0);
  CHECK(((::fcntl(theirs, F_GETFL) & O_NONBLOCK) == 0) == blocking);
}

TEST_CASE("the relay waits for its socket, and gives up") {
  TempFolder folder;
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const pid_t relay = start_program({"relay", "--socket", folder.file("s"), "--wait-ms", "50"},
                                    null.get(), null.get());
  CHECK(wait_program(relay) == 1);
}

TEST_CASE("a host that says nothing sensible is cut off") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  for (const std::string& bytes :
       {std::string(100, '\xff'), std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string(24, '\0')}) {
    const Fd raw = connect_socket(socket);
    REQUIRE(::write(raw.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    char byte;
    CHECK(::read(raw.get(), &byte, 1) <= 0);
  }
  Host host(connect_socket(socket));
  CHECK(host.run(shell("echo alive")).out == "alive\n");
}

TEST_CASE("a guest asks a silent host for a sign of life") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket, {"--ping-ms", "50"});
  Host answering(connect_socket(socket));
  answering.run(shell("true"));
  const Fd silent = connect_socket(socket);
  // Nothing is sent, not even a greeting: the guest ends it, and only it.
  char byte;
  CHECK(answering.until([&] { return ::recv(silent.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
  answering.settle(std::chrono::milliseconds(500));
  CHECK(answering.run(shell("echo still")).out == "still\n");
}

TEST_CASE("a lost guest is told to every open channel") {
  Guest guest;
  Host& host = guest.host();
  const auto id = host.spawn(shell("echo on; exec " + long_sleep()));
  REQUIRE(host.until([&] { return host.of(id).out == "on\n"; }));
  ::kill(guest.pid(), SIGKILL);
  const Seen& s = host.wait(id);
  REQUIRE(s.lost);
  CHECK(*s.lost);
  CHECK_FALSE(s.exit);
  CHECK(guest.exit_code() == 137);
}

// Hosts that do not read, ask for too much, or send nonsense: bounded, and nobody else is held up.
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>

#include "harness.hpp"
#include "test_paths.hpp"

using namespace guest_test;

namespace {

constexpr bool kSanitized =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

// Says hello, and whatever else is in `frames`, as far as the guest takes it; reads nothing.
Fd greet(const std::string& socket, const std::string& frames) {
  Fd raw = connect_socket(socket);
  std::string bytes, payload;
  wire::Hello().encode(payload);
  wire::append_message(bytes, wire::FrameType::hello, 0, 0, payload);
  bytes += frames;
  std::size_t sent = 0;
  // A guest that reads no further is what this is about.
  eventually(
      [&] {
        const ssize_t n = ::send(raw.get(), bytes.data() + sent, bytes.size() - sent,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) sent += static_cast<std::size_t>(n);
        return sent == bytes.size();
      },
      std::chrono::milliseconds(500));
  return raw;
}

// Ended commands with long names make long lists.
void make_history(Host& host, int count) {
  for (int i = 0; i < count; ++i)
    host.run(argv({"true", std::string(1000, 'x')}));
}

}  // namespace

TEST_CASE("a host that asks and never reads costs bounded memory, and no other host") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  Host other(connect_socket(socket));
  make_history(other, 60);
  const auto before = resident_kib(guest.pid());
  std::string lists;
  for (std::uint64_t channel = 1; channel <= 4000; ++channel)
    wire::append_message(lists, wire::FrameType::list, channel, 0, {});
  const Fd silent = greet(socket, lists);
  CHECK(other.run(shell("echo fine")).out == "fine\n");
  const auto growth = resident_kib(guest.pid()) - before;
  CAPTURE(before, growth);
  CHECK(before > 0);
  if (!kSanitized) CHECK(growth < 16 * 1024);  // all answers: 260 MiB
}

TEST_CASE("a host that asks for more than it reads at once gets every answer") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  Host host(connect_socket(socket));
  make_history(host, 60);
  std::vector<wire::ChannelId> asked;
  for (int i = 0; i < 300; ++i)
    asked.push_back(host.client.list());
  for (const wire::ChannelId id : asked) {
    const Seen& s = host.wait(id);
    REQUIRE(s.list);
    REQUIRE(s.list->processes.size() == 60);
  }
}

TEST_CASE("output for a host that never reads waits in the log and in the pipe") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  Host other(connect_socket(socket));
  other.run(shell("true"));
  const auto before = resident_kib(guest.pid());
  std::string spawns;
  for (std::uint64_t channel = 1; channel <= 4; ++channel) {
    wire::SpawnRequest request = shell("touch " + folder.file(std::to_string(channel)) + "; yes");
    request.window = std::uint64_t{1} << 60;
    std::string payload;
    request.encode(payload);
    wire::append_message(spawns, wire::FrameType::spawn, channel, 0, payload);
  }
  const Fd silent = greet(socket, spawns);
  REQUIRE(eventually([&] { return exists(folder.file("4")); }));
  other.keep_output = false;
  other.run(shell("head -c 20000000 /dev/zero"));
  CHECK(other.counted == 20000000);
  const auto growth = resident_kib(guest.pid()) - before;
  CAPTURE(before, growth);
  if (!kSanitized) CHECK(growth < 16 * 1024);
}

TEST_CASE("nonsense after the greeting ends that connection alone") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  Host other(connect_socket(socket));
  other.run(shell("true"));
  std::string twice, unopened, oversized, nonsense;
  wire::append_message(twice, wire::FrameType::list, 5, 0, {});
  wire::append_message(twice, wire::FrameType::list, 5, 0, {});
  wire::append_message(unopened, wire::FrameType::credit, 7, 10, {});
  wire::append_message(oversized, wire::FrameType::list, 1, 0, {});
  oversized[3] = '\x7f';
  wire::append_message(nonsense, wire::FrameType::spawn, 1, 0, std::string(100, '\xee'));
  std::srand(1);
  std::string random(100000, '\0');
  for (char& c : random)
    c = static_cast<char>(std::rand());
  for (const std::string& bytes : {twice, unopened, oversized, nonsense, random}) {
    const Fd raw = greet(socket, bytes);
    char byte[4096];
    CHECK(eventually([&] {
      const ssize_t n = ::recv(raw.get(), byte, sizeof byte, MSG_DONTWAIT);
      return n == 0 || (n < 0 && errno == ECONNRESET);
    }));
  }
  CHECK(other.run(shell("echo alive")).out == "alive\n");
}

TEST_CASE("what a command was started with is not kept") {
  Guest guest;
  Host& host = guest.host();
  host.run(shell("true"));
  const auto before = resident_kib(guest.pid());
  for (int i = 0; i < 200; ++i) {
    wire::SpawnRequest r = argv({"true", std::string(120000, 'a')});
    r.env.emplace_back("LARGE", std::string(120000, 'b'));
    REQUIRE(host.run(r).code() == 0);
  }
  const auto growth = resident_kib(guest.pid()) - before;
  CAPTURE(before, growth);
  if (!kSanitized) CHECK(growth < 16 * 1024);  // all of it: 47 MiB
  const Seen& list = host.wait(host.client.list());
  REQUIRE(list.list);
  CHECK(list.list->processes.back().command.compare(0, 8, "true aaa") == 0);
}

TEST_CASE("no descriptor of the guest would be inherited") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  Host host(connect_socket(socket));
  wire::SpawnRequest r = shell("echo on; " + long_sleep());
  r.stdin_mode = wire::StdinMode::pipe;
  const auto id = host.spawn(r);
  REQUIRE(host.until([&] { return host.of(id).out == "on\n"; }));
  const std::string info = "/proc/" + std::to_string(guest.pid()) + "/fdinfo";
  DIR* listing = ::opendir(info.c_str());
  if (!listing) {
    WARN("SKIPPED: /proc of the guest may not be read by its user");
    return;
  }
  int seen = 0;
  while (const dirent* entry = ::readdir(listing)) {
    const int fd = std::atoi(entry->d_name);
    if (fd <= 2) continue;
    for (const std::string& line : lines_of(contents(info + "/" + entry->d_name)))
      if (line.compare(0, 6, "flags:") == 0) {
        CAPTURE(fd, line);
        CHECK((std::strtol(line.c_str() + 6, nullptr, 8) & O_CLOEXEC) != 0);
        ++seen;
      }
  }
  ::closedir(listing);
  CHECK(seen >= 6);
  host.client.kill(id, 0);
  host.wait(id);
}

TEST_CASE("hosts that ask and are gone before the answer") {
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  Guest guest = Guest::listening(socket);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Host>> hosts;
    for (int i = 0; i < 4; ++i) {
      hosts.push_back(std::make_unique<Host>(connect_socket(socket)));
      REQUIRE(hosts.back()->until([&] { return hosts.back()->hello.has_value(); }));
    }
    // The guest sees all of it at once: one that only went, and others with a question.
    ::kill(guest.pid(), SIGSTOP);
    hosts.front()->cut();
    for (std::size_t i = 1; i < hosts.size(); ++i) {
      hosts[i]->client.info();
      CHECK(hosts[i]->until([&] { return hosts[i]->client.output().empty(); }));
      hosts[i]->cut();
    }
    ::kill(guest.pid(), SIGCONT);
  }
  Host last(connect_socket(socket));
  CHECK(last.run(shell("echo alive")).out == "alive\n");
}

TEST_CASE("hosts that found no descriptor left are served once there is one") {
#if defined(__SANITIZE_ADDRESS__)
  WARN("SKIPPED: without descriptors of their own the sanitizers take sound objects for unsound");
#else
  TempFolder folder;
  const std::string socket = folder.file("s/guest.sock");
  const pid_t guest = ::fork();
  REQUIRE(guest >= 0);
  if (guest == 0) {
    const struct rlimit few = {24, 24};
    ::setrlimit(RLIMIT_NOFILE, &few);
    ::execl(SANDFORGE_GUEST_PATH, SANDFORGE_GUEST_PATH, "serve", "--socket", socket.c_str(),
            nullptr);
    ::_exit(127);
  }
  std::vector<std::unique_ptr<Host>> hosts;
  for (int i = 0; i < 24; ++i) {
    Fd connected;
    REQUIRE(eventually([&] {
      if (!connected) connected = connect_socket(socket);
      return static_cast<bool>(connected);
    }));
    hosts.push_back(std::make_unique<Host>(std::move(connected)));
  }
  // All have connected, and not all can have been accepted.
  for (const auto& host : hosts) {
    const Seen& s = host->wait(host->client.info(), std::chrono::seconds(10));
    CHECK(s.info);
    host->cut();
  }
  ::kill(guest, SIGTERM);
  CHECK(wait_program(guest) == 0);
#endif
}

// What a plugin in a process of its own gets: what the configuration grants, and nothing else.
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner_fixture.hpp"
#include "sandforge/posix/fd.hpp"

using namespace sandforge;
using test::RunnerHost;

namespace {

std::string say(Sandbox& sandbox, const std::string& command) {
  return sandbox.execute_command(command).out;
}

// The groups of this process, as a host that root started from a session has some.
class OwnGroups {
 public:
  explicit OwnGroups(const std::vector<gid_t>& groups) {
    before_.resize(static_cast<std::size_t>(::getgroups(0, nullptr)));
    REQUIRE(::getgroups(static_cast<int>(before_.size()), before_.data()) >= 0);
    REQUIRE(::setgroups(groups.size(), groups.data()) == 0);
  }
  ~OwnGroups() { ::setgroups(before_.size(), before_.data()); }
  OwnGroups(const OwnGroups&) = delete;
  OwnGroups& operator=(const OwnGroups&) = delete;

 private:
  std::vector<gid_t> before_;
};

// Answers one request on 127.0.0.1, when it is told to.
class OneAnswer {
 public:
  OneAnswer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(::bind(socket_, address, size) == 0);
    REQUIRE(::listen(socket_, 4) == 0);
    REQUIRE(::getsockname(socket_, address, &size) == 0);
    port = ntohs(at.sin_port);
  }
  ~OneAnswer() {
    if (thread_.joinable()) thread_.join();
    ::close(socket_);
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  bool somebody_came() const { return waits(0); }
  void answer(const std::string& body) {
    thread_ = std::thread([this, body] {
      if (!waits(60'000)) return;
      const int peer = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      std::string head;
      char byte = 0;
      while (head.find("\r\n\r\n") == std::string::npos && ::recv(peer, &byte, 1, 0) == 1)
        head += byte;
      const std::string text = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body;
      ::send(peer, text.data(), text.size(), MSG_NOSIGNAL);
      ::close(peer);
    });
  }
  unsigned port = 0;

 private:
  bool waits(int ms) const {
    pollfd state{socket_, POLLIN, 0};
    return ::poll(&state, 1, ms) == 1;
  }
  const int socket_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("nothing is granted by default, and the refusal names the grant", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  CHECK(say(*sandbox, "env UNRULY_GIVEN") == "(not set)");
  CHECK(say(*sandbox, "secret my-token") ==
        "error 12: the secret my-token is not granted to the plugin unruly: what grants it is "
        "plugins: {policies: {unruly: {allow: {secrets: [\"my-token\"]}}}}");
  // The host takes calls of a plugin in their order: that answer came after the record.
  CHECK(host.log().find("plugins.policies.NAME.allow.env") != std::string::npos);
}

TEST_CASE("what is granted arrives, and only that", "[runner]") {
  PluginPolicy policy;
  policy.env = {"UNRULY_GIVEN", "HOME"};
  policy.secrets = {"my-token", "other"};
  RunnerHost host(policy);
  const auto sandbox = host.make();
  CHECK(say(*sandbox, "env UNRULY_GIVEN") == "value of UNRULY_GIVEN");
  CHECK(say(*sandbox, "env UNRULY_KEPT") == "(not set)");
  CHECK(say(*sandbox, "env HOME").find("error 7") == 0);  // the manifest does not name it
  CHECK(say(*sandbox, "secret my-token") == "my-token of s");
  CHECK(say(*sandbox, "secret your-token").find("error 12") == 0);
  CHECK(say(*sandbox, "secret other").find("error 2") == 0);  // granted, and there is none
}

TEST_CASE("requests go where the configuration grants it, and nowhere else", "[runner]") {
  OneAnswer server;
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port);
  const std::string refused = "error 12: the plugin unruly may not connect to ";
  PluginPolicy policy;
  SECTION("nothing by default") {
    RunnerHost host(policy);
    const auto sandbox = host.make();
    CHECK(say(*sandbox, "http " + url) ==
          refused + url.substr(7) +
              ": the configuration does not grant it; what grants it is plugins: {policies: "
              "{unruly: {allow: {hosts: [\"" +
              url.substr(7) + "\"]}}}}");
    CHECK(say(*sandbox, "http unix:///run/x.sock") ==
          refused +
              "/run/x.sock: the configuration does not grant it; what grants it is plugins: "
              "{policies: {unruly: {allow: {unixSockets: [\"/run/x.sock\"]}}}}");
    CHECK_FALSE(server.somebody_came());
  }
  SECTION("another port") {
    policy.hosts = {"127.0.0.1:1", "localhost"};
    RunnerHost host(policy);
    const auto sandbox = host.make();
    CHECK(say(*sandbox, "http " + url).find(refused) == 0);
    CHECK_FALSE(server.somebody_came());
  }
  SECTION("granted") {
    policy.hosts = {"127.0.0.1:" + std::to_string(server.port)};
    RunnerHost host(policy);
    const auto sandbox = host.make();
    server.answer("hello");
    CHECK(say(*sandbox, "http " + url) == "hello");
    CHECK(say(*sandbox, "http http://127.0.0.1:1").find(refused) == 0);
  }
}

TEST_CASE("no variable and no secret of the host is in the process's environment or command line",
          "[runner]") {
  ::setenv("SANDFORGE_TEST_SECRET", "not-for-plugins", 1);
  PluginPolicy policy;
  policy.env = {"UNRULY_GIVEN"};
  policy.secrets = {"my-token"};
  RunnerHost host(policy);
  const auto sandbox = host.make();
  CHECK(say(*sandbox, "secret my-token") == "my-token of s");
  const std::string environment = say(*sandbox, "read /proc/self/environ");
  const std::string line = say(*sandbox, "read /proc/self/cmdline");
  CHECK(environment.find("not-for-plugins") == std::string::npos);
  CHECK(environment.find("UNRULY_GIVEN") == std::string::npos);
  CHECK(environment.find("my-token") == std::string::npos);
  CHECK(line == std::string(SANDFORGE_RUNNER) + '\0');
  ::unsetenv("SANDFORGE_TEST_SECRET");
}

TEST_CASE("what names the system's CAs does so in the process, too", "[runner]") {
  ::setenv("SSL_CERT_FILE", "/nowhere/ca.pem", 1);
  ::setenv("SSL_CERT_DIR", "/nowhere/certs", 1);
  RunnerHost host;
  const std::string environment = say(*host.make(), "read /proc/self/environ");
  ::unsetenv("SSL_CERT_FILE");
  ::unsetenv("SSL_CERT_DIR");
  CHECK(environment.find("SSL_CERT_FILE=/nowhere/ca.pem") != std::string::npos);
  CHECK(environment.find("SSL_CERT_DIR=/nowhere/certs") != std::string::npos);
}

TEST_CASE("no descriptor of the host is open in the process", "[runner]") {
  const test::TempDir folder;
  const auto file = folder.write("of-the-host", "its content");
  const posix::Fd open(::open(file.c_str(), O_RDONLY));  // and inherited by whatever is started
  REQUIRE(open);
  RunnerHost host;
  const auto sandbox = host.make();
  CHECK(say(*sandbox, "read " + file.string()) == "its content");
  // High enough to be none of the process's own.
  const int high = ::fcntl(open.get(), F_DUPFD, 700);
  REQUIRE(high >= 700);
  RunnerHost second;
  const auto other = second.make();
  CHECK(say(*other, "read /proc/self/fd/" + std::to_string(high)).empty());
  ::close(high);
}

TEST_CASE("without the grant no file is written and no program runs, where the kernel can",
          "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make("info");
  const std::string file = (host.folder / "file").string();
  sandbox->start();
  if (host.log().find("the kernel has no Landlock") != std::string::npos) {
    WARN("SKIPPED: this kernel has no Landlock");
    return;
  }
  CHECK(say(*sandbox, "write " + file) == "refused");
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(say(*sandbox, "run true") != "0");
  CHECK(say(*sandbox, "write " + (host.folder / "data/unruly/mine").string()) == "written");
}

TEST_CASE("a link in the place of its folder opens nothing to a process", "[runner]") {
  RunnerHost host;
  const auto mine = host.folder / "data/unruly";
  const auto elsewhere = host.folder / "elsewhere";
  std::filesystem::create_directories(elsewhere);
  std::filesystem::permissions(elsewhere, std::filesystem::perms(0700));
  std::filesystem::create_directory(host.folder / "data");
  std::filesystem::create_directory_symlink(elsewhere, mine);
  const auto sandbox = host.make();
  sandbox->start();
  if (host.log().find("the kernel has no Landlock") != std::string::npos) {
    WARN("SKIPPED: this kernel has no Landlock");
    return;
  }
  CHECK(say(*sandbox, "write " + (elsewhere / "file").string()) == "refused");
  CHECK(std::filesystem::is_empty(elsewhere));
  CHECK_THAT(host.log(), Catch::Contains("a plugin's folder cannot be used") &&
                             Catch::Contains("is no folder"));
}

TEST_CASE("a folder that others can change is not the plugin's", "[runner]") {
  RunnerHost host;
  const auto mine = host.folder / "data/unruly";
  std::filesystem::create_directories(mine);
  std::filesystem::permissions(mine, std::filesystem::perms(0777));
  const auto sandbox = host.make();
  sandbox->start();
  if (host.log().find("the kernel has no Landlock") != std::string::npos) {
    WARN("SKIPPED: this kernel has no Landlock");
    return;
  }
  CHECK(say(*sandbox, "write " + (mine / "file").string()) == "refused");
  CHECK_THAT(host.log(), Catch::Contains("is open to other users"));
}

TEST_CASE("a user without an entry and a group is refused: it would have the group of root",
          "[runner]") {
  PluginPolicy policy;
  policy.user = "54321";
  RunnerHost host(policy);
  CHECK_THAT(test::error_of([&] { host.open(); }).message,
             Catch::Contains("its process cannot run as another user: the user 54321 has no entry "
                             "and so no group: give one, as in 54321:GID"));
}

// What the processes of a user may be, threads included; root itself has no such limit.
class FewThreads {
 public:
  explicit FewThreads(rlim_t count) {
    REQUIRE(::getrlimit(RLIMIT_NPROC, &before_) == 0);
    const rlimit few{count, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NPROC, &few) == 0);
  }
  ~FewThreads() { ::setrlimit(RLIMIT_NPROC, &before_); }
  FewThreads(const FewThreads&) = delete;
  FewThreads& operator=(const FewThreads&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("a process that gets no thread says so, and one that gets few makes do", "[runner]") {
#ifdef __SANITIZE_THREAD__
  WARN("SKIPPED: the sanitizer itself needs a thread");
#else
  if (::geteuid() != 0) {
    WARN("SKIPPED: only root may start a process as another user");
    return;
  }
  PluginPolicy policy;
  policy.user = "54329:54322";  // of this case alone: its processes are counted
  const auto host_of = [&] {
    auto host = std::make_unique<RunnerHost>(policy);
    std::filesystem::permissions(host->folder.path(), std::filesystem::perms(0711));
    return host;
  };
  // Itself; then with the two of its lanes, and none that reads.
  for (const rlim_t count : {1, 3}) {
    INFO(count);
    const auto host = host_of();
    const FewThreads few(count);
    const Error error = test::error_of([&] { host->open(); });
    CHECK_THAT(error.message, Catch::Contains("could not be started in a process: no thread could "
                                              "be made: the limit of processes is reached"));
  }
  // One that reads, and no second one: the process answers, and has no thread for what blocks.
  const auto host = host_of();
  const FewThreads few(4);
  const auto sandbox = host->make();
  const Error error = test::error_of([&] { say(*sandbox, "env UNRULY_GIVEN"); });
  CHECK(error.message == "no thread could be made: the limit of processes is reached");
#endif
}

TEST_CASE("a process runs as the user of its policy, without a group of the host, and serves",
          "[runner]") {
  if (::geteuid() != 0) {
    WARN("SKIPPED: only root may start a process as another user");
    return;
  }
  const OwnGroups groups({0, 4242});
  PluginPolicy policy;
  policy.user = "54321:54322";
  RunnerHost host(policy);
  const auto mine = host.record().parent_path();
  std::filesystem::create_directories(mine);
  std::filesystem::permissions(mine, std::filesystem::perms(0700));
  REQUIRE(::chown(mine.c_str(), 54321, 54322) == 0);
  std::filesystem::permissions(host.folder.path(), std::filesystem::perms(0711));

  const auto sandbox = host.make();
  const std::string status = say(*sandbox, "read /proc/self/status");
  CHECK_THAT(status, Catch::Contains("\nUid:\t54321\t54321\t54321\t54321\n") &&
                         Catch::Contains("\nGid:\t54322\t54322\t54322\t54322\n") &&
                         Catch::Contains("\nGroups:\t \n"));
  CHECK_THAT(status, Catch::Contains("\nCapEff:\t0000000000000000\n") &&
                         Catch::Contains("\nCapPrm:\t0000000000000000\n"));
  CHECK(sandbox->sandbox_id()->str() == "machine-s");
  struct stat made {};
  REQUIRE(::stat(host.record().c_str(), &made) == 0);  // its own folder is open to it
  CHECK(made.st_uid == 54321);
  CHECK(made.st_gid == 54322);
  const auto secret = host.folder.write("secret", "of root");
  std::filesystem::permissions(secret, std::filesystem::perms(0600));
  CHECK(say(*sandbox, "read " + secret.string()).empty());
  CHECK(say(*sandbox, "write " + (mine / "file").string()) == "written");
  CHECK(host.log().find("cannot be used") == std::string::npos);
}

TEST_CASE("with the grant files are written and programs run", "[runner]") {
  PluginPolicy policy;
  policy.process = true;
  RunnerHost host(policy);
  const auto sandbox = host.make();
  CHECK(say(*sandbox, "write " + (host.folder / "file").string()) == "written");
  CHECK(say(*sandbox, "run true") == "0");
}

TEST_CASE("a process has the limits of its policy", "[runner]") {
  PluginPolicy policy;
  policy.memory_mb = 512;
  policy.open_files = 77;
  RunnerHost host(policy);
  const auto sandbox = host.make();
  const std::string limits = say(*sandbox, "read /proc/self/limits");
  const auto column = [&](const std::string& name, std::size_t at) {
    const auto line = limits.find(name);
    REQUIRE(line != std::string::npos);
    return std::strtoull(limits.c_str() + line + at, nullptr, 10);
  };
  const auto soft = [&](const std::string& name) { return column(name, 26); };
  const auto hard = [&](const std::string& name) { return column(name, 47); };
  CHECK(soft("Max open files") == 77);
  CHECK(hard("Max open files") == 77);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("SKIPPED: a sanitizer's memory has no limit");
#else
  CHECK(soft("Max data size") == 512ULL << 20);
  CHECK(hard("Max data size") == 512ULL << 20);
#endif
  CHECK(soft("Max core file size") == 0);
  CHECK(hard("Max core file size") == 0);
  const std::string status = say(*sandbox, "read /proc/self/status");
  CHECK(status.find("NoNewPrivs:\t1\n") != std::string::npos);
}

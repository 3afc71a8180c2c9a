// Two ratios of DESIGN section 9, each against its peer in the same run: a warm command against a
// bare posix_spawn of `sh -c true`, and a gigabyte through the guest against a pipe into cat.
//   guest_bench [ROUNDS [commands [GUEST]]]
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/spawn.hpp"
#include "sandforge/wire/guest/client.hpp"

namespace {

namespace wire = sandforge::wire::guest;
namespace posix = sandforge::posix;
using Clock = std::chrono::steady_clock;

constexpr char kPath[] = "PATH=/usr/local/bin:/usr/bin:/bin";

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double bare(const char* text) {
  const auto begin = Clock::now();
  const char* args[] = {"sh", "-c", text, nullptr};
  char path[sizeof kPath];
  std::copy(std::begin(kPath), std::end(kPath), path);
  char* environment[] = {path, nullptr};
  pid_t pid = -1;
  if (::posix_spawn(&pid, "/bin/sh", nullptr, nullptr, const_cast<char**>(args), environment) != 0)
    std::abort();
  ::waitpid(pid, nullptr, 0);
  return seconds_since(begin);
}

class Bench : public wire::ClientEvents {
 public:
  explicit Bench(const char* guest) : client(*this) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    socket_.reset(ends[0]);
    const posix::Fd theirs(ends[1]);
    posix::SpawnSpec spec;
    spec.argv = {guest, "serve", "--fd", "0"};
    spec.stdin_fd = theirs.get();
    spec.stdout_fd = spec.stderr_fd = 2;
    pid_ = posix::spawn(spec).pid;
    if (pid_ < 0) std::abort();
  }
  ~Bench() override {
    socket_.reset();
    ::waitpid(pid_, nullptr, 0);
  }

  double run(const std::string& text) {
    const auto begin = Clock::now();
    wire::SpawnRequest request;
    request.request_id = std::to_string(++serial_);
    request.shell_text = text;
    request.window = 4 << 20;
    request.env.emplace_back("PATH", std::string(kPath + 5));
    done_ = false;
    if (!client.spawn(request)) std::abort();
    while (!done_)
      step();
    return seconds_since(begin);
  }
  std::uint64_t bytes = 0;

 private:
  void step() {
    while (!client.output().empty()) {
      const auto out = client.output();
      const ssize_t n = ::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL);
      if (n < 0) std::abort();
      client.consume(static_cast<std::size_t>(n));
    }
    const auto buffer = client.receive_buffer();
    const ssize_t n = ::recv(socket_.get(), buffer.data, buffer.size, 0);
    if (n <= 0 || !client.received(static_cast<std::size_t>(n))) std::abort();
  }
  void on_output(wire::ChannelId id, wire::StreamId, std::uint64_t, std::string_view b) override {
    bytes += b.size();
    ungranted_ += b.size();
    if (ungranted_ < (1 << 20)) return;
    client.grant(id, ungranted_);
    ungranted_ = 0;
  }
  void on_end(wire::ChannelId, const wire::End&) override {
    done_ = true;
    ungranted_ = 0;
  }
  void on_error(wire::ChannelId, const wire::ErrorInfo&) override { std::abort(); }

  wire::GuestClient client;
  posix::Fd socket_;
  pid_t pid_ = -1;
  int serial_ = 0;
  bool done_ = false;
  std::uint64_t ungranted_ = 0;
};

// On a busy machine the lower tenth says more about the code than the middle does.
double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size()))];
}
double median(const std::vector<double>& values) {
  return quantile(values, 0.5);
}

void report_commands(const std::vector<double>& ours, const std::vector<double>& peers) {
  for (const double part : {0.1, 0.5}) {
    const double a = quantile(ours, part), b = quantile(peers, part);
    std::printf(
        "warm command, quantile %.1f: %.3f ms, bare spawn %.3f ms, ratio %.2f (goal 1.25)\n", part,
        1e3 * a, 1e3 * b, a / b);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 500;
  Bench bench(argc > 3 ? argv[3] : SANDFORGE_GUEST_PATH);
  std::vector<double> ours, peers;
  for (int i = 0; i < 20; ++i)
    bench.run("true"), bare("true");
  for (int i = 0; i < rounds; ++i) {
    peers.push_back(bare("true"));
    ours.push_back(bench.run("true"));
  }
  report_commands(ours, peers);
  if (argc > 2) return 0;
  ours.clear();
  peers.clear();
  for (int i = 0; i < 3; ++i) {
    peers.push_back(bare("head -c 1073741824 /dev/zero | cat >/dev/null"));
    ours.push_back(bench.run("head -c 1073741824 /dev/zero"));
  }
  std::printf("1 GiB: %.0f MiB/s, into cat %.0f MiB/s, ratio %.2f (goal 0.60)\n",
              1024 / median(ours), 1024 / median(peers), median(peers) / median(ours));
  return 0;
}

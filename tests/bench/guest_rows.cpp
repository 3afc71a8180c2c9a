// The guest alone, over a socket pair: what of the local rows is its own.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>

#include "measure.hpp"
#include "rows.hpp"
#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/spawn.hpp"
#include "sandforge/wire/guest/client.hpp"
#include "test_paths.hpp"

namespace sandforge::bench {
namespace {

namespace wire = sandforge::wire::guest;

constexpr std::uint64_t kGrant = 1 << 20;

// A guest and the least that a host can be: one thread that sends and receives.
class Guest : public wire::ClientEvents {
 public:
  Guest() : client_(*this) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::system_error(errno, std::generic_category(), "socketpair");
    socket_.reset(ends[0]);
    const posix::Fd theirs(ends[1]);
    posix::SpawnSpec spec;
    spec.argv = {SANDFORGE_GUEST_PATH, "serve", "--fd", "0"};
    spec.stdin_fd = theirs.get();
    spec.stdout_fd = spec.stderr_fd = 2;
    pid_ = posix::spawn(spec).pid;
    if (pid_ < 0) throw std::runtime_error("the guest does not start");
  }
  ~Guest() override {
    socket_.reset();
    ::waitpid(pid_, nullptr, 0);
  }

  // To its end; answers the bytes of output.
  std::uint64_t run(const std::string& text) {
    wire::SpawnRequest request;
    request.request_id = std::to_string(++serial_);
    request.shell_text = text;
    request.window = 4 * kGrant;
    request.env.emplace_back("PATH", command_path());
    done_ = false;
    bytes_ = ungranted_ = 0;
    if (!client_.spawn(request)) throw std::runtime_error("the guest takes no commands");
    while (!done_)
      step();
    return bytes_;
  }

 private:
  void step() {
    while (!client_.output().empty()) {
      const auto out = client_.output();
      const ssize_t n = ::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL);
      if (n < 0) throw std::system_error(errno, std::generic_category(), "send");
      client_.consume(static_cast<std::size_t>(n));
    }
    const auto buffer = client_.receive_buffer();
    const ssize_t n = ::recv(socket_.get(), buffer.data, buffer.size, 0);
    if (n <= 0 || !client_.received(static_cast<std::size_t>(n)))
      throw std::runtime_error("the guest has gone: " + client_.failure());
  }
  void on_output(wire::ChannelId id, wire::StreamId, std::uint64_t, std::string_view b) override {
    bytes_ += b.size();
    ungranted_ += b.size();
    if (ungranted_ < kGrant) return;
    client_.grant(id, ungranted_);
    ungranted_ = 0;
  }
  void on_end(wire::ChannelId, const wire::End&) override { done_ = true; }
  void on_error(wire::ChannelId, const wire::ErrorInfo& error) override {
    throw std::runtime_error(error.message);
  }

  wire::GuestClient client_;
  posix::Fd socket_;
  pid_t pid_ = -1;
  int serial_ = 0;
  bool done_ = false;
  std::uint64_t bytes_ = 0;
  std::uint64_t ungranted_ = 0;
};

}  // namespace

std::vector<Row> guest_rows(const Scale& scale) {
  Guest guest;
  const auto command = [&] { return 1e3 * timed([&] { guest.run("true"); }); };
  const auto bare = [] { return 1e3 * timed([] { run_bare("true"); }); };
  interleave(20, command, bare);
  const Pair warm = interleave(scale.of(1500, 100), command, bare);

  const std::uint64_t bytes = std::uint64_t{1} << (scale.quick ? 26 : 30);
  const double mib = static_cast<double>(bytes) / (1 << 20);
  const std::string text = "head -c " + std::to_string(bytes) + " /dev/zero";
  const auto stream = [&] {
    return mib / timed([&] {
             if (guest.run(text) != bytes) throw std::runtime_error("bytes were lost");
           });
  };
  const auto into_cat = [&] { return mib / timed([&] { run_bare(text + " | cat >/dev/null"); }); };
  const Pair flow = interleave(scale.of(7, 3), stream, into_cat);
  return {{"guest.warm", "true through the guest alone against a bare posix_spawn", "ms",
           warm.subject, warm.peer, Goal::at_most(1.25, Figure::ratio)},
          {"guest.stream", "output through the guest alone against head | cat >/dev/null", "MiB/s",
           flow.subject, flow.peer, Goal::at_least(0.60, Figure::ratio)}};
}

}  // namespace sandforge::bench

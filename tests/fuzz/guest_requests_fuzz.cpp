// Arbitrary bytes of a host: the guest must neither crash nor answer with what is no frame. It is
// the whole guest but for its children: a spawn makes a process that no machine has, with pipes.
//
// fuzz-libs: sandforge::guest sandforge::posix sandforge::wire_guest -Wl,--wrap=waitpid
// -Wl,--wrap=_ZN9sandforge5posix5spawnERKNS0_9SpawnSpecE
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>

#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/spawn.hpp"
#include "sandforge/wire/guest/frame.hpp"
#include "sandforge/wire/guest/messages.hpp"
#include "supervisor.hpp"

namespace {

using namespace sandforge;
namespace frames = sandforge::wire::guest;

constexpr pid_t kNobody = 1 << 30;  // above the largest number that the kernel gives
constexpr std::int64_t kQuietMs = 3;

void require(bool condition) {
  if (!condition) std::abort();
}

std::string files;  // the folder that files are served of

pid_t next_pid = kNobody;
std::deque<std::pair<pid_t, int>> ended;  // with their wait status

}  // namespace

// Says something and, if it has an argument, ends at once; else it runs for ever.
posix::SpawnResult pretend_to_spawn(const posix::SpawnSpec& spec) __asm__(
    "__wrap__ZN9sandforge5posix5spawnERKNS0_9SpawnSpecE");
posix::SpawnResult pretend_to_spawn(const posix::SpawnSpec& spec) {
  posix::SpawnResult result;
  if (spec.argv.empty() || spec.argv[0].empty() || spec.argv[0] == "none") {
    result.stage = posix::SpawnStage::exec;
    result.error_number = ENOENT;
    return result;
  }
  result.pid = next_pid++;
  const std::string& text = spec.argv[0];
  if (::write(spec.stdout_fd, text.data(), text.size() & 0xfff) < 0 ||
      ::write(spec.stderr_fd, "err", 3) < 0)
    require(errno == EAGAIN || errno == EBADF || errno == EIO);
  if (spec.argv.size() > 1) ended.emplace_back(result.pid, spec.argv.size() % 2 == 0 ? 3 << 8 : 9);
  return result;
}

extern "C" pid_t __wrap_waitpid(pid_t, int* status, int) {
  if (ended.empty()) {
    errno = ECHILD;
    return -1;
  }
  const auto [pid, how] = ended.front();
  ended.pop_front();
  *status = how;
  return pid;
}

namespace {

// Sends the bytes, reads the answers, and ends the loop when nothing happens any more.
class Host final : public guest::Source {
 public:
  Host(guest::EventLoop& loop, guest::Supervisor& supervisor, posix::Fd socket, std::string bytes)
      : loop_(loop), supervisor_(supervisor), socket_(std::move(socket)), bytes_(std::move(bytes)) {
    require(loop_.watch(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, *this));
    wait();
  }

  void on_ready(std::uint32_t) override {
    char in[65536];
    for (;;) {
      const ssize_t n = ::recv(socket_.get(), in, sizeof in, 0);
      if (n <= 0) break;
      ++moved_;
      answers_.append(in, static_cast<std::size_t>(n));
    }
    check_answers();
    while (sent_ < bytes_.size()) {
      const ssize_t n =
          ::send(socket_.get(), bytes_.data() + sent_, bytes_.size() - sent_, MSG_NOSIGNAL);
      if (n <= 0) break;
      ++moved_;
      sent_ += static_cast<std::size_t>(n);
    }
  }

 private:
  void wait() {
    loop_.at(loop_.now() + kQuietMs, [this] {
      if (!ended.empty()) {
        supervisor_.reap();
        ++moved_;
      }
      if (std::exchange(seen_, moved_) == moved_) return loop_.stop(0);
      wait();
    });
  }

  void check_answers() {
    frames::FrameView frame;
    std::size_t used = 0;
    for (;;) {
      const auto result = frames::parse_frame(std::string_view(answers_).substr(used), frame);
      require(result != frames::ParseResult::malformed);
      if (result == frames::ParseResult::incomplete) break;
      require(frame.header.type >= 0x80);
      used += frames::kHeaderSize + frame.payload.size();
    }
    answers_.erase(0, used);
  }

  guest::EventLoop& loop_;
  guest::Supervisor& supervisor_;
  posix::Fd socket_;
  const std::string bytes_;
  std::size_t sent_ = 0;
  std::string answers_;
  unsigned moved_ = 1;
  unsigned seen_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ::signal(SIGPIPE, SIG_IGN);
  // The real one would name what it could not find.
  posix::SpawnSpec spec;
  spec.argv = {"none"};
  require(posix::spawn(spec).path.empty());
  const char* base = std::getenv("TMPDIR");
  files = std::string(base != nullptr ? base : "/tmp") + "/sandforge-fuzz-XXXXXX";
  require(::mkdtemp(files.data()) != nullptr);
  std::atexit([] { std::filesystem::remove_all(files); });
  return 0;
}

// The first byte: whether the host greets, and whether its commands outlive it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes;
  if ((data[0] & 1) == 0) {
    std::string payload;
    frames::Hello().encode(payload);
    frames::append_message(bytes, frames::FrameType::hello, 0, 0, payload);
  }
  bytes.append(reinterpret_cast<const char*>(data) + 1, size - 1);

  guest::ServeOptions options;
  options.keep = (data[0] & 2) != 0;
  options.root = files;
  options.log_bytes = 4096;
  options.log_total_bytes = 65536;
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  guest::EventLoop loop;
  guest::Supervisor supervisor(loop, options, true);
  require(supervisor.add_connection(posix::Fd(ends[0])));
  const Host host(loop, supervisor, posix::Fd(ends[1]), std::move(bytes));
  loop.run();
  ended.clear();
  return 0;
}

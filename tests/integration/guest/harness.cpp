#include "harness.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "sandforge/posix/spawn.hpp"
#include "test_paths.hpp"

namespace guest_test {
namespace {

using Clock = std::chrono::steady_clock;
namespace posix = sandforge::posix;

constexpr std::uint64_t kWindow = 1024 * 1024;

std::string next_id() {
  static int serial = 0;
  return "request-" + std::to_string(++serial);
}

int remove_entry(const char* path, const struct stat*, int, struct FTW*) {
  return ::remove(path);
}

}  // namespace

TempFolder::TempFolder() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base ? base : "/tmp") + "/sandforge-guest-XXXXXX";
  if (!::mkdtemp(path_.data())) throw std::runtime_error("mkdtemp failed");
}

TempFolder::~TempFolder() {
  ::nftw(path_.c_str(), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

std::string contents(const std::string& path) {
  std::string out;
  posix::read_file(path.c_str(), out, 1 << 20);
  return out;
}

std::int64_t resident_kib(pid_t pid) {
  for (const std::string& line : lines_of(contents("/proc/" + std::to_string(pid) + "/status")))
    if (line.compare(0, 6, "VmRSS:") == 0) return std::atoll(line.c_str() + 6);
  return -1;
}

void write_text(const std::string& path, const std::string& text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("cannot write " + path);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool runs(const std::string& command_line) {
  return find_process(command_line) != 0;
}

pid_t find_process(const std::string& command_line) {
  DIR* dir = ::opendir("/proc");
  pid_t found = 0;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    std::string line = contents(std::string("/proc/") + entry->d_name + "/cmdline");
    for (char& c : line)
      if (c == '\0') c = ' ';
    if (!line.empty() && line.back() == ' ') line.pop_back();
    if (line == command_line) found = std::atoi(entry->d_name);
  }
  ::closedir(dir);
  return found;
}

std::string long_sleep() {
  static int serial = 0;
  // Fractions of a second tell apart.
  char text[64];
  std::snprintf(text, sizeof text, "sleep 900.%d%03d", static_cast<int>(::getpid()), ++serial);
  return text;
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() >= end) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
      .count();
}

int Seen::code() const {
  if (!exit) return -1;
  return exit->code ? *exit->code : 128 + exit->signal.value_or(0);
}

Host::Host(Fd socket, wire::ClientOptions options)
    : client(*this, std::move(options)), socket_(std::move(socket)) {
  posix::set_nonblocking(socket_.get(), true);
}

void Host::cut() {
  socket_.reset();
  client.lost("cut");
}

bool Host::step(std::chrono::milliseconds wait) {
  if (!socket_) return false;
  while (!client.output().empty()) {
    const auto out = client.output();
    const ssize_t n = ::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (n < 0) break;
    client.consume(static_cast<std::size_t>(n));
  }
  const short events = static_cast<short>(client.output().empty() ? POLLIN : POLLIN | POLLOUT);
  struct pollfd fd = {socket_.get(), events, 0};
  if (::poll(&fd, 1, static_cast<int>(wait.count())) <= 0) return true;
  if (!(fd.revents & (POLLIN | POLLHUP | POLLERR))) return true;
  const auto buffer = client.receive_buffer();
  const ssize_t n = ::recv(socket_.get(), buffer.data, buffer.size, 0);
  if (n > 0) return client.received(static_cast<std::size_t>(n));
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  client.lost("end of stream");
  socket_.reset();
  return false;
}

bool Host::until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (!done()) {
    if (Clock::now() >= end) return false;
    if (!step(std::chrono::milliseconds(10)) && !done()) return false;
  }
  return true;
}

void Host::settle(std::chrono::milliseconds time) {
  until([] { return false; }, time);
}

Seen& Host::wait(wire::ChannelId id, std::chrono::milliseconds limit) {
  until([&] { return of(id).over(); }, limit);
  return of(id);
}

wire::ChannelId Host::spawn(const wire::SpawnRequest& request) {
  std::string why;
  const auto id = client.spawn(request, &why);
  if (!id) throw std::runtime_error("refused: " + why);
  return *id;
}

Seen& Host::run(const wire::SpawnRequest& request) {
  return wait(spawn(request));
}

void Host::on_started(wire::ChannelId id, const wire::Started& s) {
  of(id).started = s;
}

void Host::on_output(wire::ChannelId id, wire::StreamId stream, std::uint64_t,
                     std::string_view bytes) {
  Seen& s = of(id);
  ++s.chunks[static_cast<int>(stream)];
  counted += bytes.size();
  if (keep_output) {
    (stream == wire::StreamId::out ? s.out : s.err).append(bytes);
    s.mixed.append(bytes);
  }
  if (auto_grant) client.grant(id, bytes.size());
  if (output_hook) output_hook(id, bytes);
}

void Host::on_gap(wire::ChannelId id, wire::StreamId stream, std::uint64_t, std::uint64_t size) {
  of(id).gap[static_cast<int>(stream)] += size;
}
void Host::on_stdin_closed(wire::ChannelId id, int error) {
  of(id).stdin_closed = error;
}
void Host::on_exited(wire::ChannelId id, const wire::Exit& e) {
  of(id).exit = e;
}
void Host::on_end(wire::ChannelId id, const wire::End& e) {
  of(id).end = e;
}
void Host::on_done(wire::ChannelId id, std::uint64_t value) {
  of(id).done = value;
}
void Host::on_list(wire::ChannelId id, const wire::ListReply& r) {
  of(id).list = r;
}
void Host::on_info(wire::ChannelId id, const wire::InfoReply& r) {
  of(id).info = r;
}
void Host::on_environment(wire::ChannelId id, const wire::EnvReply& r) {
  of(id).environment = r;
}
void Host::on_file_entries(wire::ChannelId id, const wire::FileEntries& reply, bool more) {
  Seen& s = of(id);
  ++s.file_pieces;
  s.files.insert(s.files.end(), reply.entries.begin(), reply.entries.end());
  if (!more) s.file_end = s.files.size();
}
void Host::on_file_bytes(wire::ChannelId id, std::string_view bytes) {
  counted += bytes.size();
  if (keep_output) of(id).out.append(bytes);
  if (auto_grant) client.grant(id, bytes.size());
}
void Host::on_file_event(wire::ChannelId id, const wire::FileEvent& event) {
  of(id).changes.push_back(event);
  std::string payload;
  event.encode(payload);
  if (auto_grant) client.grant(id, payload.size());
}
void Host::on_file_end(wire::ChannelId id, std::uint64_t bytes) {
  of(id).file_end = bytes;
}
void Host::on_error(wire::ChannelId id, const wire::ErrorInfo& e) {
  of(id).error = e;
}
void Host::on_lost(wire::ChannelId id, bool may_have_started) {
  of(id).lost = may_have_started;
}

pid_t start_program(std::vector<std::string> args, int stdin_fd, int stdout_fd,
                    std::vector<std::string> through) {
  posix::SpawnSpec spec;
  spec.argv = std::move(through);
  spec.argv.push_back(SANDFORGE_GUEST_PATH);
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  // No command gets it, but where the guest is told to pass on what it was given.
  spec.environment.emplace_back("GUEST_TEST_GIVEN=a value");
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"})
    if (const char* value = std::getenv(name))
      spec.environment.push_back(std::string(name) + "=" + value);
  spec.stdin_fd = stdin_fd;
  spec.stdout_fd = stdout_fd;
  spec.stderr_fd = 2;
  spec.death_signal = SIGKILL;
  const posix::SpawnResult result = posix::spawn(spec);
  if (result.pid < 0) throw std::runtime_error("cannot start the guest: " + result.path);
  return result.pid;
}

std::optional<int> wait_program(pid_t pid, std::chrono::milliseconds wait) {
  const auto end = Clock::now() + wait;
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 || Clock::now() >= end) return std::nullopt;
    ::poll(nullptr, 0, 5);
  }
}

Guest::Guest(std::vector<std::string> options) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("socketpair failed");
  const Fd theirs(ends[1]);
  host_ = std::make_unique<Host>(Fd(ends[0]));
  options.insert(options.begin(), {"serve", "--fd", "0"});
  pid_ = start_program(std::move(options), theirs.get(), 2);
}

Guest Guest::listening(const std::string& socket, std::vector<std::string> options) {
  Guest guest{Empty{}};
  posix::Pipe ready;
  if (!posix::make_pipe(ready)) throw std::runtime_error("pipe failed");
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  options.insert(options.begin(), {"serve", "--socket", socket, "--ready-fd", "1"});
  guest.pid_ = start_program(std::move(options), null.get(), ready.write.get());
  ready.write.reset();
  char byte;
  if (::read(ready.read.get(), &byte, 1) != 1)
    throw std::runtime_error("the guest did not become ready");
  return guest;
}

std::optional<Guest> Guest::filtered(const BlockedCalls& blocked) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("socketpair failed");
  const Fd theirs(ends[1]);
  Guest guest{Empty{}};
  guest.host_ = std::make_unique<Host>(Fd(ends[0]));
  constexpr int kNoFilter = 99;
  guest.pid_ = ::fork();
  if (guest.pid_ < 0) throw std::runtime_error("fork failed");
  if (guest.pid_ == 0) {
    // The guest starts with a descriptor too many, as careless hosts do.
    ::dup2(theirs.get(), 0);
    if (!install_filter(blocked)) ::_exit(kNoFilter);
    ::execl(SANDFORGE_GUEST_PATH, SANDFORGE_GUEST_PATH, "serve", "--fd", "0", nullptr);
    ::_exit(127);
  }
  if (guest.exit_code(std::chrono::milliseconds(100)) == kNoFilter) return std::nullopt;
  return guest;
}

std::optional<Guest> Guest::crowded() {
  // The guest is no parent of the others, and its host's socket is not what a job in the background
  // has as its standard input.
  constexpr const char* script =
      "echo 30000 2>/dev/null >/proc/sys/kernel/ns_last_pid || exit 99; exec 3<&0; "
      "crowd() { for i in $(seq $1); do sleep 900 3<&- & done; }; crowd 500; "
      "echo 400 >/proc/sys/kernel/ns_last_pid; crowd 30; \"$@\" <&3 3<&- & exec 3<&-; wait $!";
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("socketpair failed");
  Fd theirs(ends[1]);
  Guest guest{Empty{}};
  guest.host_ = std::make_unique<Host>(Fd(ends[0]));
  guest.pid_ =
      start_program({"serve", "--fd", "0", "--no-cgroup"}, theirs.get(), 2,
                    {"unshare", "-pf", "--mount-proc", "--kill-child", "sh", "-c", script, "sh"});
  theirs.reset();
  // A host whose guest is not there sees the end of its socket.
  guest.host_->until([&] { return guest.host_->hello.has_value(); });
  if (!guest.host_->hello) return std::nullopt;
  return guest;
}

Guest::Guest(Guest&& other) noexcept
    : host_(std::move(other.host_)), pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}

std::optional<int> Guest::exit_code(std::chrono::milliseconds wait) {
  if (!code_) code_ = wait_program(pid_, wait);
  return code_;
}

Guest::~Guest() {
  if (pid_ < 0 || code_) return;
  if (host_) host_->cut();
  ::kill(pid_, SIGTERM);
  if (exit_code()) return;
  ::kill(pid_, SIGKILL);
  exit_code();
}

Fd connect_socket(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("path too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(socket.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof address) != 0)
    socket.reset();
  return socket;
}

wire::SpawnRequest shell(const std::string& text) {
  wire::SpawnRequest request;
  request.request_id = next_id();
  request.shell_text = text;
  request.window = kWindow;
  request.env.emplace_back("PATH", std::string("/usr/local/bin:/usr/bin:/bin"));
  return request;
}

wire::SpawnRequest argv(std::vector<std::string> args) {
  wire::SpawnRequest request = shell("x");
  request.shell_text.clear();
  request.argv = std::move(args);
  return request;
}

}  // namespace guest_test

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <system_error>

#include "machine.hpp"
#include "many.hpp"

namespace sandforge::bench {
namespace {

// Starts a command and gives its future.
std::future<Result<CommandResult>> begin(Sandbox& sandbox, std::string text, OutputFn on_output) {
  auto promise = std::make_shared<std::promise<Result<CommandResult>>>();
  auto future = promise->get_future();
  ExecOptions options;
  options.on_stdout = std::move(on_output);
  sandbox.async_execute_command(
      std::move(text), {}, std::move(options),
      [promise](Result<CommandResult> result) { promise->set_value(std::move(result)); });
  return future;
}

void finish(std::vector<std::future<Result<CommandResult>>>& commands) {
  for (auto& command : commands)
    if (!command.get().value().success) throw std::runtime_error("a command failed");
}

void run_at_once(Sandbox& sandbox, int count) {
  std::vector<std::future<Result<CommandResult>>> commands;
  for (int i = 0; i < count; ++i)
    commands.push_back(begin(sandbox, "true", nullptr));
  finish(commands);
}

void spawn_at_once(int count) {
  std::vector<pid_t> pids;
  for (int i = 0; i < count; ++i)
    pids.push_back(start_bare({"/bin/sh", "-c", "true"}));
  for (const pid_t pid : pids)
    wait_bare(pid);
}

Row throughput_row(LocalHost& host, int count, const Scale& scale) {
  const auto rate = [count](double seconds) { return count / seconds; };
  const auto ours = [&] { return rate(timed([&] { run_at_once(host.sandbox(), count); })); };
  const auto theirs = [&] { return rate(timed([&] { spawn_at_once(count); })); };
  interleave(1, ours, theirs);
  const Pair pair = interleave(scale.of(11, 3), ours, theirs);
  return {"local.many", std::to_string(count) + " commands at once against as many bare spawns",
          "/s",         pair.subject,
          pair.peer,    Goal::at_least(0.85, Figure::ratio)};
}

// Commands read from it, and end when it is opened and closed.
class Gate {
 public:
  explicit Gate(const std::filesystem::path& path) : path_(path) {
    if (::mkfifo(path_.c_str(), 0600) != 0 || (fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC)) < 0)
      throw std::system_error(errno, std::generic_category(), path_.string());
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

struct Held {
  double threads = 0;
  double kib = 0;        // host and guest together
  double shell_kib = 0;  // one of the shells, which wait at the gate
};

// What it takes to hold this many commands that have started and wait.
Held hold(LocalHost& host, int count) {
  Gate gate(host.folder() / "gate");
  // Open before the command says that it has started: else the gate may be gone by then.
  const std::string text =
      "exec 3<" + (host.folder() / "gate").string() + "; echo $$; read line <&3 || :";
  std::atomic<int> started{0};
  std::string shell;  // number of the last one
  std::vector<std::future<Result<CommandResult>>> commands;
  for (int i = 0; i < count; ++i)
    commands.push_back(begin(host.sandbox(), text, [&, i](std::string_view piece) {
      if (i == count - 1) shell = piece;
      ++started;
    }));
  if (!conformance::eventually([&] { return started == count; }, std::chrono::seconds(60)))
    throw std::runtime_error("not all commands have started");
  Held held;
  held.threads = static_cast<double>(threads_of_this_process());
  held.kib = resident_kib(::getpid()) + resident_kib(host.guest());
  held.shell_kib = resident_kib(std::stoi(shell));
  gate.open();
  finish(commands);
  std::filesystem::remove(host.folder() / "gate");
  return held;
}

}  // namespace

std::vector<Row> many_rows(LocalHost& host, const Scale& scale) {
  const int count = scale.of(500, 100);
  std::vector<Row> rows;
  // Before anything has made the memory of either side grow.
  const Held one = hold(host, 1);
  const Held all = hold(host, count);
  rows.push_back(throughput_row(host, count, scale));
  rows.push_back({"local.many.threads", "threads of the host with all of them against one", "",
                  all.threads, one.threads, Goal::at_most(0, Figure::difference)});
  rows.push_back({"local.many.memory", "host and guest for each command against its shell", "KiB",
                  std::max(0.0, (all.kib - one.kib) / (count - 1)), all.shell_kib,
                  Goal::at_most(100, Figure::subject)});
  return rows;
}

}  // namespace sandforge::bench

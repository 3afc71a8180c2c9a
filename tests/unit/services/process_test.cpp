// The process service, called through its C table as plugins do, with the real helper program.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "sandforge/ext/host_executor.h"
#include "sandforge/ext/host_process.h"
#include "support/temp_dir.hpp"
#include "test_paths.hpp"
#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;
using plugin::Fault;

namespace {

constexpr auto kPatience = std::chrono::seconds(60);

bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

sf_bytes bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Every process of this machine: its parent, and its command line with spaces between the words.
struct Listed {
  pid_t parent = 0;
  std::string words;
};
std::map<pid_t, Listed> processes() {
  std::map<pid_t, Listed> out;
  DIR* dir = ::opendir("/proc");
  while (const dirent* entry = ::readdir(dir)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    Listed one;
    const std::string base = "/proc/" + std::string(entry->d_name);
    const std::string stat = read_file(base + "/stat");
    const auto name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.size() < name_end + 4 || stat[name_end + 2] == 'Z')
      continue;
    one.parent = std::atoi(stat.c_str() + name_end + 4);
    one.words = read_file(base + "/cmdline");
    std::replace(one.words.begin(), one.words.end(), '\0', ' ');
    out[pid] = std::move(one);
  }
  ::closedir(dir);
  return out;
}

bool runs(const std::string& part) {
  const auto all = processes();
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) {
    return entry.second.words.find(part) != std::string::npos;
  });
}

// The helper programs that this test program started.
std::vector<pid_t> helpers() {
  std::vector<pid_t> out;
  for (const auto& [pid, one] : processes()) {
    if (one.parent == ::getpid() && one.words.find("sandforge-guest serve") != std::string::npos)
      out.push_back(pid);
  }
  return out;
}

// A command line that nothing else on this machine has.
std::string long_sleep() {
  static int next = 0;
  return "sleep " + std::to_string(100000 + ::getpid()) + "." + std::to_string(++next);
}

struct CommandParts {
  std::vector<std::string> argv;
  std::optional<std::string> shell;
  std::vector<std::pair<std::string, std::optional<std::string>>> env;
  std::optional<std::string> cwd;
  std::uint32_t stdin_mode = SF_STDIN_EOF;
  std::uint32_t output = SF_OUTPUT_SEPARATE;
  std::uint32_t flags = 0;
  std::uint64_t timeout_ms = 0;
  std::uint64_t grace_ms = 2000;
  std::uint64_t window = 1U << 20;
  std::string request_id;
  const sf_tty* tty = nullptr;
};

CommandParts shell(std::string text) {
  CommandParts out;
  out.shell = std::move(text);
  out.env = {{"PATH", "/usr/bin:/bin"}};
  return out;
}
CommandParts program(std::vector<std::string> argv) {
  CommandParts out;
  out.argv = std::move(argv);
  return out;
}

// A running command, as a plugin holds it.
class Spawned {
 public:
  explicit Spawned(sf_lane* lane) : lane_(lane) {}
  ~Spawned() { release(); }
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;

  static sf_stream_events io_of(Spawned* self) {
    return {sizeof(sf_stream_events), self,
            [](void* ctx, std::uint32_t channel, std::uint32_t, sf_bytes data) noexcept {
              auto& s = *static_cast<Spawned*>(ctx);
              const std::lock_guard lock(s.mutex_);
              s.on_lane_ &= s.lane_->vtbl->is_current(s.lane_) == 1;
              s.late_ |= s.ended_;
              (channel == SF_CHANNEL_STDERR ? s.err_ : s.out_)
                  .append(reinterpret_cast<const char*>(data.ptr), data.len);
            },
            [](void* ctx) noexcept {
              auto& s = *static_cast<Spawned*>(ctx);
              const std::lock_guard lock(s.mutex_);
              ++s.writables_;
            },
            [](void* ctx, const sf_error* error, const sf_stream_end* end) noexcept {
              auto& s = *static_cast<Spawned*>(ctx);
              const std::lock_guard lock(s.mutex_);
              ++s.dones_;
              s.ended_ = true;
              s.end_ = *end;
              if (error != nullptr) {
                s.code_ = error->code;
                s.message_ = copy(error->message);
                s.details_ = copy(error->details);
                s.may_have_started_ = (error->flags & SF_ERROR_MAY_HAVE_STARTED) != 0;
              }
              s.wake_.notify_all();
            }};
  }
  static sf_process_events events_of(Spawned* self) {
    return {sizeof(sf_process_events), self,
            [](void* ctx, const sf_process_started* started) noexcept {
              auto& s = *static_cast<Spawned*>(ctx);
              const std::lock_guard lock(s.mutex_);
              s.pid_ = started->pid;
              s.wake_.notify_all();
            },
            [](void* ctx, const sf_exit* exit) noexcept {
              auto& s = *static_cast<Spawned*>(ctx);
              const std::lock_guard lock(s.mutex_);
              s.late_ |= s.ended_;
              s.exit_ = *exit;
            }};
  }

  bool wait() {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, kPatience, [this] { return ended_; });
  }
  bool wait_started() {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, kPatience, [this] { return pid_ != 0 || ended_; }) && pid_ != 0;
  }
  bool ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  std::string out() const {
    const std::lock_guard lock(mutex_);
    return out_;
  }
  int writables() const {
    const std::lock_guard lock(mutex_);
    return writables_;
  }
  sf_stream* stream() { return process->vtbl->stream(process); }
  void cancel() { stream()->vtbl->cancel(stream()); }
  void grant(std::uint64_t n) { stream()->vtbl->grant(stream(), n); }
  void release() {
    if (process != nullptr) std::exchange(process, nullptr)->vtbl->release(process_);
  }
  void set(sf_process* p) { process = process_ = p; }

  sf_process* process = nullptr;
  sf_process* process_ = nullptr;

  // After wait().
  std::string out_, err_, message_, details_;
  sf_exit exit_{};
  sf_stream_end end_{};
  sf_status code_ = SF_OK;
  std::int64_t pid_ = 0;
  int dones_ = 0;
  bool may_have_started_ = false;
  bool on_lane_ = true;
  bool late_ = false;

 private:
  sf_lane* lane_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  int writables_ = 0;
};

class Service {
 public:
  explicit Service(std::filesystem::path guest = SANDFORGE_GUEST_PATH)
      : bench(std::make_unique<Bench>(std::vector<std::string>{"process"})) {
    bench->plugin->host.attach(nullptr);
    bench->services->guest_program = std::move(guest);
    bench->plugin->host.attach(bench->services);
    host = &bench->plugin->host;
    table =
        static_cast<const sf_process_service*>(host->vtbl->service(host, str(SF_SERVICE_PROCESS)));
    REQUIRE(table != nullptr);
    const auto* executor = static_cast<const sf_executor_service*>(
        host->vtbl->service(host, str(SF_SERVICE_EXECUTOR)));
    REQUIRE(executor->lane_create(host, &lane, nullptr) == SF_OK);
  }
  ~Service() { lane->vtbl->release(lane); }

  sf_status try_spawn(const CommandParts& parts, Spawned& into, std::string* why = nullptr,
                      const std::string& group = {}) {
    std::vector<sf_bytes> argv;
    for (const auto& word : parts.argv)
      argv.push_back(bytes(word));
    std::vector<sf_env_entry> env;
    for (const auto& [name, value] : parts.env)
      env.push_back({bytes(name), value ? bytes(*value) : sf_bytes{nullptr, 0}});
    sf_command command{};
    command.struct_size = sizeof(command);
    if (parts.shell) command.shell = bytes(*parts.shell);
    command.argv = argv.data();
    command.argc = argv.size();
    command.env = env.data();
    command.env_count = env.size();
    if (parts.cwd) command.cwd = bytes(*parts.cwd);
    command.stdin_mode = parts.stdin_mode;
    command.output = parts.output;
    command.flags = parts.flags;
    command.timeout_ms = parts.timeout_ms;
    command.grace_ms = parts.grace_ms;
    command.window = parts.window;
    command.request_id = {parts.request_id.data(), parts.request_id.size()};
    command.tty = parts.tty;
    const auto io = Spawned::io_of(&into);
    const auto events = Spawned::events_of(&into);
    const sf_error_sink sink{why, [](void* ctx, const sf_error* error) noexcept {
                               if (ctx != nullptr)
                                 *static_cast<std::string*>(ctx) = copy(error->message);
                             }};
    sf_process* process = nullptr;
    const auto status = group.empty()
                            ? table->spawn(host, lane, &command, &io, &events, &process, &sink)
                            : table->spawn_in(host, lane, {group.data(), group.size()}, &command,
                                              &io, &events, &process, &sink);
    into.set(process);
    return status;
  }
  std::unique_ptr<Spawned> spawn(const CommandParts& parts, const std::string& group = {}) {
    auto out = std::make_unique<Spawned>(lane);
    REQUIRE(try_spawn(parts, *out, nullptr, group) == SF_OK);
    return out;
  }
  std::unique_ptr<Spawned> run(const CommandParts& parts) {
    auto out = spawn(parts);
    REQUIRE(out->wait());
    CHECK(out->dones_ == 1);
    CHECK(out->on_lane_);
    CHECK_FALSE(out->late_);
    return out;
  }

  // Runs f on the plugin's lane and answers its result.
  template <class F>
  auto on_lane(F f) -> decltype(f()) {
    std::packaged_task<decltype(f())()> task(std::move(f));
    auto future = task.get_future();
    lane->vtbl->post(
        lane, [](void* ctx) noexcept { (*static_cast<decltype(task)*>(ctx))(); }, &task);
    REQUIRE(future.wait_for(kPatience) == std::future_status::ready);
    return future.get();
  }
  sf_status write(Spawned& to, std::string_view data, std::size_t& accepted) {
    return on_lane(
        [&] { return to.stream()->vtbl->write(to.stream(), bytes(data), 0, &accepted, nullptr); });
  }
  void end_input(Spawned& to) {
    CHECK(on_lane([&] { return to.stream()->vtbl->shutdown_write(to.stream(), nullptr); }) ==
          SF_OK);
  }
  sf_status open_group(const std::string& name) {
    return table->open_group(host, {name.data(), name.size()}, nullptr);
  }
  sf_status end_group(const std::string& name, std::uint64_t grace_ms = 0) {
    return code_of([&](sf_completion done, sf_op** op) {
      return table->end_group(host, lane, {name.data(), name.size()}, grace_ms, done, op, nullptr);
    });
  }
  // The end of a signal: its code.
  sf_status signal(Spawned& to, int number, std::uint32_t scope) {
    return code_of([&](sf_completion done, sf_op** op) {
      return on_lane(
          [&] { return to.process->vtbl->signal(to.process, number, scope, done, op, nullptr); });
    });
  }
  template <class Start>
  sf_status code_of(Start start) {
    std::promise<sf_status> promise;
    const sf_completion done{&promise, [](void* ctx, const sf_error* error) noexcept {
                               static_cast<std::promise<sf_status>*>(ctx)->set_value(
                                   error == nullptr ? SF_OK : error->code);
                             }};
    sf_op* op = nullptr;
    const auto status = start(done, &op);
    if (status != SF_OK) return status;
    auto future = promise.get_future();
    REQUIRE(future.wait_for(kPatience) == std::future_status::ready);
    op->vtbl->release(op);
    return future.get();
  }

  std::unique_ptr<Bench> bench;
  sf_host* host = nullptr;
  const sf_process_service* table = nullptr;
  sf_lane* lane = nullptr;
};

}  // namespace

TEST_CASE("process service: output, exit codes, signals, streams") {
  Service service;
  const auto echo = service.run(program({"/bin/echo", "a b", "", "\xff"}));
  CHECK(echo->code_ == SF_OK);
  CHECK(echo->out_ == "a b  \xff\n");
  CHECK(echo->exit_.outcome == SF_EXIT_EXITED);
  CHECK(echo->exit_.code == 0);
  CHECK(echo->end_.delivered == 7);
  CHECK(echo->end_.dropped == 0);
  CHECK(echo->pid_ > 0);

  const auto three = service.run(shell("echo out; echo err >&2; exit 3"));
  CHECK(three->out_ == "out\n");
  CHECK(three->err_ == "err\n");
  CHECK(three->exit_.code == 3);

  const auto killed = service.run(shell("kill -9 $$"));
  CHECK(killed->exit_.outcome == SF_EXIT_SIGNALED);
  CHECK(killed->exit_.signal == SIGKILL);
  CHECK(killed->exit_.flags == 0);

  auto combined = shell("echo 1; echo 2 >&2; echo 3");
  combined.output = SF_OUTPUT_COMBINED;
  CHECK(service.run(combined)->out_ == "1\n2\n3\n");
  CHECK(helpers().size() == 1);
}

TEST_CASE("process service: the environment is what was given, and no descriptor is inherited") {
  Service service;
  auto bare = program({"/usr/bin/env"});
  bare.env = {{"A", "0"},          {"D", "1"}, {"A", "1"},
              {"B", std::nullopt}, {"C", ""},  {"D", std::nullopt}};
  std::vector<std::string> lines;
  std::istringstream text(service.run(bare)->out_);
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("SANDFORGE_GUEST_PROCESS=", 0) != 0) lines.push_back(line);
  }
  CHECK(lines == std::vector<std::string>{"A=1", "C="});
  // 0, 1, 2, and the one by which ls reads the folder.
  CHECK(service.run(program({"/bin/ls", "/proc/self/fd"}))->out_ == "0\n1\n2\n3\n");
}

TEST_CASE("process service: folders and programs that are not there") {
  Service service;
  const TempDir dir;
  auto here = program({"/bin/pwd"});
  CHECK(service.run(here)->out_ == "/\n");
  here.cwd = dir.path().string();
  CHECK(service.run(here)->out_ == dir.path().string() + "\n");
  here.cwd = (dir / "absent").string();
  const auto lost = service.run(here);
  CHECK(lost->code_ == SF_INVALID);
  CHECK(lost->pid_ == 0);
  CHECK(lost->exit_.struct_size == 0);
  CHECK_FALSE(lost->may_have_started_);
  CHECK_THAT(lost->message_, Catch::Contains((dir / "absent").string()));
  CHECK_THAT(lost->details_, Catch::Contains("command.no_directory"));

  const auto none = service.run(program({"/no/such/program"}));
  CHECK(none->code_ == SF_NOT_FOUND);
  CHECK_THAT(none->message_, Catch::Contains("/no/such/program"));
  CHECK(service.run(program({dir.write("text", "no program").string()}))->code_ == SF_INVALID);
}

TEST_CASE("process service: commands that nobody can run are refused at once") {
  Service service;
  Spawned nothing(service.lane);
  std::string why;
  CHECK(service.try_spawn(program({}), nothing) == SF_INVALID);
  CHECK(service.try_spawn(program({""}), nothing) == SF_INVALID);
  CHECK(service.try_spawn(program({std::string("a\0b", 3)}), nothing) == SF_INVALID);
  auto relative = program({"/bin/true"});
  relative.cwd = "here";
  CHECK(service.try_spawn(relative, nothing, &why) == SF_INVALID);
  CHECK(why == "the working directory must be absolute");
  auto detached = program({"/bin/true"});
  detached.flags = SF_COMMAND_DETACH;
  CHECK(service.try_spawn(detached, nothing) == SF_UNSUPPORTED);
  auto both = shell("true");
  both.argv = {"/bin/true"};
  CHECK(service.try_spawn(both, nothing) == SF_INVALID);
  auto mode = program({"/bin/true"});
  mode.stdin_mode = 7;
  CHECK(service.try_spawn(mode, nothing) == SF_INVALID);
  auto name = program({"/bin/true"});
  name.env = {{"A=B", "1"}};
  CHECK(service.try_spawn(name, nothing) == SF_INVALID);
  CHECK(nothing.process == nullptr);
  CHECK(nothing.dones_ == 0);

  const auto io = Spawned::io_of(&nothing);
  const auto events = Spawned::events_of(&nothing);
  sf_process* process = nullptr;
  sf_command small{};
  small.struct_size = sizeof(std::size_t);
  CHECK(service.table->spawn(service.host, service.lane, &small, &io, &events, &process, nullptr) ==
        SF_INVALID);
  CHECK(service.table->spawn(service.host, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        SF_INVALID);
  CHECK(process == nullptr);
  CHECK(helpers().empty());
}

TEST_CASE("process service: input") {
  Service service;
  auto cat = program({"/bin/cat"});
  cat.stdin_mode = SF_STDIN_PIPE;
  cat.window = 64U << 20;
  auto copy = service.spawn(cat);
  const std::string data(3'000'000, 'x');
  std::size_t sent = 0;
  while (sent < data.size()) {
    const int before = copy->writables();
    std::size_t accepted = 0;
    REQUIRE(service.write(*copy, std::string_view(data).substr(sent), accepted) == SF_OK);
    sent += accepted;
    if (sent < data.size()) REQUIRE(eventually([&] { return copy->writables() > before; }));
  }
  service.end_input(*copy);
  service.end_input(*copy);
  std::size_t accepted = 0;
  CHECK(service.write(*copy, "more", accepted) == SF_CONFLICT);
  REQUIRE(copy->wait());
  CHECK(copy->out_ == data);
  CHECK(copy->exit_.code == 0);

  // Without a pipe there is the end of file, and nothing to write to.
  auto empty = program({"/bin/cat"});
  auto nothing = service.spawn(empty);
  CHECK(service.write(*nothing, "x", accepted) == SF_CONFLICT);
  REQUIRE(nothing->wait());
  CHECK(nothing->out_.empty());
  CHECK(copy->stream()->vtbl->write(copy->stream(), bytes("x"), 0, &accepted, nullptr) ==
        SF_INVALID);
  CHECK(service.bench->faults(Fault::off_lane) == 1);
}

TEST_CASE("process service: a writer that waits learns that the process took no more") {
  Service service;
  auto deaf = shell("exec <&-; exec " + long_sleep());
  deaf.stdin_mode = SF_STDIN_PIPE;
  auto process = service.spawn(deaf);
  const std::string data(1U << 20, 'x');
  REQUIRE(eventually([&] {
    std::size_t accepted = 0;
    return service.write(*process, data, accepted) == SF_CONFLICT;
  }));
  process->cancel();
  REQUIRE(process->wait());
}

TEST_CASE("process service: a terminal") {
  Service service;
  const sf_tty tty{100, 30, str("vt100")};
  auto parts = shell("stty size; echo $TERM");
  parts.tty = &tty;
  CHECK(service.run(parts)->out_ == "30 100\r\nvt100\r\n");
}

TEST_CASE("process service: output is held back without credit") {
  Service service;
  auto parts = shell("head -c 1000000 /dev/zero; echo end");
  parts.window = 0;
  auto held = service.spawn(parts);
  REQUIRE(held->wait_started());
  held->grant(10);
  REQUIRE(eventually([&] { return held->out().size() == 10; }));
  // Another command is through meanwhile; this one got no byte more.
  service.run(shell("sleep 0.2"));
  CHECK(held->out().size() == 10);
  CHECK_FALSE(held->ended());
  held->grant(std::uint64_t{1} << 63);
  REQUIRE(held->wait());
  CHECK(held->out_.size() == 1'000'004);
  CHECK(held->end_.delivered == 1'000'004);
  CHECK(held->end_.dropped == 0);
}

TEST_CASE("process service: what a released handle cannot take is dropped and counted") {
  Service service;
  auto parts = shell("head -c 1000000 /dev/zero");
  parts.window = 100;
  auto process = service.spawn(parts);
  process->release();
  REQUIRE(process->wait());
  CHECK(process->end_.delivered == 100);
  CHECK(process->end_.dropped == 999'900);
  CHECK(process->exit_.code == 0);
}

TEST_CASE("process service: the timeout ends the whole tree") {
  Service service;
  const std::string stray = long_sleep();
  auto parts = shell("setsid " + stray + " & " + long_sleep());
  parts.timeout_ms = 300;
  parts.grace_ms = 0;
  const auto process = service.run(parts);
  CHECK(process->exit_.outcome == SF_EXIT_TIMED_OUT);
  CHECK(process->code_ == SF_OK);
  CHECK(eventually([&] { return !runs(stray); }));
}

TEST_CASE("process service: cancel ends the whole tree, with a grace") {
  Service service;
  const std::string stray = long_sleep();
  const TempDir dir;
  auto process = service.spawn(shell("exec 2>/dev/null; trap 'echo bye; echo bye > " +
                                     (dir / "bye").string() + "; exit 5' TERM; setsid " + stray +
                                     " & echo ready; while :; do sleep 0.01; done"));
  REQUIRE(eventually([&] { return process->out() == "ready\n" && runs(stray); }));
  process->cancel();
  process->cancel();
  REQUIRE(process->wait());
  CHECK(process->exit_.outcome == SF_EXIT_CANCELLED);
  CHECK(read_file(dir / "bye") == "bye\n");
  CHECK(process->out_ == "ready\nbye\n");  // there was credit for it
  CHECK(process->end_.dropped == 0);
  CHECK(process->code_ == SF_OK);
  CHECK(eventually([&] { return !runs(stray); }));

  // At once, perhaps before it began: one end all the same.
  for (int i = 0; i < 20; ++i) {
    auto early = service.spawn(shell(long_sleep()));
    early->cancel();
    REQUIRE(early->wait());
    CHECK(early->dones_ == 1);
    CHECK((early->code_ == SF_CANCELLED || early->exit_.outcome == SF_EXIT_CANCELLED));
  }
}

TEST_CASE("process service: a group ends with all that it ran, and with nothing else") {
  Service service;
  Spawned refused(service.lane);
  CHECK(service.try_spawn(shell("true"), refused, nullptr, "box") == SF_CONFLICT);
  CHECK(service.end_group("box") == SF_OK);
  REQUIRE(service.open_group("box") == SF_OK);
  REQUIRE(service.open_group("box") == SF_OK);
  REQUIRE(service.open_group("other") == SF_OK);
  const std::string other = long_sleep(), child = long_sleep(), escaped = long_sleep();
  auto beside = service.spawn(shell(other), "other");
  auto left =
      service.spawn(shell(child + " & (setsid env -i " + escaped + " &) >/dev/null"), "box");
  REQUIRE(left->wait());
  auto running = service.spawn(
      shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done"), "box");
  REQUIRE(eventually(
      [&] { return running->out() == "ready\n" && runs(other) && runs(child) && runs(escaped); }));

  CHECK(service.end_group("box", 20'000) == SF_OK);
  CHECK_FALSE(runs(child));
  CHECK_FALSE(runs(escaped));
  REQUIRE(running->wait());
  CHECK(running->out_ == "ready\nbye\n");
  CHECK(running->exit_.code == 3);
  CHECK(runs(other));
  CHECK(service.try_spawn(shell("true"), refused, nullptr, "box") == SF_CONFLICT);

  REQUIRE(service.open_group("box") == SF_OK);
  auto again = service.spawn(shell("echo again"), "box");
  REQUIRE(again->wait());
  CHECK(again->out_ == "again\n");
  // Whoever waits no longer has ended it all the same.
  auto last = service.spawn(shell(long_sleep()), "box");
  CHECK(service.code_of([&](sf_completion done, sf_op** op) {
    const auto status =
        service.table->end_group(service.host, service.lane, str("box"), 0, done, op, nullptr);
    (*op)->vtbl->cancel(*op);
    return status;
  }) != SF_INTERNAL);
  REQUIRE(last->wait());
  // At once, perhaps before it began: one end all the same.
  for (int i = 0; i < 20; ++i) {
    REQUIRE(service.open_group("box") == SF_OK);
    auto early = service.spawn(shell(long_sleep()), "box");
    CHECK(service.end_group("box") == SF_OK);
    REQUIRE(early->wait());
    CHECK(early->dones_ == 1);
    CHECK((early->code_ != SF_OK || early->exit_.outcome == SF_EXIT_SIGNALED));
  }
  CHECK_FALSE(beside->ended());
  CHECK(service.end_group("other") == SF_OK);
  REQUIRE(beside->wait());
}

TEST_CASE("process service: signals") {
  Service service;
  auto process =
      service.spawn(shell("trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done"));
  REQUIRE(eventually([&] { return process->out() == "ready\n"; }));
  CHECK(service.signal(*process, 0, SF_SIGNAL_LEADER) == SF_INVALID);
  CHECK(service.signal(*process, SIGUSR1, 7) == SF_INVALID);
  CHECK(service.signal(*process, SIGUSR1, SF_SIGNAL_LEADER) == SF_OK);
  REQUIRE(process->wait());
  CHECK(process->exit_.code == 9);
  CHECK(service.signal(*process, SIGUSR1, SF_SIGNAL_LEADER) == SF_GONE);

  const std::string stray = long_sleep();
  auto tree = service.spawn(shell("setsid " + stray + " & echo ready; wait"));
  REQUIRE(eventually([&] { return tree->out() == "ready\n" && runs(stray); }));
  CHECK(service.signal(*tree, SIGKILL, SF_SIGNAL_TREE) == SF_OK);
  REQUIRE(tree->wait());
  CHECK(eventually([&] { return !runs(stray); }));
}

TEST_CASE("process service: a request id runs once") {
  Service service;
  const TempDir dir;
  const std::string file = (dir / "log").string();
  auto parts = shell("echo ran >> " + file + "; echo out");
  parts.request_id = "one";
  CHECK(service.run(parts)->out_ == "out\n");
  const auto again = service.run(parts);
  CHECK((again->code_ == SF_ALREADY_EXISTS || again->out_ == "out\n"));
  CHECK(read_file(file) == "ran\n");
}

TEST_CASE("process service: two hundred at once, and no thread for any of them") {
  Service service;
  service.run(shell("true"));
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator());
  };
  const auto before = threads();
  const TempDir dir;
  const std::string gate = (dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  std::vector<std::unique_ptr<Spawned>> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(service.spawn(shell("read x < " + gate + "; echo " + std::to_string(i))));
  for (auto& one : all)
    REQUIRE(one->wait_started());
  CHECK(threads() <= before);
  std::ofstream open(gate);
  for (int i = 0; i < 200; ++i)
    open << "go\n";
  open.flush();
  for (int i = 0; i < 200; ++i) {
    if (!all[i]->wait()) FAIL("number " << i << " did not end");
    CHECK(all[i]->out_ == std::to_string(i) + "\n");
  }
  CHECK(helpers().size() == 1);
}

TEST_CASE("process service: the end of the Runtime leaves no process") {
  auto service = std::make_unique<Service>();
  const std::string stray = long_sleep();
  const std::string stubborn = long_sleep();
  auto process = service->spawn(
      shell("trap '' TERM; setsid " + stray + " & echo ready; " + stubborn + "; " + stubborn));
  auto silent = shell("head -c 1000000 /dev/zero; " + long_sleep());
  silent.window = 0;
  auto held = service->spawn(silent);
  REQUIRE(eventually([&] { return process->out() == "ready\n" && runs(stray) && runs(stubborn); }));
  REQUIRE(held->wait_started());
  CHECK(helpers().size() == 1);
  service->bench.reset();
  CHECK(helpers().empty());
  CHECK_FALSE(runs(stray));
  CHECK_FALSE(runs(stubborn));
  CHECK(process->dones_ == 1);
  CHECK(held->dones_ == 1);
  CHECK((process->code_ == SF_CANCELLED || process->exit_.outcome == SF_EXIT_CANCELLED));
  CHECK(process->exit_.outcome != SF_EXIT_EXITED);
  // The handles are still the plugin's.
  process->grant(1);
  process->cancel();
}

TEST_CASE("process service: a plugin's new host, while the former one's commands run") {
  Service service;
  auto process = service.spawn(shell("read x; echo $x"));
  auto parts = shell("read x; echo $x");
  parts.stdin_mode = SF_STDIN_PIPE;
  auto waits = service.spawn(parts);
  REQUIRE(waits->wait_started());
  service.bench->plugin->host.attach(nullptr);
  Spawned refused(service.lane);
  CHECK(service.try_spawn(parts, refused) == SF_UNAVAILABLE);
  std::size_t accepted = 0;
  REQUIRE(service.write(*waits, "still\n", accepted) == SF_OK);
  REQUIRE(waits->wait());
  CHECK(waits->out_ == "still\n");
  REQUIRE(process->wait());
  // Nobody will run anything more through it.
  CHECK(eventually([] { return helpers().empty(); }));
}

TEST_CASE("process service: a helper that is killed") {
  Service service;
  const std::string sleeper = long_sleep();
  auto process = service.spawn(shell("exec " + sleeper));
  auto output = shell("echo all; exec " + sleeper);
  output.window = 0;
  auto held = service.spawn(output);
  REQUIRE(process->wait_started());
  REQUIRE(held->wait_started());
  const auto pids = helpers();
  REQUIRE(pids.size() == 1);
  REQUIRE(::kill(pids[0], SIGKILL) == 0);
  for (auto* one : {process.get(), held.get()}) {
    REQUIRE(one->wait());
    CHECK(one->code_ == SF_TRANSPORT_LOST);
    CHECK(one->may_have_started_);
    CHECK(one->exit_.struct_size == 0);
    CHECK_THAT(one->details_, Catch::Contains("sandforge-guest"));
  }
  CHECK(eventually([&] { return !runs(sleeper); }));
  // The next command gets a new one, and no dead one is left.
  CHECK(service.run(shell("echo again"))->out_ == "again\n");
  CHECK(eventually([&] { return helpers().size() == 1 && helpers() != pids; }));
}

TEST_CASE("process service: helpers that are none") {
  const TempDir dir;
  struct Row {
    std::filesystem::path program;
    sf_status code;
    std::string reason;
  };
  const auto ends = dir.write("ends", "#!/bin/sh\nexit 1\n");
  const auto babbles = dir.write("babbles", "#!/bin/sh\necho hello >&0\n");
  ::chmod(ends.c_str(), 0755);
  ::chmod(babbles.c_str(), 0755);
  for (const Row& row :
       std::vector<Row>{{dir / "absent", SF_UNSUPPORTED, "process.no_helper"},
                        {dir.write("plain", "text"), SF_UNSUPPORTED, "process.no_helper"},
                        {dir.path(), SF_UNSUPPORTED, "process.no_helper"},
                        {ends, SF_INTERNAL, "process.helper_failed"},
                        {babbles, SF_INTERNAL, "process.helper_failed"}}) {
    CAPTURE(row.program);
    Service service(row.program);
    const auto process = service.run(program({"/bin/true"}));
    CHECK(process->code_ == row.code);
    CHECK_THAT(process->details_, Catch::Contains(row.reason));
    CHECK_THAT(process->details_, Catch::Contains(row.program.string()));
    CHECK_THAT(process->message_, Catch::Contains(row.program.string()));
    CHECK_FALSE(process->may_have_started_);
    CHECK(process->exit_.struct_size == 0);
    // And each try is a new one.
    CHECK(service.run(program({"/bin/true"}))->code_ == row.code);
  }
}

TEST_CASE("process service: absent without a helper program") {
  Bench named({"process"});
  CHECK(named.plugin->host.vtbl->service(&named.plugin->host, str(SF_SERVICE_PROCESS)) == nullptr);
  CHECK(named.plugin->faults.total() == 0);
}

TEST_CASE("process service: absent where the manifest is silent") {
  Bench silent;
  silent.services->guest_program = SANDFORGE_GUEST_PATH;
  CHECK(silent.plugin->host.vtbl->service(&silent.plugin->host, str(SF_SERVICE_PROCESS)) ==
        nullptr);
  CHECK(silent.plugin->faults.total() == 0);
}

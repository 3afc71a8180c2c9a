// The process service, called through its C table as plugins do, with the real helper program.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "sandforge/ext/host_executor.h"
#include "sandforge/ext/host_process.h"
#include "support/temp_dir.hpp"
#include "test_paths.hpp"
#include "unit/loader/fake_plugin.hpp"

namespace sandforge::test {

inline constexpr auto kPatience = std::chrono::seconds(60);

inline bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline sf_bytes bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Every process of this machine: its parent, and its command line with spaces between the words.
struct Listed {
  pid_t parent = 0;
  std::string words;
};
inline std::map<pid_t, Listed> processes() {
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

inline bool runs(const std::string& part) {
  const auto all = processes();
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) {
    return entry.second.words.find(part) != std::string::npos;
  });
}

// The helper programs that this test program started.
inline std::vector<pid_t> helpers() {
  std::vector<pid_t> out;
  for (const auto& [pid, one] : processes()) {
    if (one.parent == ::getpid() && one.words.find("sandforge-guest serve") != std::string::npos)
      out.push_back(pid);
  }
  return out;
}

// A command line that nothing else on this machine has.
inline std::string long_sleep() {
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

inline CommandParts shell(std::string text) {
  CommandParts out;
  out.shell = std::move(text);
  out.env = {{"PATH", "/usr/bin:/bin"}};
  return out;
}
inline CommandParts program(std::vector<std::string> argv) {
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

}  // namespace sandforge::test

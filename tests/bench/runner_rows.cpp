// A plugin in a process of its own, against bare processes and a bare socket pair.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <future>
#include <semaphore>
#include <stdexcept>

#include "measure.hpp"
#include "plugin/abi_call.hpp"
#include "plugin/abi_lane.hpp"
#include "rows.hpp"
#include "runner/remote_plugin.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/sandbox.hpp"
#include "test_paths.hpp"

namespace sandforge::bench {
namespace {

RunnerOptions own_process() {
  RunnerOptions out;
  out.program = SANDFORGE_RUNNER;
  out.others.isolation = Isolation::process;
  return out;
}

PluginFile find(const PluginLoader& loader, const char* file) {
  PluginSearchPath path;
  path.add(file, "bench");
  auto scan = loader.scan(path);
  if (scan.files.size() != 1) throw std::runtime_error(scan.report.to_text());
  return std::move(scan.files.front());
}

PluginLoader::Options loader_options(Runtime& runtime) {
  PluginLoader::Options options;
  auto services = std::make_shared<HostServices>();
  services->runtime = &runtime;
  options.services = std::move(services);
  options.runner = own_process();
  return options;
}

Row start_row(const Scale& scale) {
  Runtime runtime;
  const auto ours = [&] {
    PluginLoader loader(loader_options(runtime));
    const PluginFile file = find(loader, SANDFORGE_BENCH_PLAIN_PLUGIN);
    return 1e3 * timed([&] {
             if (loader.load(file).plugin == nullptr) throw std::runtime_error("not loaded");
           });
  };
  const auto theirs = [] {
    return 1e3 * timed([] { wait_bare(start_bare({"/bin/true"}, true)); });
  };
  interleave(3, ours, theirs);
  const Pair pair = interleave(scale.of(60, 5), ours, theirs);
  return {"runner.start", "a plugin ready in a process of its own against a bare true",
          "ms",           pair.subject,
          pair.peer,      Goal::at_most(3, Figure::subject)};
}

// ---- One call

// The other end of a bare socket pair, in another process. It carries less than a call and its
// answer, neither side is bound to a processor, and each waits in its read: nothing is faster.
class Echo {
 public:
  Echo() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      throw std::runtime_error("no socket");
    child_ = ::fork();
    if (child_ == 0) {
      ::close(pair[0]);
      char bytes[64];
      while (::read(pair[1], bytes, sizeof bytes) > 0 &&
             ::write(pair[1], bytes, sizeof bytes) > 0) {
      }
      ::_exit(0);
    }
    ::close(pair[1]);
    socket_ = pair[0];
  }
  ~Echo() {
    ::close(socket_);
    ::waitpid(child_, nullptr, 0);
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  void turn() {
    char bytes[64] = {};
    if (::write(socket_, bytes, sizeof bytes) != sizeof bytes ||
        ::read(socket_, bytes, sizeof bytes) <= 0)
      throw std::runtime_error("the echo has ended");
  }

 private:
  pid_t child_ = -1;
  int socket_ = -1;
};

// describe of an opened provider, at the C boundary: called on the provider's lane, to which the
// answer comes, as core does.
class Describer {
 public:
  Describer(plugin::Plugin& plugin, const Lane& lane) : lane_(plugin, lane), queue_(lane) {
    sf_open_request request{};
    request.struct_size = sizeof request;
    request.provider = {"minimal-c", 9};
    request.options = {"{}", 2};
    request.lane = lane_.get();
    if (plugin.api->open(&request, &provider_, nullptr) != SF_OK)
      throw std::runtime_error("not opened");
  }
  ~Describer() { provider_->vtbl->release(provider_); }
  Describer(const Describer&) = delete;
  Describer& operator=(const Describer&) = delete;

  // One after the other; this thread waits for the last.
  void turns(int count) {
    left_ = count;
    queue_.post([this] { call(); });
    ended_.acquire();
    if (failed_) throw std::runtime_error("not described");
  }

 private:
  void call() noexcept {
    const sf_describe_completion done{
        this, [](void* ctx, const sf_error* error, const sf_describe_result*) noexcept {
          auto& self = *static_cast<Describer*>(ctx);
          self.queue_.post([&self, failed = error != nullptr] { self.answered(failed); });
        }};
    if (provider_->vtbl->describe(provider_, done, nullptr, nullptr) != SF_OK) answered(true);
  }
  void answered(bool failed) noexcept {
    failed_ = failed_ || failed;
    if (failed_ || --left_ == 0) return ended_.release();
    call();
  }

  plugin::LaneRef lane_;
  const Lane queue_;
  int left_ = 0;
  bool failed_ = false;
  sf_provider* provider_ = nullptr;
  std::binary_semaphore ended_{0};
};

// `at_once`: how many calls, each made by the answer of the one before, a thread waits for.
Pair roundtrips(const Scale& scale, int at_once) {
  Echo echo;
  Runtime runtime;
  PluginLoader loader(loader_options(runtime));
  const auto loaded = loader.load(find(loader, SANDFORGE_BENCH_C_PLUGIN));
  if (loaded.plugin == nullptr) throw std::runtime_error(loaded.attempt.message);
  Describer describer(*loaded.plugin, runtime.make_lane());
  constexpr int turns = 500;
  const auto ours = [&] {
    return 1e6 / turns * timed([&] {
             for (int i = 0; i < turns; i += at_once)
               describer.turns(at_once);
           });
  };
  const auto theirs = [&] {
    return 1e6 / turns * timed([&] {
             for (int i = 0; i < turns; ++i)
               echo.turn();
           });
  };
  interleave(2, ours, theirs);
  return interleave(scale.of(40, 3), ours, theirs);
}

Row roundtrip_row(const Scale& scale) {
  const Pair pair = roundtrips(scale, 500);
  return {"runner.roundtrip",
          "a call and its answer, lane to lane, against a bare socket pair",
          "us",
          pair.subject,
          pair.peer,
          Goal::at_most(1.3, Figure::ratio)};
}

Row waiting_row(const Scale& scale) {
  const Pair pair = roundtrips(scale, 1);
  return {"runner.waiting",
          "the same for a thread that waits for each answer",
          "us",
          pair.subject,
          pair.peer,
          Goal::at_most(2, Figure::ratio)};
}

// ---- A stream, and an end

class Session {
 public:
  Session() {
    ProviderRegistry::Options options;
    options.runner = own_process();
    registry_ = std::make_unique<ProviderRegistry>(runtime_, std::move(options));
    PluginSearchPath search;
    search.add(SANDFORGE_BENCH_PLAIN_PLUGIN, "bench");
    registry_->scan(search);
    SandboxConfig config;
    config.id = "bench";
    sandbox_ = Sandbox::create(runtime_, registry_->open("plain-000"), std::move(config)).value();
    sandbox_->start();
  }
  Sandbox& sandbox() noexcept { return *sandbox_; }

 private:
  Runtime runtime_;
  std::unique_ptr<ProviderRegistry> registry_;
  std::shared_ptr<Sandbox> sandbox_;
};

// MiB a second out of a process that writes pieces of 64 KiB.
double bare_stream(int mib) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    throw std::runtime_error("no socket");
  const pid_t child = ::fork();
  std::string block(64 << 10, 'x');
  if (child == 0) {
    ::close(pair[0]);
    for (int i = 0; i < 16 * mib; ++i)
      if (::write(pair[1], block.data(), block.size()) <= 0) break;
    ::_exit(0);
  }
  ::close(pair[1]);
  const double seconds = timed([&] {
    while (::read(pair[0], block.data(), block.size()) > 0) {
    }
  });
  ::close(pair[0]);
  ::waitpid(child, nullptr, 0);
  return mib / seconds;
}

Row stream_row(const Scale& scale) {
  Session session;
  const int mib = scale.of(256, 16);
  const auto ours = [&] {
    std::size_t seen = 0;
    ExecOptions options;
    options.on_stdout = [&](std::string_view piece) { seen += piece.size(); };
    const double seconds =
        timed([&] { session.sandbox().execute_command(std::to_string(mib), {}, options); });
    if (seen != static_cast<std::size_t>(mib) << 20) throw std::runtime_error("bytes are missing");
    return mib / seconds;
  };
  const Pair pair = interleave(scale.of(5, 2), ours, [&] { return bare_stream(mib); });
  return {"runner.stream", "output of a command against a bare socket pair",
          "MiB/s",         pair.subject,
          pair.peer,       Goal::at_least(0.3, Figure::ratio)};
}

Row crash_row(const Scale& scale) {
  const auto ours = [] {
    Runtime runtime;
    PluginLoader loader(loader_options(runtime));
    const auto loaded = loader.load(find(loader, SANDFORGE_BENCH_C_PLUGIN));
    if (loaded.plugin == nullptr) throw std::runtime_error(loaded.attempt.message);
    Describer describer(*loaded.plugin, runtime.make_lane());
    const auto peer = loaded.plugin->remote->live().value();
    struct Ended final : runner::Callbacks {
      Outcome invoke(plugin::Plugin&, runner::Method, runner::wire::Reader&) override {
        return Outcome::malformed;
      }
      void fail(plugin::Plugin&, const sf_error&) override { ended.release(); }
      std::binary_semaphore ended{0};
    };
    const auto call = std::make_shared<Ended>();
    peer->expect(peer->next(), call);
    return 1e3 * timed([&] {
             ::kill(peer->pid(), SIGKILL);
             call->ended.acquire();
           });
  };
  const auto theirs = [] {
    const pid_t child = start_bare({"/bin/sleep", "1000"}, true);
    return 1e3 * timed([&] {
             ::kill(child, SIGKILL);
             ::waitpid(child, nullptr, 0);
           });
  };
  const Pair pair = interleave(scale.of(30, 3), ours, theirs);
  return {"runner.crash", "a killed process to the error of its call against kill and wait",
          "ms",           pair.subject,
          pair.peer,      Goal::at_most(5, Figure::subject)};
}

}  // namespace

std::vector<Row> runner_rows(const Scale& scale) {
  return {start_row(scale), roundtrip_row(scale), waiting_row(scale), stream_row(scale),
          crash_row(scale)};
}

}  // namespace sandforge::bench

// Docker's bars, on the engine of DOCKER_HOST, with the image that engine.sh makes:
//   sandforge_docker_bench [--quick]
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "commands.hpp"
#include "measure.hpp"
#include "rows.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/runtime.hpp"
#include "sandforge/sandbox.hpp"
#include "test_paths.hpp"

namespace sandforge::bench {
namespace {

constexpr const char* kImage = "sandforge-test-busybox";

std::string engine() {
  const char* host = std::getenv("DOCKER_HOST");
  if (host == nullptr) throw std::runtime_error("DOCKER_HOST names no engine");
  return host;
}

class DockerHost {
 public:
  DockerHost() {
    auto services = std::make_shared<HostServices>();
    services->runtime = &runtime_;
    services->env = [](const std::string& name) -> std::optional<std::string> {
      const char* value = std::getenv(name.c_str());
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
    ProviderRegistry::Options options;
    options.services = std::move(services);
    registry_ = std::make_unique<ProviderRegistry>(runtime_, std::move(options));
    PluginSearchPath search;
    search.add(SANDFORGE_DOCKER_PLUGIN, "bench");
    const LoadReport report = registry_->scan(search);
    if (report.refused() != 0) throw std::runtime_error(report.to_text());
  }

  std::shared_ptr<Sandbox> make(const std::string& id, const std::string& path) {
    json::Object given;
    given.set("image", kImage);
    given.set("networkIsolation", "NONE");
    given.set("commandPath", path);
    SandboxConfig config;
    config.id = id;
    return Sandbox::create(runtime_, registry_->open("docker", std::move(given)), std::move(config))
        .value();
  }

 private:
  Runtime runtime_;
  std::unique_ptr<ProviderRegistry> registry_;
};

// Started, and gone afterwards.
class Machine {
 public:
  Machine(DockerHost& host, const std::string& id, const std::string& path)
      : sandbox_(host.make(id, path)) {
    sandbox_->start();
  }
  ~Machine() {
    try {
      sandbox_->destroy();
    } catch (const std::exception& failure) {
      std::cerr << "a sandbox stays: " << failure.what() << '\n';
    }
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  Sandbox& operator*() noexcept { return *sandbox_; }
  std::string container() { return sandbox_->sandbox_id().value().str(); }

 private:
  std::shared_ptr<Sandbox> sandbox_;
};

// Milliseconds.
double true_in(Sandbox& sandbox) {
  return 1e3 * timed([&] { run_true(sandbox); });
}

std::vector<Row> docker_rows(const Scale& scale) {
  DockerHost host;
  Machine guest(host, "bench-guest", "auto"), exec(host, "bench-exec", "engine-exec");
  const std::string docker = "DOCKER_HOST='" + engine() + "' docker ";
  const std::string client = docker + "exec " + guest.container() + " ";
  const std::uint64_t bytes = std::uint64_t{1} << (scale.quick ? 26 : 29);
  const double mib = static_cast<double>(bytes) / (1 << 20);
  std::vector<Row> rows;
  run_true(*guest);

  const auto by_guest = [&] { return true_in(*guest); };
  const auto by_engine = [&] { return true_in(*exec); };
  const auto by_client = [&] { return 1e3 * timed([&] { run_bare(client + "true"); }); };
  Pair pair = interleave(scale.of(100, 20), by_guest, by_client);
  rows.push_back({"docker.warm", "execute_command(\"true\") against docker exec", "ms",
                  pair.subject, pair.peer, Goal::at_most(0.05, Figure::ratio)});
  rows.push_back({"docker.warm.time", "the same, by itself", "ms", pair.subject, pair.peer,
                  Goal::at_most(2, Figure::subject)});
  pair = interleave(scale.of(50, 10), by_guest, by_engine);
  rows.push_back({"docker.warm.engine", "the same, against this provider's own engine execs", "ms",
                  pair.subject, pair.peer, Goal::at_most(0.05, Figure::ratio)});

  const auto ours = [&] { return mib / timed([&] { stream_zeros(*guest, bytes); }); };
  const auto theirs = [&] {
    const std::string text = client + "head -c " + std::to_string(bytes) + " /dev/zero | cat";
    return mib / timed([&] { run_bare(text + " >/dev/null"); });
  };
  pair = interleave(scale.of(5, 2), ours, theirs);
  rows.push_back({"docker.stream", "output to a callback against docker exec", "MiB/s",
                  pair.subject, pair.peer, Goal::at_least(400, Figure::subject)});

  int turn = 0;
  const auto start = [&] {
    const auto sandbox = host.make("bench-start-" + std::to_string(++turn), "auto");
    const double ms = 1e3 * timed([&] {
                        sandbox->start();
                        run_true(*sandbox);
                      });
    sandbox->destroy();
    return ms;
  };
  const auto bare = [&] {
    const std::string name = "bench-bare-" + std::to_string(++turn);
    const double ms = 1e3 * timed([&] {
                        run_bare(docker + "run -d --init --network none --name " + name + " " +
                                 kImage + " sleep infinity >/dev/null");
                      });
    run_bare(docker + "rm -f " + name + " >/dev/null");
    return ms;
  };
  pair = interleave(scale.of(10, 4), start, bare);
  rows.push_back({"docker.start", "start and a first command against docker run -d", "ms",
                  pair.subject, pair.peer, Goal::at_most(1.25, Figure::ratio)});
  return rows;
}

int run(bool quick) {
  Conditions conditions;
  conditions.quick = quick;
  conditions.cores = std::thread::hardware_concurrency();
  double load = 0;
  if (::getloadavg(&load, 1) == 1) conditions.load_before = load;
  const std::vector<Row> rows = docker_rows(Scale(quick));
  if (::getloadavg(&load, 1) == 1) conditions.load_after = load;
  std::cout << to_table(conditions, rows) << std::flush;
  return 0;
}

}  // namespace
}  // namespace sandforge::bench

int main(int argc, char** argv) {
  try {
    return sandforge::bench::run(argc > 1 && std::string(argv[1]) == "--quick");
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
}

// Docker's bars, on the engine of DOCKER_HOST, with the image that engine.sh makes:
//   sandforge_docker_bench [--quick]
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "bare_engine.hpp"
#include "commands.hpp"
#include "measure.hpp"
#include "rows.hpp"
#include "sandforge/files.hpp"
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

// Commands a second, of as many at once.
double many(Sandbox& sandbox, int count) {
  const double seconds = timed([&] {
    std::vector<std::future<Result<CommandResult>>> commands;
    for (int i = 0; i < count; ++i) {
      auto promise = std::make_shared<std::promise<Result<CommandResult>>>();
      commands.push_back(promise->get_future());
      sandbox.async_execute_command("true", {}, {}, [promise](Result<CommandResult> result) {
        promise->set_value(std::move(result));
      });
    }
    for (auto& command : commands)
      if (!command.get().value().success) throw std::runtime_error("a command failed");
  });
  return count / seconds;
}

std::vector<Row> command_rows(Sandbox& guest, Sandbox& exec, const std::string& container,
                              const std::string& client, const Scale& scale) {
  const BareEngine engine_api(engine());
  std::vector<Row> rows;
  run_true(guest);
  const auto by_guest = [&] { return true_in(guest); };
  const auto by_engine = [&] { return true_in(exec); };
  const auto by_client = [&] { return 1e3 * timed([&] { run_bare(client + "true"); }); };
  const auto by_api = [&] { return 1e3 * timed([&] { engine_api.exec(container, "true"); }); };
  Pair pair = interleave(scale.of(100, 20), by_guest, by_client);
  rows.push_back({"docker.warm", "execute_command(\"true\") against docker exec", "ms",
                  pair.subject, pair.peer, Goal::at_most(0.05, Figure::ratio)});
  rows.push_back({"docker.warm.time", "the same, by itself", "ms", pair.subject, pair.peer,
                  Goal::at_most(2, Figure::subject)});
  pair = interleave(scale.of(50, 10), by_guest, by_api);
  rows.push_back({"docker.warm.api", "the same, against a bare exec of the engine's API", "ms",
                  pair.subject, pair.peer, Goal::at_most(0.05, Figure::ratio)});
  pair = interleave(scale.of(50, 10), by_guest, by_engine);
  rows.push_back({"docker.warm.engine", "the same, against this provider's own engine execs", "ms",
                  pair.subject, pair.peer, Goal::at_most(0.05, Figure::ratio)});

  const int count = scale.of(200, 50);
  const auto at_once = [&] { return many(guest, count); };
  const auto by_shell = [&] {
    const std::string text = client + "sh -c 'i=0; while [ $i -lt " + std::to_string(count) +
                             " ]; do sh -c true & i=$((i + 1)); done; wait'";
    return count / timed([&] { run_bare(text); });
  };
  pair = interleave(scale.of(7, 3), at_once, by_shell);
  rows.push_back({"docker.many",
                  std::to_string(count) + " commands at once against a shell's own in one exec",
                  "/s", pair.subject, pair.peer, Goal::at_least(0.5, Figure::ratio)});
  return rows;
}

std::vector<Row> byte_rows(Sandbox& guest, const std::string& container, const std::string& client,
                           const std::string& docker, const Scale& scale) {
  const std::uint64_t bytes = std::uint64_t{1} << (scale.quick ? 26 : 29);
  std::vector<Row> rows;
  const auto rate = [](std::uint64_t count, double seconds) {
    return static_cast<double>(count) / (1 << 20) / seconds;
  };
  const auto ours = [&] { return rate(bytes, timed([&] { stream_zeros(guest, bytes); })); };
  const auto theirs = [&] {
    const std::string text = client + "head -c " + std::to_string(bytes) + " /dev/zero | cat";
    return rate(bytes, timed([&] { run_bare(text + " >/dev/null"); }));
  };
  Pair pair = interleave(scale.of(5, 2), ours, theirs);
  rows.push_back({"docker.stream", "output to a callback against docker exec", "MiB/s",
                  pair.subject, pair.peer, Goal::at_least(400, Figure::subject)});

  const Folder folder;
  const std::string here = (folder.path() / "blob").string();
  const std::string there = "/workspace/blob";
  const std::uint64_t size = std::uint64_t{1} << (scale.quick ? 24 : 26);
  run_bare("head -c " + std::to_string(size) + " /dev/zero >" + here);
  const std::string content(size, 'x');
  const auto files = guest.files();
  const auto up = [&] { return rate(size, timed([&] { files->write_file(there, content); })); };
  const auto docker_up = [&] {
    return rate(size,
                timed([&] { run_bare(docker + "cp " + here + " " + container + ":" + there); }));
  };
  pair = interleave(scale.of(5, 2), up, docker_up);
  rows.push_back({"docker.upload", "a file from memory against docker cp", "MiB/s", pair.subject,
                  pair.peer, Goal::at_least(1, Figure::ratio)});
  const auto down = [&] {
    return rate(size, timed([&] {
                  if (files->read_file(there, size).size() != size)
                    throw std::runtime_error("bytes were lost");
                }));
  };
  const auto docker_down = [&] {
    return rate(size,
                timed([&] { run_bare(docker + "cp " + container + ":" + there + " " + here); }));
  };
  pair = interleave(scale.of(5, 2), down, docker_down);
  rows.push_back({"docker.download", "the same back", "MiB/s", pair.subject, pair.peer,
                  Goal::at_least(1, Figure::ratio)});
  return rows;
}

std::vector<Row> start_rows(DockerHost& host, const std::string& docker, const Scale& scale) {
  const BareEngine engine_api(engine());
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
  const auto run_bare_container = [&] {
    const std::string name = "bench-bare-" + std::to_string(++turn);
    const double ms = 1e3 * timed([&] {
                        run_bare(docker + "run -d --init --network none --name " + name + " " +
                                 kImage + " sleep infinity >/dev/null");
                      });
    run_bare(docker + "rm -f " + name + " >/dev/null");
    return ms;
  };
  const auto create_and_start = [&] {
    std::string id;
    const double ms =
        1e3 * timed([&] {
          id = engine_api.start_container(kImage, "bench-api-" + std::to_string(++turn));
        });
    engine_api.remove_container(id);
    return ms;
  };
  std::vector<Row> rows;
  Pair pair = interleave(scale.of(10, 4), start, create_and_start);
  rows.push_back({"docker.start", "start and a first command against the API's create and start",
                  "ms", pair.subject, pair.peer, Goal::at_most(1.25, Figure::ratio)});
  pair = interleave(scale.of(10, 4), start, run_bare_container);
  rows.push_back({"docker.start.client", "the same, against docker run -d", "ms", pair.subject,
                  pair.peer, Goal::at_most(1.25, Figure::ratio)});
  return rows;
}

std::vector<Row> docker_rows(const Scale& scale) {
  DockerHost host;
  Machine guest(host, "bench-guest", "auto"), exec(host, "bench-exec", "engine-exec");
  const std::string docker = "DOCKER_HOST='" + engine() + "' docker ";
  const std::string container = guest.container();
  const std::string client = docker + "exec " + container + " ";
  std::vector<Row> rows = command_rows(*guest, *exec, container, client, scale);
  for (auto& more :
       {byte_rows(*guest, container, client, docker, scale), start_rows(host, docker, scale)})
    rows.insert(rows.end(), more.begin(), more.end());
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

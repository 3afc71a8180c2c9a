// The C boundary itself: the host's fence, the C table, the layer of the plugin. Uses the headers
// behind core's public ones, because a public call does more than cross once.
#include <future>
#include <stdexcept>

#include "micro.hpp"
#include "plugin/abi_call.hpp"
#include "plugin/abi_lane.hpp"
#include "sandforge/plugin_loader.hpp"
#include "sandforge/runtime.hpp"
#include "test_paths.hpp"

namespace sandforge::bench {
namespace {

namespace abi = sandforge::plugin;

abi::Plugin& load(PluginLoader& loader, const char* file) {
  PluginSearchPath path;
  path.add(file, "bench");
  const auto scan = loader.scan(path);
  if (scan.files.size() != 1) throw std::runtime_error(scan.report.to_text());
  const auto loaded = loader.load(scan.files.front());
  if (loaded.plugin == nullptr) throw std::runtime_error(loaded.attempt.message);
  return *loaded.plugin;
}

sf_str text(std::string_view t) {
  return {t.data(), t.size()};
}

// A provider of a loaded plugin, for as long as this lives. On its lane.
class Opened {
 public:
  Opened(abi::Plugin& plugin, const char* name, const Lane& lane)
      : plugin_(plugin), lane_(plugin, lane) {
    sf_open_request request{};
    request.struct_size = sizeof request;
    request.provider = text(name);
    request.options = text("{}");
    request.lane = lane_.get();
    const sf_open_request* given = &request;
    abi::call_status(plugin_, "open", plugin_.api->open, given, &raw_).value();
  }
  ~Opened() { abi::call_value(plugin_, "release", raw_->vtbl->release, raw_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  const void* extension(sf_str id) {
    return abi::call_value(plugin_, "extension", raw_->vtbl->extension, raw_, id);
  }
  void create_and_release() {
    sf_create_request request{};
    request.struct_size = sizeof request;
    request.lane = lane_.get();
    request.settings = text("{}");
    request.idle_timeout_ms = SF_NONE;
    const sf_create_request* given = &request;
    sf_sandbox* sandbox = nullptr;
    abi::call_status(plugin_, "create", raw_->vtbl->create, raw_, given, &sandbox).value();
    abi::call_value(plugin_, "release", sandbox->vtbl->release, sandbox);
  }

 private:
  abi::Plugin& plugin_;
  abi::LaneRef lane_;
  sf_provider* raw_ = nullptr;
};

[[gnu::noinline]] const void* no_extension(sf_provider* self, sf_str id) noexcept {
  benchmark::DoNotOptimize(self);
  benchmark::DoNotOptimize(id);
  return nullptr;
}

struct Made {
  virtual ~Made() = default;
};
[[gnu::noinline]] Made* make_bare() {
  return new Made;
}

Pair compare_calls(const Scale& scale, Opened& opened) {
  const sf_str id = text("none");
  return compare(
      scale,
      [&](benchmark::State& state) {
        for (auto _ : state)
          benchmark::DoNotOptimize(opened.extension(id));
      },
      [&](benchmark::State& state) {
        auto* bare = &no_extension;
        for (auto _ : state) {
          benchmark::DoNotOptimize(bare);  // the compiler must not know what is called
          benchmark::DoNotOptimize(bare(nullptr, id));
        }
      });
}

Pair compare_objects(const Scale& scale, Opened& opened) {
  return compare(
      scale,
      [&](benchmark::State& state) {
        for (auto _ : state)
          opened.create_and_release();
      },
      [&](benchmark::State& state) {
        for (auto _ : state)
          delete make_bare();
      });
}

std::vector<Row> measure(const Scale& scale, PluginLoader& loader, const Lane& lane) {
  Opened in_c(load(loader, SANDFORGE_BENCH_C_PLUGIN), "minimal-c", lane);
  Opened in_cpp(load(loader, SANDFORGE_BENCH_PLAIN_PLUGIN), "plain-000", lane);
  const Pair call = compare_calls(scale, in_c);
  const Pair object = compare_objects(scale, in_cpp);
  return {{"boundary.call", "one call into a plugin against one through a bare pointer", "ns",
           call.subject, call.peer, Goal::at_most(2, Figure::subject)},
          {"boundary.create", "create and release of a sandbox object against new and delete", "ns",
           object.subject, object.peer, Goal::at_most(100, Figure::subject)}};
}

}  // namespace

std::vector<Row> boundary_rows(const Scale& scale) {
  Runtime runtime;
  auto services = std::make_shared<HostServices>();
  services->runtime = &runtime;
  PluginLoader::Options options;
  options.services = std::move(services);
  PluginLoader loader(std::move(options));
  const Lane lane = runtime.make_lane();
  // Plugins are called on their lane.
  std::packaged_task<std::vector<Row>()> work([&] { return measure(scale, loader, lane); });
  auto rows = work.get_future();
  lane.post([&work] { work(); });
  return rows.get();
}

}  // namespace sandforge::bench

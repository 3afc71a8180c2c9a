// A host with one plugin that is bad, and a session of another provider that must work throughout.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugin/plugin.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/sandbox.hpp"
#include "support/temp_dir.hpp"

namespace sandforge::test {

inline constexpr std::chrono::seconds kPatience{60};
using Lines = std::vector<std::string>;

// Of the processes of plugins; absent: as they are.
struct Limits {
  std::optional<std::chrono::milliseconds> ready, call;
};

class World {
 public:
  // The file is best one that this process has not loaded before: its counters start anew then.
  World(Isolation isolation, std::filesystem::path file, const std::string& sha256 = {},
        Limits limits = {});

  // A command of the other session. Throws when it does not run as it should.
  void check_neighbour();

  // What loading the plugin and looking into its providers comes to, as people read it.
  std::string report();
  Lane make_lane() { return runtime_.make_lane(); }
  Result<std::shared_ptr<ProviderBackend>> open(json::Object options);
  // Waits until the plugin has told all it has to tell, and, `all`, has no object left.
  void drain(bool all);
  // Waits until its process was lost and started again.
  void drain_lost();
  // What the log says about the plugin, without times, and what the registry counts.
  Lines told();
  // Text with the folder of the plugin as DIR.
  std::string neutral(std::string text) const;

  template <class T, class Start>
  static Result<T> wait(Start&& start) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    auto future = promise->get_future();
    start(Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
    if (future.wait_for(kPatience) != std::future_status::ready)
      throw std::runtime_error("no answer");
    return future.get();
  }
  // Starts on the lane and waits for the answer.
  template <class T, class Start>
  static Result<T> ask(const Lane& lane, Start start) {
    return wait<T>([&](Handler<T> handler) {
      lane.post([start, handler = std::move(handler)]() mutable { start(std::move(handler)); });
    });
  }
  template <class F>
  static auto on(const Lane& lane, F f) -> decltype(f()) {
    auto task = std::make_shared<std::packaged_task<decltype(f())()>>(std::move(f));
    auto future = task->get_future();
    lane.post([task] { (*task)(); });
    if (future.wait_for(kPatience) != std::future_status::ready)
      throw std::runtime_error("the lane does not move");
    return future.get();
  }
  static void settle(const Lane& lane) {
    for (int i = 0; i < 5; ++i)
      on(lane, [] {});
  }

 private:
  ProviderRegistry::Options options(Isolation isolation, Limits limits);
  void keep(std::string_view line);
  std::size_t tokens() const;

  const std::filesystem::path file_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Lines log_;
  Lines alive_;  // "0": no object of the plugin is left
  Runtime runtime_;
  std::unique_ptr<ProviderRegistry> registry_;
  std::shared_ptr<Sandbox> neighbour_;
};

// What goes to descriptor 1 while it lives.
class Captured {
 public:
  Captured();
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  std::string text() const;

 private:
  const TempDir dir_;
  int before_ = -1;
};

// "CODE, may have started: message", and the reason and details below it.
Lines words_of(const Error& error);
// Long runs of one character as their number.
std::string squeezed(const std::string& text);
// Compares with golden/NAME.txt; with SANDFORGE_UPDATE_GOLDEN=1 writes it.
void check_golden(const std::string& name, const std::string& text);

}  // namespace sandforge::test

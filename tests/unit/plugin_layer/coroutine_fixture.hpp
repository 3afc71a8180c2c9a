// Runs coroutines of the layer on a lane of the fake host, without a plugin around them.
#pragma once

#include <sandforge/plugin/coroutine.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/host.hpp>

namespace sandforge::test {

// Counts what lives in the frames of coroutines: what is left over was leaked.
class Counted {
 public:
  static inline std::atomic<int> live{0};
  Counted() { ++live; }
  Counted(const Counted&) { ++live; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --live; }
};

inline void nothing_is_left() {
  CHECK(Counted::live == 0);
  CHECK(testing::Op::live == 0);
  CHECK(testing::Process::live == 0);
  CHECK(testing::Lane::live == 0);
}

// A command for the host's process service.
inline plugin::Command shell(const std::string& text, bool with_input = false) {
  plugin::Command command;
  command.shell = text;
  command.env.emplace_back("PATH", "/usr/bin:/bin");
  command.cwd = "/";
  command.pipe_stdin = with_input;
  return command;
}

// Where a coroutine went on, and whether that was its lane.
class Trail {
 public:
  explicit Trail(plugin::Lane lane) : lane_(std::move(lane)) {}
  void at(const std::string& place) { places_ += (places_.empty() ? "" : " ") + mark(place); }
  const std::string& places() const { return places_; }

 private:
  std::string mark(const std::string& place) const {
    return lane_.is_current() ? place : "!" + place;
  }
  const plugin::Lane lane_;
  std::string places_;
};

class Bench {
 public:
  testing::Host host;

  Bench() {
    host.loop.set_time(testing::Time::real);
    host.process.real = true;
    plugin::detail::services().fill(&host);
  }
  ~Bench() {
    host.join();
    host.loop.drain();
  }

  const plugin::Lane& lane() const { return lane_; }
  const plugin::StopSource& stop() const { return stop_; }

  template <class T>
  struct Ended {
    int done = 0;
    std::optional<plugin::Code> code;
    std::string message;
    std::optional<plugin::detail::Boxed<T>> value;
    bool on_lane = false;
  };

  // Begins the task that make() gives; ended must outlive it.
  template <class T, class Make>
  void begin(Ended<T>& ended, Make make) {
    plugin::Coroutine::launch<T>(
        lane_, stop_.token(), std::move(make),
        [this, &ended](const std::exception_ptr& error, plugin::detail::Boxed<T>* value) {
          ended.on_lane = lane_.is_current();
          if (error) {
            ended.code = plugin::Code::internal;
            plugin::detail::with_error(error, [&](const sf_error& e) {
              ended.code = static_cast<plugin::Code>(e.code);
              ended.message = testing::text(e.message);
            });
          } else {
            ended.value.emplace(std::move(*value));
          }
          ++ended.done;
        });
  }
  // Runs it to its end.
  template <class T, class Make>
  Ended<T> run(Make make) {
    Ended<T> ended;
    begin<T>(ended, std::move(make));
    host.loop.run_until([&] { return ended.done > 0; });
    host.loop.drain();
    return ended;
  }
  bool wait(const std::function<bool()>& done) { return host.loop.run_until(done); }

 private:
  static plugin::Lane new_lane(testing::Loop& loop) {
    testing::Lane* raw = testing::Lane::create(loop);
    plugin::Lane lane(raw);
    raw->release();
    return lane;
  }
  const plugin::Lane lane_ = new_lane(host.loop);
  plugin::StopSource stop_;
};

}  // namespace sandforge::test

// The small capabilities of a sandbox, as a host calls them, in both styles.
#include <sandforge/plugin/sandbox_parts.hpp>

#include "full_plugin.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::test;
using testing::str;

namespace {

std::string show(const sf_process_info& p) {
  return testing::text(p.id) + " " + std::to_string(p.pid) + " " + testing::text(p.command) +
         (p.running != 0 ? " runs" : " ended by " + std::to_string(p.exit->signal)) + " " +
         std::to_string(p.flags) + " " + std::to_string(p.first.out);
}
std::string show(const sf_checkpoint& c) {
  return testing::text(c.name) + " " + number(c.bytes) + " " + testing::text(c.warnings);
}
sf_process_list_completion processes_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_process_info* first, std::size_t n,
                 std::size_t stride) noexcept {
            static_cast<Listed*>(ctx)->take(e, first, n, stride, show);
          }};
}
sf_checkpoint_completion checkpoints_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_checkpoint* first, std::size_t n,
                 std::size_t stride) noexcept {
            static_cast<Listed*>(ctx)->take(e, first, n, stride, show);
          }};
}

}  // namespace

TEST_CASE("processes: list, attach, signal, forget") {
  Full full(GENERATE(Style::blocking, Style::coroutine));
  const auto& table = full.of_sandbox<sf_processes_ext>(SF_EXT_PROCESSES);
  const auto list = full.ask<Listed>(
      [&](Listed& l) { return table.list(full.box, processes_of(l), nullptr, nullptr); });
  CHECK(list.text == "p1 11 sh -c x runs 1 0 | p2 0  ended by 9 2 5");

  testing::Running running(8);
  full.driver->call([&] {
    const sf_stream_events io = running.events();
    const sf_process_events events = running.process_events();
    sf_process* process = nullptr;
    testing::Failure failure;
    const sf_error_sink err = testing::sink(failure);
    sf_cursor from{};
    from.out = 3;
    from.err = 4;
    CHECK(table.attach(full.box, str("other"), from, 8, &io, &events, &process, &err) ==
          SF_NOT_FOUND);
    CHECK(failure.message == "no such process");
    REQUIRE(table.attach(full.box, str("p1"), from, 8, &io, &events, &process, &err) == SF_OK);
    running.took(process);
  });
  REQUIRE(full.driver->wait([&] { return running.done > 0; }));
  CHECK(running.exit.code == 2);
  running.release();
  full.plain([&](sf_completion done) {
    return table.signal(full.box, str("p1"), 15, SF_SIGNAL_TREE, done, nullptr, nullptr);
  });
  full.plain([&](sf_completion done) {
    return table.forget(full.box, str("p2"), done, nullptr, nullptr);
  });
  CHECK(take_calls() == "attach other 3 4; attach p1 3 4; signal p1 15 tree; forget p2");
}

TEST_CASE("ports, metrics, lifetime, snapshots") {
  Full full(GENERATE(Style::blocking, Style::coroutine));
  const auto& ports = full.of_sandbox<sf_ports_ext>(SF_EXT_PORTS);
  const auto url = [&](std::uint32_t port) {
    return full.ask<testing::Result>([&](testing::Result& r) {
      return ports.url(full.box, port, testing::text_completion(r), nullptr, nullptr);
    });
  };
  CHECK(url(80).text == "http://box:80");
  CHECK(url(81).text.empty());
  CHECK(full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return ports.dial(full.box, 80, 3, events, out, nullptr);
  }) == "hi");

  struct Measured {
    int done = 0;
    sf_metrics now{};
  };
  const auto& metrics = full.of_sandbox<sf_metrics_ext>(SF_EXT_METRICS);
  const auto measured = full.ask<Measured>([&](Measured& m) {
    const sf_metrics_completion done{
        &m, [](void* ctx, const sf_error*, const sf_metrics* now) noexcept {
          auto& into = *static_cast<Measured*>(ctx);
          ++into.done;
          if (now != nullptr) into.now = *now;
        }};
    return metrics.read(full.box, done, nullptr, nullptr);
  });
  CHECK(measured.now.cpu_millis == 250);
  CHECK(measured.now.memory_bytes == SF_NONE);

  struct Left {
    int done = 0;
    std::uint64_t ms = 0;
  };
  const auto& lifetime = full.of_sandbox<sf_lifetime_ext>(SF_EXT_LIFETIME);
  const auto left = [&] {
    return full
        .ask<Left>([&](Left& l) {
          const sf_lifetime_completion done{
              &l, [](void* ctx, const sf_error*, std::uint64_t ms) noexcept {
                static_cast<Left*>(ctx)->ms = ms;
                ++static_cast<Left*>(ctx)->done;
              }};
          return lifetime.get(full.box, done, nullptr, nullptr);
        })
        .ms;
  };
  CHECK(left() == SF_NONE);
  full.plain(
      [&](sf_completion done) { return lifetime.set(full.box, 5000, done, nullptr, nullptr); });
  CHECK(left() == 5000);
  full.plain(
      [&](sf_completion done) { return lifetime.keep_alive(full.box, done, nullptr, nullptr); });
  full.plain([&](sf_completion done) { return lifetime.pause(full.box, done, nullptr, nullptr); });
  full.plain([&](sf_completion done) { return lifetime.resume(full.box, done, nullptr, nullptr); });

  const auto& snapshots = full.of_sandbox<sf_snapshot_ext>(SF_EXT_SNAPSHOT);
  const auto create = [&](const char* name) {
    return full.ask<Listed>([&](Listed& l) {
      return snapshots.create(full.box, str(name), checkpoints_of(l), nullptr, nullptr);
    });
  };
  CHECK(create("c1").text == "c1 9 [\"a pipe\"]");
  CHECK(create("").count == 0);
  CHECK(full.ask<Listed>([&](Listed& l) {
              return snapshots.list(full.box, checkpoints_of(l), nullptr, nullptr);
            })
            .count == 3);
  full.plain([&](sf_completion done) {
    return snapshots.remove(full.box, str("c1"), done, nullptr, nullptr);
  });
  CHECK(full.plain([&](sf_completion done) {
              return snapshots.start_from(full.box, str("c1"), done, nullptr, nullptr);
            })
            .failure.message == "no checkpoint c1");
  CHECK(take_calls() == "dial 80; keep_alive; pause; resume; remove c1");
}

TEST_CASE("functions of the small parts that a sandbox lacks are null in their tables") {
  Full full(GENERATE(Style::blocking, Style::coroutine), R"({"lean":true})");
  CHECK(full.of_sandbox<sf_ports_ext>(SF_EXT_PORTS).dial == nullptr);
  CHECK(full.of_sandbox<sf_ports_ext>(SF_EXT_PORTS).url != nullptr);
  CHECK(full.of_sandbox<sf_lifetime_ext>(SF_EXT_LIFETIME).pause == nullptr);
  CHECK(full.of_sandbox<sf_lifetime_ext>(SF_EXT_LIFETIME).resume == nullptr);
}

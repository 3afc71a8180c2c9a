// Processes of plugins, good and bad, behind core's interfaces.
#include "plugin/process_events.hpp"

#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;
using plugin::Fault;
using Events = std::vector<std::string>;

namespace {

Command command(std::uint64_t window = 1000) {
  Command out;
  out.argv = {"true"};
  out.window = window;
  return out;
}

// A process that runs, and both of its ends.
struct Running {
  explicit Running(Bench& bench, std::uint64_t window = 1000)
      : sandbox(bench.make_sandbox()),
        fake(new FakeProcess),
        sink(std::make_shared<RecordingSink>()) {
    bench.sandbox->spawn_gives(fake);
    process =
        bench.on(bench.sandbox_lane, [&] { return sandbox->spawn(command(window), sink); }).value();
  }
  std::shared_ptr<SandboxBackend> sandbox;
  FakeProcess* fake;  // owned by `process`
  std::shared_ptr<RecordingSink> sink;
  std::shared_ptr<ProcessBackend> process;
};

Result<std::shared_ptr<ProcessBackend>> spawn(Bench& bench, SandboxBackend& sandbox,
                                              const Command& what,
                                              std::shared_ptr<ProcessSink> sink) {
  return bench.on(bench.sandbox_lane, [&] { return sandbox.spawn(what, std::move(sink)); });
}

// Pieces that follow each other as one: where they were cut says nothing.
Events joined(const Events& events) {
  Events out;
  for (const auto& event : events) {
    const bool more =
        !out.empty() && event.rfind("out ", 0) == 0 && out.back().rfind("out ", 0) == 0;
    if (more)
      out.back() += event.substr(4);
    else
      out.push_back(event);
  }
  return out;
}

const sf_pty_ext kTerminals = {sizeof(sf_pty_ext),
                               [](sf_process*, uint32_t, uint32_t, sf_completion, sf_op**,
                                  const sf_error_sink* err) noexcept -> sf_status {
                                 return fail(err, SF_UNSUPPORTED, "no resize");
                               }};

}  // namespace

TEST_CASE("process: the command as the plugin sees it") {
  Bench bench;
  bench.pty = &kTerminals;
  auto sandbox = bench.make_sandbox();
  Command what;
  what.argv = {"printf", "%s", "", "\xff"};
  what.env = {{"A", "1"}, {"B", std::nullopt}};
  what.cwd = "/w";
  what.user = "root";
  what.tty = Tty();
  what.stdin_pipe = true;
  what.combined = true;
  what.detach = true;
  what.timeout = std::chrono::milliseconds(-5);
  what.grace = std::chrono::milliseconds(70);
  what.window = 9;
  what.tag = "tag";
  what.request_id = "r1";
  bench.sandbox->on_spawn = [](const sf_command& c, const sf_stream_events&,
                               const sf_process_events&, sf_process**, const sf_error_sink* err) {
    CHECK(c.shell.ptr == nullptr);
    CHECK(c.argc == 4);
    CHECK(c.argv[2].len == 0);
    CHECK(c.argv[2].ptr != nullptr);
    CHECK(c.argv[3].ptr[0] == 0xff);
    CHECK(c.env_count == 2);
    CHECK(c.tty->cols == 80);
    CHECK(copy(c.tty->term) == "xterm-256color");
    CHECK(c.stdin_mode == SF_STDIN_PIPE);
    CHECK(c.output == SF_OUTPUT_COMBINED);
    CHECK(c.flags == SF_COMMAND_DETACH);
    CHECK(c.timeout_ms == 0);
    CHECK(c.grace_ms == 70);
    CHECK(c.window == 9);
    CHECK(copy(c.user) == "root");
    CHECK(copy(c.tag) == "tag");
    CHECK(copy(c.request_id) == "r1");
    return fail(err, SF_CONFLICT, "it is stopped");
  };
  auto sink = std::make_shared<RecordingSink>();
  const auto result = spawn(bench, *sandbox, what, sink);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message == "it is stopped");
  CHECK(sink->events().empty());
  CHECK(bench.plugin->tokens.in_use() == 0);
}

TEST_CASE("process: commands that no system takes are refused before the plugin") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  const auto refused = [&](Command what) {
    const auto result = spawn(bench, *sandbox, what, std::make_shared<RecordingSink>());
    return !result.ok() && result.error().reason == "command.invalid";
  };
  Command what = command();
  what.argv = {std::string("a\0b", 3)};
  CHECK(refused(what));
  what = command();
  what.env = {{"A=B", "x"}};
  CHECK(refused(what));
  what = command();
  what.cwd = std::string("\0", 1);
  CHECK(refused(what));
  what = command();
  what.shell = "both";
  CHECK(refused(what));
  what.argv.clear();
  what.shell = std::string("\0", 1);
  CHECK(refused(what));
  CHECK(refused(Command()));
}

TEST_CASE("process: a terminal is refused where the provider declares none") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  int spawned = 0;
  bench.sandbox->on_spawn = [&](const sf_command&, const sf_stream_events&,
                                const sf_process_events&, sf_process**, const sf_error_sink* err) {
    ++spawned;
    return fail(err, SF_CONFLICT, "it is stopped");
  };
  Command what = command();
  what.tty = Tty();
  const auto result = spawn(bench, *sandbox, what, std::make_shared<RecordingSink>());
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == Status::unsupported);
  CHECK(result.error().reason == "feature.pty");
  CHECK(spawned == 0);
}

TEST_CASE("process: a whole life, on the lane") {
  Bench bench;
  Running run(bench);
  bench.on(bench.sandbox_lane, [&] {
    run.fake->started();
    run.fake->data("hello ");
    run.fake->data("oops", SF_CHANNEL_STDERR);
    run.fake->data("?", 9);  // a channel of a later version
    run.fake->exited(3);
    run.fake->done(11);
  });
  REQUIRE(run.sink->wait());
  CHECK(run.sink->events() ==
        Events{"started p1 7", "out hello ", "err oops", "exit exited 3", "done OK 11 0"});
  CHECK(bench.plugin->faults.total() == 0);
  CHECK(bench.plugin->tokens.in_use() == 0);
  run.process = nullptr;
  CHECK(FakeProcess::alive == 0);
}

TEST_CASE("process: a whole life, from another thread") {
  Bench bench;
  Running run(bench);
  std::thread([&] {
    run.fake->started();
    run.fake->data("a");
    run.fake->data("b");
    run.fake->exited();
    run.fake->done(2, 5);
  }).join();
  REQUIRE(run.sink->wait());
  CHECK(joined(run.sink->events()) ==
        Events{"started p1 7", "out ab", "exit exited 0", "done OK 2 5"});
  CHECK(bench.plugin->faults.total() == 0);
}

TEST_CASE("process: threads that take turns keep their order") {
  Bench bench;
  Running run(bench, 1 << 20);
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    const std::string piece = std::to_string(i);
    expected += piece;
    if (i % 2 == 0) {
      std::thread([&] { run.fake->data(piece); }).join();
    } else {
      bench.on(bench.sandbox_lane, [&] { run.fake->data(piece); });
    }
  }
  bench.on(bench.sandbox_lane, [&] { run.fake->done(expected.size()); });
  REQUIRE(run.sink->wait());
  std::string got;
  for (const auto& event : run.sink->events()) {
    if (event.rfind("out ", 0) == 0) got += event.substr(4);
  }
  CHECK(got == expected);
}

TEST_CASE("process: more than was granted ends it as crashed, with the plugin's name") {
  Bench bench;
  Running run(bench, 4);
  bench.on(bench.sandbox_lane, [&] {
    run.fake->started();
    run.fake->data("1234");
    run.fake->data("5");
    run.fake->data("6");
  });
  REQUIRE(run.sink->wait());
  CHECK(run.sink->events() == Events{"started p1 7", "out 1234", "done CRASHED 4 0"});
  CHECK(run.sink->error()->message == "plugin fake: it delivered 1 bytes more than were granted");
  CHECK(run.sink->error()->reason == "plugin.over_credit");
  CHECK(run.sink->error()->may_have_started);
  CHECK(bench.faults(Fault::over_credit) == 1);
  CHECK(run.fake->cancels == 1);
  // Its own end is late, but no second end.
  bench.on(bench.sandbox_lane, [&] { run.fake->done(6); });
  bench.settle(bench.sandbox_lane);
  CHECK(run.sink->events().size() == 3);
  CHECK(bench.plugin->tokens.in_use() == 0);
}

TEST_CASE("process: credit adds up, and a flood from another thread stays bounded") {
  Bench bench;
  Running run(bench, 0);
  run.process->grant(3);
  run.process->grant(UINT64_MAX);
  CHECK(run.fake->granted == 2);  // 3 + (2^64 - 1)
  const std::string chunk(1 << 16, 'x');
  std::thread([&] {
    for (int i = 0; i < 100; ++i)
      run.fake->data(chunk);
    run.fake->done(100U << 16);
  }).join();
  REQUIRE(run.sink->wait());
  CHECK(joined(run.sink->events()).front().size() == 4 + (100U << 16));
  CHECK(bench.plugin->faults.total() == 0);
}

TEST_CASE("process: small pieces that wait are one piece") {
  Bench bench;
  Running run(bench);
  bench.on(bench.sandbox_lane, [&] {
    std::thread([&] {
      run.fake->started();
      for (int i = 0; i < 100; ++i)
        run.fake->data("x");
      run.fake->done(100);
    }).join();
  });
  REQUIRE(run.sink->wait());
  CHECK(run.sink->events() ==
        Events{"started p1 7", "out " + std::string(100, 'x'), "done OK 100 0"});
}

TEST_CASE("process: bytes that come from inside grant are put in order") {
  Bench bench;
  Running run(bench, 2);
  run.fake->on_grant = [&](std::uint64_t) { run.fake->data("cd"); };
  int depth = 0;
  int deepest = 0;
  run.sink->hook = [&](const std::string& text) {
    deepest = std::max(deepest, ++depth);
    if (text == "ab") run.process->grant(2);
    --depth;
  };
  bench.on(bench.sandbox_lane, [&] { run.fake->data("ab"); });
  bench.settle(bench.sandbox_lane);
  bench.on(bench.sandbox_lane, [&] { run.fake->done(4); });
  REQUIRE(run.sink->wait());
  CHECK(run.sink->events() == Events{"out ab", "out cd", "done OK 4 0"});
  CHECK(deepest == 1);
}

TEST_CASE("process: events twice, out of order, after the end, and empty ones") {
  Bench bench;
  Running run(bench);
  // Who reads the log may use the process, on any thread.
  int held = 0;
  std::vector<std::future<void>> grants;
  bench.on_log = [&] {
    grants.push_back(std::async(std::launch::async, [&] { run.process->grant(1); }));
    if (grants.back().wait_for(std::chrono::seconds(10)) != std::future_status::ready) ++held;
  };
  bench.on(bench.sandbox_lane, [&] {
    run.fake->data("early");
    run.fake->started();
    run.fake->started();
    run.fake->data("");
    run.fake->exited(0);
    run.fake->exited(1);
    run.fake->done(99);
    run.fake->data("late");
    run.fake->done(5);
  });
  REQUIRE(run.sink->wait());
  bench.settle(bench.sandbox_lane);
  CHECK(run.sink->events() == Events{"out early", "started p1 7", "exit exited 0", "done OK 5 0"});
  CHECK(bench.faults(Fault::out_of_order) == 3);   // started late, started twice, exit twice
  CHECK(bench.faults(Fault::missing_value) == 1);  // no bytes
  CHECK(bench.faults(Fault::contradiction) == 1);  // 99
  CHECK(bench.faults(Fault::late_callback) == 2);
  CHECK(grants.size() == 7);
  CHECK(held == 0);
}

TEST_CASE("process: null where there must be something") {
  Bench bench;
  Running run(bench);
  bench.on(bench.sandbox_lane, [&] {
    run.fake->process_events.on_started(run.fake->process_events.ctx, nullptr);
    run.fake->events.on_data(run.fake->events.ctx, 1, 0, {nullptr, 10});
    run.fake->process_events.on_exit(run.fake->process_events.ctx, nullptr);
    run.fake->events.done(run.fake->events.ctx, nullptr, nullptr);
  });
  REQUIRE(run.sink->wait());
  CHECK(run.sink->events() == Events{"started  0", "exit unknown -", "done OK 0 0"});
  CHECK(bench.faults(Fault::missing_value) == 4);
}

TEST_CASE("process: the end says why") {
  Bench bench;
  Running run(bench);
  bench.on(bench.sandbox_lane, [&] {
    sf_error error{sizeof(error), SF_NOT_FOUND, 0, str("no such folder"), str("{\"path\":\"/x\"}"),
                   SF_NONE};
    run.fake->events.done(run.fake->events.ctx, &error, nullptr);
  });
  REQUIRE(run.sink->wait());
  CHECK(run.sink->events() == Events{"done NOT_FOUND 0 0"});
  CHECK(run.sink->error()->details.find("path")->as_string() == "/x");
  CHECK_FALSE(run.sink->error()->may_have_started);
}

TEST_CASE("process: a spawn that succeeds without a process") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  bench.sandbox->on_spawn = [](const sf_command&, const sf_stream_events&, const sf_process_events&,
                               sf_process**, const sf_error_sink*) { return SF_OK; };
  auto sink = std::make_shared<RecordingSink>();
  const auto result = spawn(bench, *sandbox, command(), sink);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == Status::crashed);
  CHECK(result.error().may_have_started);
  CHECK(bench.plugin->tokens.in_use() == 0);
}

TEST_CASE("process: events from inside the spawn come after it, and none after a refusal") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  auto* fake = new FakeProcess;
  bool refuse = false;
  bench.sandbox->on_spawn = [&](const sf_command&, const sf_stream_events& io,
                                const sf_process_events& events, sf_process** out,
                                const sf_error_sink* err) {
    fake->events = io;
    fake->process_events = events;
    fake->started();
    fake->data("x");
    if (refuse) return fail(err, SF_CONFLICT, "no");
    *out = fake;
    return SF_OK;
  };
  auto sink = std::make_shared<RecordingSink>();
  std::size_t inside = 99;
  auto process = bench
                     .on(bench.sandbox_lane,
                         [&] {
                           auto made = sandbox->spawn(command(), sink);
                           inside = sink->events().size();
                           return made;
                         })
                     .value();
  bench.settle(bench.sandbox_lane);
  CHECK(inside == 0);
  CHECK(sink->events() == Events{"started p1 7", "out x"});
  CHECK(bench.faults(Fault::inside_start) == 2);
  bench.on(bench.sandbox_lane, [&] { fake->done(1); });
  REQUIRE(sink->wait());

  refuse = true;
  auto second = std::make_shared<RecordingSink>();
  CHECK_FALSE(spawn(bench, *sandbox, command(), second).ok());
  bench.settle(bench.sandbox_lane);
  CHECK(second->events().empty());
}

TEST_CASE("process: input, with all that a plugin may answer") {
  Bench bench;
  Running run(bench);
  const std::string text = "hello";
  const Bytes bytes(reinterpret_cast<const std::byte*>(text.data()), text.size());
  const auto write = [&] {
    return bench.on(bench.sandbox_lane, [&] { return run.process->write(bytes); });
  };
  CHECK(write().error().code == Status::conflict);
  run.fake->on_write = [](sf_bytes, std::size_t* accepted) {
    *accepted = 2;
    return SF_OK;
  };
  CHECK(write().value() == 2);
  run.fake->on_write = [](sf_bytes, std::size_t* accepted) {
    *accepted = 6;
    return SF_OK;
  };
  CHECK(write().error().code == Status::crashed);
  run.fake->on_write = [](sf_bytes, std::size_t*) { return SF_OK; };
  CHECK(write().value() == 0);
  CHECK(run.process->write(bytes).error().reason == "core.lane");

  for (int i = 0; i < 50; ++i)
    run.fake->events.on_writable(run.fake->events.ctx);
  bench.settle(bench.sandbox_lane);
  CHECK_FALSE(run.sink->events().empty());
  bench.on(bench.sandbox_lane, [&] { run.fake->done(0); });
  REQUIRE(run.sink->wait());
}

TEST_CASE("process: signals, resize where there is no terminal, cancel") {
  Bench bench;
  Running run(bench);
  CHECK(bench
            .wait<void>([&](auto handler) {
              bench.on(bench.sandbox_lane,
                       [&] { run.process->signal(15, true, std::move(handler)); });
            })
            .ok());
  const auto resized = bench.wait<void>([&](auto handler) {
    bench.on(bench.sandbox_lane, [&] { run.process->resize(1, 2, std::move(handler)); });
  });
  REQUIRE_FALSE(resized.ok());
  CHECK(resized.error().code == Status::unsupported);
  run.process->cancel();
  CHECK(run.fake->cancels == 1);
}

TEST_CASE("process: done comes after the handle was dropped") {
  Bench bench;
  Running run(bench);
  const auto events = run.fake->events;
  run.process = nullptr;
  CHECK(FakeProcess::alive == 0);
  const sf_stream_end end{sizeof(end), 0, 12};
  events.done(events.ctx, nullptr, &end);
  REQUIRE(run.sink->wait());
  CHECK(run.sink->events() == Events{"done OK 0 12"});
}

TEST_CASE("process: lists") {
  Bench bench;
  struct Wide {
    sf_process_info info;
    std::uint64_t later;  // of a later version
  };
  static std::size_t stride;
  static std::size_t count;
  static const sf_processes_ext table = {
      sizeof(sf_processes_ext),
      [](sf_sandbox*, sf_process_list_completion done, sf_op** op,
         const sf_error_sink*) noexcept -> sf_status {
        FakeOp::give(op);
        std::thread([done] {
          static const sf_exit exit{sizeof(exit), SF_EXIT_SIGNALED, SF_EXIT_KILLED, 0, 9, 0, 0};
          Wide list[2] = {};
          list[0].info = {sizeof(Wide),        str("p1"), 4,      {nullptr, 0}, str("t"), 1,
                          SF_PROCESS_DETACHED, nullptr,   {1, 2}, {3, 4}};
          list[1].info = {sizeof(Wide),     str("p2"), 0,      {nullptr, 0}, str(""), 0,
                          SF_PROCESS_STRAY, &exit,     {0, 0}, {0, 0}};
          done.done(done.ctx, nullptr, &list[0].info, count, stride);
        }).detach();
        return SF_OK;
      },
      [](sf_sandbox*, sf_str, sf_cursor, std::uint64_t, const sf_stream_events*,
         const sf_process_events*, sf_process**, const sf_error_sink* err) noexcept -> sf_status {
        return fail(err, SF_NOT_FOUND, "no such process");
      },
      [](sf_sandbox*, sf_str, std::int32_t, std::uint32_t, sf_completion, sf_op**,
         const sf_error_sink* err) noexcept -> sf_status { return fail(err, SF_GONE, "ended"); },
      [](sf_sandbox*, sf_str, sf_completion, sf_op**, const sf_error_sink* err) noexcept
      -> sf_status { return fail(err, SF_CONFLICT, "it runs"); }};
  bench.processes = &table;
  auto sandbox = bench.make_sandbox();
  ProcessesBackend* processes = sandbox->processes();
  REQUIRE(processes != nullptr);
  const auto list = [&] {
    return bench.wait<std::vector<ProcessInfo>>([&](auto handler) {
      bench.on(bench.sandbox_lane, [&] { processes->list(std::move(handler)); });
    });
  };
  stride = sizeof(Wide);
  count = 2;
  const auto good = list();
  REQUIRE(good.ok());
  REQUIRE(good->size() == 2);
  CHECK((*good)[0].id.str() == "p1");
  CHECK((*good)[0].running);
  CHECK((*good)[0].detached);
  CHECK((*good)[0].next.err == 4);
  CHECK((*good)[1].exit->signal == 9);
  CHECK((*good)[1].exit->killed);
  CHECK((*good)[1].stray);
  stride = 3;
  CHECK(list().error().code == Status::crashed);
  count = 0;
  CHECK(list()->empty());

  const auto attached = bench.on(bench.sandbox_lane, [&] {
    return processes->attach(ProcessId("p9"), {}, 10, std::make_shared<RecordingSink>());
  });
  CHECK(attached.error().code == Status::not_found);
  CHECK(bench
            .wait<void>([&](auto handler) {
              bench.on(bench.sandbox_lane,
                       [&] { processes->signal(ProcessId("p1"), 9, false, std::move(handler)); });
            })
            .error()
            .code == Status::gone);
  CHECK(bench
            .wait<void>([&](auto handler) {
              bench.on(bench.sandbox_lane,
                       [&] { processes->forget(ProcessId("p1"), std::move(handler)); });
            })
            .error()
            .code == Status::conflict);
}

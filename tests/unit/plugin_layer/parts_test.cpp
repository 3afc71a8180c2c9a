// The tables of the capabilities, called as a host calls them, in both styles.
#include <sandforge/plugin/sandbox_parts.hpp>

#include <catch2/catch.hpp>

#include "abi/rehearsal/driver.hpp"
#include "unit/plugin_layer/parts_fixture.hpp"

namespace fake = sandforge::fake;
using namespace sandforge::test;
using fake::bytes;
using fake::str;

namespace {

// The answer of a list: count and every element as text.
class Listed {
 public:
  int done = 0;
  std::size_t count = 0;
  fake::Failure failure;
  std::string text;

  template <class T>
  void take(const sf_error* error, const T* first, std::size_t n, std::size_t stride,
            std::string (*show)(const T&)) {
    ++done;
    failure = fake::Failure::copy(error);
    count = n;
    for (std::size_t i = 0; i < n; ++i) {
      const auto* at = reinterpret_cast<const char*>(first) + i * stride;
      text += (i > 0 ? " | " : "") + show(*reinterpret_cast<const T*>(at));
    }
  }
};

std::string number(std::uint64_t n) {
  return n == SF_NONE ? "-" : std::to_string(n);
}
std::string show(const sf_process_info& p) {
  return fake::text(p.id) + " " + std::to_string(p.pid) + " " + fake::text(p.command) +
         (p.running != 0 ? " runs" : " ended by " + std::to_string(p.exit->signal)) + " " +
         std::to_string(p.flags) + " " + std::to_string(p.first.out);
}
std::string show(const sf_file_info& f) {
  return fake::text(f.path) + " " + std::to_string(f.kind) + " " + std::to_string(f.mode) + " " +
         std::to_string(f.size) + " " + std::to_string(f.modified_at) + " " +
         (f.link_target.ptr == nullptr ? "no link" : fake::text(f.link_target));
}
std::string show(const sf_checkpoint& c) {
  return fake::text(c.name) + " " + number(c.bytes);
}
std::string show(const sf_build& b) {
  return fake::text(b.build_id) + " " + std::to_string(b.status) + " " + number(b.retry_after_ms);
}
std::string show(const sf_directory_entry& d) {
  return fake::text(d.sandbox_id) + " " +
         (d.session_id.ptr == nullptr ? "-" : fake::text(d.session_id)) + " " +
         fake::text(d.labels);
}

sf_process_list_completion processes_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_process_info* first, std::size_t n,
                 std::size_t stride) noexcept {
            static_cast<Listed*>(ctx)->take(e, first, n, stride, show);
          }};
}
sf_file_list_completion files_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_file_info* first, std::size_t n,
                 std::size_t stride, std::uint32_t) noexcept {
            static_cast<Listed*>(ctx)->take(e, first, n, stride, show);
          }};
}
sf_checkpoint_completion checkpoints_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_checkpoint* first, std::size_t n,
                 std::size_t stride) noexcept {
            static_cast<Listed*>(ctx)->take(e, first, n, stride, show);
          }};
}
sf_build_completion builds_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_build* first, std::size_t n,
                 std::size_t stride) noexcept {
            static_cast<Listed*>(ctx)->take(e, first, n, stride, show);
          }};
}
sf_directory_completion entries_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_directory_entry* first, std::size_t n,
                 std::size_t stride, sf_str next) noexcept {
            auto& listed = *static_cast<Listed*>(ctx);
            listed.take(e, first, n, stride, show);
            listed.text += " -> " + fake::text(next);
          }};
}

// A sandbox and a provider with everything.
template <class Style>
class Full {
 public:
  fake::Host host;
  std::optional<fake::Driver> driver;
  fake::Failure failure;
  sf_sandbox* box = nullptr;
  sf_provider* provider = nullptr;

  Full() {
    take_calls();
    driver.emplace(host, detail::plugin_of<FullFactory<Style>>());
    REQUIRE(driver->open("full", "{}", failure) == SF_OK);
    REQUIRE(driver->create(nullptr, "{}", failure) == SF_OK);
    box = driver->sandbox;
    provider = driver->provider;
  }
  ~Full() {
    driver.reset();
    host.join();
    host.loop.drain();
    CHECK(fake::Lane::live == 0);
    CHECK(fake::Op::live == 0);
  }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;

  template <class Table>
  const Table& of_sandbox(const char* id) {
    const auto* table = static_cast<const Table*>(box->vtbl->extension(box, str(id)));
    REQUIRE(table != nullptr);
    return *table;
  }
  template <class Table>
  const Table& of_provider(const char* id) {
    const auto* table = static_cast<const Table*>(provider->vtbl->extension(provider, str(id)));
    REQUIRE(table != nullptr);
    return *table;
  }
  // start(answer) on the lane, then until it has ended.
  template <class Answer, class Start>
  Answer ask(Start start) {
    Answer answer;
    driver->call([&] { CHECK(start(answer) == SF_OK); });
    REQUIRE(driver->wait([&] { return answer.done > 0; }));
    host.loop.drain();
    CHECK(answer.done == 1);
    return answer;
  }
  template <class Start>
  fake::Result plain(Start start) {
    return ask<fake::Result>([&](fake::Result& r) { return start(fake::completion(r)); });
  }
  // A stream: what it delivered, after it was given its input, if any.
  template <class Start>
  std::string stream(Start start, const std::string& input = {}) {
    fake::Consumer consumer(3);
    driver->call([&] {
      const sf_stream_events events = consumer.events();
      CHECK(start(&events, &consumer.stream) == SF_OK);
      std::size_t accepted = 0;
      CHECK(consumer.stream->vtbl->write(consumer.stream, bytes(input), 0, &accepted, nullptr) ==
            SF_OK);
      CHECK(accepted == input.size());
      CHECK(consumer.stream->vtbl->shutdown_write(consumer.stream, nullptr) == SF_OK);
    });
    REQUIRE(driver->wait([&] { return consumer.done > 0; }));
    consumer.stream->vtbl->release(std::exchange(consumer.stream, nullptr));
    CHECK(consumer.rules_kept());
    CHECK_FALSE(consumer.failure);
    return consumer.out;
  }
};

}  // namespace

TEMPLATE_TEST_CASE("processes: list, attach, signal, forget", "", Blocking, Coroutine) {
  Full<TestType> full;
  const auto& table = full.template of_sandbox<sf_processes_ext>(SF_EXT_PROCESSES);
  const auto list = full.template ask<Listed>(
      [&](Listed& l) { return table.list(full.box, processes_of(l), nullptr, nullptr); });
  CHECK(list.text == "p1 11 sh -c x runs 1 0 | p2 0  ended by 9 2 5");

  fake::Running running(8);
  full.driver->call([&] {
    const sf_stream_events io = running.events();
    const sf_process_events events = running.process_events();
    sf_process* process = nullptr;
    fake::Failure failure;
    const sf_error_sink err = fake::sink(failure);
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

TEMPLATE_TEST_CASE("files: every function, and streams under credit", "", Blocking, Coroutine) {
  Full<TestType> full;
  const auto& table = full.template of_sandbox<sf_files_ext>(SF_EXT_FILES);
  const auto stat = [&](const char* path) {
    return full.template ask<Listed>([&](Listed& l) {
      return table.stat(full.box, bytes(path), files_of(l), nullptr, nullptr);
    });
  };
  CHECK(stat("/link").text == "/link 3 511 3 77 far");
  CHECK(stat("/none").failure.code == SF_NOT_FOUND);
  CHECK(stat("/none").failure.details == R"({"path":"/none"})");
  const auto list = full.template ask<Listed>([&](Listed& l) {
    return table.list(full.box, bytes("/dir"), 2, files_of(l), nullptr, nullptr);
  });
  CHECK(list.text == "a 0 0 0 0 no link | b 0 0 0 0 no link");
  CHECK(full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.read(full.box, bytes("/f"), 1, SF_NONE, 3, events, out, nullptr);
  }) == "content");
  full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.read(full.box, bytes("/f"), 1, 4, 3, events, out, nullptr);
  });
  CHECK(full.stream(
                [&](const sf_stream_events* events, sf_stream** out) {
                  return table.write(full.box, bytes("/f"), 0600, SF_FILE_CREATE_PARENTS, events,
                                     out, nullptr);
                },
                std::string(500, 'i'))
            .empty());
  full.plain([&](sf_completion done) {
    return table.make_directory(full.box, bytes("/d"), 0700, 0, done, nullptr, nullptr);
  });
  full.plain([&](sf_completion done) {
    return table.move(full.box, bytes("/a"), bytes("/b"), SF_FILE_REPLACE, done, nullptr, nullptr);
  });
  full.plain([&](sf_completion done) {
    return table.remove(full.box, bytes("/a"), SF_FILE_REMOVE_TREE, done, nullptr, nullptr);
  });
  CHECK(full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.watch(full.box, bytes("/w"), SF_WATCH_RECURSIVE, 3, events, out, nullptr);
  }) == "{}");
  CHECK(full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.archive_read(full.box, bytes("/t"), 3, events, out, nullptr);
  }) == "tar");
  full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.archive_write(full.box, bytes("/t"), events, out, nullptr);
  });
  CHECK(take_calls() ==
        "list /dir 2; read /f 1 all; read /f 1 4; write /f 384 parents; mkdir /d 448; "
        "move /a /b replace; remove /a tree; watch /w recursive; pack /t; unpack /t");
  auto* files = static_cast<SomeFiles<TestType>*>(
      static_cast<FullSandbox<TestType>&>(SandboxBase::of(full.box)).files());
  CHECK(files->stored == std::string(500, 'i'));
}

TEMPLATE_TEST_CASE("a file whose writer is dropped half way is not taken for a whole one", "",
                   Blocking, Coroutine) {
  Full<TestType> full;
  const auto& table = full.template of_sandbox<sf_files_ext>(SF_EXT_FILES);
  fake::Consumer consumer(0);
  full.driver->call([&] {
    const sf_stream_events events = consumer.events();
    CHECK(table.write(full.box, bytes("/f"), 0, 0, &events, &consumer.stream, nullptr) == SF_OK);
    std::size_t accepted = 0;
    CHECK(consumer.stream->vtbl->write(consumer.stream, bytes("half"), 0, &accepted, nullptr) ==
          SF_OK);
    consumer.stream->vtbl->release(std::exchange(consumer.stream, nullptr));
  });
  REQUIRE(full.driver->wait([&] { return consumer.done > 0; }));
  CHECK(consumer.failure.code == SF_CANCELLED);
  CHECK(consumer.failure.message == "the host gave up its input half way");
}

TEMPLATE_TEST_CASE("ports, metrics, lifetime, snapshots", "", Blocking, Coroutine) {
  Full<TestType> full;
  const auto& ports = full.template of_sandbox<sf_ports_ext>(SF_EXT_PORTS);
  const auto url = [&](std::uint32_t port) {
    return full.template ask<fake::Result>([&](fake::Result& r) {
      return ports.url(full.box, port, fake::text_completion(r), nullptr, nullptr);
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
  const auto& metrics = full.template of_sandbox<sf_metrics_ext>(SF_EXT_METRICS);
  const auto measured = full.template ask<Measured>([&](Measured& m) {
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
  const auto& lifetime = full.template of_sandbox<sf_lifetime_ext>(SF_EXT_LIFETIME);
  CHECK(lifetime.pause == nullptr);
  const auto left = [&] {
    return full
        .template ask<Left>([&](Left& l) {
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

  const auto& snapshots = full.template of_sandbox<sf_snapshot_ext>(SF_EXT_SNAPSHOT);
  const auto create = [&](const char* name) {
    return full.template ask<Listed>([&](Listed& l) {
      return snapshots.create(full.box, str(name), checkpoints_of(l), nullptr, nullptr);
    });
  };
  CHECK(create("c1").text == "c1 9");
  CHECK(create("").count == 0);
  CHECK(full.template ask<Listed>([&](Listed& l) {
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
  CHECK(take_calls() == "dial 80; keep_alive; remove c1");
}

TEMPLATE_TEST_CASE("a terminal is resized, and a signal ends its process", "", Blocking,
                   Coroutine) {
  Full<TestType> full;
  const auto& pty = full.template of_sandbox<sf_pty_ext>(SF_EXT_PTY);
  fake::CommandLine line;
  fake::Running running(line.window);
  REQUIRE(full.driver->spawn(line, running, full.failure) == SF_OK);
  REQUIRE(full.driver->wait([&] { return running.started > 0; }));
  full.plain([&](sf_completion done) {
    return pty.resize(running.process, 100, 40, done, nullptr, nullptr);
  });
  full.plain([&](sf_completion done) {
    return running.process->vtbl->signal(running.process, 15, SF_SIGNAL_LEADER, done, nullptr,
                                         nullptr);
  });
  REQUIRE(full.driver->wait([&] { return running.done > 0; }));
  CHECK(running.exit.signal == 15);
  full.driver->call([&] {
    fake::Result late;
    fake::Failure failure;
    const sf_error_sink err = fake::sink(failure);
    CHECK(running.process->vtbl->signal(running.process, 15, 0, fake::completion(late), nullptr,
                                        &err) == SF_GONE);
    CHECK(pty.resize(running.process, 1, 1, fake::completion(late), nullptr, &err) ==
          SF_UNSUPPORTED);
    CHECK(late.done == 0);
  });
  running.release();
  CHECK(take_calls() == "resize 100x40");
}

TEMPLATE_TEST_CASE("the capabilities of a provider", "", Blocking, Coroutine) {
  Full<TestType> full;
  const auto description = full.driver->describe();
  CHECK(description.describe == R"({"features":["spawn.signal"]})");
  CHECK(description.schema.find(R"("cpuCount":{"type":"integer")") != std::string::npos);

  struct Resolved {
    int done = 0;
    std::string text;
  };
  const auto& templates = full.template of_provider<sf_template_ext>(SF_EXT_TEMPLATE);
  const auto resolved = full.template ask<Resolved>([&](Resolved& r) {
    const sf_template_request request{sizeof request, nullptr, str(R"({"family":"f"})")};
    const sf_template_completion done{
        &r, [](void* ctx, const sf_error*, const sf_template_result* t) noexcept {
          auto& into = *static_cast<Resolved*>(ctx);
          ++into.done;
          if (t == nullptr) return;
          into.text = fake::text(t->document) + fake::text(t->family) + fake::text(t->warnings);
        }};
    return templates.resolve(full.provider, &request, done, nullptr, nullptr);
  });
  CHECK(resolved.text == R"({}f["old"])");

  const auto& builds = full.template of_provider<sf_builds_ext>(SF_EXT_BUILDS);
  CHECK(builds.cancel == nullptr);
  const sf_env_entry secret{bytes("KEY"), bytes("v")};
  sf_build_request request{sizeof request, nullptr, str("{}"), str(""), &secret, 1};
  const auto build = [&](auto function) {
    return full.template ask<Listed>([&](Listed& l) {
      return function(full.provider, &request, builds_of(l), nullptr, nullptr);
    });
  };
  CHECK(build(builds.start).text == "b1 2 250");
  CHECK(build(builds.get).failure.code == SF_NOT_FOUND);
  CHECK(build(builds.list).count == 2);
  request.build_id = str("b1");
  CHECK(build(builds.get).text == "b1 3 -");
  CHECK(full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return builds.logs(full.provider, &request, 7, 3, events, out, nullptr);
  }) == "line");

  const auto& directory = full.template of_provider<sf_directory_ext>(SF_EXT_DIRECTORY);
  const auto found = full.template ask<Listed>([&](Listed& l) {
    return directory.find(full.provider, str(R"({"a":"1"})"), str("p"), 10, entries_of(l), nullptr,
                          nullptr);
  });
  CHECK(found.text == R"(s1 - {} |  mine {"k":"v"} -> more)");
  full.plain([&](sf_completion done) {
    return directory.remove(full.provider, str("s1"), done, nullptr, nullptr);
  });
  const auto& health = full.template of_provider<sf_health_ext>(SF_EXT_HEALTH);
  const auto sick = full.plain(
      [&](sf_completion done) { return health.check(full.provider, done, nullptr, nullptr); });
  CHECK(sick.failure.code == SF_UNAUTHENTICATED);
  CHECK(take_calls() == "build KEY; logs b1 7; find 1 p 10; remove s1");
}

TEMPLATE_TEST_CASE("what is not there is no extension, and info and instructions", "", Blocking,
                   Coroutine) {
  Full<TestType> full;
  CHECK(full.box->vtbl->extension(full.box, str("sandforge.none/1")) == nullptr);
  CHECK(full.provider->vtbl->extension(full.provider, str(SF_EXT_FILES)) == nullptr);
  const auto text = full.template ask<fake::Result>([&](fake::Result& r) {
    return full.box->vtbl->instructions(full.box, fake::text_completion(r), nullptr, nullptr);
  });
  CHECK(text.text == "Commands run in a sandbox of their own.");
  struct Info {
    int done = 0;
    std::string text;
  };
  const auto info = full.template ask<Info>([&](Info& i) {
    const sf_info_completion done{
        &i, [](void* ctx, const sf_error*, const sf_sandbox_info* now) noexcept {
          auto& into = *static_cast<Info*>(ctx);
          ++into.done;
          if (now == nullptr) return;
          into.text = std::to_string(now->state) + " " + number(now->memory_mb) + " " +
                      number(now->disk_mb) + " " + fake::text(now->metadata);
        }};
    return full.box->vtbl->info(full.box, done, nullptr, nullptr);
  });
  CHECK(info.text == R"(2 512 - {"zone":"z1"})");
}

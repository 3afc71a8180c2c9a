// What every sandbox answers, and its terminal, as a host calls them, in both styles.
#include <sandforge/plugin/sandbox.hpp>

#include "full_plugin.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::test;
using testing::str;

TEST_CASE("what is not there is no extension, and info and instructions") {
  Full full(GENERATE(Style::blocking, Style::coroutine));
  CHECK(full.box->vtbl->extension(full.box, str("sandforge.none/1")) == nullptr);
  const auto text = full.ask<testing::Result>([&](testing::Result& r) {
    return full.box->vtbl->instructions(full.box, testing::text_completion(r), nullptr, nullptr);
  });
  CHECK(text.text == "Commands run in a sandbox of their own.");
  struct Info {
    int done = 0;
    std::string text;
  };
  const auto info = full.ask<Info>([&](Info& i) {
    const sf_info_completion done{
        &i, [](void* ctx, const sf_error*, const sf_sandbox_info* now) noexcept {
          auto& into = *static_cast<Info*>(ctx);
          ++into.done;
          if (now == nullptr) return;
          into.text = std::to_string(now->state) + " " + number(now->memory_mb) + " " +
                      number(now->disk_mb) + " " + testing::text(now->metadata);
        }};
    return full.box->vtbl->info(full.box, done, nullptr, nullptr);
  });
  CHECK(info.text == R"(2 512 - {"zone":"z1"})");
}

TEST_CASE("a terminal is resized, and a signal ends its process") {
  Full full(GENERATE(Style::blocking, Style::coroutine));
  const auto& pty = full.of_sandbox<sf_pty_ext>(SF_EXT_PTY);
  testing::CommandLine line;
  testing::Running running(line.window);
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
    testing::Result late;
    testing::Failure failure;
    const sf_error_sink err = testing::sink(failure);
    CHECK(running.process->vtbl->signal(running.process, 15, 0, testing::completion(late), nullptr,
                                        &err) == SF_GONE);
    CHECK(pty.resize(running.process, 1, 1, testing::completion(late), nullptr, &err) ==
          SF_UNSUPPORTED);
    CHECK(late.done == 0);
  });
  running.release();
  CHECK(take_calls() == "resize 100x40");
}

TEST_CASE("a sandbox without terminals has no table for them, and keeps its other parts") {
  Full full(GENERATE(Style::blocking, Style::coroutine), R"({"lean":true})");
  CHECK(full.box->vtbl->extension(full.box, str(SF_EXT_PTY)) == nullptr);
  for (const char* id : {SF_EXT_PROCESSES, SF_EXT_FILES, SF_EXT_PORTS, SF_EXT_METRICS,
                         SF_EXT_LIFETIME, SF_EXT_SNAPSHOT}) {
    CHECK(full.box->vtbl->extension(full.box, str(id)) != nullptr);
  }
}

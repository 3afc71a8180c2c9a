// A sandbox of a plugin that is linked in, driven by a fake host.
#include <sandforge/testing/session.hpp>

#include <catch2/catch.hpp>

using namespace sandforge::testing;

namespace {

std::string failure_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Failed& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a session goes through its life, and everything is given back") {
  Host host;
  {
    Session toy(host, linked_plugin(), "toy");
    toy.context.session_id = "a";
    CHECK(toy.describe().schema.find("\"slow\"") != std::string::npos);
    const auto started = toy.start();
    CHECK(started.outcome == SF_OUTCOME_CREATED);
    CHECK(started.identity == "toy-a");
    CHECK(started.working_directory == "/toy");
    CHECK(toy.start().outcome == SF_OUTCOME_CONNECTED);
    CHECK(toy.exec("say hello").out == "hello");
    CHECK(toy.exec("say bye").code == 9);
    const Ran failed = toy.exec("fail");
    CHECK(failed.failure.code == SF_NOT_FOUND);
    CHECK_FALSE(failed.started);
    toy.destroy();
    toy.stop();
    CHECK(failure_of([&] { toy.destroy(); }) == "destroy: not today (status 10)");
    toy.close();
    CHECK(toy.context.refs == 1);
  }
  CHECK(left_over() == "");
}

TEST_CASE("what needs the time to be moved is begun, and waited for afterwards") {
  Host host;
  {
    Session toy(host, linked_plugin(), "toy");
    toy.create(R"({"slow":true})");
    const auto starting = toy.driver().begin_start();
    REQUIRE(host.loop.run_until([&] { return host.loop.timers() == 1; }));
    CHECK(starting->done == 0);
    host.loop.advance(std::chrono::hours(1));
    CHECK(toy.driver().wait([&] { return starting->done > 0; }));
    CHECK_FALSE(starting->failure);

    CommandLine line;
    line.shell = "sleep";
    const auto running = toy.spawn(line);
    REQUIRE(host.loop.run_until([&] { return host.loop.timers() == 1; }));
    running->stream->vtbl->cancel(running->stream);
    CHECK(toy.finish(*running).outcome == SF_EXIT_CANCELLED);
  }
  CHECK(left_over() == "");
}

TEST_CASE("a command that the test does not finish is ended with its session") {
  Host host;
  {
    Session toy(host, linked_plugin(), "toy");
    toy.start();
    CommandLine line;
    line.shell = "sleep";
    const auto running = toy.spawn(line);
    REQUIRE(host.loop.run_until([&] { return host.loop.timers() == 1; }));
  }
  CHECK(left_over() == "");
}

TEST_CASE("a provider that there is not, and a file that is no plugin, are told") {
  Host host;
  CHECK(failure_of([&] { Session none(host, linked_plugin(), "none"); }) ==
        "open: this plugin has no provider \"none\" (status 2)");
  CHECK(failure_of([] {
          load_plugin("/no/such/plugin.so");
        }).find("the plugin does not load: /no/such/plugin.so") == 0);
  CHECK(failure_of([] { load_plugin("libc.so.6"); }) ==
        "libc.so.6 has no symbol sandforge_plugin_entry_v1");
  CHECK(left_over() == "");
}

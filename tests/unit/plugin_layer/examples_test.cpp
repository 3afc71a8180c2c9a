// The examples of the sdk: loaded from their shared libraries and put to work.
#include <sandforge/testing/testing.hpp>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.hpp"
#include "test_paths.hpp"

using namespace sandforge::testing;

namespace {

void run_echo(Driver& driver, const std::string& cwd_wanted) {
  CommandLine line;
  line.shell = "echo hello; pwd -P; cat; echo $NAME >&2; exit 3";
  line.env = {{"NAME", "value"}, {"PATH", "/usr/bin:/bin"}};
  line.window = 5;
  Running running(line.window);
  Failure failure;
  INFO(failure.message);
  REQUIRE(driver.spawn(line, running, failure) == SF_OK);
  REQUIRE(driver.wait([&] { return running.done > 0; }));
  CHECK_FALSE(running.failure);
  CHECK(running.out == "hello\n" + cwd_wanted + "\n");
  CHECK(running.err == "value\n");
  CHECK(running.exited == 1);
  CHECK(running.exit.code == 3);
  CHECK(running.rules_kept());
  CHECK_FALSE(running.disorder);
  running.release();
}

}  // namespace

TEST_CASE("the minimal provider in C++ runs commands in a folder of its session") {
  const sandforge::test::TempDir root;
  Host host;
  host.process.real = true;
  {
    Driver driver(host, load_plugin(EXAMPLE_CPP));
    Failure failure;
    REQUIRE(driver.open("minimal-cpp", R"({"root":")" + root.str() + "\"}", failure) == SF_OK);
    const auto description = driver.describe();
    CHECK(description.schema.find(R"("additionalProperties":false)") != std::string::npos);
    Context context;
    context.session_id = "../escape";
    REQUIRE(driver.create(&context, "{}", failure) == SF_OK);
    const auto started = driver.start();
    REQUIRE_FALSE(started.failure);
    CHECK(started.outcome == SF_OUTCOME_CREATED);
    CHECK(std::filesystem::is_directory(started.working_directory));
    CHECK(std::filesystem::path(started.working_directory).parent_path() == root.str());
    run_echo(driver, std::filesystem::canonical(started.working_directory).string());
    CHECK(driver.start().outcome == SF_OUTCOME_CONNECTED);
    CHECK(host.process.open_groups() == std::vector<std::string>{started.working_directory});
    CHECK_FALSE(driver.run(&sf_sandbox_vtbl::destroy).failure);
    CHECK(host.process.open_groups().empty());
    CHECK(std::filesystem::is_empty(root.str()));
    CHECK_FALSE(driver.run(&sf_sandbox_vtbl::destroy).failure);
    driver.release();
    host.join();
    host.loop.drain();
    CHECK(context.refs == 1);
  }
  CHECK(left_over() == "");
}

TEST_CASE("the provider in coroutines ticks under credit, echoes, and holds no thread") {
  Host host;
  host.loop.set_time(Time::skipping);
  {
    Driver driver(host, load_plugin(EXAMPLE_COROUTINE));
    Failure failure;
    REQUIRE(driver.open("coroutine-cpp", "{}", failure) == SF_OK);
    CHECK(driver.describe().describe.find("spawn.stdin") != std::string::npos);
    Context context;
    REQUIRE(driver.create(&context, "{}", failure) == SF_OK);
    CommandLine line;
    line.argv = {"tick", "4", "1"};
    line.window = 3;
    Running early(line.window);
    REQUIRE(driver.spawn(line, early, failure) == SF_OK);
    REQUIRE(driver.wait([&] { return early.done > 0; }));
    CHECK(early.failure.code == SF_GONE);
    CHECK(early.started == 0);
    early.release();

    CHECK(driver.start().identity == "clock-session-1");
    Running ticking(line.window);
    REQUIRE(driver.spawn(line, ticking, failure) == SF_OK);
    REQUIRE(driver.wait([&] { return ticking.done > 0; }));
    CHECK(ticking.out == "tick\ntick\ntick\ntick\n");
    CHECK(ticking.exit.code == 0);
    CHECK(ticking.rules_kept());
    CHECK_FALSE(ticking.disorder);
    ticking.release();

    line.argv = {"tick", "1", "3600000"};
    Running waiting(line.window);
    REQUIRE(driver.spawn(line, waiting, failure) == SF_OK);
    REQUIRE(driver.wait([&] { return waiting.started > 0; }));
    waiting.stream->vtbl->cancel(waiting.stream);
    REQUIRE(driver.wait([&] { return waiting.done > 0; }));
    CHECK(waiting.exit.outcome == SF_EXIT_CANCELLED);
    waiting.release();

    line.argv = {"tick", "x", "1"};
    Running refused(line.window);
    REQUIRE(driver.spawn(line, refused, failure) == SF_OK);
    REQUIRE(driver.wait([&] { return refused.done > 0; }));
    CHECK(refused.failure.code == SF_INVALID);
    CHECK(refused.failure.message == "no number: x");
    CHECK(refused.started == 0);
    refused.release();
    CHECK_FALSE(driver.run(&sf_sandbox_vtbl::destroy).failure);
    driver.release();
  }
  CHECK(left_over() == "");
}

TEST_CASE("the minimal provider in C runs commands in a folder of its session") {
  const sandforge::test::TempDir root;
  Host host;
  host.paths[SF_PATH_DATA] = root.str();
  host.process.real = true;
  {
    Driver driver(host, load_plugin(EXAMPLE_C));
    Failure failure;
    REQUIRE(driver.open("minimal-c", "{}", failure) == SF_OK);
    CHECK(driver.describe().done == 1);
    Context context;
    context.session_id = "../escape";
    REQUIRE(driver.create(&context, "{}", failure) == SF_OK);
    const auto started = driver.start();
    REQUIRE_FALSE(started.failure);
    CHECK(started.outcome == SF_OUTCOME_CREATED);
    CHECK(started.working_directory == root.str() + "/box-_2E_2E_2Fescape");
    run_echo(driver, std::filesystem::canonical(started.working_directory).string());
    CHECK(driver.start().outcome == SF_OUTCOME_CONNECTED);
    CHECK(driver.run(&sf_sandbox_vtbl::stop).done == 1);
    CHECK(host.process.open_groups().empty());
    CHECK_FALSE(driver.run(&sf_sandbox_vtbl::destroy).failure);
    CHECK(std::filesystem::is_empty(root.str()));
    CHECK_FALSE(driver.run(&sf_sandbox_vtbl::destroy).failure);
    driver.release();
    host.join();
    host.loop.drain();
    CHECK(context.refs == 1);
  }
  CHECK(left_over() == "");
}

TEST_CASE("a name that the plugin does not have is refused, and so are bad options") {
  Host host;
  Driver driver(host, load_plugin(EXAMPLE_CPP));
  Failure failure;
  CHECK(driver.open("other", "{}", failure) == SF_NOT_FOUND);
  CHECK(failure.message == "this plugin has no provider \"other\"");
  CHECK(driver.open("minimal-cpp", R"({"root": 5})", failure) == SF_INVALID);
  CHECK(failure.details == R"({"pointer":"/root"})");
  CHECK(driver.open("minimal-cpp", "[]", failure) == SF_INVALID);
  CHECK(driver.provider == nullptr);
}

TEST_CASE("the minimal provider stays minimal") {
  std::ifstream source(EXAMPLE_CPP_SOURCE);
  int lines = 0;
  for (std::string line; std::getline(source, line);) {
    const auto first = line.find_first_not_of(' ');
    if (first != std::string::npos && line.compare(first, 2, "//") != 0) ++lines;
  }
  CHECK(lines > 0);
  CHECK(lines <= 40);
}

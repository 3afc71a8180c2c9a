// Plugins that were built otherwise than this program: in C, with the old ABI of libstdc++'s
// strings, by clang with libc++. Loaded from their files and put to work, with the host's own
// process service behind them.
#include <catch2/catch.hpp>

#include "sandforge/registry.hpp"
#include "support/temp_dir.hpp"
#include "test_paths.hpp"
#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using test::RecordingSink;
using test::TempDir;

namespace {

template <class F>
auto on(const Lane& lane, F f) -> decltype(f()) {
  auto task = std::make_shared<std::packaged_task<decltype(f())()>>(std::move(f));
  auto future = task->get_future();
  lane.post([task] { (*task)(); });
  REQUIRE(future.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  return future.get();
}

template <class T, class Start>
T ask(const Lane& lane, Start start) {
  return await_result<T>([&](Handler<T> handler) {
    lane.post([start, handler = std::move(handler)]() mutable { start(std::move(handler)); });
  });
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// Opens, describes, starts, runs a command, stops.
void run_as(Isolation isolation, const std::filesystem::path& plugin,
            const std::string& provider_name, json::Object options) {
  CAPTURE(plugin, static_cast<int>(isolation));
  std::string log;
  std::mutex mutex;
  Runtime runtime;
  ProviderRegistry::Options registry_options;
  auto services = std::make_shared<HostServices>();
  services->guest_program = SANDFORGE_GUEST_PATH;
  services->logger = std::make_shared<Logger>([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    log += line;
  });
  registry_options.services = services;
  registry_options.runner.program = SANDFORGE_RUNNER;
  registry_options.runner.others.isolation = isolation;
  registry_options.runner.others.process = true;
  ProviderRegistry registry(runtime, registry_options);
  PluginSearchPath search;
  search.add(plugin, "a test");
  const auto report = registry.scan(search);
  INFO(report.to_text());
  REQUIRE(report.refused() == 0);

  auto provider = registry.open(provider_name, std::move(options));
  const auto description = ask<Description>(
      provider->lane(), [provider](auto handler) { provider->describe(std::move(handler)); });
  CHECK(description.settings_schema.is_object());
  const Lane lane = runtime.make_lane();
  auto sandbox = on(provider->lane(), [&] {
                   CreateRequest request;
                   request.lane = lane;
                   auto context = std::make_shared<SessionContext>();
                   context->session_id = SessionId("s1");
                   request.context = context;
                   return provider->create(std::move(request));
                 }).value();
  const auto started = ask<StartResult>(lane, [sandbox](auto handler) {
    sandbox->start(
        StartRequest(), [](const ProviderSandboxId&) {}, std::move(handler));
  });
  CHECK(started.outcome != StartOutcome::unknown);

  Command command;
  command.shell = "echo hello $NAME; echo oops >&2; exit 3";
  command.env = {{"NAME", "you"}, {"PATH", "/usr/bin:/bin"}};
  auto sink = std::make_shared<RecordingSink>();
  auto process = on(lane, [&] { return sandbox->spawn(command, sink); }).value();
  REQUIRE(sink->wait());
  std::string out;
  std::string err;
  bool exited = false;
  for (const std::string& event : sink->events()) {
    if (event.rfind("out ", 0) == 0) out += event.substr(4);
    if (event.rfind("err ", 0) == 0) err += event.substr(4);
    exited |= event == "exit exited 3";
  }
  CHECK(out == "hello you\n");
  CHECK(err == "oops\n");
  CHECK(exited);
  CHECK_FALSE(sink->error());

  // An error with a text, over the boundary.
  command.shell = "true";
  command.cwd = "no/such/folder";
  auto other = std::make_shared<RecordingSink>();
  const auto refused = on(lane, [&] { return sandbox->spawn(command, other); });
  if (refused.ok()) REQUIRE(other->wait());
  const auto error = refused.ok() ? other->error() : std::optional(refused.error());
  REQUIRE(error);
  CHECK_FALSE(error->message.empty());

  ask<void>(lane, [sandbox](auto handler) { sandbox->stop(std::move(handler)); });
  ask<void>(lane, [sandbox](auto handler) { sandbox->destroy(std::move(handler)); });
  process = nullptr;
  sandbox = nullptr;
  on(lane, [] {});
  const std::lock_guard lock(mutex);
  CHECK(times(log, "broke a rule") == 0);
}

// In line, and in a process of its own.
void run(const std::filesystem::path& plugin, const std::string& provider_name,
         const json::Object& options) {
  run_as(Isolation::in_line, plugin, provider_name, options);
  run_as(Isolation::process, plugin, provider_name, options);
}

json::Object root_in(const TempDir& dir) {
  json::Object options;
  options.set("root", dir.path().string());
  return options;
}

}  // namespace

TEST_CASE("foreign: a plugin in C") {
  run(FOREIGN_C, "minimal-c", {});
}

TEST_CASE("foreign: a plugin in C++ as this program") {
  const TempDir dir;
  run(FOREIGN_CPP, "minimal-cpp", root_in(dir));
}

TEST_CASE("foreign: a plugin with the old ABI of strings") {
  const TempDir dir;
  run(FOREIGN_OLD_ABI, "minimal-cpp", root_in(dir));
}

TEST_CASE("foreign: a plugin by clang with libc++") {
  if (*FOREIGN_LIBCXX == '\0') {
    WARN("SKIPPED: clang++ with libc++ is not installed, or this is a build with a sanitizer");
    return;
  }
  const TempDir dir;
  run(FOREIGN_LIBCXX, "minimal-cpp", root_in(dir));
}

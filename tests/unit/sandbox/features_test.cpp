// What a provider does not name among its features is refused before anything starts.
#include "fixture.hpp"

#include <algorithm>

using namespace sandforge;

namespace {

struct Limited : Fixture {
  explicit Limited(std::vector<std::string> features) {
    const std::lock_guard lock(world->mutex);
    world->features = std::move(features);
  }

  Error refusal(const std::function<void()>& call) {
    Error error = error_of(call);
    const auto counts = world->counts();
    CHECK(counts.creates == 0);
    CHECK(counts.starts == 0);
    CHECK(counts.spawns == 0);
    CHECK_FALSE(error.may_have_started);
    return error;
  }
};

// One thing that a command can ask for.
struct Wish {
  const char* feature;
  std::function<void(Command&)> make;
};

const std::vector<Wish>& wishes() {
  static const std::vector<Wish> all = {
      {"spawn.stdin", [](Command& c) { c.stdin_pipe = true; }},
      {"spawn.user", [](Command& c) { c.user = "daemon"; }},
      {"spawn.detach", [](Command& c) { c.detach = true; }},
      {"pty", [](Command& c) { c.tty.emplace(80, 24); }},
      {"env.per_command", [](Command& c) { c.env["NAME"] = "value"; }},
      {"env.unset", [](Command& c) { c.env["NAME"] = std::nullopt; }},
      {"stderr.combined", [](Command& c) { c.combined = true; }},
  };
  return all;
}

void spawn_wish(Sandbox& sandbox, const Wish& wish) {
  Command command = shell("true");
  wish.make(command);
  SpawnOptions options;
  options.stdin_pipe = command.stdin_pipe;
  sandbox.spawn(command, options)->wait();
}

}  // namespace

TEST_CASE("features: each is refused where it alone is missing, and named") {
  for (const Wish& wish : wishes()) {
    CAPTURE(wish.feature);
    auto features = command_features();
    features.erase(std::remove(features.begin(), features.end(), wish.feature), features.end());
    Limited f(features);
    const Error error = f.refusal([&] { spawn_wish(*f.sandbox, wish); });
    CHECK(error.code == Status::unsupported);
    CHECK(error.reason == "feature." + std::string(wish.feature));
    CHECK(error.details.find("feature")->as_string() == wish.feature);
    CHECK_THAT(error.message, Catch::Contains("'fake'") && Catch::Contains(wish.feature));
    // All others pass, and so does a command that asks for nothing.
    for (const Wish& other : wishes())
      if (&other != &wish && std::string_view(wish.feature) != "env.per_command")
        CHECK_NOTHROW(spawn_wish(*f.sandbox, other));
    CHECK(f.sandbox->exec({"true"}).success);
  }
}

TEST_CASE("features: a provider that names none runs plain commands") {
  Limited f({});
  for (const Wish& wish : wishes()) {
    if (std::string_view(wish.feature) == "stderr.combined") continue;
    CAPTURE(wish.feature);
    CHECK(f.refusal([&] { spawn_wish(*f.sandbox, wish); }).code == Status::unsupported);
  }
  CHECK(f.world->counts().describes == 1);  // once for all of them

  ExecOptions with_env;
  with_env.env["A"] = "b";
  CHECK(error_of([&] { f.sandbox->execute_command("true", {}, with_env); }).reason ==
        "feature.env.per_command");
  CHECK(f.sandbox->execute_command("true").success);
  // There is one output anyway: combined is what such a provider does.
  ExecOptions combined;
  combined.combined = true;
  CHECK(f.sandbox->exec({"true"}, combined).success);
}

TEST_CASE("features: the overlay of the environment needs env.per_command, too") {
  Limited f({});
  f.sandbox->set_env([](EnvMap env) {
    env["A"] = "b";
    return env;
  });
  CHECK(f.refusal([&] { f.sandbox->exec({"true"}); }).reason == "feature.env.per_command");
}

TEST_CASE("features: input that nobody asked for is left out where there is none") {
  Limited f({"spawn.kill"});
  const auto process = f.sandbox->spawn(shell("sleep"));
  CHECK_FALSE(f.world->process(0)->command.stdin_pipe);
  CHECK(error_of([&] { process->write("x"); }).reason == "stdin.absent");
  CHECK(process->kill());
  process->wait();
}

TEST_CASE("features: kill and signal") {
  Limited f({});
  const auto process = f.sandbox->spawn(shell("sleep"));
  CHECK(error_of([&] { process->kill(); }).reason == "feature.spawn.kill");
  CHECK(error_of([&] { process->signal(15); }).reason == "feature.spawn.signal");
  CHECK(error_of([&] { f.sandbox->kill_process(process->id()); }).reason == "feature.spawn.kill");
  CHECK(process->running());
  f.world->process(0)->exit(0);
  CHECK(process->wait().success);
}

TEST_CASE("features: killing by id is refused before the sandbox is started for it") {
  Limited f({"spawn.stdin"});
  {
    const std::lock_guard lock(f.world->mutex);
    f.world->has_processes = true;
  }
  CHECK(f.refusal([&] { f.sandbox->kill_process(ProcessId("p1")); }).reason ==
        "feature.spawn.kill");
}

TEST_CASE("features: a provider in code offers everything unless it says less") {
  Runtime runtime;
  auto world = std::make_shared<fake::World>(runtime);
  ProviderRegistry registry(runtime);
  const auto create = [inside = world->provider()](CreateRequest request) {
    return inside->create(std::move(request));
  };
  const bool less = GENERATE(false, true);
  REQUIRE(
      registry.add(less ? custom_provider(create, {"spawn.stdin"}) : custom_provider(create)).ok());
  auto sandbox = Sandbox::create(runtime, registry.open("custom"), {}).value();
  for (const Wish& wish : wishes()) {
    CAPTURE(wish.feature);
    const bool offered = !less || std::string_view(wish.feature) == "spawn.stdin" ||
                         std::string_view(wish.feature) == "stderr.combined";
    if (offered) CHECK_NOTHROW(spawn_wish(*sandbox, wish));
    if (!offered) CHECK(error_of([&] { spawn_wish(*sandbox, wish); }).code == Status::unsupported);
  }
}

// Configuration, information, clones.
#include "sandforge/sandbox.hpp"

#include "fixture.hpp"

namespace sandforge {
namespace {

Result<std::shared_ptr<Sandbox>> create(SandboxConfig config) {
  Runtime runtime;
  auto world = std::make_shared<fake::World>(runtime);
  auto made = Sandbox::create(runtime, world->provider(), std::move(config));
  if (made) made->reset();
  return made;
}

}  // namespace

TEST_CASE("a bare sandbox: created without a session") {
  Runtime runtime;
  auto world = std::make_shared<fake::World>(runtime);
  SandboxConfig config;
  const bool chosen = GENERATE(true, false);
  if (chosen) config.id = "mine";
  auto sandbox = Sandbox::create(runtime, world->provider("local"), config).value();
  CHECK(sandbox->name() == "local");
  CHECK(sandbox->provider() == "local");
  CHECK((sandbox->id() == "mine") == chosen);
  auto other = Sandbox::create(runtime, world->provider("local"), {}).value();
  CHECK(other->id() != sandbox->id());
  sandbox->start();
  const auto context = world->creates().at(0).context;
  CHECK(context->session_id == SessionId(sandbox->id()));
  CHECK(context->caller_chose_id == chosen);
  CHECK_FALSE(context->is_session);
}

TEST_CASE("what a sandbox is made of reaches the provider") {
  SandboxConfig config;
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId("s9");
  context->working_directory = "/from/context";
  config.context = context;
  config.name = "display";
  config.settings.set("cpuCount", 4);
  config.checkpoint_name = "c";
  config.seed_checkpoint_name = "seed";
  config.idle_timeout = std::chrono::minutes(5);
  SECTION("context's directory") {}
  SECTION("own directory") {
    config.working_directory = "/own";
  }
  const std::string directory = config.working_directory.value_or("/from/context");
  Fixture f(config);
  CHECK(f.sandbox->id() == "s9");
  CHECK(f.sandbox->name() == "display");
  CHECK(f.sandbox->working_directory() == directory);
  f.sandbox->start();
  const CreateRequest request = f.world->creates().at(0);
  CHECK(request.settings.find("cpuCount")->as_integer() == 4);
  CHECK(request.working_directory == directory);
  CHECK(request.checkpoint_name == "c");
  CHECK(request.seed_checkpoint_name == "seed");
  CHECK(request.idle_timeout == std::chrono::minutes(5));
  CHECK(request.context->is_session);
}

TEST_CASE("an idle timeout is refused where the provider has none, before anything starts") {
  SandboxConfig config;
  config.idle_timeout = std::chrono::minutes(5);
  Fixture f(config);
  f.world->features = command_features();
  try {
    f.sandbox->start();
    FAIL("it started");
  } catch (const UnsupportedFeatureError& error) {
    CHECK(error.error().reason == "feature.idle.timeout");
  }
  CHECK(f.world->counts().starts == 0);
  CHECK_NOTHROW(f.sandbox->destroy());
}

TEST_CASE("what no sandbox can be made of is refused") {
  SandboxConfig config;
  const std::string bad[] = {"",
                             ".",
                             "..",
                             "a/../b",
                             "/etc",
                             "a\\b",
                             std::string("a\0b", 3),
                             std::string(300, 'x'),
                             "a\nb",
                             "\xff",
                             "\x7f"};
  SECTION("ids") {
    for (const auto& id : bad) {
      INFO(id);
      auto context = std::make_shared<SessionContext>();
      context->session_id = SessionId(id);
      config.context = context;
      const auto made = create(config);
      // An empty one is one that nobody chose.
      if (!id.empty()) {
        REQUIRE_FALSE(made.ok());
        CHECK(made.error().code == Status::invalid);
      }
    }
    CHECK(create([] {
            SandboxConfig good;
            good.id = "project-42:CON.\xc3\xa9";
            return good;
          }())
              .ok());
  }
  SECTION("two ids") {
    auto context = std::make_shared<SessionContext>();
    context->session_id = SessionId("a");
    config.context = context;
    config.id = "b";
    CHECK(create(config).error().reason == "sandbox.id_mismatch");
  }
  SECTION("a context that contradicts itself") {
    auto context = std::make_shared<SessionContext>();
    context->continue_on_setup_failure = true;
    config.context = context;
    CHECK(create(config).error().reason == "context.exclusive_fields");
  }
  SECTION("timeouts") {
    config.timeout = std::chrono::milliseconds(-1);
    CHECK(create(config).error().code == Status::invalid);
    config.timeout.reset();
    config.idle_timeout = std::chrono::milliseconds(-1);
    CHECK(create(config).error().code == Status::invalid);
  }
  SECTION("environments") {
    config.env = EnvMap{{"A=B", "1"}};
    CHECK(create(config).error().code == Status::invalid);
    config.env.reset();
    config.overlay = EnvMap{{"", "1"}};
    CHECK(create(config).error().code == Status::invalid);
  }
}

TEST_CASE("info has all fields of the contract") {
  Fixture f;
  SandboxInfo info = f.sandbox->info();
  CHECK(info.id == "s1");
  CHECK(info.name == "fake");
  CHECK(info.provider == "fake");
  CHECK(info.status == SandboxStatus::pending);
  CHECK(info.machine.state == MachineState::absent);
  CHECK(info.created_at_ns > 0);
  CHECK_FALSE(info.last_used_at_ns.has_value());
  CHECK(f.world->counts().starts == 0);

  f.sandbox->execute_command("true");
  info = f.sandbox->info();
  CHECK(info.status == SandboxStatus::running);
  CHECK(info.last_used_at_ns >= info.created_at_ns);
  CHECK(info.machine.state == MachineState::running);
  CHECK(info.metadata.find("sandboxId")->as_string() == "m1");
  CHECK(info.metadata.find("providerResourceId")->as_string() == "resource-m1");
}

TEST_CASE("the json of an info") {
  SandboxInfo info;
  info.id = "s1";
  info.name = "n";
  info.provider = "p";
  info.status = SandboxStatus::error;
  info.error = "broken";
  info.created_at_ns = 1'700'000'000'123'456'789;
  info.last_used_at_ns = 0;
  info.timeout_at_ns = -1;
  info.machine.memory_mb = 512;
  info.machine.memory_used_mb = 100;
  info.machine.disk_mb = 10;
  info.machine.disk_used_mb = 1;
  info.machine.cpu_millis = 1500;
  info.metadata.set("sandboxId", "m1");
  CHECK(json::write(to_json(info)) ==
        "{\"id\":\"s1\",\"name\":\"n\",\"provider\":\"p\",\"status\":\"error\","
        "\"createdAt\":\"2023-11-14T22:13:20.123Z\",\"lastUsedAt\":\"1970-01-01T00:00:00.000Z\","
        "\"timeoutAt\":\"1969-12-31T23:59:59.999Z\",\"error\":\"broken\","
        "\"resources\":{\"memoryMB\":512,\"memoryUsedMB\":100,\"diskMB\":10,\"diskUsedMB\":1,"
        "\"cpuCores\":1.5},\"metadata\":{\"sandboxId\":\"m1\"}}");
}

TEST_CASE("instructions: the provider's, a text instead, a function over them") {
  SandboxConfig config;
  config.id = "s1";
  std::string expected = "Commands run in a fake sandbox. Its id is m1.";
  SECTION("default") {}
  SECTION("text") {
    config.instructions = std::string("mine");
    expected = "mine";
  }
  SECTION("empty text") {
    config.instructions = std::string();
    expected = "";
  }
  SECTION("function") {
    config.instructions = [](std::string text) { return text + " Be careful."; };
    expected += " Be careful.";
  }
  Fixture f(config);
  f.sandbox->start();
  CHECK(f.sandbox->instructions() == expected);
}

TEST_CASE("an instructions function that throws is an error") {
  SandboxConfig config;
  config.instructions = [](std::string) -> std::string { throw std::runtime_error("oops"); };
  Fixture f(config);
  CHECK(error_of([&] { f.sandbox->instructions(); }).message ==
        "the instructions function threw: oops");
}

TEST_CASE("a clone is an unstarted sibling with its own identity") {
  SandboxConfig config;
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId("s1");
  context->sandbox_id = ProviderSandboxId("m9");
  context->caller_chose_id = true;
  context->factory_id = "f1";
  int env_calls = 0;
  context->env = [&](const SessionContext&) {
    ++env_calls;
    return EnvMap{{"FROM", "context"}};
  };
  config.context = context;
  config.settings.set("cpuCount", 4);
  config.overlay = {{"TOKEN", "secret"}};
  config.timeout = std::chrono::seconds(9);
  config.idle_timeout = std::chrono::minutes(5);
  config.seed_checkpoint_name = "seed";
  config.working_directory = "/w";
  int hooks = 0;
  config.hooks.on_identity = [&](const ProviderSandboxId&) { ++hooks; };
  Fixture f(config);
  f.sandbox->start();
  REQUIRE(hooks == 1);

  CloneOptions options;
  SECTION("as it is") {
    const auto clone = f.sandbox->clone(options).value();
    CHECK(clone->id() != "s1");
    CHECK(clone->status() == SandboxStatus::pending);
    CHECK_FALSE(clone->sandbox_id().has_value());
    CHECK(clone->env() == EnvMap{{"TOKEN", "secret"}});
    CHECK(f.world->counts().creates == 1);
    clone->start();
    const auto request = f.world->creates().at(1);
    CHECK_FALSE(request.context->sandbox_id.has_value());
    CHECK_FALSE(request.context->caller_chose_id);
    CHECK(request.context->factory_id == "f1");
    CHECK(request.settings.find("cpuCount")->as_integer() == 4);
    CHECK(request.seed_checkpoint_name == "seed");
    CHECK(request.working_directory == "/w");
    CHECK(request.idle_timeout == std::chrono::minutes(5));
    CHECK(f.world->starts().at(1).env == EnvMap{{"FROM", "context"}});
    CHECK(hooks == 1);
    CHECK(f.world->machine_count() == 2);
  }
  SECTION("with overrides") {
    options.id = "s2";
    options.sandbox_id = ProviderSandboxId("m5");
    options.env = EnvMap{{"ONLY", "this"}};
    options.working_directory = "/v";
    options.idle_timeout = std::chrono::minutes(1);
    options.checkpoint_name = "c2";
    options.seed_checkpoint_name = "seed2";
    const auto clone = f.sandbox->clone(options).value();
    CHECK(clone->id() == "s2");
    CHECK(clone->sandbox_id() == ProviderSandboxId("m5"));
    CHECK(clone->env().empty());
    clone->start();
    const auto request = f.world->creates().at(1);
    CHECK(request.context->session_id == SessionId("s2"));
    CHECK(request.context->caller_chose_id);
    CHECK(request.checkpoint_name == "c2");
    CHECK(request.seed_checkpoint_name == "seed2");
    CHECK(request.working_directory == "/v");
    CHECK(request.idle_timeout == std::chrono::minutes(1));
    CHECK(f.world->starts().at(1).env == EnvMap{{"ONLY", "this"}});
    CHECK(env_calls == 1);
  }
  SECTION("a bad id") {
    options.id = "..";
    CHECK(f.sandbox->clone(options).error().code == Status::invalid);
  }
}

TEST_CASE("every status, outcome and provenance has its name") {
  const std::vector<std::string> statuses = {"pending",   "initializing", "ready",   "starting",
                                             "running",   "stopping",     "stopped", "destroying",
                                             "destroyed", "error"};
  for (std::size_t i = 0; i < statuses.size(); ++i)
    CHECK(to_string(static_cast<SandboxStatus>(i)) == statuses[i]);
  const std::vector<std::string> outcomes = {"unknown", "created", "connected"};
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    CHECK(to_string(static_cast<StartOutcome>(i)) == outcomes[i]);
  const std::vector<std::string> provenances = {"none", "exact",      "family",
                                                "base", "checkpoint", "seed"};
  for (std::size_t i = 0; i < provenances.size(); ++i)
    CHECK(to_string(static_cast<Provenance>(i)) == provenances[i]);
}

}  // namespace sandforge

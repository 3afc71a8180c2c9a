// D09 to D11, D16: who a sandbox is, and what it says of itself.
#include "procedure.hpp"
#include "sandforge/schema.hpp"

namespace sandforge::conformance {
namespace {

void clone(Host& host) {
  auto config = host.config();
  config.timeout = 1s;
  config.env = EnvMap{{"A", "original"}, {"B", "original"}};
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId(config.id);
  context->sandbox_id = ProviderSandboxId("provider-id");
  config.context = context;
  const auto original = Sandbox::create(host.runtime(), host.provider(), config).value();

  CloneOptions options;
  options.id = host.id("c");
  options.env = EnvMap{{"A", "clone"}};
  const auto copy = original->clone(options).value();
  host.destroy_at_end(copy);
  CHECK(copy->id() == host.id("c"));
  CHECK(copy->provider() == original->provider());
  CHECK(copy->status() == SandboxStatus::pending);
  CHECK_FALSE(copy->sandbox_id().has_value());
  CHECK(original->status() == SandboxStatus::pending);
  CHECK(nothing_runs(host));

  copy->start();
  CHECK(sh(*copy, "echo $A ${B-unset}").out == "clone unset\n");
  CHECK(sh(*copy, "sleep 30").outcome == Outcome::timed_out);

  const auto nameless = original->clone({}).value();
  host.destroy_at_end(nameless);
  CHECK(nameless->id() != original->id());
  CHECK_FALSE(nameless->sandbox_id().has_value());
  nameless->start();
  CHECK(sh(*nameless, "echo $A $B").out == "original original\n");
}

void clone_without_hooks(Host& host) {
  auto config = host.config();
  config.hooks.on_start = [](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    std::move(done)(Error(Status::internal, "not for clones"));
  };
  const auto original = Sandbox::create(host.runtime(), host.provider(), config).value();
  CloneOptions options;
  options.id = host.id("c");
  const auto copy = original->clone(options).value();
  host.destroy_at_end(copy);
  CHECK_NOTHROW(copy->start());
  options.id = "../c";
  CHECK_FALSE(original->clone(options).ok());
}

void hostile_ids(Host& host) {
  const std::vector<std::string> ids = {
      "..",       ".",   "a/../b", "/etc", std::string("a\0b", 3), std::string(300, 'x'),
      "\xff\xfe", "a\nb"};
  for (const auto& id : ids) {
    CAPTURE(id);
    SandboxConfig config;
    config.id = id;
    const auto made = Sandbox::create(host.runtime(), host.provider(), config);
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().code == Status::invalid);
  }
  CHECK(nothing_runs(host));
}

// Names that file systems and shells take for something else: each its own machine.
void odd_ids(Host& host) {
  const std::string token = host.setting().token;
  const std::vector<std::string> ids = {"CON." + token,
                                        "caf\xc3\xa9-" + token,
                                        "cafe\xcc\x81-" + token,
                                        "-rf-" + token,
                                        "." + token,
                                        "a b " + token,
                                        "%41-" + token,
                                        std::string(150, 'y') + token};
  std::vector<std::shared_ptr<Sandbox>> all;
  for (const auto& id : ids) {
    SandboxConfig config;
    config.id = id;
    all.push_back(host.make(config));
    CAPTURE(id);
    CHECK(all.back()->start().outcome == StartOutcome::created);
    CHECK(sh(*all.back(), "test ! -e file && printf %s \"$0\" > file").success);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(ids[i]);
    CHECK(read_file(*all[i], "file") == "sh");
    CHECK_NOTHROW(all[i]->destroy());
  }
}

void unknown_provider(Host& host) {
  const auto name = host.provider_name() + "x";
  const Error error = error_of([&] { host.registry().open(name); });
  CHECK(error.code == Status::not_found);
  CHECK(error.message.find(host.provider_name()) != std::string::npos);
}

// Options that the schema refuses are refused when the provider is opened or before, and nothing of
// that hinders a good sandbox.
void bad_options(Host& host) {
  const auto info = host.registry().find(host.provider_name());
  REQUIRE(info.has_value());
  const auto compiled = compile_schema(info->options_schema, SchemaProfile::options);
  REQUIRE((compiled.schema != nullptr));
  json::Object unknown;
  unknown.set("noSuchOption", true);
  const auto issues = compiled.schema->validate(unknown);
  CHECK_FALSE(issues.empty());
  CHECK((!issues.empty() && issues.front().pointer == "/noSuchOption"));
  CHECK(host.make("good")->exec({"echo", "works"}).out == "works\n");
}

void info(Host& host) {
  const auto sandbox = host.make();
  const auto before = sandbox->info();
  CHECK(before.status == SandboxStatus::pending);
  CHECK_FALSE(before.last_used_at_ns.has_value());
  CHECK(nothing_runs(host));

  sandbox->start();
  sandbox->exec({"true"});
  const auto now = sandbox->info();
  CHECK(now.id == host.id());
  CHECK(now.name == host.provider_name());
  CHECK(now.provider == host.provider_name());
  CHECK(now.status == SandboxStatus::running);
  CHECK(now.created_at_ns > 0);
  REQUIRE(now.last_used_at_ns.has_value());
  CHECK(*now.last_used_at_ns >= now.created_at_ns);
  CHECK((now.machine.state == MachineState::running || now.machine.state == MachineState::unknown));

  const auto text = json::write(to_json(now));
  CAPTURE(text);
  for (const char* key : {"\"id\"", "\"name\"", "\"provider\"", "\"status\":\"running\"",
                          "\"createdAt\"", "\"lastUsedAt\"", "\"metadata\""})
    CHECK(text.find(key) != std::string::npos);
  // What the provider tells of the machine's size is shown, and no 0 in place of "not known".
  if (now.machine.memory_mb) {
    CHECK(*now.machine.memory_mb > 0);
    CHECK(text.find("\"memoryMB\":" + std::to_string(*now.machine.memory_mb)) != std::string::npos);
  }
  if (now.machine.cpu_millis) {
    CHECK(*now.machine.cpu_millis > 0);
    CHECK(text.find("\"cpuCores\":") != std::string::npos);
  }

  sandbox->stop();
  CHECK((sandbox->info().machine.state != MachineState::running));
}

void name(Host& host) {
  auto config = host.config();
  config.name = "My sandbox";
  const auto sandbox = host.make(config);
  CHECK(sandbox->name() == "My sandbox");
  CHECK(sandbox->info().name == "My sandbox");
}

void instructions(Host& host) {
  const auto standard = host.make()->instructions();
  auto config = host.config();
  config.instructions = std::string("Be careful.");
  CHECK(host.make(config)->instructions() == "Be careful.");
  config.instructions = std::string();
  CHECK(host.make(config)->instructions().empty());
  config.instructions = [](std::string given) { return given + " More."; };
  CHECK(host.make(config)->instructions() == standard + " More.");
  CHECK(nothing_runs(host));
}

}  // namespace

void add_identity(Procedures& to) {
  to["identity.clone"] = clone;
  to["identity.clone_without_hooks"] = clone_without_hooks;
  to["identity.hostile_ids"] = hostile_ids;
  to["identity.odd_ids"] = odd_ids;
  to["identity.unknown_provider"] = unknown_provider;
  to["identity.bad_options"] = bad_options;
  to["identity.info"] = info;
  to["identity.name"] = name;
  to["identity.instructions"] = instructions;
}

}  // namespace sandforge::conformance

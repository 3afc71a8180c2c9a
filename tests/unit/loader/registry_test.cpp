#include "sandforge/registry.hpp"
#include "support/temp_dir.hpp"
#include "unit/loader/fixture_path.hpp"

#include <catch2/catch.hpp>

using namespace sandforge;
using test::fixture;

namespace {

template <class T, class Start>
Result<T> wait_for(Start&& start) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  start(Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
  REQUIRE(future.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  return future.get();
}

Result<std::shared_ptr<ProviderBackend>> open(ProviderRegistry& registry, const std::string& name) {
  return wait_for<std::shared_ptr<ProviderBackend>>(
      [&](auto handler) { registry.async_open(name, {}, std::move(handler)); });
}

Result<Description> describe(const std::shared_ptr<ProviderBackend>& provider) {
  return wait_for<Description>([&](auto handler) {
    provider->lane().post([provider, handler = std::move(handler)]() mutable {
      provider->describe(std::move(handler));
    });
  });
}

ProviderRegistry::Options with_log(std::vector<std::string>& lines) {
  ProviderRegistry::Options options;
  auto services = std::make_shared<HostServices>();
  services->logger =
      std::make_shared<Logger>([&lines](std::string_view line) { lines.emplace_back(line); });
  options.services = services;
  return options;
}

}  // namespace

TEST_CASE("registry: a plugin is loaded when its provider is opened, and not before") {
  Runtime runtime;
  ProviderRegistry registry(runtime);
  PluginSearchPath search;
  search.add(fixture("good_a"), "a test");
  CHECK(registry.scan(search).refused() == 0);
  auto info = registry.find("fixture-good-a");
  REQUIRE(info.has_value());
  CHECK_FALSE(info->loaded);
  CHECK(info->plugin == "good-a");
  CHECK(info->display_name == "Fixture");
  CHECK(info->env == std::vector<std::string>{"FIXTURE_TOKEN"});

  auto provider = open(registry, "fixture-good-a");
  REQUIRE(provider.ok());
  CHECK((*provider)->name() == "fixture-good-a");
  info = registry.find("fixture-good-a");
  CHECK(info->loaded);
  CHECK(info->faults == 0);
  CHECK(registry.report().attempts[0].stage == LoadStage::loaded);

  const auto description = describe(*provider);
  REQUIRE(description.ok());
  CHECK(description->features == std::vector<std::string>{"spawn.stdin"});
  CHECK(description->describe.find("answer")->as_integer() == 42);
  CHECK(description->settings_schema.at_pointer("/properties/size/default")->as_integer() == 4);
  CHECK_FALSE(description->has_template);
  CHECK_FALSE(description->has_builds);
}

TEST_CASE("registry: one bad plugin does not hinder the others") {
  Runtime runtime;
  std::vector<std::string> lines;
  ProviderRegistry registry(runtime, with_log(lines));
  PluginSearchPath search;
  for (const char* name : {"undefined_symbol", "good_a", "init_fails", "no_manifest", "good_b"})
    search.add(fixture(name), "a test");
  registry.scan(search);
  CHECK(registry.list().size() == 4);
  const auto report = registry.load_all();
  CHECK(report.attempts.size() == 5);
  CHECK(report.refused() == 3);
  CHECK(lines.size() == 2);
  CHECK(open(registry, "fixture-good-b").ok());

  const auto broken = open(registry, "fixture-undefined-symbol");
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().reason == "plugin.undefined_symbol");
  CHECK(broken.error().details.find("path")->as_string() == fixture("undefined_symbol").string());
}

TEST_CASE("registry: names that are not there") {
  Runtime runtime;
  ProviderRegistry registry(runtime);
  PluginSearchPath search;
  search.add(fixture("good_a"), "a test");
  search.add(fixture("other_major"), "a test");
  registry.scan(search);
  const auto mistyped = open(registry, "fixture-good-aa");
  REQUIRE_FALSE(mistyped.ok());
  CHECK(mistyped.error().code == Status::not_found);
  CHECK(mistyped.error().message ==
        "there is no provider fixture-good-aa, did you mean fixture-good-a");
  // A refused plugin that declares it says why.
  const auto refused = open(registry, "fixture-other-major");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().reason == "plugin.abi_major");
  CHECK_THROWS_AS(registry.open("nothing"), NotFoundError);
}

TEST_CASE("registry: a settings schema that is not valid") {
  Runtime runtime;
  ProviderRegistry registry(runtime);
  PluginSearchPath search;
  search.add(fixture("bad_settings"), "a test");
  registry.scan(search);
  auto provider = open(registry, "fixture-bad-settings");
  REQUIRE(provider.ok());
  const auto description = describe(*provider);
  REQUIRE_FALSE(description.ok());
  CHECK(description.error().reason == "plugin.schema_invalid");
  CHECK(description.error().details.find("issues") != nullptr);
}

TEST_CASE("registry: load_all looks into the providers, too") {
  Runtime runtime;
  ProviderRegistry registry(runtime);
  PluginSearchPath search;
  for (const char* name : {"good_a", "other_name", "bad_default", "bad_settings", "needs_options"})
    search.add(fixture(name), "a test");
  registry.scan(search);
  const auto report = registry.load_all();
  REQUIRE(report.attempts.size() == 5);
  const std::vector<std::pair<LoadStage, std::string>> expected = {
      {LoadStage::loaded, ""},
      {LoadStage::provider_unusable, "fixture-other-name"},
      {LoadStage::schema_invalid, "default"},
      {LoadStage::schema_invalid, "additionalProperties"},
      {LoadStage::loaded, ""}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const LoadAttempt& attempt = report.attempts[i];
    CAPTURE(attempt.path, attempt.message);
    CHECK(attempt.stage == expected[i].first);
    CHECK_THAT(attempt.message, Catch::Contains(expected[i].second));
    CHECK(attempt.hint.empty() == attempt.usable());
  }
  // What needs options can say nothing without them: told, and no fault of the plugin.
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes[0].path == fixture("needs_options"));
  CHECK_THAT(report.notes[0].message, Catch::Contains("fixture-needs-options") &&
                                          Catch::Contains("the option endpoint is missing"));
}

TEST_CASE("registry: providers in code") {
  Runtime runtime;
  ProviderRegistry registry(runtime);
  std::optional<std::string> seen;
  REQUIRE(registry
              .add(custom_provider(
                  [&](CreateRequest request) -> Result<std::shared_ptr<SandboxBackend>> {
                    seen = request.context->session_id->str();
                    throw std::runtime_error("no machine today");
                  }))
              .ok());
  REQUIRE(registry.add(none_provider()).ok());
  const auto twice = registry.add(none_provider());
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().reason == "plugin.duplicate_provider");
  CHECK_FALSE(registry.add(ProviderDefinition()).ok());

  auto custom = open(registry, "custom");
  REQUIRE(custom.ok());
  const auto description = describe(*custom);
  REQUIRE(description.ok());
  CHECK(description->settings_schema == json::Value(ProviderDefinition::closed_schema()));
  CreateRequest request;
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId("s1");
  request.context = context;
  const auto made = (*custom)->create(std::move(request));
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().message == "the sandbox function of the host failed: no machine today");
  CHECK(seen == "s1");

  auto none = open(registry, "none");
  REQUIRE(none.ok());
  const auto refused = (*none)->create(CreateRequest());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Status::unsupported);
}

TEST_CASE("registry: a later scan finds no second plugin of a name") {
  Runtime runtime;
  ProviderRegistry registry(runtime);
  for (const char* name : {"good_a", "name_of_a"}) {
    PluginSearchPath search;
    search.add(fixture(name), "a test");
    registry.scan(search);
  }
  const auto report = registry.report();
  REQUIRE(report.attempts.size() == 2);
  CHECK(report.attempts[0].usable());
  CHECK(to_string(report.attempts[1].stage) == "duplicate_plugin");
  CHECK_FALSE(registry.find("fixture-name-of-a"));
}

TEST_CASE("registry: code goes before plugins of the same name") {
  Runtime runtime;
  ProviderRegistry registry(runtime);
  auto definition = none_provider();
  definition.name = "fixture-good-a";
  const auto added = registry.add(std::move(definition));
  REQUIRE(added.ok());
  PluginSearchPath search;
  search.add(fixture("good_a"), "a test");
  const auto report = registry.scan(search);
  REQUIRE(report.attempts.size() == 1);
  CHECK(report.attempts[0].stage == LoadStage::duplicate_provider);
  CHECK(registry.find("fixture-good-a")->plugin.empty());
}

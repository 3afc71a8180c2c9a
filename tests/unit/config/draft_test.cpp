// A full configuration with each of its nodes replaced in turn: whatever could be read of it is a
// draft that every function takes.
#include <functional>

#include "helpers.hpp"

using namespace config_test;
namespace json = sandforge::json;

namespace {

constexpr const char* kFull = R"({
  "plugins": {"paths": ["/opt/p"], "pins": {"a.so":
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
    "policies": {"a": {"isolation": "process", "runner": {"user": "nobody", "memoryMb": 5},
      "allow": {"process": true, "env": ["A"], "secrets": ["s"]}}}},
  "sandbox": {"provider": "p", "wrap": "fault", "faults": {"seed": 1, "rules": [
      {"at": "start", "do": "delay", "ms": 5}]},
    "options": {"endpoint": "https://a.b", "apiKey": "${KEY}", "port": 80,
      "defaults": {"cpuCount": 4}, "template": {"buildEnv": {"A": "b"}},
      "registry": {"user": "u", "password": "file:p"},
      "env": [{"set": {"A": "all", "B": null}},
              {"when": {"factoryId": "f1"}, "set": {"A": "${KEY}"}},
              {"when": {"factoryId": ["f1", "f2"]}, "set": {"C": "x"}}]},
    "settings": {"cpuCount": 4, "region": "eu"}},
  "providers": {"q": {"options": {"env": {"A": "x", "B": "${KEY}"}},
    "settings": {"cpuCount": 4}}},
  "session": {"store": "sessions.db"},
  "log": {"level": "info", "format": "json"}})";

// Calls `each` with the document once for every node and every replacement; null: removed.
void mutate(json::Value& document, json::Value& node,
            const std::function<void(const std::string& what)>& each) {
  const char* const others[] = {"null", "5",    "\"text\"", "[]",     "[1,\"a\",null,{}]",
                                "{}",   "true", "\"\"",     "[null]", "{\"a\":{\"b\":[1]}}"};
  const json::Value kept = node;
  for (const char* other : others) {
    node = json::parse(other).value;
    each(json::write(kept) + " -> " + other);
  }
  node = kept;
  if (node.is_object()) {
    for (const auto& [name, unused] : kept.as_object()) {
      mutate(document, *node.as_object().find(name), each);
      node.as_object().erase(name);
      each("without " + name);
      node = kept;
    }
  } else if (node.is_array()) {
    for (std::size_t i = 0; i < kept.as_array().size(); ++i)
      mutate(document, node.as_array()[i], each);
  }
}

void use(const sandforge::HostConfig& config, const sandforge::ProviderConfig& provider) {
  static const auto options = options_schema();
  static const auto settings = settings_schema();
  const auto from = source({{"KEY", "abcdefgh"}}, {{"/etc/sandforge/p", "word"}});
  check_provider(config, provider, *options);
  check_provider(config, provider, *options, settings.get());
  resolve_options(config, provider, *options, from);
  for (const char* factory : {"f1", "f2", "f3"}) {
    session_env(config, provider, factory);
    resolved_session_env(config, provider, factory, from);
  }
  session_env(config, provider, std::nullopt);
}

}  // namespace

TEST_CASE("Whatever is wrong in a configuration, its draft can be used", "[config]") {
  REQUIRE(read(kFull));
  json::Value document = json::parse(kFull).value;
  std::size_t tried = 0;
  std::size_t refused = 0;
  mutate(document, document, [&](const std::string& what) {
    CAPTURE(what);
    ++tried;
    const auto result = read(json::write(document));
    CHECK(bool(result) == result.issues.empty());
    CHECK(result.report.empty() == result.issues.empty());
    if (!result) ++refused;
    if (!result.draft) return;
    REQUIRE_NOTHROW([&] {
      if (result.draft->sandbox) use(*result.draft, *result.draft->sandbox);
      for (const auto& [name, provider] : result.draft->providers)
        use(*result.draft, provider);
      format_config_issues(*result.draft, result.issues);
    }());
  });
  CHECK(tried > 600);
  CHECK(refused > 300);
}

TEST_CASE("The environment of a draft is of the entries that can be read", "[config]") {
  const auto env = [](const std::string& list) {
    const auto draft = read("sandbox: {provider: p, options: {env: " + list + "}}\n").draft;
    REQUIRE(draft);
    return json::write(session_env(*draft, *draft->sandbox, "f1").env);
  };
  CHECK(env("[A, B]") == "{}");
  CHECK(env("[{}]") == "{}");
  CHECK(env("[{when: always, set: {A: b}}]") == "{}");
  CHECK(env("[{when: always, vars: {A: b}}]") == "{}");
  CHECK(env("[{when: {factoryId: [1, f1]}, set: {A: b}}]") == R"({"A":"b"})");
  CHECK(env("[{when: {factoryId: 1}, set: {A: b}}]") == "{}");
  CHECK(env("[{set: [x]}, {set: 5}, {set: {B: c}}]") == R"({"B":"c"})");
  CHECK(env("5") == "{}");
}

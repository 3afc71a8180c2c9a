// F03, F05, contract.B10 and the random part: the settings of the plugin, and how stored documents
// are updated.
#include "sandforge/settings.hpp"
#include "procedure.hpp"
#include "random.hpp"
#include "sandforge/host_config.hpp"

namespace sandforge::conformance {
namespace {

CompiledSchemaPtr compiled(const json::Value& schema) {
  auto result = compile_schema(schema, SchemaProfile::settings);
  const Note note("issues: " + format_issues(result.issues));
  REQUIRE((result.schema != nullptr));
  return result.schema;
}

CompiledSchemaPtr sizes() {
  static const char* const kSchema = R"({"type":"object","additionalProperties":false,"properties":{
    "cpuCount":{"type":"integer","minimum":1,"maximum":64,"default":2},
    "memoryMb":{"type":"integer","minimum":128,"default":1024}}})";
  return compiled(json::parse(kSchema).value);
}

// An unstarted sandbox with these settings, as create receives them. No I/O happens.
bool creates(Host& host, const json::Value& effective) {
  auto config = host.config();
  config.settings = effective.as_object();
  const auto made = Sandbox::create(host.runtime(), host.provider(), config);
  if (!made.ok()) return false;
  try {
    (*made)->instructions();  // asks the provider for its object
    return true;
  } catch (const Exception&) {
    return false;
  }
}

// For each field: the default that is described is valid, and is what create receives when unset.
void defaults_agree(Host& host) {
  const auto schema = compiled(host.description().settings_schema);
  const auto received = effective_settings(*schema, nullptr).document;
  const auto* properties = schema->document().find("properties");
  REQUIRE((properties != nullptr && properties->is_object()));
  for (const auto& [name, field] : properties->as_object()) {
    CAPTURE(name);
    const auto* described = field.find("default");
    if (described == nullptr) {
      CHECK((received.find(name) == nullptr));
      continue;
    }
    REQUIRE((received.find(name) != nullptr));
    CHECK(json::write(*received.find(name)) == json::write(*described));
    json::Object one;
    one.set(name, *described);
    CHECK(schema->accepts(one));
  }
  CHECK(creates(host, received));
}

// ---- The random part: documents made from the schema.

void random_documents(Host& host) {
  const auto schema = compiled(host.description().settings_schema);
  const auto& fields = schema->document().find("properties")->as_object();
  Random random(host.setting().seed);
  for (int round = 0; round < 200; ++round) {
    const json::Object valid = fitting_document(fields, random);
    const Note note("seed " + std::to_string(host.setting().seed) + ", document " +
                    json::write(valid));
    REQUIRE(schema->accepts(valid));
    const auto effective = effective_settings(*schema, valid);
    CHECK(effective.issues.empty());
    if (round % 20 == 0) CHECK(creates(host, effective.document));

    json::Object unknown = valid;
    unknown.set("no" + std::to_string(random.between(0, 999)) + "SuchField", 1);
    CHECK_FALSE(schema->accepts(unknown));
    CHECK_FALSE(update_settings(*schema, valid, unknown).accepted);
    for (const auto& [name, field] : fields) {
      json::Object wrong = valid;
      wrong.set(name, unfitting(field, random));
      const Note spoiled("spoiled " + name + ": " + json::write(wrong));
      CHECK_FALSE(schema->accepts(wrong));
      CHECK_FALSE(schema->validate(wrong).empty());
    }
  }
}

// ---- contract.B10

// What core says of a configuration with these options or settings of the provider.
std::vector<ConfigIssue> issues_with(Host& host, const char* section, const json::Object& given) {
  const auto info = host.registry().find(host.provider_name());
  REQUIRE(info.has_value());
  const auto options = compile_schema(info->options_schema, SchemaProfile::options);
  REQUIRE((options.schema != nullptr));
  json::Object sandbox;
  sandbox.set("provider", host.provider_name());
  sandbox.set(section, given);
  json::Object document;
  document.set("sandbox", std::move(sandbox));
  const auto read = parse_host_config(json::write(document), "c.yaml", "/etc/sandforge");
  REQUIRE((read.config != nullptr));
  return check_provider(*read.config, *read.config->sandbox, *options.schema,
                        compiled(host.description().settings_schema).get());
}

// A host asks before it starts anything.
void invalid_configuration(Host& host) {
  json::Object unknown;
  unknown.set("noSuchMember", 1);
  CHECK(issues_with(host, "options", unknown).size() == 1);
  CHECK(issues_with(host, "settings", unknown).size() == 1);
  Random random(host.setting().seed);
  const auto schema = compiled(host.description().settings_schema);
  for (const auto& [name, field] : schema->document().find("properties")->as_object()) {
    json::Object wrong;
    wrong.set(name, unfitting(field, random));
    const Note note("spoiled " + name + ": " + json::write(wrong));
    const auto issues = issues_with(host, "settings", wrong);
    REQUIRE_FALSE(issues.empty());
    CHECK(issues.front().issue.pointer.find("/sandbox/settings/" + name) == 0);
  }
  auto config = host.config("negative");
  config.timeout = -1ms;
  CHECK_FALSE(Sandbox::create(host.runtime(), host.provider(), config).ok());
  CHECK(nothing_runs(host));
}

// ---- F05

std::string update(const char* stored, const char* change) {
  const auto result =
      update_settings(*sizes(), json::parse(stored).value, json::parse(change).value);
  std::string out = (result.accepted ? "stored " : "refused ") + json::write(result.stored);
  for (const auto& key : result.dropped)
    out += " dropped " + key;
  for (const auto& issue : result.issues)
    out += " " + issue.pointer;
  return out;
}

void stored_documents(Host&) {
  CHECK(update("null", R"({"cpuCount":4})") == R"(stored {"cpuCount":4})");
  CHECK(update(R"({"cpuCount":4})", R"({"cpuCount":null})") == "stored null");
  CHECK(update(R"({"old":1,"cpuCount":4})", R"({"cpuCount":8})") ==
        R"(stored {"cpuCount":8} dropped old)");
  CHECK(update(R"({"old":1,"older":2})", R"({"old":null})") == "stored null dropped older");
  CHECK(update(R"({"old":1})", R"({"new":1})") == R"(refused {"old":1} /new)");
  CHECK(update("null", R"({"cpuCuont":1})") == "refused null /cpuCuont");
  CHECK(update(R"({"cpuCount":4})", R"({"cpuCount":0})") == R"(refused {"cpuCount":4} /cpuCount)");
}

}  // namespace

void add_settings(Procedures& to) {
  to["settings.defaults_agree"] = defaults_agree;
  to["settings.random_documents"] = random_documents;
  to["settings.invalid_configuration"] = invalid_configuration;
  to["settings.stored_documents"] = stored_documents;
}

}  // namespace sandforge::conformance

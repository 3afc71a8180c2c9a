// F03, F05, contract.B10 and the random part: the settings of the plugin, and how stored documents
// are updated.
#include <random>

#include "procedure.hpp"
#include "sandforge/host_config.hpp"
#include "sandforge/settings.hpp"

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

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool coin() { return between(0, 1) == 1; }

 private:
  std::mt19937_64 engine_;
};

std::int64_t limit_of(const json::Value& field, const char* keyword, std::int64_t otherwise) {
  const auto* limit = field.find(keyword);
  return limit != nullptr && limit->is_integer() ? limit->as_integer() : otherwise;
}

// A value that the field takes; nothing where that is not plain, such as by a pattern.
std::optional<json::Value> fitting(const json::Value& field, Random& random) {
  if (const auto* values = field.find("enum"); values != nullptr && !values->as_array().empty())
    return values->as_array()[static_cast<std::size_t>(
        random.between(0, static_cast<std::int64_t>(values->as_array().size()) - 1))];
  const auto* type = field.find("type");
  if (type == nullptr || !type->is_string()) return std::nullopt;
  if (type->as_string() == "boolean") return json::Value(random.coin());
  if (type->as_string() == "integer" || type->as_string() == "number") {
    if (field.find("multipleOf") != nullptr || field.find("exclusiveMinimum") != nullptr ||
        field.find("exclusiveMaximum") != nullptr)
      return std::nullopt;
    const auto low = limit_of(field, "minimum", -1000);
    const auto high = limit_of(field, "maximum", std::max<std::int64_t>(low, 0) + 1000);
    if (low > high) return std::nullopt;
    return json::Value(static_cast<long long>(random.between(low, high)));
  }
  if (type->as_string() == "string") {
    if (field.find("pattern") != nullptr || field.find("format") != nullptr) return std::nullopt;
    const auto low = limit_of(field, "minLength", 0);
    const auto high = std::min(limit_of(field, "maxLength", low + 20), low + 20);
    std::string text;
    for (auto left = random.between(low, std::max(low, high)); left > 0; --left)
      text += static_cast<char>('a' + random.between(0, 25));
    return json::Value(text);
  }
  return std::nullopt;
}

// A value that the field does not take.
json::Value unfitting(const json::Value& field, Random& random) {
  const auto low = limit_of(field, "minimum", INT64_MIN);
  const auto high = limit_of(field, "maximum", INT64_MAX);
  const auto* type = field.find("type");
  const bool number = type != nullptr && type->is_string() &&
                      (type->as_string() == "integer" || type->as_string() == "number");
  if (number && low != INT64_MIN && random.coin())
    return static_cast<long long>(low - 1 - random.between(0, 1000));
  if (number && high != INT64_MAX && random.coin())
    return static_cast<long long>(high + 1 + random.between(0, 1000));
  return json::Array{json::Value("neither a text nor a number")};
}

void random_documents(Host& host) {
  const auto schema = compiled(host.description().settings_schema);
  const auto& fields = schema->document().find("properties")->as_object();
  Random random(host.setting().seed);
  for (int round = 0; round < 200; ++round) {
    json::Object valid;
    for (const auto& [name, field] : fields)
      if (random.coin())
        if (auto value = fitting(field, random)) valid.set(name, std::move(*value));
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

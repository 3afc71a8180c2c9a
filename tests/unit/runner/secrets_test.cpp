// Secrets of configuration files, as plugins get them.
#include "sandforge/configured_secrets.hpp"

#include "runner_fixture.hpp"

using namespace sandforge;
using test::RunnerHost;

namespace {

std::shared_ptr<const HostConfig> configuration(const std::string& text,
                                                const std::filesystem::path& directory = "/etc") {
  auto read = parse_host_config(text, "c.yaml", directory);
  INFO(read.report);
  REQUIRE(read);
  return read.config;
}

Result<std::optional<std::string>> ask(SecretSource& source, const std::string& name) {
  std::optional<Result<std::optional<std::string>>> out;
  source.get("plugin", nullptr, name,
             Handler<std::optional<std::string>>(
                 [&](Result<std::optional<std::string>> result) { out = std::move(result); }));
  REQUIRE(out);
  return *out;
}

ReferenceSource variables(std::map<std::string, std::string> values) {
  ReferenceSource out = host_references();
  out.variable = [values](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  return out;
}

}  // namespace

TEST_CASE("secrets: references are resolved when they are asked for", "[runner]") {
  const test::TempDir folder;
  folder.write("token", "first\n");
  ConfiguredSecrets secrets(variables({{"KEY", "of the host"}}));
  secrets.add(
      *configuration("secrets: {file: 'file:token', variable: 'key ${KEY}', unset: '${NO_SUCH}', "
                     "text: as it is}\n",
                     folder.path()));
  CHECK(ask(secrets, "file").value() == "first");
  folder.write("token", "second\n");
  CHECK(ask(secrets, "file").value() == "second");
  CHECK(ask(secrets, "variable").value() == "key of the host");
  CHECK(ask(secrets, "text").value() == "as it is");
  const auto unset = ask(secrets, "unset");
  REQUIRE_FALSE(unset);
  CHECK(unset.error().reason == "config.secret");
  CHECK(unset.error().message == "the secret unset: the variable NO_SUCH is not set");
  const auto absent = ask(secrets, "absent");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == Status::not_found);
  CHECK(absent.error().message == "the configuration has no secret absent: name it under secrets");
  // One more file: what is known stays.
  secrets.add(*configuration("secrets: {absent: now here, text: another}\n"));
  CHECK(ask(secrets, "absent").value() == "now here");
  CHECK(ask(secrets, "text").value() == "as it is");
}

TEST_CASE("secrets: a mistake in one is told without it", "[runner]") {
  const auto read = parse_host_config("secrets: {a: [hunter2], b: hunter2}\n", "c.yaml", "/etc");
  CHECK_FALSE(read);
  CHECK(read.report.find("/secrets/a: expected string") != std::string::npos);
  CHECK(read.report.find("hunter2") == std::string::npos);
}

TEST_CASE("secrets: a plugin gets those of the configuration that it is granted", "[runner]") {
  const auto config = configuration(
      "plugins: {policies: {unruly: {allow: {secrets: [mine, gone]}}}}\n"
      "secrets: {mine: '${KEY}', other: not for it}\n");
  const auto secrets = std::make_shared<ConfiguredSecrets>(variables({{"KEY", "of the host"}}));
  secrets->add(*config);
  RunnerHost host(config->plugins.policies.at("unruly"), SANDFORGE_RUNNER, secrets);
  const auto sandbox = host.make();
  CHECK(sandbox->execute_command("secret mine").out == "of the host");
  CHECK(sandbox->execute_command("secret other").out.find("error 12: the secret other is not") ==
        0);
  CHECK(sandbox->execute_command("secret gone").out ==
        "error 2: the configuration has no secret gone: name it under secrets");
}

TEST_CASE("services: what a host has not set up is noted, and no reason to refuse a plugin",
          "[runner]") {
  Runtime runtime;
  auto services = std::make_shared<HostServices>();
  services->runtime = &runtime;
  services->state = memory_state_store();
  PluginLoader::Options options;
  options.services = std::move(services);
  PluginLoader loader(std::move(options));
  PluginSearchPath search;
  search.add(SANDFORGE_UNRULY, "a test");
  const auto scan = loader.scan(search);
  REQUIRE(scan.files.size() == 1);
  std::string notes;
  for (const auto& note : scan.report.notes)
    notes += note.message + '\n';
  CHECK(notes.find("its manifest names the service secrets, which this host has not set up") !=
        std::string::npos);
}

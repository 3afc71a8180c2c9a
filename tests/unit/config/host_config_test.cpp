#include "sandforge/host_config.hpp"

#include <sys/stat.h>

#include <fstream>

#include "helpers.hpp"
#include "support/temp_dir.hpp"

using namespace config_test;
using sandforge::Isolation;
using sandforge::PluginPolicy;

TEST_CASE("An empty configuration is a configuration", "[config]") {
  const auto config = good("");
  CHECK_FALSE(config->sandbox);
  CHECK(config->plugins.paths.empty());
  CHECK(config->session_store.empty());
  CHECK(config->log_level == sandforge::LogLevel::info);
  CHECK(config->log_format == sandforge::LogFormat::text);
}

TEST_CASE("A file with mistakes can be searched for more", "[config]") {
  const auto result = read(
      "sandbox: {provider: a, options: {env: {A: 1}}, settings: {x: 1}}\n"
      "providers: {b: {options: {y: 1}}, c: 4, d: {settings: []}}\n"
      "plugins: {paths: 3}\n"
      "nope: 1\n");
  CHECK_FALSE(result);
  REQUIRE(result.draft);
  REQUIRE(result.draft->sandbox);
  CHECK(result.draft->sandbox->name == "a");
  CHECK(result.draft->sandbox->settings.find("x") != nullptr);
  CHECK(result.draft->providers.size() == 1);
  CHECK(result.draft->providers.count("b") == 1);
  CHECK(result.draft->plugins.paths.empty());

  for (const auto* text : {"sandbox: 1\n", "sandbox: {options: {}}\n", "sandbox: {provider: [a]}\n",
                           "providers: [1]\n", "log: 3\n", "session: x\n"}) {
    const auto shapeless = read(text);
    CHECK_FALSE(shapeless);
    REQUIRE(shapeless.draft);
    CHECK_FALSE(shapeless.draft->sandbox);
    CHECK(shapeless.draft->providers.empty());
  }
  CHECK_FALSE(read("[1]\n"));
  CHECK(read("a: [\n").draft == nullptr);
  const auto fine = read("sandbox: {provider: a}\n");
  CHECK(fine.draft == fine.config);
}

TEST_CASE("Policies of plugins are read, with nothing granted by default", "[config]") {
  const auto config = good(
      "plugins:\n"
      "  policies:\n"
      "    one:\n"
      "      isolation: process\n"
      "      allow:\n"
      "        process: true\n"
      "        env: [A, B]\n"
      "        secrets: [s]\n"
      "        hosts: [api.example.com, '*.example.org:443', '[::1]:80', '*']\n"
      "        unixSockets: [/run/docker.sock]\n"
      "      runner: {user: nobody, memoryMb: 512, openFiles: 0}\n"
      "    two: {isolation: inline}\n"
      "    three: {}\n");
  const auto& policies = config->plugins.policies;
  REQUIRE(policies.size() == 3);
  const PluginPolicy& one = policies.at("one");
  CHECK(one.isolation == Isolation::process);
  CHECK(one.process);
  CHECK(one.env == std::set<std::string>{"A", "B"});
  CHECK(one.secrets == std::set<std::string>{"s"});
  CHECK(one.hosts ==
        std::set<std::string>{"api.example.com", "*.example.org:443", "[::1]:80", "*"});
  CHECK(one.unix_sockets == std::set<std::string>{"/run/docker.sock"});
  CHECK(one.user == "nobody");
  CHECK(one.memory_mb == 512);
  CHECK(one.open_files == 0);
  CHECK(policies.at("two").isolation == Isolation::in_line);
  const PluginPolicy& three = policies.at("three");
  CHECK(three.isolation == Isolation::automatic);
  CHECK_FALSE(three.process);
  CHECK(three.env.empty());
  CHECK(three.secrets.empty());
  CHECK(three.hosts.empty());
  CHECK(three.unix_sockets.empty());
  CHECK(three.user.empty());
  CHECK(three.memory_mb == PluginPolicy().memory_mb);
  CHECK(three.open_files == PluginPolicy().open_files);
}

TEST_CASE("A policy with a mistake in it is refused", "[config]") {
  const auto report = [](const std::string& policy) {
    return read("plugins: {policies: {one: " + policy + "}}\n").report;
  };
  CHECK(report("{isolation: none}").find("/plugins/policies/one/isolation") != std::string::npos);
  CHECK(report("{allow: {everything: true}}").find("unknown key \"everything\"") !=
        std::string::npos);
  CHECK(report("{allow: {env: A}}").find("expected array") != std::string::npos);
  for (const char* host : {"'https://a.b'", "a/b", "''", "a.*", "'*a'", "'a:port'", "'user@a'"}) {
    INFO(host);
    CHECK(report("{allow: {hosts: [" + std::string(host) + "]}}")
              .find("a host is HOST, HOST:PORT, *.DOMAIN") != std::string::npos);
  }
  CHECK(report("{allow: {unixSockets: [run/x]}}").find("a unix socket is an absolute path") !=
        std::string::npos);
  CHECK(report("{runner: {memoryMb: -1}}").find("/runner/memoryMb") != std::string::npos);
}

TEST_CASE("Every member is read", "[config]") {
  const std::string digest(64, 'A');
  const auto config = good(
      "plugins:\n"
      "  paths: [/opt/plugins, ./build/x.so, ../other]\n"
      "  pins: {x.so: " +
      digest + ", ./build/x.so: " + digest +
      "}\n"
      "sandbox:\n"
      "  provider: docker\n"
      "  options: {network: NONE}\n"
      "  settings: {baseImage: 'node:22'}\n"
      "providers:\n"
      "  e2b: {options: {apiKey: '${E2B_API_KEY}'}}\n"
      "session: {store: state/s.db}\n"
      "log: {level: debug, format: json}\n");
  const auto& plugins = config->plugins;
  REQUIRE(plugins.paths.size() == 3);
  CHECK(plugins.paths[0] == "/opt/plugins");
  CHECK(plugins.paths[1] == "/etc/sandforge/build/x.so");
  CHECK(plugins.paths[2] == "/etc/other");
  CHECK(plugins.pins.at("x.so") == std::string(64, 'a'));
  CHECK(plugins.pins.at("/etc/sandforge/build/x.so") == std::string(64, 'a'));
  REQUIRE(config->sandbox);
  CHECK(config->sandbox->name == "docker");
  CHECK(config->sandbox->pointer == "/sandbox");
  CHECK(sandforge::json::write(config->sandbox->options) == R"({"network":"NONE"})");
  CHECK(sandforge::json::write(config->sandbox->settings) == R"({"baseImage":"node:22"})");
  REQUIRE(config->find_provider("e2b") != nullptr);
  CHECK(config->find_provider("e2b")->pointer == "/providers/e2b");
  CHECK(config->find_provider("docker") == &*config->sandbox);
  CHECK(config->find_provider("none") == nullptr);
  CHECK(config->session_store == "/etc/sandforge/state/s.db");
  CHECK(config->log_level == sandforge::LogLevel::debug);
  CHECK(config->log_format == sandforge::LogFormat::json);
}

TEST_CASE("A sandbox may take its options from the list of providers", "[config]") {
  const auto config = good(
      "sandbox: {provider: e2b}\n"
      "providers:\n"
      "  e2b: {options: {a: 1}, settings: {b: 2}}\n");
  CHECK(config->sandbox->pointer == "/providers/e2b");
  CHECK(sandforge::json::write(config->sandbox->options) == R"({"a":1})");
  CHECK(report("sandbox: {provider: e2b, options: {}}\nproviders: {e2b: {options: {}}}\n") ==
        "c.yaml:1:26: /sandbox/options: options of this provider are given twice, here and under "
        "\"providers\"; keep one of them\n"
        "  sandbox: {provider: e2b, options: {}}\n"
        "                           ^\n");
}

TEST_CASE("All mistakes are shown at once, with their lines", "[config][cases.F02]") {
  CHECK(
      report("pluginz: {}\n"
             "plugins:\n"
             "  paths: /opt\n"
             "  isolation: process\n"
             "  pins: {x.so: abc}\n"
             "sandbox:\n"
             "  provder: docker\n"
             "log: {level: verbose}\n") ==
      "c.yaml:1:1: /pluginz: unknown key \"pluginz\" (allowed: plugins, sandbox, providers, "
      "session, log); did you mean \"plugins\"?\n"
      "  pluginz: {}\n"
      "  ^\n"
      "c.yaml:3:10: /plugins/paths: expected array, got string\n"
      "    paths: /opt\n"
      "           ^\n"
      "c.yaml:4:3: /plugins/isolation: unknown key \"isolation\" (allowed: paths, pins, policies)\n"
      "    isolation: process\n"
      "    ^\n"
      "c.yaml:5:16: /plugins/pins/x.so: \"abc\": a SHA-256 has 64 hexadecimal digits\n"
      "    pins: {x.so: abc}\n"
      "                 ^\n"
      "c.yaml:7:3: /sandbox: \"provider\" is missing (allowed: string of at most 64 characters)\n"
      "    provder: docker\n"
      "    ^\n"
      "c.yaml:7:3: /sandbox/provder: unknown key \"provder\" (allowed: provider, options, "
      "settings, wrap, faults); did you mean \"provider\"?\n"
      "    provder: docker\n"
      "    ^\n"
      "c.yaml:8:14: /log/level: \"verbose\" is not allowed (allowed: debug, info, warn, error, "
      "off)\n"
      "  log: {level: verbose}\n"
      "               ^\n");
}

TEST_CASE("Text that is no YAML is shown where it breaks", "[config]") {
  CHECK(report("sandbox:\n  provider: docker\n  provider: e2b\n") ==
        "c.yaml:3:3: the key \"provider\" is given twice\n"
        "    provider: e2b\n"
        "    ^\n");
  CHECK(report("- a\n") == "c.yaml:1:1: (root): expected object, got array\n  - a\n  ^\n");
}

TEST_CASE("Fields of a session are no options", "[config][cases.F11]") {
  CHECK(
      report("sandbox:\n"
             "  provider: docker\n"
             "  options:\n"
             "    id: x\n"
             "    sandboxId: y\n"
             "    template: z\n") ==
      "c.yaml:4:5: /sandbox/options/id: \"id\" is set for each session and cannot be an option\n"
      "c.yaml:5:5: /sandbox/options/sandboxId: \"sandboxId\" is set for each session and cannot be "
      "an option\n"
      "c.yaml:6:5: /sandbox/options/template: \"template\" is set for each session and cannot be "
      "an option\n");
  CHECK(report("providers: {e2b: {options: {id: x}}}\n") ==
        "c.yaml:1:29: /providers/e2b/options/id: \"id\" is set for each session and cannot be an "
        "option\n");
  good("sandbox: {provider: platform, options: {template: {buildEnv: {A: b}}}}\n");
}

TEST_CASE("env is a record or a list with conditions", "[config]") {
  good("sandbox: {provider: p, options: {env: {A: x, B: null}}}\n");
  good(
      "sandbox:\n"
      "  provider: p\n"
      "  options:\n"
      "    env:\n"
      "      - set: {A: x}\n"
      "      - when: {factoryId: f1}\n"
      "        set: {B: y}\n"
      "      - {when: {factoryId: [f1, f2]}, set: {}}\n");
  CHECK(
      report("sandbox:\n"
             "  provider: p\n"
             "  options:\n"
             "    env:\n"
             "      PORT: 8080\n"
             "      A=B: x\n"
             "      C: \"x\\0y\"\n") ==
      "c.yaml:5:13: /sandbox/options/env/PORT: expected string or null, got integer; put it in "
      "quotes\n"
      "c.yaml:6:7: /sandbox/options/env/A=B: this name is not allowed: \"A=B\": the name of a "
      "variable has no '=' and is not empty\n"
      "c.yaml:7:10: /sandbox/options/env/C: the value: the value of a variable has no NUL byte\n");
  CHECK(
      report("sandbox:\n"
             "  provider: p\n"
             "  options:\n"
             "    env:\n"
             "      - when: {factoryName: mine}\n"
             "        set: {A: x}\n"
             "      - when: {}\n"
             "        sett: {A: x}\n") ==
      "c.yaml:5:16: /sandbox/options/env/0/when/factoryName: \"factoryName\" cannot choose: names "
      "can be edited and are not unique (allowed: factoryId); use \"factoryId\"\n"
      "c.yaml:7:9: /sandbox/options/env/1: \"set\" is missing (allowed: object)\n"
      "c.yaml:7:15: /sandbox/options/env/1/when: has 0 members, at least 1 are allowed\n"
      "c.yaml:8:9: /sandbox/options/env/1/sett: unknown key \"sett\" (allowed: when, set); did you "
      "mean \"set\"?\n");
}

TEST_CASE("A host adds sections of its own", "[config]") {
  sandforge::HostConfigSections sections;
  sections["serve"] = schema(R"({"type":"object","additionalProperties":false,
      "properties":{"listen":{"type":"string"},"token":{"type":"string","x-secret":true}}})",
                             sandforge::SchemaProfile::options);
  const auto result = read("serve: {listen: 127.0.0.1:80}\n", sections);
  REQUIRE(result);
  CHECK(sandforge::json::write(result.config->sections.at("serve")) ==
        R"({"listen":"127.0.0.1:80"})");
  CHECK(read("serve: {listn: x}\nsevre: {}\n", sections).report ==
        "c.yaml:1:9: /serve/listn: unknown key \"listn\" (allowed: listen, token); did you mean "
        "\"listen\"?\n"
        "  serve: {listn: x}\n"
        "          ^\n"
        "c.yaml:2:1: /sevre: unknown key \"sevre\" (allowed: plugins, sandbox, providers, secrets, "
        "session, "
        "log, serve)\n"
        "  sevre: {}\n"
        "  ^\n");
  CHECK_FALSE(read("serve: {}\n"));
}

TEST_CASE("A configuration is loaded from a file", "[config]") {
  const sandforge::test::TempDir temp;
  const std::filesystem::path& directory = temp.path();
  const auto file = directory / "host.yaml";
  std::ofstream(file) << "plugins: {paths: [plugins]}\n";
  const auto result = sandforge::load_host_config(file);
  CHECK(result);
  if (result) CHECK(result.config->plugins.paths.at(0) == directory / "plugins");
  CHECK(sandforge::load_host_config(directory / "none.yaml").report ==
        (directory / "none.yaml").string() +
            ": the configuration cannot be read: No such file or directory\n");
  CHECK(sandforge::load_host_config(directory).report ==
        directory.native() + ": the configuration cannot be read: not a regular file\n");
  const auto pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(sandforge::load_host_config(pipe).report ==
        pipe.native() + ": the configuration cannot be read: not a regular file\n");
  std::ofstream(file) << std::string((1 << 20) + 1, '#');
  CHECK_THAT(sandforge::load_host_config(file).report,
             Catch::Contains("larger than 1048576 bytes"));
}

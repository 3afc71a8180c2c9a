// The options: what goes to the engine, and what is refused.
#include <sandforge/ext/ports.h>

#include "unit/docker/engine.hpp"

using namespace sandforge;
using namespace sandforge::docker_test;
namespace testing = sandforge::testing;

namespace {

std::string host_config(const std::string& options) {
  FakeEngine engine(options);
  engine.box->start();
  return json::write(*engine.body_of("POST /containers/create").find("HostConfig"));
}

std::string refusal(const std::string& options,
                    const std::map<std::string, std::string>& env = {}) {
  testing::Host host;
  host.env = env;
  try {
    testing::Session box(host, testing::load_plugin(DOCKER_PLUGIN), "docker", options);
  } catch (const testing::Failed& error) {
    return error.what();
  }
  return "opened";
}

std::string image(const std::string& options, const std::string& settings, bool repository) {
  FakeEngine engine(options);
  if (repository) engine.box->context.clone_url = "https://box/r.git";
  engine.box->create(settings);
  for (const char* name : {"a", "b", "c"})
    engine.on("GET /images/" + std::string(name) + "/json", {Answer(200, "{}")});
  engine.try_start();
  return engine.body_of("POST /containers/create").find("Image")->as_string();
}

}  // namespace

TEST_CASE("every option reaches the engine by its own name") {
  CHECK(host_config(R"({"init":false,"privileged":true,"memory":67108864,"memorySwap":-1,
                        "cpus":1.5,"cpuShares":512,"pidsLimit":100,"readonlyRootfs":true,
                        "capDrop":["ALL"],"capAdd":["CHOWN"],"securityOpt":["no-new-privileges"],
                        "ulimits":[{"name":"nofile","soft":10,"hard":20}],"tmpfs":{"/tmp":"size=1m"},
                        "networkIsolation":"NONE"})") ==
        R"({"Init":false,"Privileged":true,"Memory":67108864,"MemorySwap":-1,"CpuShares":512,)"
        R"("PidsLimit":100,"ReadonlyRootfs":true,"CapDrop":["ALL"],"CapAdd":["CHOWN"],)"
        R"("SecurityOpt":["no-new-privileges"],"Tmpfs":{"/tmp":"size=1m"},"NanoCpus":1500000000,)"
        R"("Ulimits":[{"Name":"nofile","Soft":10,"Hard":20}],"NetworkMode":"none"})");
  CHECK(host_config(R"({"cpuQuota":50000,"cpuPeriod":100000,"volumes":{"/data":"/mnt:ro"},
                        "networkIsolation":"PRIVATE","networkName":"mine",
                        "mounts":[{"type":"volume","source":"v","target":"/v","readOnly":true,
                                   "volume":{"subpath":"s","noCopy":true,"labels":{"a":"b"}}},
                                  {"type":"bind","source":"/b","target":"/b","bind":{"propagation":"rslave"}},
                                  {"type":"tmpfs","target":"/t","tmpfs":{"sizeBytes":5,"mode":1023}}]})") ==
        R"({"Init":true,"CpuQuota":50000,"CpuPeriod":100000,"Binds":["/data:/mnt:ro"],"Mounts":[)"
        R"({"Type":"volume","Target":"/v","Source":"v","ReadOnly":true,)"
        R"("VolumeOptions":{"Subpath":"s","NoCopy":true,"Labels":{"a":"b"}}},)"
        R"({"Type":"bind","Target":"/b","Source":"/b","BindOptions":{"Propagation":"rslave"}},)"
        R"({"Type":"tmpfs","Target":"/t","TmpfsOptions":{"SizeBytes":5,"Mode":1023}}],)"
        R"("NetworkMode":"mine"})");
}

TEST_CASE("ports are published for the engine's machine alone, unless an address says otherwise") {
  const std::string options =
      R"({"ports":[{"port":80},{"port":80,"hostPort":8080,"address":"0.0.0.0"},{"port":53,"protocol":"udp"}]})";
  CHECK(
      host_config(options) ==
      R"({"Init":true,"PortBindings":{"80/tcp":[{"HostIp":"127.0.0.1","HostPort":""},)"
      R"({"HostIp":"0.0.0.0","HostPort":"8080"}],"53/udp":[{"HostIp":"127.0.0.1","HostPort":""}]}})");
  CHECK(
      refusal(R"({"networkIsolation":"NONE","ports":[{"port":80}]})").find("publishes no ports") !=
      std::string::npos);

  FakeEngine engine(options);
  std::string running = FakeEngine::container("running");
  running.insert(running.size() - 1,
                 R"(,"NetworkSettings":{"Ports":{"22/tcp":null,"80/tcp":[{"HostIp":"127.0.0.1",)"
                 R"("HostPort":"49153"}],"53/udp":[{"HostIp":"::","HostPort":"9"}]}})");
  engine.on("GET /containers/c1/json", {Answer(200, running)});
  engine.box->start();
  CHECK(json::write(*engine.body_of("POST /containers/create").find("ExposedPorts")) ==
        R"({"80/tcp":{},"53/udp":{}})");
  auto& driver = engine.box->driver();
  const sf_ports_ext* ports = nullptr;
  driver.call([&] {
    ports = static_cast<const sf_ports_ext*>(
        driver.sandbox->vtbl->extension(driver.sandbox, testing::str(SF_EXT_PORTS)));
  });
  REQUIRE(ports != nullptr);
  const auto url = [&](std::uint32_t port) {
    testing::Result told;
    driver.call([&] {
      CHECK(ports->url(driver.sandbox, port, testing::text_completion(told), nullptr, nullptr) ==
            SF_OK);
    });
    driver.wait([&] { return told.done > 0; });
    return told.text;
  };
  CHECK(url(80) == "http://127.0.0.1:49153");
  CHECK(url(22).empty());
  CHECK(url(53).empty());  // udp is no URL
}

TEST_CASE("name, command, labels, user, platform and environment") {
  FakeEngine engine(
      R"({"name":"box","command":["tail","-f"],"labels":{"a":"b","mastra.sandbox.id":"x"},
                        "user":"1000:50","platform":"linux/amd64","env":{"A":"1"},
                        "workingDirectory":"/w"})");
  engine.on("POST /containers/c1/exec", {Answer(201, R"({"Id":"e1"})")});
  engine.on("POST /exec/e1/start", {stream("")});
  engine.on("GET /exec/e1/json", {Answer(200, R"({"Running":false,"ExitCode":0})")});
  engine.box->start();
  CHECK(
      engine.called("POST /containers/create?name=box-session-1-84097828&platform=linux%2Famd64"));
  const auto body = engine.body_of("POST /containers/create");
  CHECK(json::write(*body.find("Cmd")) == R"(["tail","-f"])");
  CHECK(body.find("User")->as_string() == "1000:50");
  CHECK(json::write(*body.find("Env")) == R"(["A=1"])");
  CHECK(body.find("WorkingDir")->as_string() == "/w");
  CHECK(body.at_pointer("/Labels/a")->as_string() == "b");
  CHECK(body.at_pointer("/Labels/mastra.sandbox.id")->as_string() == "session-1");
  // The engine makes the working directory for root: it is given to the user.
  const auto words = engine.command(0);
  CHECK((std::vector<std::string>(words.begin() + 4, words.end()) ==
         std::vector<std::string>{"/workspace", "1000:50"}));
}

TEST_CASE("values of variables are in no label") {
  const auto spec = [](const std::string& value) {
    FakeEngine engine(R"({"env":{"A":")" + value + R"("}})");
    engine.box->start();
    return engine.body_of("POST /containers/create")
        .at_pointer("/Labels/sandforge.spec")
        ->as_string();
  };
  CHECK(spec("secret") == spec("other"));
}

TEST_CASE("the image: with a repository the project's choice, without one the host's") {
  CHECK(image("{}", "{}", false) == "node:22-slim");
  CHECK(image(R"({"image":"a","defaults":{"baseImage":"b"}})", R"({"baseImage":"c"})", false) ==
        "a");
  CHECK(image(R"({"image":"a","defaults":{"baseImage":"b"}})", R"({"baseImage":"c"})", true) ==
        "c");
  CHECK(image(R"({"image":"a","defaults":{"baseImage":"b"}})", "{}", true) == "b");
  CHECK(image(R"({"image":"a"})", "{}", true) == "a");
  CHECK(image("{}", R"({"baseImage":"c"})", false) == "c");
}

TEST_CASE("the settings are those of the public documents") {
  testing::Host host;
  testing::Session box(host, testing::load_plugin(DOCKER_PLUGIN), "docker", "{}");
  const char* const published =
      R"x({"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{)x"
      R"x("baseImage":{"type":"string","title":"Base image",)x"
      R"x("description":"Docker image the environment template builds from (default node:22-slim)",)x"
      R"x("minLength":1},"owner":{"type":"string","title":"Owner",)x"
      R"x("description":"user[:group] or uid[:gid] that owns the repositories in the image (default root)",)x"
      R"x("pattern":"^[\\w.-]+(:[\\w.-]+)?$"}},"additionalProperties":false})x";
  CHECK(box.describe().schema == published);
  testing::Session other(host, testing::load_plugin(DOCKER_PLUGIN), "docker",
                         R"({"defaults":{"baseImage":"b","owner":"o"}})");
  CHECK(other.describe().schema.find(R"("default":"b")") != std::string::npos);
  CHECK(other.describe().schema.find(R"("default":"o")") != std::string::npos);
}

TEST_CASE("what does not go together or cannot be kept is refused when the provider is opened") {
  CHECK(refusal(R"({"networkIsolation":"ISOLATED"})").find("ISOLATED is not offered") !=
        std::string::npos);
  CHECK(refusal(R"({"networkIsolation":"PRIVATE"})").find("needs the name of a network") !=
        std::string::npos);
  CHECK(refusal(R"({"networkName":"x"})").find("networkIsolation PRIVATE") != std::string::npos);
  CHECK(refusal(R"({"engine":{"host":"ssh://box"}})").find("engines are reached by") !=
        std::string::npos);
  CHECK(refusal(R"({"engine":{"cert":"x"}})").find("go together") != std::string::npos);
  CHECK(refusal(R"({"engine":{"host":"unix:///x","ca":"x"}})").find("TLS") != std::string::npos);
  CHECK(refusal("{}", {{"DOCKER_HOST", "npipe://x"}}).find("npipe://x") != std::string::npos);
}

TEST_CASE("the engine is where the options say, else where the environment does") {
  const auto base_url = [](const std::string& options, std::map<std::string, std::string> env) {
    testing::Host host;
    host.env = std::move(env);
    host.http.handler = [](const std::shared_ptr<Exchange>& exchange) {
      exchange->answer(500, "");
    };
    testing::Session box(host, testing::load_plugin(DOCKER_PLUGIN), "docker", options);
    box.create();
    box.driver().start();
    return host.http.requests().at(0).base_url;
  };
  CHECK(base_url("{}", {}) == "unix:///var/run/docker.sock");
  CHECK(base_url("{}", {{"DOCKER_HOST", "tcp://box"}}) == "http://box:2375");
  CHECK(base_url("{}", {{"DOCKER_HOST", "tcp://box"}, {"DOCKER_TLS_VERIFY", "1"}}) ==
        "https://box:2376");
  CHECK(base_url(R"({"engine":{"host":"unix:///mine"}})", {{"DOCKER_HOST", "tcp://box"}}) ==
        "unix:///mine");
  CHECK(base_url(R"({"engine":{"host":"tcp://box:1","ca":"PEM"}})", {}) == "https://box:1");
}

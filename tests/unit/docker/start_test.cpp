// Starting: what is found is adopted, what is absent is made, and what fails makes nothing.
#include "unit/docker/engine.hpp"

using namespace sandforge;
using namespace sandforge::docker_test;
namespace testing = sandforge::testing;

namespace {

const std::string kListed = R"([{"Id":"c1","Created":5,"State":"running"}])";
const std::string kName = "sandforge-session-1-84097828";

}  // namespace

TEST_CASE("a session without a machine gets one") {
  FakeEngine engine;
  const auto started = engine.box->start({{"TOKEN", "t"}});
  CHECK(started.outcome == SF_OUTCOME_CREATED);
  CHECK(started.identity == "c1");
  CHECK(started.sandbox_id == "c1");
  CHECK(started.working_directory == "/workspace");
  CHECK((engine.calls ==
         std::vector<std::string>{
             "GET /containers/json?all=true&filters=%7B%22label%22%3A%5B%22mastra.sandbox.id%3D"
             "session-1%22%5D%7D",
             "GET /images/node%3A22-slim/json", "POST /containers/create?name=" + kName,
             "GET /containers/c1/json"}));
  const auto body = engine.body_of("POST /containers/create");
  CHECK(body.find("Image")->as_string() == "node:22-slim");
  CHECK(json::write(*body.find("Cmd")) == R"(["sleep","infinity"])");
  CHECK(body.find("WorkingDir")->as_string() == "/workspace");
  CHECK(json::write(*body.find("Env")) == R"(["TOKEN=t"])");
  CHECK(json::write(*body.find("HostConfig")) == R"({"Init":true})");
  const auto* labels = body.find("Labels");
  CHECK(labels->find("mastra.sandbox")->as_string() == "true");
  CHECK(labels->find("mastra.sandbox.id")->as_string() == "session-1");
  CHECK(labels->find("sandforge.spec")->as_string().size() == 64);
}

TEST_CASE("a machine that was made is started, and 304 means that somebody else did") {
  for (const std::uint32_t status : {204U, 304U}) {
    FakeEngine engine;
    engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("created")),
                                          Answer(200, FakeEngine::container("running"))});
    engine.on("POST /containers/c1/start", {Answer(status)});
    CHECK(engine.box->start().outcome == SF_OUTCOME_CREATED);
    CHECK(engine.count("POST /containers/c1/start") == 1);
  }
}

TEST_CASE("a machine of the session is adopted") {
  FakeEngine engine;
  engine.on("GET /containers/json", {Answer(200, kListed)});
  const auto started = engine.box->start();
  CHECK(started.outcome == SF_OUTCOME_CONNECTED);
  CHECK_FALSE(engine.called("POST"));
}

TEST_CASE("of several machines one that runs is taken, then the newest") {
  FakeEngine engine;
  engine.on(
      "GET /containers/json",
      {Answer(
          200,
          R"([{"Id":"old","Created":1,"State":"exited"},{"Id":"new","Created":9,"State":"exited"},{"Id":"c1","Created":5,"State":"running"}])")});
  CHECK(engine.box->start().sandbox_id == "c1");
}

TEST_CASE("a paused machine goes on, a stopped one is started, a dead one is replaced") {
  {
    FakeEngine engine;
    engine.on("GET /containers/json", {Answer(200, kListed)});
    engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("paused")),
                                          Answer(200, FakeEngine::container("running"))});
    engine.on("POST /containers/c1/unpause", {Answer(204)});
    CHECK(engine.box->start().outcome == SF_OUTCOME_CONNECTED);
    CHECK(engine.count("POST /containers/c1/unpause") == 1);
    CHECK_FALSE(engine.called("POST /containers/c1/start"));
  }
  {
    FakeEngine engine;
    engine.on("GET /containers/json", {Answer(200, kListed)});
    engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("exited")),
                                          Answer(200, FakeEngine::container("running"))});
    CHECK(engine.box->start().outcome == SF_OUTCOME_CONNECTED);
    CHECK(engine.called("POST /containers/c1/start"));
  }
  {
    FakeEngine engine;
    engine.on("GET /containers/json", {Answer(200, kListed)});
    engine.on("GET /containers/c1/json",
              {Answer(200, FakeEngine::container("dead", R"(,"Dead":true)")), Answer(404),
               Answer(200, FakeEngine::container("running"))});
    CHECK(engine.box->start().outcome == SF_OUTCOME_CREATED);
    CHECK(engine.called("DELETE /containers/c1?force=true&v=true"));
  }
}

TEST_CASE("a look-up that is refused never makes a second machine") {
  struct Case {
    Answer answer;
    sf_status code;
  };
  const Case cases[] = {{Answer(401, R"({"message":"who are you"})"), SF_UNAUTHENTICATED},
                        {Answer(403), SF_FORBIDDEN},
                        {Answer(429), SF_RATE_LIMITED},
                        {Answer(500), SF_UNAVAILABLE},
                        {Answer(200, "no list"), SF_INTERNAL},
                        {Answer::lost(SF_HTTP_MAYBE_SENT, SF_TRANSPORT_LOST), SF_TRANSPORT_LOST}};
  for (const Case& one : cases) {
    CAPTURE(one.code);
    {
      FakeEngine engine;
      engine.on("GET /containers/json", {one.answer});
      CHECK(engine.try_start().failure.code == one.code);
      CHECK_FALSE(engine.called("POST"));
    }
    // The same where the machine was known by its id.
    FakeEngine known;
    known.box->context.sandbox_id = "c1";
    known.on("GET /containers/c1/json", {one.answer});
    CHECK(known.try_start().failure.code == one.code);
    CHECK_FALSE(known.called("POST"));
  }
}

TEST_CASE(
    "an id that leads to another session's machine is an error, one that leads nowhere is not") {
  {
    FakeEngine engine;
    engine.box->context.sandbox_id = "c1";
    engine.box->context.session_id = "other";
    engine.box->context.caller_chose_id = true;
    CHECK(engine.try_start().failure.code == SF_CONFLICT);
    CHECK_FALSE(engine.called("POST"));
  }
  {
    // An id that was made up for this object says nothing of whose the machine is.
    FakeEngine engine;
    engine.box->context.sandbox_id = "c1";
    engine.box->context.session_id = "other";
    CHECK(engine.box->start().outcome == SF_OUTCOME_CONNECTED);
  }
  {
    FakeEngine engine;
    engine.box->context.sandbox_id = "gone";
    engine.on("GET /containers/gone/json", {Answer(404)});
    CHECK(engine.box->start().outcome == SF_OUTCOME_CREATED);
  }
  {
    // A name, or the beginning of an id, is not what was kept.
    FakeEngine engine;
    engine.box->context.sandbox_id = "c";
    engine.on("GET /containers/c/json", {Answer(200, FakeEngine::container("running"))});
    CHECK(engine.box->start().outcome == SF_OUTCOME_CREATED);
  }
}

TEST_CASE("who loses the race for the name adopts the winner's machine") {
  // Podman answers 500.
  for (const Answer& taken :
       {Answer(409, R"({"message":"Conflict. The container name is already in use"})"),
        Answer(
            500,
            R"({"cause":"x","message":"the container name is already in use","response":500})")}) {
    FakeEngine engine;
    engine.on("POST /containers/create", {taken});
    engine.on("GET /containers/" + kName + "/json",
              {Answer(404), Answer(200, FakeEngine::container("running"))});
    const auto started = engine.box->start();
    CHECK(started.outcome == SF_OUTCOME_CONNECTED);
    CHECK(started.identity == "c1");
  }
}

TEST_CASE("a stranger with the name is left alone") {
  FakeEngine engine;
  engine.on("POST /containers/create", {Answer(409)});
  engine.on("GET /containers/" + kName + "/json", {Answer(200, R"({"Id":"0123456789abcdef"})")});
  const auto failed = engine.try_start();
  CHECK(failed.failure.code == SF_CONFLICT);
  CHECK(failed.failure.message == "another container has the name " + kName + ": 0123456789ab");
  CHECK_FALSE(engine.called("DELETE"));
}

TEST_CASE("an image that is missing is pulled, and a failure that hides in the stream is found") {
  {
    FakeEngine engine;
    engine.on("GET /images/node:22-slim/json", {Answer(404)});
    engine.on(
        "POST /images/create",
        {Answer(
            200,
            "{\"status\":\"Pulling\",\"id\":\"l\",\"progressDetail\":{\"current\":1,\"total\":2}}"
            "\r\n{\"status\":\"Status: done\"}\r\n")});
    CHECK(engine.box->start().outcome == SF_OUTCOME_CREATED);
    CHECK(engine.called("POST /images/create?fromImage=node&tag=22-slim"));
  }
  for (const char* body : {R"({"status":"x"}{"errorDetail":{"message":"denied"},"error":"denied"})",
                           R"({"error":"denied"})"}) {
    FakeEngine engine;
    engine.on("GET /images/node:22-slim/json", {Answer(404)});
    engine.on("POST /images/create", {Answer(200, body)});
    const auto failed = engine.try_start();
    CHECK(failed.failure.code == SF_UNAVAILABLE);
    CHECK(failed.failure.message == "Failed to pull Docker image 'node:22-slim': denied");
    CHECK_FALSE(engine.called("POST /containers"));
  }
  {
    FakeEngine engine;
    engine.on("GET /images/node:22-slim/json", {Answer(404)});
    engine.on("POST /images/create", {Answer(200, R"({"status":"Pulling"}{"sta)")});
    CHECK(engine.try_start().failure.message ==
          "Failed to pull Docker image 'node:22-slim': the engine cut its answer short");
  }
  {
    FakeEngine engine;
    engine.on("GET /images/node:22-slim/json", {Answer(404)});
    engine.on("POST /images/create", {Answer(404, R"({"message":"no such repository"})")});
    const auto failed = engine.try_start();
    CHECK(failed.failure.code == SF_UNAVAILABLE);
    CHECK(failed.failure.message ==
          "Failed to pull Docker image 'node:22-slim': no such repository");
  }
}

TEST_CASE("a registry that wants to know who asks is told apart, whatever the engine answers") {
  struct Row {
    std::uint32_t status;
    const char* body;
    sf_status code;
  };
  for (const Row& row : {
           Row{500, R"({"message":"unauthorized: authentication required"})", SF_UNAUTHENTICATED},
           Row{500, R"({"message":"Head \"…\": no basic auth credentials"})", SF_UNAUTHENTICATED},
           Row{200, R"({"error":"unauthorized: incorrect username or password"})",
               SF_UNAUTHENTICATED},
           Row{200, R"({"error":"toomanyrequests: you have reached your limit"})", SF_RATE_LIMITED},
           Row{500, R"({"message":"received unexpected HTTP status: 502"})", SF_UNAVAILABLE},
       }) {
    CAPTURE(row.body);
    FakeEngine engine;
    engine.on("GET /images/node:22-slim/json", {Answer(404)});
    engine.on("POST /images/create", {Answer(row.status, row.body)});
    const auto failure = engine.try_start().failure;
    CHECK(failure.code == row.code);
    const bool told = failure.message.find("the option registries") != std::string::npos;
    CHECK(told == (row.code == SF_UNAUTHENTICATED));
    CHECK_FALSE(engine.called("POST /containers"));
  }
}

TEST_CASE("the pull policy and the registry's credentials") {
  {
    FakeEngine engine(R"({"pullPolicy":"never"})");
    engine.on("GET /images/node:22-slim/json", {Answer(404)});
    CHECK(engine.try_start().failure.message.find("pullPolicy is never") != std::string::npos);
    CHECK_FALSE(engine.called("POST"));
  }
  // As the engine's own client writes it: with padding, and without an address for the default one.
  struct Row {
    const char* options;
    const char* login;
  };
  for (
      const auto& row : {
          Row{R"({"pullPolicy":"always","registries":{"docker.io":{"username":"u","password":"hush"}}})",
              "eyJ1c2VybmFtZSI6InUiLCJwYXNzd29yZCI6Imh1c2gifQ=="},
          Row{R"({"pullPolicy":"always","image":"registry.example/a:1",
                   "registries":{"registry.example":{"username":"u","password":"hush"}}})",
              "eyJzZXJ2ZXJhZGRyZXNzIjoicmVnaXN0cnkuZXhhbXBsZSIsInVzZXJuYW1lIjoidSIsInBhc3N3b3JkIjoi"
              "aHVzaCJ9"},
      }) {
    CAPTURE(row.options);
    FakeEngine engine(row.options);
    engine.on("POST /images/create", {Answer(200, "{}")});
    CHECK(engine.box->start().outcome == SF_OUTCOME_CREATED);
    CHECK_FALSE(engine.called("GET /images"));
    REQUIRE(engine.called("POST /images/create"));
    for (const auto& request : engine.host.http.requests())
      if (request.target.find("/images/create") != std::string::npos)
        CHECK(request.header("X-Registry-Auth") == row.login);
    CHECK_FALSE(engine.host.logged("hush"));
  }
}

TEST_CASE("a machine that was made and does not run is removed") {
  {
    FakeEngine engine;
    engine.on("GET /containers/c1/json",
              {Answer(200, FakeEngine::container("created")), Answer(404)});
    engine.on("POST /containers/c1/start", {Answer(500, R"({"message":"no such runtime"})")});
    const auto failed = engine.try_start();
    CHECK(failed.failure.code == SF_UNAVAILABLE);
    CHECK(failed.failure.message == "the engine refuses to start the container: no such runtime");
    CHECK(engine.called("DELETE /containers/c1?force=true&v=true"));
  }
  {
    FakeEngine engine;
    engine.on("GET /containers/c1/json",
              {Answer(200, FakeEngine::container("created")),
               Answer(200, FakeEngine::container("exited", R"(,"ExitCode":3)")), Answer(404)});
    CHECK(engine.try_start().failure.message ==
          "the container ended at once, with 3: its command must keep running");
    CHECK(engine.called("DELETE"));
  }
  {
    // What was there before is not.
    FakeEngine engine;
    engine.on("GET /containers/json", {Answer(200, kListed)});
    engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("exited"))});
    engine.on("POST /containers/c1/start", {Answer(500)});
    CHECK(engine.try_start().failure.code == SF_UNAVAILABLE);
    CHECK_FALSE(engine.called("DELETE"));
  }
}

TEST_CASE("a removal that fails does not hide why the start did") {
  FakeEngine engine;
  engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("created"))});
  engine.on("POST /containers/c1/start", {Answer(500, R"({"message":"no such runtime"})")});
  engine.on("DELETE /containers/c1", {Answer(500, R"({"message":"device busy"})")});
  CHECK(engine.try_start().failure.message ==
        "the engine refuses to start the container: no such runtime");
  CHECK(engine.host.logged("device busy"));
}

TEST_CASE("engines that are absent, refuse, are too old or none are told apart") {
  const auto message = [](int number, sf_status code) {
    FakeEngine engine;
    const std::string details =
        R"({"reason":"http.connect","errno":)" + std::to_string(number) + "}";
    engine.host.http.handler = [&](const std::shared_ptr<Exchange>& exchange) {
      exchange->end(SF_HTTP_NOT_CONNECTED, Failure(code, "cannot connect", details));
    };
    const auto failed = engine.try_start().failure;
    CHECK_FALSE(failed.may_have_started());
    return std::to_string(failed.code) + " " + failed.message;
  };
  const std::string where = "no Docker engine at unix:///var/run/docker.sock: ";
  CHECK(message(2, SF_TRANSPORT_LOST) ==
        "10 " + where + "there is no such socket: is Docker installed, and does it run?");
  CHECK(message(111, SF_TRANSPORT_LOST) ==
        "10 " + where + "nobody listens there: the engine does not run");
  CHECK(message(13, SF_FORBIDDEN) ==
        "7 " + where +
            "permission denied: this user may not use the socket (it belongs to the group docker)");

  const auto refused = [](const std::string& version) {
    FakeEngine engine;
    engine.ping(version);
    return engine.try_start().failure;
  };
  CHECK(refused("1.24").code == SF_UNSUPPORTED);
  CHECK(refused("1.24").message.find("is too old: it speaks version 1.24") != std::string::npos);
  CHECK(refused("").message.find("is no Docker engine") != std::string::npos);
}

TEST_CASE("a newer engine is spoken to in the newest version that is understood") {
  FakeEngine engine;
  engine.ping("1.60");
  CHECK(engine.try_start().failure.code == SF_INTERNAL);
  CHECK(engine.unexpected.at(0) == "GET /v1.51/containers/json");
  engine.unexpected.clear();
}

TEST_CASE("limits that the engine ignores are reported in its own words") {
  FakeEngine engine(R"({"memory":67108864})");
  engine.on("POST /containers/create",
            {Answer(201, R"({"Id":"c1","Warnings":["no swap limit support"]})")});
  CHECK(engine.box->start().outcome == SF_OUTCOME_CREATED);
  CHECK(engine.body_of("POST /containers/create").at_pointer("/HostConfig/Memory")->as_integer() ==
        67108864);
}

// Stopping, removing, and what is told of a machine.
#include "unit/docker/engine.hpp"

using namespace sandforge::docker_test;
namespace testing = sandforge::testing;

TEST_CASE("a stop waits for as long as the options say, and what is stopped or gone succeeds") {
  {
    FakeEngine engine(R"({"stopTimeout":3})");
    engine.on("GET /containers/json", {Answer(200, R"([{"Id":"c1"}])")});
    engine.on("POST /containers/c1/stop", {Answer(204), Answer(304), Answer(404)});
    engine.box->stop();
    engine.box->stop();
    engine.box->stop();
    CHECK(engine.count("POST /containers/c1/stop?t=3") == 3);
  }
  {
    FakeEngine engine;
    engine.box->stop();
    engine.on("GET /containers/json", {Answer(200, R"([{"Id":"c1"}])")});
    engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("exited"))});
    engine.box->stop();
    CHECK_FALSE(engine.called("POST"));
  }
}

TEST_CASE("a removal finds every machine of the session, and waits until its name is free") {
  FakeEngine engine;
  engine.on("GET /containers/json", {Answer(200, R"([{"Id":"c1"},{"Id":"c2"}])")});
  engine.on("GET /containers/c1/json",
            {Answer(200, FakeEngine::container("removing")), Answer(404)});
  engine.on("GET /containers/c2/json", {Answer(404)});
  engine.on("DELETE /containers/c1",
            {Answer(409, R"({"message":"removal is already in progress"})")});
  engine.on("DELETE /containers/c2", {Answer(404)});
  engine.box->destroy();
  CHECK(engine.called("DELETE /containers/c1?force=true&v=true"));
  CHECK(engine.called("DELETE /containers/c2?force=true&v=true"));
  CHECK(engine.count("GET /containers/c1/json") == 2);
  CHECK_FALSE(engine.called("POST"));
}

TEST_CASE("a removal by the provider's id alone, and of nothing") {
  FakeEngine engine;
  engine.box->context.session_id = "";
  engine.box->context.sandbox_id = "c1";
  engine.on("GET /containers/c1/json",
            {Answer(200, FakeEngine::container("running")), Answer(404)});
  engine.box->destroy();
  engine.box->destroy();
  CHECK(engine.count("DELETE /containers/c1") == 1);
}

TEST_CASE("a removal that is refused is an error") {
  FakeEngine engine;
  engine.on("GET /containers/json", {Answer(200, R"([{"Id":"c1"}])")});
  engine.on("DELETE /containers/c1", {Answer(500, R"({"message":"device busy"})")});
  CHECK_THROWS_WITH(engine.box->destroy(),
                    "destroy: the engine refuses to remove the container: device busy (status 10)");
}

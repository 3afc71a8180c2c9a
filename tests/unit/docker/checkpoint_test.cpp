// Checkpoints: what is asked of the engine to keep files, to boot from them and to remove them.
#include <sandforge/ext/snapshot.h>

#include <algorithm>

#include "unit/docker/engine.hpp"

using namespace sandforge;
using namespace sandforge::docker_test;
namespace testing = sandforge::testing;

namespace {

const std::string kOwn = "sandforge-checkpoint:session-1-84097828fc31a8c8";
const std::string kOwnRoute = "/images/" + kOwn;
const std::string kMade = "sha256:aaaa";

std::string image(const std::string& id, const std::string& tag, const std::string& name,
                  const std::string& more = {}) {
  return R"({"Id":")" + id + R"(","Size":7,"RepoTags":[)" + (tag.empty() ? "" : '"' + tag + '"') +
         R"(],"Config":{"Labels":{"sandforge.checkpoint":")" + name +
         R"(","sandforge.checkpoint.created":"42"})" + more + "}}";
}

// An archive that is whole: it ends with zeros.
std::string archive() {
  return "files" + std::string(2048, '\0');
}

struct Told {
  int done = 0;
  testing::Failure failure;
  std::vector<std::string> names;
  std::vector<std::int64_t> times;
  std::string warnings;
};

// A session whose container is made from the image `origin`, runs, and holds a secret.
class Keeper {
 public:
  FakeEngine engine;
  std::string imported;  // what the engine got
  std::string import_target;
  std::optional<std::string> files = archive();  // absent: by its route

  explicit Keeper(const std::string& options = "{}") : engine(options) {
    engine.box->context.caller_chose_id = true;
    engine.on("GET " + kOwnRoute + "/json", {Answer(404)});
    engine.on("GET /images/origin/json",
              {Answer(200, R"({"Id":"origin","RepoTags":["node:22-slim"],"Config":{)"
                           R"("Env":["PATH=/bin","TEXT=a \"b\" $c \\"],"User":"node",)"
                           R"("Entrypoint":["/entry","$x"]}})")});
    engine.on("GET /containers/c1/json", {Answer(200, running())});
    engine.on("POST /containers/c1/pause", {Answer(204)});
    engine.on("POST /containers/c1/unpause", {Answer(204)});
    engine.on("GET /images/" + kMade + "/json", {Answer(200, image(kMade, kOwn, "session-1"))});
    import_answer(Answer(200, R"({"status":")" + kMade + R"("})"));
    const auto others = engine.host.http.handler;
    engine.host.http.handler = [this, others](const std::shared_ptr<Exchange>& exchange) {
      if (files && exchange->target == "/v1.41/containers/c1/export") return hold(exchange);
      if ((exchange->flags & SF_HTTP_STREAM_BODY) == 0) return others(exchange);
      import_target = exchange->target;
      exchange->stream->on_write = [this](std::string_view piece, std::uint32_t) {
        imported += piece;
        return piece.size();
      };
      if (early_) {
        others(exchange);
      } else {
        exchange->stream->on_shutdown = [others, exchange] { others(exchange); };
      }
      export_->send(*files);
      export_->end();
      export_.reset();
    };
  }
  static std::string running(const std::string& more = {}) {
    std::string text = FakeEngine::container("running");
    text.pop_back();
    return text + R"(,"Image":"origin","HostConfig":{"Tmpfs":{"/scratch":""}},)" +
           R"("Mounts":[{"Destination":"/data"}])" + more + "}";
  }
  void import_answer(const Answer& answer, bool early = false) {
    engine.on("POST /images/create", {answer});
    early_ = early;
  }

  const sf_snapshot_ext& table() {
    const void* found = nullptr;
    auto& driver = engine.box->driver();
    driver.call([&] {
      found = driver.sandbox->vtbl->extension(driver.sandbox, testing::str(SF_EXT_SNAPSHOT));
    });
    REQUIRE(found != nullptr);
    return *static_cast<const sf_snapshot_ext*>(found);
  }
  template <class Call>
  Told ask(Call begin) {
    const sf_snapshot_ext& snapshots = table();
    auto& driver = engine.box->driver();
    Told told;
    driver.call([&] { begin(snapshots, driver.sandbox, told); });
    driver.wait([&] { return told.done > 0; });
    CHECK(told.done == 1);
    return told;
  }
  Told create(const std::string& name = {}) {
    return ask([&](auto& shelf, sf_sandbox* box, Told& told) {
      CHECK(shelf.create(box, testing::str(name), listed(told), nullptr, nullptr) == SF_OK);
    });
  }
  Told list() {
    return ask([&](auto& shelf, sf_sandbox* box, Told& told) {
      CHECK(shelf.list(box, listed(told), nullptr, nullptr) == SF_OK);
    });
  }
  Told remove(const std::string& name) {
    return ask([&](auto& shelf, sf_sandbox* box, Told& told) {
      CHECK(shelf.remove(box, testing::str(name), plain(told), nullptr, nullptr) == SF_OK);
    });
  }
  Told start_from(const std::string& name) {
    return ask([&](auto& shelf, sf_sandbox* box, Told& told) {
      CHECK(shelf.start_from(box, testing::str(name), plain(told), nullptr, nullptr) == SF_OK);
    });
  }

 private:
  static sf_checkpoint_completion listed(Told& told) {
    return {&told, [](void* ctx, const sf_error* error, const sf_checkpoint* first,
                      std::size_t count, std::size_t stride) noexcept {
              Told& into = *static_cast<Told*>(ctx);
              ++into.done;
              into.failure = testing::Failure::copy(error);
              const auto* at = reinterpret_cast<const char*>(first);
              for (std::size_t i = 0; i < count; ++i, at += stride) {
                const auto& one = *reinterpret_cast<const sf_checkpoint*>(at);
                into.names.push_back(testing::text(one.name));
                into.times.push_back(one.created_at);
                into.warnings = testing::text(one.warnings);
              }
            }};
  }
  static sf_completion plain(Told& told) {
    return {&told, [](void* ctx, const sf_error* error) noexcept {
              Told& into = *static_cast<Told*>(ctx);
              ++into.done;
              into.failure = testing::Failure::copy(error);
            }};
  }
  // The engine sends the files once there is somebody who takes them.
  void hold(const std::shared_ptr<Exchange>& exchange) {
    engine.calls.emplace_back("GET /containers/c1/export");
    engine.bodies.emplace_back();
    exchange->respond(200);
    export_ = exchange;
  }
  std::shared_ptr<Exchange> export_;
  bool early_ = false;
};

}  // namespace

TEST_CASE("a snapshot is the container's files with the configuration of its image") {
  Keeper keeper(R"({"env":{"SECRET":"canary"}})");
  keeper.engine.box->start({{"SECRET", "canary"}});
  const Told told = keeper.create();
  CHECK_FALSE(told.failure);
  CHECK((told.names == std::vector<std::string>{"session-1"}));
  CHECK(told.times.at(0) > 0);
  CHECK(told.warnings ==
        R"(["volumes, folders of the host and tmpfs are not captured: /data, /scratch"])");
  CHECK(keeper.imported == archive());
  const std::string target = *percent_decode(keeper.import_target);
  const std::string wanted =
      "/v1.41/images/create?fromSrc=-&repo=sandforge-checkpoint&tag=session-1-84097828fc31a8c8"
      "&changes=ENV PATH=\"/bin\""
      "&changes=ENV TEXT=\"a \\\"b\\\" \\$c \\\\\""
      "&changes=ENTRYPOINT [\"/entry\",\"$x\"]"
      "&changes=USER node"
      "&changes=LABEL sandforge.checkpoint=\"session-1\""
      "&changes=LABEL sandforge.checkpoint.session=\"session-1\""
      "&changes=LABEL sandforge.checkpoint.created=\"" +
      std::to_string(told.times.at(0)) + "\"";
  CHECK(target == wanted);
  CHECK(target.find("canary") == std::string::npos);
  // Consistent: paused before it is read, and never left so.
  const auto& calls = keeper.engine.calls;
  const auto at = [&](const std::string& call) {
    return std::find(calls.begin(), calls.end(), call) - calls.begin();
  };
  CHECK(at("POST /containers/c1/pause") < at("GET /containers/c1/export"));
  CHECK(at("GET /containers/c1/export") < at("POST /containers/c1/unpause"));
  CHECK_FALSE(keeper.engine.called("DELETE"));
}

TEST_CASE("what is replaced goes once the new image has the name, or stays while it is needed") {
  for (const std::uint32_t status : {200U, 404U, 409U}) {
    Keeper keeper;
    keeper.engine.on("GET " + kOwnRoute + "/json",
                     {Answer(404), Answer(200, image("sha256:old", kOwn, "session-1"))});
    keeper.engine.on("GET /images/sha256:old/json",
                     {Answer(200, image("sha256:old", "", "session-1"))});
    keeper.engine.on("DELETE /images/sha256:old", {Answer(status)});
    keeper.engine.box->start();
    CHECK_FALSE(keeper.create().failure);
    const auto& calls = keeper.engine.calls;
    CHECK(calls.back() == "DELETE /images/sha256%3Aold");
    CHECK(keeper.engine.count("POST /images/create") == 1);
  }
}

TEST_CASE("of two captures at once the one that lost the name leaves nothing") {
  Keeper keeper;
  keeper.engine.on("GET /images/" + kMade + "/json", {Answer(200, image(kMade, "", "session-1"))});
  keeper.engine.on("DELETE /images/" + kMade, {Answer(200)});
  keeper.engine.box->start();
  CHECK_FALSE(keeper.create().failure);
  CHECK(keeper.engine.called("DELETE /images/sha256%3Aaaaa"));
}

TEST_CASE("a snapshot that fails is a typed error, and the container goes on") {
  struct Case {
    const char* route;
    Answer answer;
    sf_status code;
    bool unpaused;
  };
  const std::string full = R"({"errorDetail":{"message":"write /x: no space left on device"}})";
  const Case cases[] = {
      {"POST /images/create", Answer(200, full), SF_NO_SPACE, true},
      {"POST /images/create", Answer(500, R"({"message":"no space left on device"})"), SF_NO_SPACE,
       true},
      {"POST /images/create", Answer(200, R"({"status":"Imp)"), SF_UNAVAILABLE, true},
      {"GET /containers/c1/export", Answer(404), SF_GONE, true},
      {"POST /containers/c1/pause", Answer(404), SF_GONE, false},
      {"POST /containers/c1/pause", Answer(409, R"({"message":"already paused"})"), SF_CONFLICT,
       false},
      {"POST /containers/c1/unpause", Answer(500), SF_UNAVAILABLE, true}};
  for (const Case& one : cases) {
    CAPTURE(one.route, one.code);
    Keeper keeper;
    keeper.engine.on(one.route, {one.answer});
    if (std::string(one.route) == "GET /containers/c1/export") keeper.files.reset();
    keeper.engine.box->start();
    CHECK(keeper.create().failure.code == one.code);
    CHECK(keeper.engine.called("POST /containers/c1/unpause") == one.unpaused);
    CHECK_FALSE(keeper.engine.called("DELETE"));
  }
}

TEST_CASE("files that the engine cut short become no checkpoint") {
  Keeper keeper;
  keeper.files = "files" + std::string(1023, '\0');
  keeper.engine.box->start();
  const Told told = keeper.create();
  CHECK(told.failure.code == SF_UNAVAILABLE);
  CHECK(told.failure.message == "the engine cut the container's files short");
  // The body never came to its end, so the engine has made nothing of it.
  CHECK_FALSE(keeper.engine.called("POST /images/create"));
  CHECK(keeper.engine.called("POST /containers/c1/unpause"));
}

TEST_CASE("an engine that refuses before it has read the files is heard") {
  Keeper keeper;
  keeper.import_answer(Answer(400, R"({"message":"unknown instruction"})"), true);
  keeper.engine.box->start();
  const Told told = keeper.create();
  CHECK(told.failure.code == SF_INVALID);
  CHECK(told.failure.message == "the engine refuses to keep the checkpoint: unknown instruction");
  CHECK(keeper.engine.called("POST /containers/c1/unpause"));
}

TEST_CASE("nothing is captured without a name or a machine that runs") {
  {
    Keeper keeper;
    keeper.engine.box->create();
    CHECK(keeper.create().names.empty());  // there is no container
    keeper.engine.box->start();
    keeper.engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("exited"))});
    CHECK(keeper.create().names.empty());
    keeper.engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("paused"))});
    CHECK(keeper.create().failure.code == SF_CONFLICT);
    keeper.engine.on("GET /containers/c1/json", {Answer(404)});
    CHECK(keeper.create().failure.code == SF_GONE);
    CHECK_FALSE(keeper.engine.called("POST /containers/c1/pause"));
  }
  Keeper nameless;
  nameless.engine.box->context.caller_chose_id = false;
  nameless.engine.box->start();
  const Told told = nameless.create();
  CHECK_FALSE(told.failure);
  CHECK(told.names.empty());
}

TEST_CASE("the list has what bears its own name, newest first") {
  Keeper keeper;
  keeper.engine.box->create();
  const auto entry = [](const std::string& id, const std::string& tags, const std::string& name,
                        const std::string& time) {
    return R"({"Id":")" + id + R"(","Size":7,"RepoTags":)" + tags +
           R"(,"Labels":{"sandforge.checkpoint":")" + name +
           R"(","sandforge.checkpoint.created":")" + time + R"("}})";
  };
  keeper.engine.on("GET /images/json",
                   {Answer(200, "[" + entry("a", "[\"" + kOwn + "\"]", "session-1", "5") + "," +
                                    entry("b", "null", "session-1", "4") + "," +
                                    entry("c", R"(["built:on-one"])", "session-1", "6") + "," +
                                    entry("d", R"(["sandforge-checkpoint:a-b-c14cddc033f64b9d"])",
                                          "a%2Fb", "9") +
                                    "]")});
  const Told told = keeper.list();
  CHECK((told.names == std::vector<std::string>{"a/b", "session-1"}));
  CHECK((told.times == std::vector<std::int64_t>{9, 5}));
  CHECK(*percent_decode(keeper.engine.calls.back()) ==
        R"(GET /images/json?filters={"label":["sandforge.checkpoint"]})");
}

TEST_CASE("a removal takes the name, and what is gone succeeds") {
  for (const std::uint32_t status : {200U, 404U}) {
    Keeper keeper;
    keeper.engine.box->create();
    keeper.engine.on("DELETE " + kOwnRoute, {Answer(status)});
    CHECK_FALSE(keeper.remove("session-1").failure);
    CHECK(keeper.engine.count("DELETE") == 1);
  }
  Keeper used;
  used.engine.box->create();
  used.engine.on("DELETE " + kOwnRoute, {Answer(409), Answer(200)});
  CHECK_FALSE(used.remove("session-1").failure);
  CHECK(used.engine.calls.back().find("?force=true") != std::string::npos);
  used.engine.on("DELETE " + kOwnRoute, {Answer(500)});
  CHECK(used.remove("session-1").failure.code == SF_UNAVAILABLE);
}

TEST_CASE("a fresh machine boots from the named, its own or the seed checkpoint, never pulled") {
  Keeper keeper(R"({"pullPolicy":"always"})");
  keeper.engine.box->create();
  const std::string other = "sandforge-checkpoint:other-d9298a10d1b07358";
  keeper.engine.on("GET /images/" + other + "/json",
                   {Answer(404), Answer(200, image("sha256:o", other, "other"))});
  keeper.engine.on("GET " + kOwnRoute + "/json",
                   {Answer(200, image("sha256:s", kOwn, "session-1"))});
  CHECK(keeper.start_from("other").failure.code == SF_NOT_FOUND);
  CHECK_FALSE(keeper.start_from("other").failure);
  const auto named = keeper.engine.box->start();
  CHECK(named.outcome == SF_OUTCOME_CREATED);
  CHECK(named.provenance == SF_PROVENANCE_CHECKPOINT);
  const auto body = keeper.engine.body_of("POST /containers/create");
  CHECK(body.find("Image")->as_string() == other);
  CHECK_FALSE(keeper.engine.called("POST /images/create"));

  // That counted once.
  keeper.engine.calls.clear();
  keeper.engine.bodies.clear();
  keeper.engine.on("GET /containers/c1/json", {Answer(404), Answer(200, Keeper::running())});
  CHECK(keeper.engine.box->start().provenance == SF_PROVENANCE_CHECKPOINT);
  CHECK(keeper.engine.body_of("POST /containers/create").find("Image")->as_string() == kOwn);
  // What a machine is made from does not change what it is made with.
  CHECK(keeper.engine.body_of("POST /containers/create")
            .at_pointer("/Labels/sandforge.spec")
            ->as_string() == body.at_pointer("/Labels/sandforge.spec")->as_string());
}

TEST_CASE("a destroyed machine takes the replaced image along, and no checkpoint") {
  for (const bool replaced : {true, false}) {
    Keeper keeper;
    keeper.engine.on("GET /containers/json",
                     {Answer(200, R"([{"Id":"c1","ImageID":"sha256:i"}])")});
    keeper.engine.on("GET /containers/c1/json", {Answer(404)});
    keeper.engine.on("GET /images/sha256:i/json",
                     {Answer(200, image("sha256:i", replaced ? "" : kOwn, "session-1"))});
    keeper.engine.on("DELETE /images/sha256:i", {Answer(200)});
    keeper.engine.box->destroy();
    CHECK(keeper.engine.called("DELETE /images") == replaced);
  }
}

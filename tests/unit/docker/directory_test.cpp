// Containers without a session, and what else is left: what is asked of the engine to find them and
// to remove them.
#include <sandforge/ext/directory.h>
#include <sandforge/support/hash.hpp>

#include <algorithm>

#include "unit/docker/engine.hpp"

using namespace sandforge;
using namespace sandforge::docker_test;
namespace testing = sandforge::testing;
using testing::str;

namespace {

struct Found {
  int done = 0;
  testing::Failure failure;
  std::vector<std::string> lines;
  std::string next;
};

std::string listed(const std::string& id, const std::string& state, const std::string& labels,
                   const std::string& name) {
  return R"({"Id":")" + id + R"(","Names":["/)" + name + R"("],"State":")" + state +
         R"(","Created":100,"Labels":{)" + labels + "}}";
}
// As containers of sessions are named.
std::string named(const std::string& session) {
  return "any-" + session + "-" + sha256_hex(session).substr(0, 8);
}
std::string ours(const std::string& session) {
  return R"("mastra.sandbox":"true","sandforge.spec":"s","mastra.sandbox.id":")" + session + '"';
}

// An engine whose provider tells what it has. No sandbox is made.
class Census {
 public:
  FakeEngine engine;
  explicit Census(const std::string& options = "{}") : engine(options) {
    engine.on("GET /images/json", {Answer(200, "[]")});
    engine.on("GET /volumes", {Answer(200, R"({"Volumes":null})")});
  }

  Found find(const std::string& page = {}, std::uint32_t limit = 0) {
    return ask([&](Found& found) {
      const sf_directory_completion done{
          &found, [](void* ctx, const sf_error* e, const sf_directory_entry* first, std::size_t n,
                     std::size_t, sf_str next) noexcept {
            auto& into = *static_cast<Found*>(ctx);
            ++into.done;
            into.failure = testing::Failure::copy(e);
            into.next = testing::text(next);
            for (std::size_t i = 0; i < n; ++i)
              into.lines.push_back(
                  testing::text(first[i].sandbox_id) + " " +
                  (first[i].session_id.ptr == nullptr ? "-" : testing::text(first[i].session_id)) +
                  " " + std::to_string(first[i].state) +
                  ((first[i].flags & SF_DIRECTORY_OWN) != 0 ? " own" : ""));
          }};
      return table().find(provider(), str(""), str(page), limit, done, nullptr, nullptr);
    });
  }
  Found remove(const std::string& id) {
    return ask([&](Found& found) {
      const sf_completion done{&found, [](void* ctx, const sf_error* e) noexcept {
                                 auto& into = *static_cast<Found*>(ctx);
                                 ++into.done;
                                 into.failure = testing::Failure::copy(e);
                               }};
      return table().remove(provider(), str(id), done, nullptr, nullptr);
    });
  }
  Found sweep(std::uint32_t flags) {
    return ask([&](Found& found) {
      const sf_sweep_completion done{
          &found, [](void* ctx, const sf_error* e, const sf_leftover* first, std::size_t n,
                     std::size_t) noexcept {
            auto& into = *static_cast<Found*>(ctx);
            ++into.done;
            into.failure = testing::Failure::copy(e);
            for (std::size_t i = 0; i < n; ++i)
              into.lines.push_back(testing::text(first[i].kind) + " " + testing::text(first[i].id) +
                                   (first[i].error.len == 0 ? "" : " stays"));
          }};
      return table().sweep(provider(), flags, done, nullptr, nullptr);
    });
  }
  // The label of this host, as a container that is made now carries it.
  std::string host_label() {
    engine.box->start();
    const auto body = engine.body_of("POST /containers/create");
    const std::string mark = body.find("Labels")->find("sandforge.host")->as_string();
    CHECK(mark.size() == 32);
    return mark;
  }

 private:
  sf_provider* provider() { return engine.box->driver().provider; }
  const sf_directory_ext& table() {
    const auto* found = provider()->vtbl->extension(provider(), str(SF_EXT_DIRECTORY));
    REQUIRE(found != nullptr);
    return *static_cast<const sf_directory_ext*>(found);
  }
  template <class Call>
  Found ask(Call call) {
    Found found;
    auto& driver = engine.box->driver();
    driver.call([&] { CHECK(call(found) == SF_OK); });
    driver.wait([&] { return found.done > 0; });
    CHECK(found.done == 1);
    return found;
  }
};

}  // namespace

TEST_CASE("containers of all hosts are listed, and those of this one are told apart") {
  Census census;
  const std::string mark = census.host_label();
  census.engine.on(
      "GET /containers/json",
      {Answer(200, "[" + listed("b", "exited", ours("s2"), named("s2")) + "," +
                       listed("a", "running", ours("s1") + R"(,"sandforge.host":")" + mark + '"',
                              named("s1")) +
                       "," + listed("c", "removing", ours("s3"), named("s3")) + "," +
                       listed("d", "paused", ours("s4") + R"(,"sandforge.host":"x")", named("s4")) +
                       // Made by somebody from an image of a session's machine.
                       "," + listed("e", "running", ours("s1"), "eager_turing") + "]")});
  const Found all = census.find();
  CHECK(all.lines == std::vector<std::string>{"a s1 2 own", "b s2 3", "d s4 2"});
  CHECK(all.next.empty());
  // Both labels are asked for: the first alone is that of other programs, too.
  CHECK(
      *percent_decode(census.engine.calls.back()) ==
      R"(GET /containers/json?all=true&filters={"label":["mastra.sandbox=true","sandforge.spec"]})");

  const Found first = census.find({}, 2);
  CHECK(first.lines.size() == 2);
  CHECK(first.next == "b");
  CHECK(census.find("b", 2).lines == std::vector<std::string>{"d s4 2"});
}

TEST_CASE("a list that is refused is an error") {
  Census census;
  census.engine.on("GET /containers/json", {Answer(500)});
  CHECK(census.find().failure.code == SF_UNAVAILABLE);
  census.engine.on("GET /containers/json", {Answer(200, "no list")});
  CHECK(census.find().failure.code == SF_INTERNAL);
}

TEST_CASE("a container is removed by its id, where it is this provider's") {
  Census census;
  std::string info = FakeEngine::container("running");
  info.insert(info.find(R"("mastra.sandbox")"), R"("sandforge.spec":"s",)");
  census.engine.on("GET /containers/c1/json", {Answer(200, info), Answer(200, info), Answer(404)});
  CHECK(census.remove("c1").failure.code == SF_OK);
  CHECK(census.engine.count("DELETE /containers/c1?force=true&v=true") == 1);
  // What is gone is removed.
  CHECK(census.remove("c1").failure.code == SF_OK);
  CHECK(census.engine.count("DELETE") == 1);

  // Another program's, and a name in place of an id.
  census.engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("running"))});
  CHECK(census.remove("c1").failure.code == SF_CONFLICT);
  census.engine.on("GET /containers/name/json", {Answer(200, info)});
  CHECK(census.remove("name").failure.code == SF_CONFLICT);
  info.replace(info.find("/sandforge-session-1-84097828"), 29, "/eager_turing");
  census.engine.on("GET /containers/c1/json", {Answer(200, info)});
  CHECK(census.remove("c1").failure.code == SF_CONFLICT);
  CHECK(census.engine.count("DELETE") == 1);
}

TEST_CASE("containers of builds go when the one that builds is gone") {
  Census census;
  FakeEngine& engine = census.engine;
  const std::string by = R"("sandforge.build":"t","sandforge.build.by":")";
  const std::string step = "sandforge-step-", claim_of_t = R"("sandforge.build.claim":"t")",
                    helps = R"("sandforge.guest.fills":"x")";
  engine.on(
      "GET /containers/json",
      {Answer(200,
              "[" + listed("k1", "running", claim_of_t, "sandforge-build-t") + "," +
                  listed("b1", "running", by + "k1\"", step + "1") + "," +
                  listed("b2", "running", by + "k2\"", step + "2") + "," +
                  listed("b3", "exited", by + "k3\"", step + "3") + "," +
                  listed("old", "exited", R"("sandforge.build":"t")", step + "4") + "," +
                  listed("k4", "created", R"("sandforge.build.claim":"u")", "sandforge-build-u") +
                  "," + listed("h1", "created", helps, "sandforge-fill-1") + "," +
                  // Labels that come from an image.
                  listed("mine", "running", ours("s1") + "," + by + "k2\"", named("s1")) + "," +
                  listed("users", "running", by + "k2\"", "eager_turing") + "," +
                  listed("more", "exited", claim_of_t + "," + helps, "sad_bell") + "]")});
  const auto claim = [](const char* running) {
    return Answer(200, std::string(R"({"Id":"k","State":{"Running":)") + running + "}}");
  };
  engine.on("GET /containers/k1/json", {claim("true")});
  engine.on("GET /containers/k2/json", {Answer(404)});
  engine.on("GET /containers/k3/json", {claim("false")});
  for (const char* id : {"b2", "b3", "old", "k4", "h1"})
    engine.on(std::string("DELETE /containers/") + id, {Answer(204)});
  engine.on("DELETE /containers/b3", {Answer(409, R"({"message":"it is busy"})")});

  const std::vector<std::string> found = {"build container b2", "build container b3",
                                          "build container old", "build claim k4",
                                          "helper container h1"};
  CHECK(census.sweep(0).lines == found);
  CHECK_FALSE(engine.called("DELETE"));
  auto removed = found;
  removed[1] += " stays";
  CHECK(census.sweep(SF_SWEEP_REMOVE).lines == removed);
  CHECK(engine.count("DELETE") == 5);
}

TEST_CASE("whether a build lives is not guessed") {
  Census census;
  census.engine.on(
      "GET /containers/json",
      {Answer(200, "[" +
                       listed("b1", "running", R"("sandforge.build":"t","sandforge.build.by":"k1")",
                              "sandforge-step-1") +
                       "]")});
  census.engine.on("GET /containers/k1/json", {Answer(500)});
  CHECK(census.sweep(SF_SWEEP_REMOVE).lines ==
        std::vector<std::string>{"build container b1 stays"});
  CHECK_FALSE(census.engine.called("DELETE"));
}

TEST_CASE("volumes of guests go when no container has them, and they are old") {
  Census census(R"({"template":{"keepHours":1}})");
  const auto volume = [](const std::string& name, const std::string& hash,
                         const std::string& created) {
    return R"({"Name":")" + name + R"(","CreatedAt":")" + created +
           R"(","Labels":{"sandforge.guest":")" + hash + R"("}})";
  };
  census.engine.on(
      "GET /volumes",
      {Answer(200, R"({"Volumes":[)" +
                       volume("sandforge-guest-a", "a", "2020-01-02T03:04:05+01:00") + "," +
                       volume("sandforge-guest-b", "b", "2039-01-02T03:04:05Z") + "," +
                       volume("mine", "c", "2020-01-02T03:04:05+01:00") + "]}")});
  census.engine.on("DELETE /volumes/sandforge-guest-a", {Answer(204)});
  CHECK(census.sweep(SF_SWEEP_REMOVE).lines ==
        std::vector<std::string>{"guest volume sandforge-guest-a"});
  CHECK(*percent_decode(census.engine.calls[census.engine.calls.size() - 2]) ==
        R"(GET /volumes?filters={"dangling":["true"],"label":["sandforge.guest"]})");
}

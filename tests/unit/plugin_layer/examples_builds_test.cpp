// The example with templates and builds: time passes when the test says so.
#include <sandforge/ext/builds.h>
#include <sandforge/ext/template.h>
#include <sandforge/testing/testing.hpp>

#include <catch2/catch.hpp>

#include "test_paths.hpp"

using namespace sandforge::testing;
using std::chrono::seconds;

namespace {

struct Build {
  std::uint32_t status = 99;
  std::string id;
  std::string error;
};

// What a call about builds or templates answered.
struct Answer {
  int done = 0;
  Failure failure;
  std::vector<Build> builds;
  std::string document;
  std::string identity;
};

struct Kitchen {
  Host host;
  Session box{host, load_plugin(EXAMPLE_BUILDS), "builds-cpp"};
  sf_provider* provider = box.driver().provider;

  Kitchen() {
    box.context.repo_full_name = "ada/engine";
    box.create();
  }
  template <class Table>
  const Table& table(const char* id) {
    const void* found = provider->vtbl->extension(provider, str(id));
    REQUIRE(found != nullptr);
    return *static_cast<const Table*>(found);
  }
  template <class Start>
  Answer ask(Start start) {
    Answer answer;
    box.driver().call([&] { CHECK(start(answer) == SF_OK); });
    REQUIRE(box.driver().wait([&] { return answer.done > 0; }));
    return answer;
  }
  Answer resolve(const std::string& settings) {
    return ask([&](Answer& answer) {
      const sf_template_request request{sizeof request, &box.context, str(settings)};
      const sf_template_completion done{
          &answer, [](void* ctx, const sf_error* error, const sf_template_result* r) noexcept {
            auto& into = *static_cast<Answer*>(ctx);
            into.failure = Failure::copy(error);
            into.document = text(r->document);
            into.identity = text(r->identity);
            ++into.done;
          }};
      return table<sf_template_ext>(SF_EXT_TEMPLATE)
          .resolve(provider, &request, done, nullptr, nullptr);
    });
  }
  using Call = sf_status (*sf_builds_ext::*)(sf_provider*, const sf_build_request*,
                                             sf_build_completion, sf_op**,
                                             const sf_error_sink*) SF_NOEXCEPT;
  Answer builds(Call call, const std::string& settings, const std::string& id = {}) {
    return ask([&](Answer& answer) {
      const sf_build_request request{
          sizeof request, &box.context, str(settings), str(id), nullptr, 0, {}};
      const sf_build_completion done{
          &answer, [](void* ctx, const sf_error* error, const sf_build* first, std::size_t count,
                      std::size_t) noexcept {
            auto& into = *static_cast<Answer*>(ctx);
            into.failure = Failure::copy(error);
            for (std::size_t i = 0; i < count; ++i) {
              into.builds.push_back(
                  {first[i].status, text(first[i].build_id), text(first[i].error)});
            }
            ++into.done;
          }};
      return (table<sf_builds_ext>(SF_EXT_BUILDS).*call)(provider, &request, done, nullptr,
                                                         nullptr);
    });
  }
  Driver::Started boot(const std::string& document) {
    box.destroy();
    const auto started = box.driver().begin_start({}, document);
    REQUIRE(box.driver().wait([&] { return started->done > 0; }));
    CHECK_FALSE(started->failure);
    return *started;
  }
};

const std::string plain = R"({"cpus":1,"packages":""})";
const std::string richer = R"({"cpus":1,"packages":"git"})";
const std::string larger = R"({"cpus":4,"packages":"git"})";

}  // namespace

TEST_CASE("a start takes the exact image, else the family's, else the base, and never waits") {
  Kitchen kitchen;
  const Answer first = kitchen.resolve(plain);
  const Answer again = kitchen.resolve(R"({"packages":"","cpus":1})");
  CHECK(first.identity == again.identity);
  CHECK(first.document == R"({"operations":[{"args":[1],"method":"cpuCount"}],"schemaVersion":1})");
  CHECK(first.identity != kitchen.resolve(larger).identity);

  const auto base = kitchen.boot(first.document);
  CHECK(base.provenance == SF_PROVENANCE_BASE);
  CHECK(base.template_pending_id == first.identity);
  CHECK(kitchen.box.exec("image").out == "base\n");
  kitchen.host.loop.advance(seconds(3));
  const auto exact = kitchen.boot(first.document);
  CHECK(exact.provenance == SF_PROVENANCE_EXACT);
  CHECK(exact.template_pending_id.empty());
  CHECK(kitchen.box.exec("image").out == first.identity + "\n");
  const auto family = kitchen.boot(kitchen.resolve(richer).document);
  CHECK(family.provenance == SF_PROVENANCE_FAMILY);
  CHECK(kitchen.box.exec("image").out == first.identity + "\n");
}

TEST_CASE("builds are started once, listed newest first, and cancelled") {
  Kitchen kitchen;
  const auto start = &sf_builds_ext::start;
  const auto get = &sf_builds_ext::get;
  const std::string id = kitchen.builds(start, plain).builds.at(0).id;
  CHECK(id == kitchen.resolve(plain).identity);
  CHECK(kitchen.builds(get, plain, id).builds.at(0).status == SF_BUILD_BUILDING);
  kitchen.host.loop.advance(seconds(2));
  CHECK(kitchen.builds(start, plain).builds.at(0).status == SF_BUILD_BUILDING);
  kitchen.host.loop.advance(seconds(1));
  CHECK(kitchen.builds(get, plain, id).builds.at(0).status == SF_BUILD_READY);
  const std::string second = kitchen.builds(start, larger).builds.at(0).id;
  const auto listed = kitchen.builds(&sf_builds_ext::list, plain).builds;
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].id == second);
  const sf_build_request request{sizeof request, nullptr, str(larger), str(second), nullptr, 0, {}};
  Result cancelled;
  kitchen.box.driver().call([&] {
    kitchen.table<sf_builds_ext>(SF_EXT_BUILDS)
        .cancel(kitchen.provider, &request, completion(cancelled), nullptr, nullptr);
  });
  REQUIRE(kitchen.box.driver().wait([&] { return cancelled.done > 0; }));
  CHECK(kitchen.builds(get, larger, second).builds.at(0).error == "the build was cancelled");
  CHECK(kitchen.builds(start, larger).builds.at(0).status == SF_BUILD_BUILDING);
  CHECK(kitchen.builds(get, plain, "none").builds.at(0).status == SF_BUILD_UNKNOWN);
}

TEST_CASE("settings and commands of the example are typed") {
  Kitchen kitchen;
  CHECK(kitchen.box.describe().schema.find("\"cpus\"") != std::string::npos);
  kitchen.boot("");
  CHECK(kitchen.box.exec("other").failure.message == "there is only one command: image");
}

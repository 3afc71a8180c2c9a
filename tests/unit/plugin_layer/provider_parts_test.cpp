// The capabilities of a provider, as a host calls them, in both styles.
#include <sandforge/plugin/provider_parts.hpp>

#include "full_plugin.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::test;
using testing::bytes;
using testing::str;

namespace {

std::string show(const sf_build& b) {
  return testing::text(b.build_id) + " " + std::to_string(b.status) + " " +
         number(b.retry_after_ms);
}
std::string show(const sf_directory_entry& d) {
  return testing::text(d.sandbox_id) + " " +
         (d.session_id.ptr == nullptr ? "-" : testing::text(d.session_id)) + " " +
         ((d.flags & SF_DIRECTORY_OWN) != 0 ? "own " : "") + testing::text(d.labels);
}
std::string show(const sf_leftover& l) {
  return testing::text(l.kind) + " " + testing::text(l.id) + " " + testing::text(l.reason) + " " +
         number(l.bytes) + " " + testing::text(l.error);
}

sf_build_completion builds_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_build* first, std::size_t n,
                 std::size_t stride) noexcept {
            static_cast<Listed*>(ctx)->take(e, first, n, stride, show);
          }};
}
sf_directory_completion entries_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_directory_entry* first, std::size_t n,
                 std::size_t stride, sf_str next) noexcept {
            auto& listed = *static_cast<Listed*>(ctx);
            listed.take(e, first, n, stride, show);
            listed.text += " -> " + testing::text(next);
          }};
}

}  // namespace

TEST_CASE("the capabilities of a provider") {
  Full full(GENERATE(Style::blocking, Style::coroutine));
  struct Resolved {
    int done = 0;
    std::string text;
  };
  const auto& templates = full.of_provider<sf_template_ext>(SF_EXT_TEMPLATE);
  const auto resolved = full.ask<Resolved>([&](Resolved& r) {
    const sf_template_request request{sizeof request, nullptr, str(R"({"family":"f"})")};
    const sf_template_completion done{
        &r, [](void* ctx, const sf_error*, const sf_template_result* t) noexcept {
          auto& into = *static_cast<Resolved*>(ctx);
          ++into.done;
          if (t == nullptr) return;
          into.text =
              testing::text(t->document) + testing::text(t->family) + testing::text(t->warnings);
        }};
    return templates.resolve(full.provider, &request, done, nullptr, nullptr);
  });
  CHECK(resolved.text == R"({}f["old"])");

  const auto& builds = full.of_provider<sf_builds_ext>(SF_EXT_BUILDS);
  CHECK(builds.cancel == nullptr);
  const sf_env_entry secret{bytes("KEY"), bytes("v")};
  sf_build_request request{sizeof request, nullptr, str("{}"),          str(""),
                           &secret,        1,       str(R"({"doc":1})")};
  const auto build = [&](auto function) {
    return full.ask<Listed>([&](Listed& l) {
      return function(full.provider, &request, builds_of(l), nullptr, nullptr);
    });
  };
  CHECK(build(builds.start).text == "b1 2 250");
  CHECK(build(builds.get).failure.code == SF_NOT_FOUND);
  CHECK(build(builds.list).count == 2);
  request.build_id = str("b1");
  CHECK(build(builds.get).text == "b1 3 -");
  CHECK(full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return builds.logs(full.provider, &request, 7, 3, events, out, nullptr);
  }) == "line");

  const auto& directory = full.of_provider<sf_directory_ext>(SF_EXT_DIRECTORY);
  const auto found = full.ask<Listed>([&](Listed& l) {
    return directory.find(full.provider, str(R"({"a":"1"})"), str("p"), 10, entries_of(l), nullptr,
                          nullptr);
  });
  CHECK(found.text == R"(s1 - {} |  mine own {"k":"v"} -> more)");
  full.plain([&](sf_completion done) {
    return directory.remove(full.provider, str("s1"), done, nullptr, nullptr);
  });
  const auto sweep = [&](std::uint32_t flags) {
    return full.ask<Listed>([&](Listed& l) {
      const sf_sweep_completion done{&l, [](void* ctx, const sf_error* e, const sf_leftover* first,
                                            std::size_t n, std::size_t stride) noexcept {
                                       static_cast<Listed*>(ctx)->take(e, first, n, stride, show);
                                     }};
      return directory.sweep(full.provider, flags, done, nullptr, nullptr);
    });
  };
  CHECK(sweep(0).text == "image i1 old -  |    7 in use");
  CHECK(sweep(SF_SWEEP_REMOVE).count == 2);
  const auto& health = full.of_provider<sf_health_ext>(SF_EXT_HEALTH);
  const auto sick = full.plain(
      [&](sf_completion done) { return health.check(full.provider, done, nullptr, nullptr); });
  CHECK(sick.failure.code == SF_UNAUTHENTICATED);
  CHECK(take_calls() ==
        R"(build KEY {"doc":1}; logs b1 7; find 1 p 10; remove s1; sweep; sweep away)");
  CHECK(full.provider->vtbl->extension(full.provider, str("sandforge.none/1")) == nullptr);
}

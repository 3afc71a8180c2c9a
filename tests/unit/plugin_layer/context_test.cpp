// What the host knows about a session.
#include <sandforge/plugin/context.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

TEST_CASE("a context of nothing has nothing, and its calls are typed errors") {
  const Context none;
  CHECK_FALSE(none.session_id());
  CHECK_FALSE(none.has_repository());
  CHECK(none.repo_count() == 0);
  CHECK_FALSE(none.working_directory());
  CHECK_FALSE(none.idle_timeout());
  CHECK(thrown_by([&] { none.repository_access().get(); }) == "2 the call has no session");
  Ground ground;
  const Context empty(nullptr, ground.lane);
  CHECK(empty.get() == nullptr);
  CHECK(thrown_by([&] { empty.repository_access().get(); }) == "2 the call has no session");
  CHECK(thrown_by([&] { empty.resolve_head("u", "t").get(); }) == "2 the call has no session");
}

TEST_CASE("copies of a context are one session, each with a reference of its own") {
  Ground ground;
  testing::Context raw;
  raw.sandbox_id = "box";
  {
    Context first(&raw, ground.lane);
    CHECK(raw.refs == 2);
    const Context copy = first;
    CHECK(raw.refs == 3);
    const Context moved = std::move(first);
    CHECK(raw.refs == 3);
    CHECK(moved.sandbox_id() == "box");
    CHECK(copy.session_id() == "session-1");
    CHECK(copy.lane().get() == ground.lane.get());
    first = copy;
    CHECK(raw.refs == 4);
    first = Context();
    CHECK(raw.refs == 3);
  }
  CHECK(raw.refs == 1);
}

TEST_CASE("access to a repository is asked for by index, with what a session says about it") {
  Ground ground;
  testing::Context raw;
  raw.clone_url = "https://example.test/r.git";
  raw.token = "t";
  {
    const Context context(&raw, ground.lane);
    CHECK(context.has_repository());
    CHECK(context.is_session());
    CHECK_FALSE(context.has_resolve_head());
    CHECK_FALSE(context.caller_chose_id());
    CHECK_FALSE(context.is_list_form());
    CHECK_FALSE(context.continues_on_failure());
    CHECK(context.repo_count() == 1);
    ground.off_lane([&] {
      const RepositoryAccess access = context.repository_access().get();
      CHECK(access.clone_url == "https://example.test/r.git");
      CHECK(access.scheme == "bearer");
      CHECK(access.token == "t");
      CHECK(access.username == "git");
      CHECK(thrown_by([&] { context.repository_access(1).get(); }) == "2 no repository");
      CHECK_FALSE(context.resolve_head("url", "t").get());
    });
  }
  CHECK(raw.refs == 1);
}

TEST_CASE("what the create request says comes before what the session says") {
  Ground ground;
  testing::Context raw;
  raw.working_directory = "/session";
  sf_create_request request{};
  request.struct_size = sizeof request;
  request.context = &raw;
  request.idle_timeout_ms = SF_NONE;
  CHECK(Context::of_create(request, ground.lane).working_directory() == "/session");
  CHECK_FALSE(Context::of_create(request, ground.lane).idle_timeout());
  CHECK_FALSE(Context::of_create(request, ground.lane).checkpoint_name());
  request.working_directory = to_str("/asked");
  request.checkpoint_name = to_str("c");
  request.seed_checkpoint_name = to_str("");
  request.idle_timeout_ms = 0;
  const Context context = Context::of_create(request, ground.lane);
  const Context copy = context;  // with what came from the request
  CHECK(copy.working_directory() == "/asked");
  CHECK(copy.checkpoint_name() == "c");
  CHECK(copy.seed_checkpoint_name() == "");
  CHECK(copy.idle_timeout() == std::chrono::milliseconds(0));
  // An older host, whose request ends before the time.
  request.struct_size = offsetof(sf_create_request, idle_timeout_ms);
  CHECK_FALSE(Context::of_create(request, ground.lane).idle_timeout());
}

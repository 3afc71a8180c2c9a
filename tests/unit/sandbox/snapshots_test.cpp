// Checkpoints: whose name they bear, when nothing is captured, and who waits for whom.
#include "sandforge/snapshots.hpp"

#include "fake_snapshots.hpp"
#include "fixture.hpp"
#include "sandforge/faults.hpp"

namespace sandforge {
namespace {

using Asked = std::vector<std::string>;

struct Kept : Fixture {
  explicit Kept(SandboxConfig config = {})
      : Fixture(std::move(config)), shelf_(std::make_unique<fake::Shelf>(*world)) {}
  ~Kept() { sandbox.reset(); }
  fake::Shelf& shelf() { return *shelf_; }

 private:
  std::unique_ptr<fake::Shelf> shelf_;
};

std::future<Result<SnapshotResult>> snapshot_later(Sandbox& sandbox, SnapshotOptions options = {}) {
  return later<SnapshotResult>(
      [&](auto done) { sandbox.async_snapshot(std::move(options), std::move(done)); });
}
std::future<Result<void>> end_later(Sandbox& sandbox, bool destroy) {
  return later<void>([&](auto done) {
    if (destroy) return sandbox.async_destroy(std::move(done));
    sandbox.async_stop(std::move(done));
  });
}

SandboxConfig hasty() {
  SandboxConfig config;
  config.start_patience = std::chrono::milliseconds(0);
  return config;
}

SnapshotOptions under(std::string name) {
  SnapshotOptions options;
  options.name = std::move(name);
  return options;
}

}  // namespace

TEST_CASE("a snapshot goes to the checkpoint that bears the sandbox's own name") {
  SandboxConfig config;
  config.id = "s1";
  config.seed_checkpoint_name = "seed";
  std::string own = "s1";
  SECTION("the id") {}
  SECTION("a name of its own") {
    own = "mine";
    config.checkpoint_name = own;
  }
  SECTION("the seed's, where that is its own") {
    own = "seed";
    config.checkpoint_name = own;
  }
  Kept f(config);
  f.sandbox->start();
  CHECK(f.world->creates().back().checkpoint_name == own);
  CHECK(f.world->creates().back().seed_checkpoint_name == "seed");
  const auto result = f.sandbox->snapshot();
  REQUIRE(result.checkpoint.has_value());
  CHECK(result.checkpoint->name == own);
  CHECK(result.why_not.empty());
  CHECK(f.sandbox->snapshot(under("other")).checkpoint->name == "other");
  CHECK(f.shelf().asked() == Asked{"create " + own, "create other"});
}

TEST_CASE("an id that was made up names no checkpoint, and another name still does") {
  auto context = std::make_shared<SessionContext>();
  SandboxConfig config;
  config.context = context;
  Kept f(config);
  f.sandbox->start();
  CHECK_FALSE(f.world->creates().back().checkpoint_name.has_value());
  const auto result = f.sandbox->snapshot();
  CHECK_FALSE(result.checkpoint.has_value());
  CHECK(result.why_not == "the sandbox has no name for checkpoints: its id was made up");
  CHECK(f.shelf().asked().empty());
  CHECK(f.sandbox->snapshot(under("c")).checkpoint.has_value());
}

TEST_CASE("what does not run is not captured, and not started for it") {
  Kept f;
  const auto captures_nothing = [&](const std::string& why) {
    const auto result = f.sandbox->snapshot();
    CHECK_FALSE(result.checkpoint.has_value());
    CHECK(result.why_not == why);
  };
  captures_nothing("the sandbox does not run: it is pending");
  CHECK(f.world->counts().starts == 0);
  f.sandbox->start();
  f.sandbox->stop();
  captures_nothing("the sandbox does not run: it is stopped");
  f.sandbox->destroy();
  captures_nothing("the sandbox does not run: it is destroyed");
  CHECK(f.world->counts().starts == 1);
  CHECK(f.shelf().asked().empty());
  f.sandbox->start();
  f.shelf().without_machine();
  captures_nothing("the provider found no machine that runs");
}

TEST_CASE("names that are none are refused, and so is a seed that is not its own") {
  SandboxConfig config;
  config.seed_checkpoint_name = "seed";
  Kept f(config);
  f.sandbox->start();
  for (const auto* bad : {"", "..", "a/b", "a\nb"}) {
    CAPTURE(bad);
    CHECK(error_of([&] { f.sandbox->snapshot(under(bad)); }).code == Status::invalid);
    CHECK(error_of([&] { f.sandbox->remove_checkpoint(bad); }).code == Status::invalid);
    CHECK(error_of([&] { f.sandbox->start_from(bad); }).code == Status::invalid);
  }
  const auto error = error_of([&] { f.sandbox->snapshot(under("seed")); });
  CHECK(error.code == Status::invalid);
  CHECK(error.reason == "sandbox.seed_checkpoint");
  CHECK(f.shelf().asked().empty());
}

TEST_CASE("a configuration whose checkpoints have no names is refused") {
  Runtime runtime;
  const auto world = std::make_shared<fake::World>(runtime);
  for (const auto* bad : {"", "..", "a/b"}) {
    CAPTURE(bad);
    SandboxConfig own, seed;
    own.checkpoint_name = seed.seed_checkpoint_name = bad;
    for (const auto& config : {own, seed}) {
      const auto made = Sandbox::create(runtime, world->provider(), config);
      REQUIRE_FALSE(made.ok());
      CHECK(made.error().reason == "sandbox.checkpoint_name");
    }
  }
}

TEST_CASE("a provider without checkpoints refuses all of it") {
  Fixture f;
  f.sandbox->start();
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { f.sandbox->snapshot(); }, [&] { f.sandbox->list_checkpoints(); },
           [&] { f.sandbox->remove_checkpoint("c"); }, [&] { f.sandbox->start_from("c"); }}) {
    const auto error = error_of(call);
    CHECK(error.code == Status::unsupported);
    CHECK(error.reason == "feature.checkpoints");
  }
}

TEST_CASE("captures run one after the other, also past one that fails") {
  Kept f;
  f.sandbox->start();
  f.shelf().hold(true);
  auto first = snapshot_later(*f.sandbox);
  auto second = snapshot_later(*f.sandbox, under("two"));
  REQUIRE(f.shelf().wait_asked(1));
  CHECK(f.sandbox->list_checkpoints().empty());  // the second had its time to begin
  CHECK(f.shelf().asked() == Asked{"create s1", "list"});
  REQUIRE(f.shelf().release(Error(Status::no_space, "full")));
  CHECK(get(first).error().code == Status::no_space);
  REQUIRE(f.shelf().release());
  CHECK(get(second)->checkpoint->name == "two");
}

TEST_CASE("a stop ends a capture that runs, and one that waits is never asked for") {
  Kept f;
  f.sandbox->start();
  f.shelf().hold(true);
  std::stop_source stop;
  auto options = under("one");
  options.stop = stop.get_token();
  auto first = snapshot_later(*f.sandbox, options);
  options.name = "two";
  auto second = snapshot_later(*f.sandbox, options);
  REQUIRE(f.shelf().wait_asked(1));
  stop.request_stop();
  CHECK(get(first).error().code == Status::cancelled);
  CHECK(get(second).error().code == Status::cancelled);
  CHECK(f.shelf().asked() == Asked{"create one", "cancel one"});
  // One that was stopped before it began.
  CHECK(get<SnapshotResult>(*std::make_unique<std::future<Result<SnapshotResult>>>(
                                snapshot_later(*f.sandbox, options)))
            .error()
            .code == Status::cancelled);
}

TEST_CASE("stop and destroy wait for the captures that were asked for before") {
  const bool destroy = GENERATE(false, true);
  Kept f;
  f.sandbox->start();
  f.shelf().hold(true);
  auto first = snapshot_later(*f.sandbox);
  auto second = snapshot_later(*f.sandbox, under("two"));
  REQUIRE(f.shelf().wait_asked(1));
  auto end = end_later(*f.sandbox, destroy);
  REQUIRE(f.shelf().release());
  CHECK(get(first).ok());
  CHECK(f.world->counts().stops + f.world->counts().destroys == 0);
  REQUIRE(f.shelf().release());
  CHECK(get(second)->checkpoint.has_value());
  CHECK(get(end).ok());
  CHECK(f.world->counts().stops + f.world->counts().destroys == 1);
}

TEST_CASE("a capture that takes too long for a destroy is cancelled") {
  Kept f(hasty());
  f.sandbox->start();
  f.shelf().hold(true);
  auto capture = snapshot_later(*f.sandbox);
  REQUIRE(f.shelf().wait_asked(1));
  auto end = end_later(*f.sandbox, true);
  CHECK(get(capture).error().code == Status::cancelled);
  CHECK(get(end).ok());
}

TEST_CASE("a provider that does not end a cancelled capture holds up no destroy") {
  auto config = hasty();
  config.cancel_grace = std::chrono::milliseconds(0);
  Kept f(config);
  f.sandbox->start();
  f.shelf().hold(true);
  f.shelf().ignore_cancel();
  auto capture = snapshot_later(*f.sandbox);
  REQUIRE(f.shelf().wait_asked(1));
  auto end = end_later(*f.sandbox, true);
  CHECK(get(end).ok());
  CHECK(f.sandbox->status() == SandboxStatus::destroyed);
  CHECK(is_open(capture));
  // Its answer comes all the same, and a new machine is captured after it.
  f.sandbox->start();
  REQUIRE(f.shelf().release());
  CHECK(get(capture).ok());
  f.shelf().hold(false);
  CHECK(f.sandbox->snapshot().checkpoint.has_value());
}

TEST_CASE("a hook that captures before its machine is destroyed is not waited for in vain") {
  SandboxConfig config;
  std::optional<Result<SnapshotResult>> captured;
  config.hooks.on_destroy = [&](const std::shared_ptr<Sandbox>& sandbox, Handler<void> done) {
    sandbox->async_snapshot(
        {}, [&captured, done = std::move(done)](Result<SnapshotResult> result) mutable {
          captured = std::move(result);
          std::move(done)(Result<void>());
        });
  };
  Kept f(config);
  f.sandbox->start();
  f.sandbox->destroy();
  REQUIRE((captured && captured->ok()));
  CHECK(captured->value().checkpoint.has_value());
}

TEST_CASE("a checkpoint to start from counts for the next machine that is made") {
  Kept f;
  f.sandbox->start();
  f.sandbox->snapshot(under("c"));
  const auto error = error_of([&] { f.sandbox->start_from("nothing"); });
  CHECK(error.code == Status::not_found);
  f.sandbox->start_from("c");
  f.sandbox->stop();
  CHECK(f.sandbox->start().outcome == StartOutcome::connected);
  f.sandbox->destroy();
  CHECK(f.sandbox->start().outcome == StartOutcome::created);
  f.sandbox->destroy();
  f.sandbox->start();
  std::vector<std::string> asked_for;
  for (const auto& request : f.world->starts())
    asked_for.push_back(request.start_from.value_or("-"));
  CHECK(asked_for == Asked{"-", "c", "c", "-"});
}

TEST_CASE("checkpoints are listed and removed without a start") {
  Kept f;
  f.sandbox->start();
  f.sandbox->snapshot();
  const auto other = f.sandbox->clone(CloneOptions()).value();
  REQUIRE(other->list_checkpoints().size() == 1);
  CHECK(other->list_checkpoints().front().name == "s1");
  other->remove_checkpoint("s1");
  CHECK(other->list_checkpoints().empty());
  CHECK(f.world->counts().starts == 1);
  CHECK(other->status() == SandboxStatus::pending);
}

TEST_CASE("the fault decorator passes checkpoints on") {
  Runtime runtime;
  const auto world = std::make_shared<fake::World>(runtime);
  fake::Shelf shelf(*world);
  const auto script = FaultScript::create(FaultPlan{}).value();
  SandboxConfig config;
  config.id = "s1";
  const auto sandbox =
      Sandbox::create(runtime, with_faults(runtime, world->provider(), script), config).value();
  sandbox->start();
  CHECK(sandbox->snapshot().checkpoint->name == "s1");
}

TEST_CASE("a checkpoint as JSON") {
  Checkpoint checkpoint;
  checkpoint.name = "c";
  CHECK(json::write(to_json(checkpoint)) == R"({"name":"c"})");
  checkpoint.created_at_ns = 1'500'000'000;
  checkpoint.bytes = 7;
  checkpoint.warnings = {"careful"};
  CHECK(json::write(to_json(checkpoint)) ==
        R"({"name":"c","createdAt":"1970-01-01T00:00:01.500Z","bytes":7,"warnings":["careful"]})");
}

}  // namespace sandforge

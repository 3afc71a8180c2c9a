// E01 to E03, and what D02 says of checkpoints: capture, destroy, and boot from what was kept.
#include <algorithm>

#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

// The checkpoints of these names are removed at the end, also where the case ends early: nothing
// else ever deletes one.
class Shelf {
 public:
  Shelf(Host& host, std::vector<std::string> names)
      : sandbox_(host.make("shelf")), names_(std::move(names)) {}
  ~Shelf() {
    for (const auto& name : names_) {
      try {
        sandbox_->remove_checkpoint(name);
        if (find(name))
          findings().add("the checkpoint " + name + " was removed and is still there");
      } catch (const std::exception& error) {
        findings().add("the checkpoint " + name + " was not removed: " + error.what());
      }
    }
  }
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;

  std::optional<Checkpoint> find(const std::string& name) const {
    for (auto& one : sandbox_->list_checkpoints())
      if (one.name == name) return one;
    return std::nullopt;
  }

 private:
  const std::shared_ptr<Sandbox> sandbox_;  // never started: to look needs no machine
  const std::vector<std::string> names_;
};

void capture(Sandbox& sandbox) {
  const auto result = sandbox.snapshot();
  CAPTURE(result.why_not);
  REQUIRE(result.checkpoint.has_value());
  CHECK(result.checkpoint->name == sandbox.id());
  CHECK(result.why_not.empty());
}

void captures_not(Sandbox& sandbox) {
  const auto result = sandbox.snapshot();
  CHECK_FALSE(result.checkpoint.has_value());
  CHECK_FALSE(result.why_not.empty());
}

void started_from(Sandbox& sandbox, Provenance provenance) {
  const auto started = sandbox.start();
  CHECK(started.outcome == StartOutcome::created);
  CHECK(to_string(started.provenance) == to_string(provenance));
}

void five_rounds(Host& host) {
  const auto sandbox = host.make();
  const Shelf shelf(host, {sandbox->id()});
  CHECK(sandbox->start().outcome == StartOutcome::created);
  std::int64_t last = 0;
  for (int round = 1; round <= 5; ++round) {
    touch(*sandbox, "round-" + std::to_string(round));
    capture(*sandbox);
    sandbox->destroy();
    const auto kept = shelf.find(sandbox->id());
    REQUIRE(kept.has_value());
    CHECK(kept->created_at_ns.value_or(last + 1) > last);
    last = kept->created_at_ns.value_or(last);
    started_from(*sandbox, Provenance::checkpoint);
  }
  for (int round = 1; round <= 5; ++round)
    CHECK(exists(*sandbox, "round-" + std::to_string(round)));
}

void seed(Host& host) {
  const auto first = host.make("first");
  const Shelf shelf(host, {first->id(), host.id("user")});
  first->start();
  touch(*first, "of-the-seed");
  capture(*first);
  first->destroy();
  const auto kept = shelf.find(first->id());
  REQUIRE(kept.has_value());

  auto config = host.config("user");
  config.seed_checkpoint_name = first->id();
  const auto user = host.make(config);
  started_from(*user, Provenance::seed);
  CHECK(exists(*user, "of-the-seed"));
  touch(*user, "of-the-user");
  SnapshotOptions into_seed;
  into_seed.name = first->id();
  CHECK_THROWS_AS(user->snapshot(into_seed), InvalidArgumentError);
  capture(*user);
  user->destroy();
  started_from(*user, Provenance::checkpoint);
  CHECK(exists(*user, "of-the-seed"));
  CHECK(exists(*user, "of-the-user"));

  // The seed is what it was.
  const auto still = shelf.find(first->id());
  REQUIRE(still.has_value());
  CHECK((still->created_at_ns == kept->created_at_ns));
  config.id = host.id("other");
  const auto other = host.make(config);
  started_from(*other, Provenance::seed);
  CHECK(exists(*other, "of-the-seed"));
  CHECK_FALSE(exists(*other, "of-the-user"));
}

void named(Host& host) {
  const auto first = host.make("first");
  const std::string name = host.id("named");
  const Shelf shelf(host, {name, host.id("second")});
  first->start();
  touch(*first, "of-the-first");
  SnapshotOptions options;
  options.name = name;
  const auto result = first->snapshot(options);
  REQUIRE(result.checkpoint.has_value());
  CHECK(result.checkpoint->name == name);
  // Its own does not exist, so that this is no provision from a checkpoint.
  CHECK_FALSE(shelf.find(first->id()).has_value());

  const auto second = host.make("second");
  CHECK(error_of([&] { second->start_from(host.id("nothing")); }).code == Status::not_found);
  second->start_from(name);
  started_from(*second, Provenance::checkpoint);
  CHECK(exists(*second, "of-the-first"));
  touch(*second, "of-the-second");
  capture(*second);
  second->destroy();
  // That counted once: now it is its own.
  started_from(*second, Provenance::checkpoint);
  CHECK(exists(*second, "of-the-second"));
}

void captures_nothing(Host& host) {
  const auto named = host.make();
  const Shelf shelf(host, {named->id()});
  captures_not(*named);
  CHECK(named->status() == SandboxStatus::pending);
  named->start();
  named->stop();
  captures_not(*named);
  CHECK(named->status() == SandboxStatus::stopped);
  named->destroy();
  captures_not(*named);
  CHECK(named->status() == SandboxStatus::destroyed);

  const auto nameless = host.make(SandboxConfig{});
  nameless->start();
  captures_not(*nameless);
  CHECK(nameless->status() == SandboxStatus::running);
  // Others may capture meanwhile, under names of their own.
  for (const auto& name : {named->id(), nameless->id()})
    CHECK_FALSE(shelf.find(name).has_value());
}

void after_destroy(Host& host) {
  const auto sandbox = host.make();
  const Shelf shelf(host, {sandbox->id()});
  sandbox->start();
  touch(*sandbox, "before");
  capture(*sandbox);
  touch(*sandbox, "after");
  // A machine that was merely stopped is the same one, with all its files.
  sandbox->stop();
  sandbox->start();
  CHECK(exists(*sandbox, "after"));
  const auto generation = sandbox->started()->generation;
  sandbox->destroy();
  CHECK(shelf.find(sandbox->id()).has_value());
  started_from(*sandbox, Provenance::checkpoint);
  CHECK(sandbox->started()->generation > generation);
  CHECK(exists(*sandbox, "before"));
  CHECK_FALSE(exists(*sandbox, "after"));

  const auto nameless = host.make(SandboxConfig{});
  nameless->start();
  nameless->destroy();
  const auto again = nameless->start();
  CHECK((again.provenance != Provenance::checkpoint && again.provenance != Provenance::seed));
}

}  // namespace

void add_checkpoints(Procedures& to) {
  to["checkpoints.five_rounds"] = five_rounds;
  to["checkpoints.seed"] = seed;
  to["checkpoints.named"] = named;
  to["checkpoints.captures_nothing"] = captures_nothing;
  to["checkpoints.after_destroy"] = after_destroy;
}

}  // namespace sandforge::conformance

// The snapshot extension of a plugin, good and bad, behind core's interface.
#include "plugin/abi_snapshots.hpp"

#include <catch2/catch.hpp>
#include <thread>

#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;
using plugin::Fault;

namespace {

// What the table calls; one test at a time.
struct Hooks {
  std::function<sf_status(sf_str, sf_checkpoint_completion, sf_op**, const sf_error_sink*)> create;
  std::function<sf_status(sf_checkpoint_completion, sf_op**, const sf_error_sink*)> list;
  std::function<sf_status(sf_str, sf_completion, sf_op**, const sf_error_sink*)> remove, start_from;
};
Hooks hooks;

const sf_snapshot_ext* table() {
  static const sf_snapshot_ext value = {
      sizeof(sf_snapshot_ext),
      [](sf_sandbox*, sf_str name, sf_checkpoint_completion done, sf_op** op,
         const sf_error_sink* err) noexcept -> sf_status {
        return hooks.create(name, done, op, err);
      },
      [](sf_sandbox*, sf_checkpoint_completion done, sf_op** op,
         const sf_error_sink* err) noexcept -> sf_status { return hooks.list(done, op, err); },
      [](sf_sandbox*, sf_str name, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept -> sf_status {
        return hooks.remove(name, done, op, err);
      },
      [](sf_sandbox*, sf_str name, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept -> sf_status {
        return hooks.start_from(name, done, op, err);
      }};
  return &value;
}

class Shop : public Bench {
 public:
  Shop() {
    hooks = {};
    snapshots = table();
    box = make_sandbox();
  }

  Result<std::optional<Checkpoint>> create(std::string name) {
    return wait<std::optional<Checkpoint>>([&](auto done) {
      on(sandbox_lane, [&] { box->snapshots()->create(std::move(name), std::move(done)); });
    });
  }
  Result<std::vector<Checkpoint>> list() {
    return wait<std::vector<Checkpoint>>(
        [&](auto done) { on(sandbox_lane, [&] { box->snapshots()->list(std::move(done)); }); });
  }
  Result<StartResult> start_from(std::string name, std::shared_ptr<Pending>* pending = nullptr) {
    return wait<StartResult>([&](auto done) {
      StartRequest request;
      request.start_from = std::move(name);
      auto begun = on(sandbox_lane,
                      [&] { return box->start(std::move(request), nullptr, std::move(done)); });
      if (pending != nullptr) (*pending = begun)->cancel();
    });
  }

  std::shared_ptr<SandboxBackend> box;
};

sf_checkpoint checkpoint(const char* name) {
  return {sizeof(sf_checkpoint), str(name), 0, SF_NONE, {nullptr, 0}};
}

auto answers(std::vector<sf_checkpoint> all) {
  return [all](sf_str, sf_checkpoint_completion done, sf_op** op, const sf_error_sink*) {
    FakeOp::give(op);
    std::thread([all, done] {
      done.done(done.ctx, nullptr, all.data(), all.size(), sizeof(sf_checkpoint));
    }).detach();
    return SF_OK;
  };
}

}  // namespace

TEST_CASE("snapshots: absent, and present with a function missing") {
  Bench bench;
  CHECK(bench.make_sandbox()->snapshots() == nullptr);
  CHECK(bench.faults(Fault::missing_value) == 0);
  sf_snapshot_ext lame = *table();
  SECTION("null") {
    lame.start_from = nullptr;
  }
  SECTION("an older struct") {
    lame.struct_size = offsetof(sf_snapshot_ext, start_from);
  }
  bench.snapshots = &lame;
  CHECK(bench.make_sandbox()->snapshots() == nullptr);
  CHECK(bench.faults(Fault::missing_value) == 1);
}

TEST_CASE("snapshots: what is captured, listed and removed") {
  Shop shop;
  sf_checkpoint full = checkpoint("c");
  full.created_at = 5;
  full.bytes = 9;
  full.warnings = str("[\"a socket\"]");
  std::string asked;
  hooks.create = [&, go = answers({full})](sf_str name, auto... rest) {
    asked = copy(name);
    return go(name, rest...);
  };
  const auto one = shop.create("c");
  REQUIRE((one.ok() && one->has_value()));
  CHECK(asked == "c");
  CHECK((*one)->name == "c");
  CHECK((*one)->created_at_ns == 5);
  CHECK((*one)->bytes == 9);
  CHECK((*one)->warnings == std::vector<std::string>{"a socket"});

  hooks.create = answers({});
  const auto none = shop.create("c");
  REQUIRE(none.ok());
  CHECK_FALSE(none->has_value());

  hooks.list = [&](auto... rest) {
    return answers({checkpoint("b"), checkpoint("a")})(sf_str{}, rest...);
  };
  const auto all = shop.list();
  REQUIRE(all.ok());
  REQUIRE(all->size() == 2);
  CHECK(all->front().name == "b");
  CHECK_FALSE(all->front().created_at_ns.has_value());
  CHECK_FALSE(all->front().bytes.has_value());

  hooks.remove = [&](sf_str, sf_completion, sf_op**, const sf_error_sink* err) {
    return fail(err, SF_FORBIDDEN, "not yours");
  };
  const auto removed = shop.wait<void>([&](auto done) {
    shop.on(shop.sandbox_lane, [&] { shop.box->snapshots()->remove("c", std::move(done)); });
  });
  REQUIRE_FALSE(removed.ok());
  CHECK(removed.error().message == "not yours");
  shop.settle(shop.sandbox_lane);
  CHECK(FakeOp::alive == 0);
  CHECK(shop.plugin->faults.total() == 0);
  CHECK(shop.plugin->tokens.in_use() == 0);
}

TEST_CASE("snapshots: lists of an impossible size or shape") {
  Shop shop;
  struct Row {
    std::size_t count, stride, struct_size;
    bool null;
    Fault fault;
  };
  for (const auto& row :
       {Row{1, sizeof(sf_checkpoint) - 8, sizeof(sf_checkpoint), false, Fault::bad_value},
        Row{1, 0, sizeof(sf_checkpoint), false, Fault::bad_value},
        Row{std::size_t{1} << 40, sizeof(sf_checkpoint), sizeof(sf_checkpoint), false,
            Fault::bad_value},
        Row{1, sizeof(sf_checkpoint), sizeof(sf_checkpoint), true, Fault::bad_value},
        Row{1, sizeof(sf_checkpoint), offsetof(sf_checkpoint, bytes), false,
            Fault::missing_value}}) {
    const auto before = shop.faults(row.fault);
    hooks.list = [&](sf_checkpoint_completion done, sf_op** op, const sf_error_sink*) {
      FakeOp::give(op);
      std::thread([row, done] {
        auto value = checkpoint("c");
        value.struct_size = row.struct_size;
        done.done(done.ctx, nullptr, row.null ? nullptr : &value, row.count, row.stride);
      }).detach();
      return SF_OK;
    };
    const auto all = shop.list();
    REQUIRE_FALSE(all.ok());
    CHECK(all.error().code == Status::crashed);
    CHECK(shop.faults(row.fault) == before + 1);
  }
  hooks.create = answers({checkpoint("a"), checkpoint("b")});
  const auto two = shop.create("a");
  REQUIRE_FALSE(two.ok());
  CHECK(two.error().may_have_started);
}

TEST_CASE("snapshots: done twice, inside the call, after a refusal and after a cancel") {
  Shop shop;
  const auto none = [](sf_checkpoint_completion done) {
    done.done(done.ctx, nullptr, nullptr, 0, sizeof(sf_checkpoint));
  };
  hooks.create = [&](sf_str, sf_checkpoint_completion done, sf_op** op, const sf_error_sink*) {
    FakeOp::give(op);
    none(done);
    none(done);
    return SF_OK;
  };
  CHECK(shop.create("c").ok());
  CHECK(shop.faults(Fault::inside_start) == 1);
  CHECK(shop.faults(Fault::late_callback) == 1);

  hooks.create = [&](sf_str, sf_checkpoint_completion done, sf_op**, const sf_error_sink* err) {
    none(done);
    return fail(err, SF_CONFLICT, "busy");
  };
  const auto refused = shop.create("c");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message == "busy");
  CHECK(shop.faults(Fault::contradiction) == 1);

  sf_checkpoint_completion kept{};
  std::atomic<int> cancels{0};
  hooks.create = [&](sf_str, sf_checkpoint_completion done, sf_op** op, const sf_error_sink*) {
    kept = done;
    FakeOp::give(op, [&cancels, done] {
      ++cancels;
      const sf_error error{sizeof(error), SF_CANCELLED, 0, str("gave up"), {nullptr, 0}, SF_NONE};
      done.done(done.ctx, &error, nullptr, 0, 0);
    });
    return SF_OK;
  };
  const auto cancelled = shop.wait<std::optional<Checkpoint>>([&](auto done) {
    std::shared_ptr<Pending> pending = shop.on(
        shop.sandbox_lane, [&] { return shop.box->snapshots()->create("c", std::move(done)); });
    pending->cancel();
    pending->cancel();
  });
  REQUIRE_FALSE(cancelled.ok());
  CHECK(cancelled.error().code == Status::cancelled);
  CHECK(cancels == 1);
  none(kept);
  CHECK(shop.faults(Fault::late_callback) == 2);
  CHECK(shop.plugin->tokens.in_use() == 0);
}

TEST_CASE("snapshots: calls outside the lane are refused, not made") {
  Shop shop;
  const auto result = shop.wait<std::vector<Checkpoint>>(
      [&](auto done) { shop.box->snapshots()->list(std::move(done)); });
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == Status::internal);
}

TEST_CASE("snapshots: a start from a checkpoint says so first") {
  Shop shop;
  std::string told;
  hooks.start_from = [&](sf_str name, sf_completion done, sf_op** op, const sf_error_sink* err) {
    if (copy(name) == "nothing") return fail(err, SF_NOT_FOUND, "no such checkpoint");
    told += copy(name) + ";";
    FakeOp::give(op);
    std::thread([done] { done.done(done.ctx, nullptr); }).detach();
    return SF_OK;
  };
  shop.sandbox->on_start = [&](const sf_start_request&, const sf_start_events& events, sf_op** op,
                               const sf_error_sink*) {
    told += "start;";
    FakeOp::give(op);
    std::thread([events] {
      sf_start_result result{};
      result.struct_size = sizeof(result);
      result.outcome = SF_OUTCOME_CREATED;
      result.provenance = SF_PROVENANCE_CHECKPOINT;
      events.done(events.ctx, nullptr, &result);
    }).detach();
    return SF_OK;
  };
  const auto started = shop.start_from("c");
  REQUIRE(started.ok());
  CHECK(started->provenance == Provenance::checkpoint);
  CHECK(told == "c;start;");

  const auto missing = shop.start_from("nothing");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == Status::not_found);
  CHECK(told == "c;start;");

  // Cancelled while it is being told: nothing is started.
  hooks.start_from = [&](sf_str, sf_completion done, sf_op** op, const sf_error_sink*) {
    FakeOp::give(op, [done] { done.done(done.ctx, nullptr); });
    return SF_OK;
  };
  std::shared_ptr<Pending> pending;
  const auto cancelled = shop.start_from("c", &pending);
  REQUIRE_FALSE(cancelled.ok());
  CHECK(cancelled.error().code == Status::cancelled);
  CHECK(told == "c;start;");
  CHECK(shop.plugin->faults.total() == 0);

  Bench plain;
  const auto box = plain.make_sandbox();
  const auto unsupported = plain.wait<StartResult>([&](auto done) {
    StartRequest request;
    request.start_from = "c";
    plain.on(plain.sandbox_lane, [&] { box->start(std::move(request), nullptr, std::move(done)); });
  });
  REQUIRE_FALSE(unsupported.ok());
  CHECK(unsupported.error().reason == "feature.checkpoints");
}

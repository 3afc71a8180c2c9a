#include "plugin/abi_snapshots.hpp"

#include <utility>

#include "plugin/abi_call.hpp"
#include "plugin/read_list.hpp"

namespace sandforge::plugin {
namespace {

constexpr std::size_t kMaxCheckpoints = 100'000;

Checkpoint read_checkpoint(Plugin& plugin, const sf_checkpoint& raw) {
  Checkpoint out;
  out.name = copy_text(raw.name, 4096);
  if (raw.created_at != 0) out.created_at_ns = raw.created_at;
  if (raw.bytes != SF_NONE) out.bytes = raw.bytes;
  if (SF_HAS(&raw, warnings))
    out.warnings = copy_strings(plugin, raw.warnings, "the warnings of a checkpoint");
  return out;
}

Result<std::vector<Checkpoint>> read_checkpoints(Plugin& plugin, const sf_checkpoint* first,
                                                 std::size_t count, std::size_t stride) {
  return read_list(
      plugin, "checkpoints", first, count, stride, kMaxCheckpoints,
      [](const sf_checkpoint* item) { return SF_HAS(item, bytes); },
      [&](const sf_checkpoint& item) { return read_checkpoint(plugin, item); });
}

void done_checkpoints(void* ctx, const sf_error* error, const sf_checkpoint* first,
                      std::size_t count, std::size_t stride) noexcept {
  complete<std::vector<Checkpoint>>(ctx, error, "snapshot.done", [=](Plugin& plugin) {
    return read_checkpoints(plugin, first, count, stride);
  });
}

Result<std::optional<Checkpoint>> at_most_one(Plugin& plugin, Result<std::vector<Checkpoint>> all) {
  if (!all.ok()) return std::move(all).error();
  if (all->empty()) return std::optional<Checkpoint>();
  if (all->size() == 1) return std::optional<Checkpoint>(std::move(all->front()));
  plugin.faults.report(Fault::bad_value, "one checkpoint was asked for");
  Error error = crashed(plugin, "it captured " + std::to_string(all->size()) + " checkpoints");
  error.may_have_started = true;
  return error;
}

class AbiSnapshots final : public SnapshotsBackend {
 public:
  explicit AbiSnapshots(std::shared_ptr<SandboxCore> core) : core_(std::move(core)) {}

  std::shared_ptr<Pending> create(std::string name,
                                  Handler<std::optional<Checkpoint>> done) override {
    Handler<std::vector<Checkpoint>> one =
        [core = core_, done = std::move(done)](Result<std::vector<Checkpoint>> all) mutable {
          std::move(done)(at_most_one(core->plugin, std::move(all)));
        };
    return start_call<std::vector<Checkpoint>>(
        core_, "snapshot.create", std::move(one), [&](void* ctx, sf_op** op) {
          return call_status(core_->plugin, "snapshot.create", core_->snapshots->create, core_->raw,
                             to_str(name), sf_checkpoint_completion{ctx, &done_checkpoints}, op);
        });
  }

  std::shared_ptr<Pending> list(Handler<std::vector<Checkpoint>> done) override {
    return start_call<std::vector<Checkpoint>>(
        core_, "snapshot.list", std::move(done), [&](void* ctx, sf_op** op) {
          return call_status(core_->plugin, "snapshot.list", core_->snapshots->list, core_->raw,
                             sf_checkpoint_completion{ctx, &done_checkpoints}, op);
        });
  }

  std::shared_ptr<Pending> remove(std::string name, Handler<void> done) override {
    return named("snapshot.remove", core_->snapshots->remove, name, std::move(done));
  }
  std::shared_ptr<Pending> start_from(std::string name, Handler<void> done) override {
    return named("snapshot.start_from", core_->snapshots->start_from, name, std::move(done));
  }

 private:
  template <class Fn>
  std::shared_ptr<Pending> named(const char* what, Fn fn, const std::string& name,
                                 Handler<void> done) {
    return start_call<void>(core_, what, std::move(done), [&](void* ctx, sf_op** op) {
      return call_status(core_->plugin, what, fn, core_->raw, to_str(name),
                         sf_completion{ctx, &done_void}, op);
    });
  }

  const std::shared_ptr<SandboxCore> core_;
};

class BootFrom final : public Pending, public std::enable_shared_from_this<BootFrom> {
 public:
  using Start = std::function<std::shared_ptr<Pending>(Handler<StartResult>)>;

  BootFrom(Lane lane, Start start, Handler<StartResult> done)
      : lane_(std::move(lane)), start_(std::move(start)), done_(std::move(done)) {}

  void run(SnapshotsBackend* snapshots, std::string name) {
    if (snapshots == nullptr)
      return lane_.post([self = shared_from_this()] {
        self->answer(
            Error(Status::unsupported, "this provider has no checkpoints", "feature.checkpoints"));
      });
    now_ = snapshots->start_from(std::move(name), [self = shared_from_this()](Result<void> told) {
      self->told(std::move(told));
    });
  }

  void cancel() noexcept override {
    lane_.post([self = shared_from_this()] {
      self->cancelled_ = true;
      if (self->now_) self->now_->cancel();
    });
  }

 private:
  void told(Result<void> result) {
    now_.reset();
    if (!result) return answer(std::move(result).error());
    if (cancelled_) return answer(Error(Status::cancelled, "the start was cancelled"));
    now_ = start_([self = shared_from_this()](Result<StartResult> started) {
      self->answer(std::move(started));
    });
  }

  void answer(Result<StartResult> result) {
    now_.reset();
    start_ = nullptr;
    auto done = std::move(done_);
    std::move(done)(std::move(result));
  }

  const Lane lane_;
  Start start_;
  Handler<StartResult> done_;
  std::shared_ptr<Pending> now_;
  bool cancelled_ = false;
};

}  // namespace

const sf_snapshot_ext* usable_snapshots(Plugin& plugin, const sf_snapshot_ext* table) {
  if (table == nullptr) return nullptr;
  if (SF_HAS_FN(table, create) && SF_HAS_FN(table, list) && SF_HAS_FN(table, remove) &&
      SF_HAS_FN(table, start_from))
    return table;
  plugin.faults.report(Fault::missing_value, SF_EXT_SNAPSHOT);
  return nullptr;
}

std::unique_ptr<SnapshotsBackend> make_snapshots(std::shared_ptr<SandboxCore> core) {
  if (core->snapshots == nullptr) return nullptr;
  return std::make_unique<AbiSnapshots>(std::move(core));
}

std::shared_ptr<Pending> boot_from(
    const Lane& lane, SnapshotsBackend* snapshots, std::string name,
    std::function<std::shared_ptr<Pending>(Handler<StartResult>)> start,
    Handler<StartResult> done) {
  auto booting = std::make_shared<BootFrom>(lane, std::move(start), std::move(done));
  booting->run(snapshots, std::move(name));
  return booting;
}

}  // namespace sandforge::plugin

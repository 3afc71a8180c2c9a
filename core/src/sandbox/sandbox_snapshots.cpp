// Checkpoints of the Sandbox.
#include "sandbox/lane_handler.hpp"
#include "sandbox/sandbox_impl.hpp"
#include "sandbox/validate.hpp"

namespace sandforge::sandbox {
namespace {

Result<void> check_name(const std::string& name) {
  if (!check_id(name)) return {};
  return Error(Status::invalid, "\"" + name + "\" is no name of a checkpoint",
               "sandbox.checkpoint_name");
}

SnapshotResult nothing(std::string why) {
  SnapshotResult out;
  out.why_not = std::move(why);
  return out;
}

}  // namespace

// use(backend, done): with the provider's object, which offers checkpoints.
template <class T, class Use>
void SandboxImpl::with_snapshots(Handler<T> done, Use use) {
  post(lane_, [self = self(), done = std::move(done), use = std::move(use)]() mutable {
    auto& sandbox = *self;
    sandbox.life_.with_backend([self = std::move(self), done = std::move(done),
                                use = std::move(use)](
                                   Result<std::shared_ptr<SandboxBackend>> backend) mutable {
      if (!backend) return std::move(done)(std::move(backend).error());
      if ((*backend)->snapshots() == nullptr)
        return std::move(done)(Error(
            Status::unsupported, "provider '" + self->provider() + "' does not offer checkpoints",
            "feature." + std::string(feature::kCheckpoints)));
      use(*std::move(backend), std::move(done));
    });
  });
}

void SandboxImpl::async_snapshot(SnapshotOptions options, Handler<SnapshotResult> done) {
  with_snapshots<SnapshotResult>(std::move(done), [self = self(), options = std::move(options)](
                                                      const std::shared_ptr<SandboxBackend>&,
                                                      Handler<SnapshotResult> next) mutable {
    self->capture(std::move(options), std::move(next));
  });
}

void SandboxImpl::capture(SnapshotOptions options, Handler<SnapshotResult> done) {
  if (options.name) {
    if (auto good = check_name(*options.name); !good) return std::move(done)(good.error());
    if (options.name == config_.seed_checkpoint_name && options.name != checkpoint_name_)
      return std::move(done)(Error(Status::invalid,
                                   "\"" + *options.name + "\" is the seed checkpoint of '" +
                                       config_.id + "', which its snapshots never change",
                                   "sandbox.seed_checkpoint"));
  }
  const auto& name = options.name ? options.name : checkpoint_name_;
  if (!name)
    return std::move(done)(nothing("the sandbox has no name for checkpoints: its id was made up"));
  auto machine = life_.machine();
  if (!machine)
    return std::move(done)(
        nothing("the sandbox does not run: it is " + std::string(to_string(status()))));
  touch();
  captures_->run(*name, std::move(options.stop), *std::move(machine), std::move(done));
}

void SandboxImpl::async_list_checkpoints(Handler<std::vector<Checkpoint>> done) {
  using All = std::vector<Checkpoint>;
  with_snapshots<All>(
      std::move(done), [](std::shared_ptr<SandboxBackend> backend, Handler<All> next) {
        auto& snapshots = *backend->snapshots();
        snapshots.list([keep = std::move(backend), next = std::move(next)](
                           Result<All> all) mutable { std::move(next)(std::move(all)); });
      });
}

void SandboxImpl::async_remove_checkpoint(std::string name, Handler<void> done) {
  if (auto good = check_name(name); !good) return refuse(std::move(done), good.error());
  with_snapshots<void>(
      std::move(done), [name = std::move(name)](std::shared_ptr<SandboxBackend> backend,
                                                Handler<void> next) mutable {
        auto& snapshots = *backend->snapshots();
        snapshots.remove(std::move(name), [keep = std::move(backend),
                                           next = std::move(next)](Result<void> removed) mutable {
          std::move(next)(std::move(removed));
        });
      });
}

void SandboxImpl::async_start_from(std::string name, Handler<void> done) {
  if (auto good = check_name(name); !good) return refuse(std::move(done), good.error());
  with_snapshots<void>(
      std::move(done), [self = self(), name = std::move(name)](
                           std::shared_ptr<SandboxBackend> backend, Handler<void> next) mutable {
        auto& snapshots = *backend->snapshots();
        snapshots.start_from(name, [self, name, keep = std::move(backend),
                                    next = std::move(next)](Result<void> found) mutable {
          // The start says it again: by then the provider may have made another object.
          if (found) self->life_.start_from(std::move(name));
          std::move(next)(std::move(found));
        });
      });
}

}  // namespace sandforge::sandbox

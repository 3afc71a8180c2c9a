// The provider and its sandboxes, wrapped.
#include <utility>

#include "faults/call.hpp"
#include "faults/stream.hpp"
#include "sandforge/builds.hpp"
#include "sandforge/directory.hpp"

namespace sandforge {
namespace faults {
namespace {

class FaultySandbox final : public SandboxBackend, public ProcessesBackend {
 public:
  FaultySandbox(Ground ground, Lane lane, std::shared_ptr<SandboxBackend> inner)
      : ground_(std::move(ground)), lane_(std::move(lane)), inner_(std::move(inner)) {}

  std::shared_ptr<Pending> start(StartRequest request,
                                 std::function<void(ProviderSandboxId)> on_identity,
                                 Handler<StartResult> done) override {
    const auto shot = ground_.next(FaultPoint::start);
    // The machine's identity is a part of the answer that is lost.
    if (shot && (shot->kind == FaultKind::lose || shot->kind == FaultKind::half_open))
      on_identity = [](const ProviderSandboxId&) {};
    return run_call<StartResult>(ground_, lane_, shot, std::move(done),
                                 [inner = inner_, request = std::move(request),
                                  on_identity = std::move(on_identity)](Handler<StartResult> next) {
                                   return inner->start(request, on_identity, std::move(next));
                                 });
  }
  void stop(Handler<void> done) override {
    run(FaultPoint::stop, std::move(done),
        [](SandboxBackend& inner, Handler<void> next) { inner.stop(std::move(next)); });
  }
  void destroy(Handler<void> done) override {
    run(FaultPoint::destroy, std::move(done),
        [](SandboxBackend& inner, Handler<void> next) { inner.destroy(std::move(next)); });
  }
  void info(Handler<MachineInfo> done) override {
    const auto shot = ground_.next(FaultPoint::info);
    if (shot && shot->kind == FaultKind::skew)
      done = [by = *shot->rule.time, done = std::move(done)](Result<MachineInfo> info) mutable {
        const auto ns = std::chrono::nanoseconds(by).count();
        if (info && info->created_at_ns) *info->created_at_ns += ns;
        if (info && info->timeout_at_ns) *info->timeout_at_ns += ns;
        std::move(done)(std::move(info));
      };
    run_call<MachineInfo>(ground_, lane_, shot, std::move(done),
                          [inner = inner_](Handler<MachineInfo> next) {
                            inner->info(std::move(next));
                            return nullptr;
                          });
  }
  void instructions(Handler<std::string> done) override {
    run(FaultPoint::instructions, std::move(done),
        [](SandboxBackend& inner, Handler<std::string> next) {
          inner.instructions(std::move(next));
        });
  }
  Result<std::shared_ptr<ProcessBackend>> spawn(const Command& command,
                                                std::shared_ptr<ProcessSink> sink) override {
    return launch(FaultPoint::spawn, std::move(sink),
                  [inner = inner_, command](std::shared_ptr<ProcessSink> to) {
                    return inner->spawn(command, std::move(to));
                  });
  }
  ProcessesBackend* processes() noexcept override {
    return inner_->processes() != nullptr ? this : nullptr;
  }
  // As they are: no plan names a fault of theirs.
  FilesBackend* files() noexcept override { return inner_->files(); }
  SnapshotsBackend* snapshots() noexcept override { return inner_->snapshots(); }

  void list(Handler<std::vector<ProcessInfo>> done) override {
    run(FaultPoint::list, std::move(done),
        [](SandboxBackend& inner, Handler<std::vector<ProcessInfo>> next) {
          inner.processes()->list(std::move(next));
        });
  }
  Result<std::shared_ptr<ProcessBackend>> attach(const ProcessId& id, OutputCursor from,
                                                 std::uint64_t window,
                                                 std::shared_ptr<ProcessSink> sink) override {
    return launch(FaultPoint::attach, std::move(sink),
                  [inner = inner_, id, from, window](std::shared_ptr<ProcessSink> to) {
                    return inner->processes()->attach(id, from, window, std::move(to));
                  });
  }
  void signal(const ProcessId& id, int signal, bool tree, Handler<void> done) override {
    run(FaultPoint::signal, std::move(done),
        [id, signal, tree](SandboxBackend& inner, Handler<void> next) {
          inner.processes()->signal(id, signal, tree, std::move(next));
        });
  }
  void forget(const ProcessId& id, Handler<void> done) override {
    inner_->processes()->forget(id, std::move(done));
  }

 private:
  template <class T, class Make>
  void run(FaultPoint point, Handler<T> done, Make make) {
    run_call<T>(ground_, lane_, ground_.next(point), std::move(done),
                [inner = inner_, make = std::move(make)](Handler<T> next) {
                  make(*inner, std::move(next));
                  return nullptr;
                });
  }

  Result<std::shared_ptr<ProcessBackend>> launch(FaultPoint point,
                                                 std::shared_ptr<ProcessSink> sink,
                                                 Stream::Launch launch) {
    auto stream = std::make_shared<Stream>(ground_, lane_, std::move(sink), std::move(launch));
    if (auto ran = stream->run(ground_.next(point)); !ran) return std::move(ran).error();
    return std::shared_ptr<ProcessBackend>(std::make_shared<StreamHandle>(lane_, stream));
  }

  const Ground ground_;
  const Lane lane_;
  const std::shared_ptr<SandboxBackend> inner_;
};

class FaultyProvider final : public ProviderBackend, public OffersBuilds, public OffersDirectory {
 public:
  FaultyProvider(Ground ground, std::shared_ptr<ProviderBackend> inner)
      : ground_(std::move(ground)), inner_(std::move(inner)) {}

  const std::string& name() const noexcept override { return inner_->name(); }
  const Lane& lane() const noexcept override { return inner_->lane(); }

  void describe(Handler<Description> done) override {
    Handler<Description> marked = [done = std::move(done)](Result<Description> result) mutable {
      if (result) result->describe.set("wrap", "fault");
      std::move(done)(std::move(result));
    };
    run_call<Description>(ground_, lane(), ground_.next(FaultPoint::describe), std::move(marked),
                          [inner = inner_](Handler<Description> next) {
                            inner->describe(std::move(next));
                            return nullptr;
                          });
  }

  Result<std::shared_ptr<SandboxBackend>> create(CreateRequest request) override {
    if (const auto shot = ground_.next(FaultPoint::create)) {
      if (shot->kind == FaultKind::refuse) return error_of(*shot, Status::transport_lost, false);
      ground_.script->impl().crash();
      return crash_error(false);
    }
    const Lane lane = request.lane;
    auto made = inner_->create(std::move(request));
    if (!made) return made;
    return std::shared_ptr<SandboxBackend>(
        std::make_shared<FaultySandbox>(ground_, lane, *std::move(made)));
  }

  // As they are: no plan names a fault of theirs.
  BuildsBackend* builds() noexcept override { return builds_of(*inner_); }
  DirectoryBackend* directory() noexcept override { return directory_of(*inner_); }

 private:
  const Ground ground_;
  const std::shared_ptr<ProviderBackend> inner_;
};

}  // namespace
}  // namespace faults

std::shared_ptr<ProviderBackend> with_faults(Runtime& runtime,
                                             std::shared_ptr<ProviderBackend> provider,
                                             std::shared_ptr<FaultScript> script) {
  return std::make_shared<faults::FaultyProvider>(
      faults::Ground{runtime.handle(), std::move(script)}, std::move(provider));
}

void async_open_with_faults(Runtime& runtime, ProviderRegistry& registry, std::string name,
                            json::Object options, std::shared_ptr<FaultScript> script,
                            Handler<std::shared_ptr<ProviderBackend>> done) {
  using Opened = std::shared_ptr<ProviderBackend>;
  const faults::Ground ground{runtime.handle(), script};
  const Lane lane = runtime.make_lane();
  Handler<Opened> wrapped = [ground, done = std::move(done)](Result<Opened> opened) mutable {
    if (opened) opened = with_faults(*ground.runtime, *std::move(opened), ground.script);
    std::move(done)(std::move(opened));
  };
  auto open = [&registry, lane, name = std::move(name),
               options = std::move(options)](Handler<Opened> next) -> std::shared_ptr<Pending> {
    // The registry answers on the provider's lane, the call lives on this one.
    auto held = std::make_shared<Handler<Opened>>(std::move(next));
    registry.async_open(name, options, [lane, held](Result<Opened> opened) {
      lane.post(
          [held, opened = std::move(opened)]() mutable { std::move (*held)(std::move(opened)); });
    });
    return nullptr;
  };
  auto held = std::make_shared<Handler<Opened>>(std::move(wrapped));
  lane.post([ground, lane, held, open = std::move(open)]() mutable {
    faults::run_call<Opened>(ground, lane, ground.next(FaultPoint::open), std::move(*held),
                             std::move(open));
  });
}

}  // namespace sandforge

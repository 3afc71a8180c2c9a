// The provider `docker`: its options, its settings, its entry.
#include <sandforge/plugin/plugin.hpp>

#include "directory.hpp"
#include "sandbox.hpp"

namespace sandforge::docker {

class DockerFactory : public plugin::CoFactorySandbox,
                      public plugin::BasicHealth<plugin::Coroutine>,
                      public plugin::BasicTemplates<plugin::Coroutine>,
                      public plugin::BasicBuilds<plugin::Coroutine>,
                      public plugin::BasicDirectory<plugin::Coroutine> {
 public:
  static constexpr const char* provider = "docker";
  explicit DockerFactory(const plugin::Opening& opening)
      : options_(std::make_shared<const ProviderOptions>(opening)),
        builds_(std::make_shared<DockerBuilds>(opening.lane, options_)) {}

  // What the public documents show; a default stands there only where the host gave one.
  plugin::SettingsSchema settings() const override {
    plugin::SettingsSchema schema;
    auto image = schema.string("baseImage");
    image.title("Base image")
        .description("Docker image the environment template builds from (default node:22-slim)")
        .set("minLength", 1);
    if (!options_->base_image.empty()) image.fallback(options_->base_image);
    auto owner = schema.string("owner");
    owner.title("Owner")
        .description(
            "user[:group] or uid[:gid] that owns the repositories in the image (default root)")
        .pattern(R"(^[\w.-]+(:[\w.-]+)?$)");
    if (!options_->owner.empty()) owner.fallback(options_->owner);
    return schema;
  }

  // A guest in the container has all of it. Engine execs: no terminal, no process that outlives its
  // connection, and a slow reader that is held back may lose the tail of what its command wrote,
  // because the engine closes the output two seconds after the command's end.
  std::vector<std::string> features() const override {
    std::vector<std::string> out = {
        "spawn.stdin",     "spawn.signal",    "spawn.kill",      "spawn.user", "spawn.tree",
        "stderr.separate", "stderr.combined", "env.per_command", "env.unset",  "env.at_provision",
        "network.none",    "network.private", "builds.document"};
    if (!options_->read_only_root) out.emplace_back("checkpoints");
    if (options_->guest != nullptr)
      for (const char* more : {"spawn.detach", "pty", "processes.list", "processes.attach", "files",
                               "files.watch", "output.credit", "idle.timeout"})
        out.emplace_back(more);
    return out;
  }

  std::unique_ptr<plugin::SandboxBase> create(plugin::Context context,
                                              plugin::Settings settings) override {
    return std::make_unique<DockerSandbox>(options_, builds_, std::move(context), settings);
  }

  plugin::BasicTemplates<plugin::Coroutine>* templates() override { return this; }
  Task<plugin::ResolvedTemplate> resolve(plugin::Context context, plugin::Settings settings,
                                         plugin::StopToken) override {
    return builds_->resolve(std::move(context), std::move(settings));
  }

  plugin::BasicBuilds<plugin::Coroutine>* builds() override { return this; }
  Task<plugin::Build> start(plugin::BuildRequest request, plugin::StopToken) override {
    return builds_->start(std::move(request));
  }
  Task<plugin::Build> get(plugin::BuildRequest request, plugin::StopToken) override {
    return builds_->get(std::move(request.build_id));
  }
  bool can_list() const override { return true; }
  Task<std::vector<plugin::Build>> list(plugin::BuildRequest, plugin::StopToken) override {
    return builds_->list();
  }
  bool can_log() const override { return true; }
  Task<void> logs(plugin::BuildRequest request, std::uint64_t cursor, plugin::Io& io) override {
    return builds_->logs(std::move(request.build_id), cursor, io);
  }
  bool can_cancel() const override { return true; }
  Task<void> cancel(plugin::BuildRequest request, plugin::StopToken) override {
    builds_->cancel(request.build_id);
    co_return;
  }

  plugin::BasicDirectory<plugin::Coroutine>* directory() override { return this; }
  Task<plugin::DirectoryPage> find(plugin::Document labels, std::string page, std::uint32_t limit,
                                   plugin::StopToken) override {
    EngineDirectory all(engine(), options_);
    plugin::DirectoryPage out = co_await all.find(std::move(labels), std::move(page), limit);
    co_return out;
  }
  Task<void> remove(std::string container, plugin::StopToken) override {
    EngineDirectory all(engine(), options_);
    co_await all.remove(std::move(container));
  }
  bool can_sweep() const override { return true; }
  Task<std::vector<plugin::Leftover>> sweep(bool remove, plugin::StopToken) override {
    EngineDirectory all(engine(), options_);
    std::vector<plugin::Leftover> out = co_await all.sweep(remove);
    co_return out;
  }

  plugin::BasicHealth<plugin::Coroutine>* health() override { return this; }
  Task<void> check(plugin::StopToken) override { co_await engine().connect(); }

 private:
  Engine& engine() {
    if (!engine_) engine_.emplace(lane(), options_->engine);
    return *engine_;
  }

  const std::shared_ptr<const ProviderOptions> options_;
  const std::shared_ptr<DockerBuilds> builds_;
  std::optional<Engine> engine_;
};

}  // namespace sandforge::docker

SANDFORGE_PLUGIN(sandforge::docker::DockerFactory)

// The builds of this provider: which run, what became of them, and what a fresh machine boots.
#pragma once

#include <sandforge/plugin/repo_template_task.hpp>

#include <atomic>

#include "machine.hpp"
#include "template_images.hpp"

namespace sandforge::docker {

// One build of this process. Its texts hold no credential.
class BuildRecord {
 public:
  BuildRecord() {}
  plugin::Build build;
  std::shared_ptr<BuildLog> log = std::make_shared<BuildLog>();
  plugin::StopSource stop;
  plugin::StopSource clock;  // stops the wait for its time limit
  bool ended() const { return build.status != plugin::BuildStatus::building; }
};

/*
 * Shared by the provider and its sandboxes. Builds run on the provider's lane, one per identity.
 * What ended is kept by the host's state service, where there is one, and by the images' labels: a
 * later host reads it again. Thread-safe where it says so; the rest is for the provider's lane.
 */
class DockerBuilds : public std::enable_shared_from_this<DockerBuilds> {
 public:
  DockerBuilds(plugin::Lane lane, std::shared_ptr<const ProviderOptions> options)
      : lane_(std::move(lane)), options_(std::move(options)) {}

  // The template of a session. Secrets of its build are remembered for a start that follows.
  Task<plugin::ResolvedTemplate> resolve(plugin::Context context, plugin::Settings settings);

  Task<plugin::Build> start(plugin::BuildRequest request);
  Task<plugin::Build> get(std::string id);
  Task<std::vector<plugin::Build>> list();
  Task<void> logs(std::string id, std::uint64_t cursor, plugin::Io& io);
  void cancel(const std::string& id);  // [any]

  // Begins the build, or finds the one that runs. [any]
  plugin::Build begin(const std::string& document, std::map<std::string, std::string> ephemeral,
                      std::map<std::string, std::string> secrets);
  // What this process knows of it. [any]
  std::optional<plugin::Build> known(const std::string& id) const;
  std::map<std::string, std::string> take_secrets(const std::string& identity);  // [any]

 private:
  using Secrets = std::map<std::string, std::string>;
  Task<RepoOutcome> outcome_of(plugin::Context context);
  RepoStyle style(const plugin::Settings& settings) const;
  Template base(const plugin::Settings& settings) const;
  void keep_secrets(const std::string& identity, Secrets secrets);
  static Task<void> run(std::shared_ptr<DockerBuilds> me, std::shared_ptr<BuildRecord> record,
                        std::shared_ptr<const BuildOrder> order);
  void forget_oldest();  // with the mutex held
  void limit(const std::shared_ptr<BuildRecord>& record);
  std::string why_stopped(plugin::StopReason reason) const;
  void settle(BuildRecord& record, plugin::BuildStatus status, std::string error);
  std::vector<std::string> ended_after(const std::string& id) const;
  Task<void> keep(plugin::Build build, std::string log);
  Task<std::optional<json::Value>> kept(std::string key);
  Task<std::optional<plugin::Build>> kept_build(std::string id);
  std::shared_ptr<BuildRecord> record(const std::string& id) const;
  Engine& engine();

  const plugin::Lane lane_;
  const std::shared_ptr<const ProviderOptions> options_;
  HeadMemory heads_;
  std::optional<Engine> engine_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<BuildRecord>> records_;
  std::list<std::pair<std::string, Secrets>> secrets_;  // newest first, of the last templates
};

// What a fresh machine of a session boots from, by its template: the exact image, else the newest
// of the family and the same sizes, else the base. It waits for no build.
class TemplateChoice : public ImageChoice {
 public:
  TemplateChoice(Engine& engine, std::shared_ptr<const ProviderOptions> options,
                 std::shared_ptr<DockerBuilds> builds, std::string document)
      : engine_(engine),
        options_(std::move(options)),
        builds_(std::move(builds)),
        document_(std::move(document)) {}
  Task<Booted> choose() override;

  std::string pending;  // the template that is still being built
  std::vector<std::string> warnings;

 private:
  Engine& engine_;
  const std::shared_ptr<const ProviderOptions> options_;
  const std::shared_ptr<DockerBuilds> builds_;
  const std::string document_;
};

}  // namespace sandforge::docker

// A complete provider with templates and builds. Its machines and images live in memory: a build
// takes a minute by the host's clock, and the one command, `image`, says what a sandbox booted.
#include <sandforge/plugin/plugin.hpp>
#include <sandforge/support/hash.hpp>

#include <map>

using namespace sandforge::plugin;
namespace json = sandforge::json;

// A template as text: the same settings give the same text, and so the same identity.
std::string document_of(const Settings& settings) {
  json::Object document;
  document.set("cpus", settings.integer("cpus").value_or(1));
  document.set("packages", settings.string("packages").value_or(""));
  return json::write(json::Value(std::move(document)));
}
std::string family_of(const Context& context) {
  return context.repo_full_name().value_or("none");
}

// The images that were built or are being built. Calls come on several threads of the host's pool.
class Kitchen {
 public:
  static constexpr std::int64_t build_time = 60'000'000'000;

  Build build(const std::string& identity, const std::string& family) {
    const std::lock_guard lock(mutex_);
    const auto found = images_.emplace(identity, Image{family, Host().now(), false}).first;
    return build_of(*found);
  }
  Build find(const std::string& identity) {
    const std::lock_guard lock(mutex_);
    const auto found = images_.find(identity);
    if (found == images_.end()) throw Error(Code::not_found, "there is no build " + identity);
    return build_of(*found);
  }
  std::vector<Build> all() {
    const std::lock_guard lock(mutex_);
    std::vector<Build> builds;
    for (const auto& image : images_)
      builds.push_back(build_of(image));
    std::sort(builds.begin(), builds.end(),
              [](const Build& a, const Build& b) { return a.started_at > b.started_at; });
    return builds;
  }
  void cancel(const std::string& identity) {
    const std::lock_guard lock(mutex_);
    const auto found = images_.find(identity);
    if (found != images_.end() && !is_ready(found->second)) found->second.cancelled = true;
  }
  // The newest that is ready, of the family.
  std::optional<std::string> newest(const std::string& family) {
    for (const Build& build : all()) {
      const std::lock_guard lock(mutex_);
      if (build.status == BuildStatus::ready && images_.at(build.build_id).family == family)
        return build.build_id;
    }
    return std::nullopt;
  }

 private:
  struct Image {
    std::string family;
    std::int64_t started_at;
    bool cancelled;
  };
  static bool is_ready(const Image& image) {
    return !image.cancelled && Host().now() - image.started_at >= build_time;
  }
  static Build build_of(const std::pair<const std::string, Image>& image) {
    Build build(image.first, is_ready(image.second) ? BuildStatus::ready : BuildStatus::building);
    build.template_id = image.first;
    build.started_at = image.second.started_at;
    if (build.status == BuildStatus::ready) build.finished_at = build.started_at + build_time;
    if (build.status == BuildStatus::building) build.retry_after = std::chrono::seconds(5);
    if (!image.second.cancelled) return build;
    build.status = BuildStatus::failed;
    build.error = "the build was cancelled";
    return build;
  }

  std::mutex mutex_;
  std::map<std::string, Image> images_;
};

// What the machine of each session has booted.
class Machines {
 public:
  // False when it runs already.
  bool add(const std::string& id, const std::string& image) {
    const std::lock_guard lock(mutex_);
    return images_.emplace(id, image).second;
  }
  std::optional<std::string> image(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = images_.find(id);
    return found == images_.end() ? std::nullopt : std::optional(found->second);
  }
  void remove(const std::string& id) {
    const std::lock_guard lock(mutex_);
    images_.erase(id);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> images_;
};

Machines& machines() {
  static Machines all;
  return all;
}

class KitchenSandbox : public Sandbox {
 public:
  KitchenSandbox(Kitchen& kitchen, Context context)
      : kitchen_(kitchen),
        context_(std::move(context)),
        id_("kitchen-" + context_.session_id().value_or("")) {}

  Started start(Starting& starting) override {
    if (machines().image(id_)) return Started(Outcome::connected, id_, "/");
    Started started(Outcome::created, id_, "/");
    if (!machines().add(id_, choose(starting, started))) started.outcome = Outcome::connected;
    return started;
  }
  void stop(StopToken) override {}
  void destroy(StopToken) override { machines().remove(id_); }
  Exit run(Command command, ProcessIo io) override {
    const auto image = machines().image(id_);
    if (!image) throw Error(Code::gone, "the machine does not exist");
    if (command.shell != "image") throw Error(Code::not_found, "there is only one command: image");
    io.started("1");
    io.write(*image + "\n", SF_CHANNEL_STDOUT);
    return Exit::exited(0);
  }

 private:
  // Starting never waits for a build: the exact image when it is ready, else the newest of the
  // family, else the base, while the exact one is being built.
  std::string choose(const Starting& starting, Started& started) {
    started.provenance = Provenance::base;
    if (!starting.template_document()) return "base";
    std::string identity = sandforge::sha256_hex(*starting.template_document());
    const Build build = kitchen_.build(identity, family_of(context_));
    const auto older = kitchen_.newest(family_of(context_));
    if (build.status == BuildStatus::ready) {
      started.provenance = Provenance::exact;
      return identity;
    }
    started.template_pending_id = build.template_id;
    started.template_retry_after = build.retry_after;
    if (!older) return "base";
    started.provenance = Provenance::family;
    return *older;
  }

  Kitchen& kitchen_;  // the provider's, which outlives its sandboxes
  const Context context_;
  const std::string id_;
};

class KitchenFactory : public FactorySandbox,
                       public BasicTemplates<Blocking>,
                       public BasicBuilds<Blocking> {
 public:
  static constexpr const char* provider = "builds-cpp";

  SettingsSchema settings() const override {
    SettingsSchema schema;
    schema.integer("cpus").title("CPUs").bounds(1, 8).fallback(1);
    schema.string("packages").title("Packages").lengths(0, 500).fallback("");
    return schema;
  }
  std::vector<std::string> features() const override { return {"commands.own"}; }
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<KitchenSandbox>(kitchen_, std::move(context));
  }

  // Overriding these two declares the capabilities.
  BasicTemplates<Blocking>* templates() override { return this; }
  BasicBuilds<Blocking>* builds() override { return this; }

  ResolvedTemplate resolve(Context context, Settings settings, StopToken) override {
    ResolvedTemplate resolved;
    resolved.document = document_of(settings);
    resolved.identity = sandforge::sha256_hex(*resolved.document);
    resolved.family = family_of(context);
    return resolved;
  }
  Build start(BuildRequest request, StopToken) override {
    std::string identity = sandforge::sha256_hex(document_of(request.settings));
    return kitchen_.build(identity, family_of(request.context));
  }
  Build get(BuildRequest request, StopToken) override { return kitchen_.find(request.build_id); }
  bool can_list() const override { return true; }
  std::vector<Build> list(BuildRequest, StopToken) override { return kitchen_.all(); }
  bool can_cancel() const override { return true; }
  void cancel(BuildRequest request, StopToken) override { kitchen_.cancel(request.build_id); }

 private:
  Kitchen kitchen_;
};
SANDFORGE_PLUGIN(KitchenFactory)

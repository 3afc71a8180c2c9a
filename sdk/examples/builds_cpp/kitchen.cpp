// A complete provider with templates and builds. Its machines and images live in memory: a build
// takes three seconds by the host's clock, of set-up commands it knows `exit N`, and the one
// command of a sandbox, `image`, says what it booted.
#include <sandforge/plugin/plugin.hpp>
#include <sandforge/support/template_steps.hpp>

#include <map>

using namespace sandforge::plugin;
using sandforge::RepoOutcome;
using sandforge::RepoRules;
using sandforge::RepoStyle;
using sandforge::Template;

// How repositories become steps here: clones by themselves, with their tokens as secrets.
RepoRules repo_rules() {
  RepoRules rules;
  rules.urls = RepoRules::Urls::any;
  rules.working_directory = "/workspace";
  return rules;
}
// The machine that the settings ask for; of a session without repositories also its set-up.
Template machine_of(const Context& context, const Settings& settings) {
  Template machine = Template().cpu_count(settings.integer("cpus").value_or(1));
  const std::string packages = settings.string("packages").value_or("");
  if (!packages.empty()) machine = machine.apt_install({packages});
  if (context.has_repository()) return machine;
  for (const std::string& command : commands_of(context.setup_command()))
    machine = machine.run_cmd(command);
  return machine;
}
// Which older images are better than nothing: those of the repository, with as many CPUs.
std::string family_of(const Context& context, const Settings& settings) {
  return context.repo_full_name().value_or("none") + "/" +
         std::to_string(settings.integer("cpus").value_or(1));
}
// The whole template of a session. A token is used here and goes no further.
ResolvedTemplate template_of(const Context& context, const Settings& settings,
                             const StopToken& stop) {
  const Template machine = machine_of(context, settings);
  RepoOutcome outcome = resolve_repo_template(context, request_of(context), repo_rules(), stop);
  if (!outcome.plan && outcome.complete) outcome.plan.emplace();  // no repository: the machine
  ResolvedTemplate resolved = resolved_template(outcome, RepoStyle(), machine);
  resolved.family = family_of(context, settings);
  return resolved;
}

// The images that were built or are being built. Calls come on several threads of the host's pool.
class Kitchen {
 public:
  static constexpr std::int64_t build_time = 3'000'000'000;

  // Begins the build, or finds it; one that failed is tried again.
  Build build(const std::string& document, const std::string& family) {
    const std::string identity = Template::parse(document).identity();
    const std::lock_guard lock(mutex_);
    const auto found = images_.find(identity);
    if (found == images_.end() || status_of(found->second) == BuildStatus::failed) {
      images_[identity] = Image{family, Host().now(), false, exit_code(document)};
    }
    return build_of(identity);
  }
  // An id of an earlier host's is not known here: its images went with it.
  Build find(const std::string& identity) const {
    const std::lock_guard lock(mutex_);
    return build_of(identity);
  }
  std::vector<Build> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<Build> builds;
    for (const auto& image : images_)
      builds.push_back(build_of(image.first));
    std::sort(builds.begin(), builds.end(),
              [](const Build& a, const Build& b) { return a.started_at > b.started_at; });
    return builds;
  }
  void cancel(const std::string& identity) {
    const std::lock_guard lock(mutex_);
    const auto found = images_.find(identity);
    if (found != images_.end() && status_of(found->second) == BuildStatus::building) {
      found->second.cancelled = true;
    }
  }
  // The newest that is ready, of the family.
  std::optional<std::string> newest(const std::string& family) const {
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
    std::string exit_code;  // of its set-up
  };
  // N of the first step that ends in `exit N`.
  static std::string exit_code(const std::string& document) {
    for (const auto& step : sandforge::template_steps(Template::parse(document))) {
      const auto at = step.script.rfind("exit ");
      if (at == std::string::npos) continue;
      std::string code = step.script.substr(at + 5);
      const bool number = code.find_first_not_of("0123456789") == std::string::npos;
      if (number && !code.empty() && code != "0") return code;
    }
    return "0";
  }
  static BuildStatus status_of(const Image& image) {
    if (image.cancelled) return BuildStatus::failed;
    if (Host().now() - image.started_at < build_time) return BuildStatus::building;
    return image.exit_code == "0" ? BuildStatus::ready : BuildStatus::failed;
  }
  Build build_of(const std::string& identity) const {
    const auto found = images_.find(identity);
    if (found == images_.end()) return Build(identity, BuildStatus::unknown);
    const Image& image = found->second;
    Build build(identity, status_of(image));
    build.template_id = identity;
    build.started_at = image.started_at;
    if (build.status == BuildStatus::building) {
      build.retry_after = std::chrono::milliseconds(500);
    } else if (!image.cancelled) {
      build.finished_at = build.started_at + build_time;
    }
    if (build.status == BuildStatus::failed) {
      build.error = image.cancelled ? "the build was cancelled"
                                    : "step 3, the set-up, exited with " + image.exit_code;
    }
    return build;
  }

  mutable std::mutex mutex_;
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
  KitchenSandbox(Kitchen& kitchen, const Context& context, const Settings& settings)
      : kitchen_(kitchen),
        family_(family_of(context, settings)),
        id_("kitchen-" + context.session_id().value_or("")) {}

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
    const auto& document = starting.template_document();
    if (!document) return "base";
    Build build = kitchen_.find(Template::parse(*document).identity());
    if (build.status == BuildStatus::unknown) build = kitchen_.build(*document, family_);
    const auto older = kitchen_.newest(family_);
    if (build.status == BuildStatus::ready) {
      started.provenance = Provenance::exact;
      return build.build_id;
    }
    if (build.status == BuildStatus::failed) {
      started.warnings.push_back("the image could not be built: " + build.error);
    } else {
      started.template_pending_id = build.template_id;
      started.template_retry_after = build.retry_after;
    }
    if (!older) return "base";
    started.provenance = Provenance::family;
    return *older;
  }

  Kitchen& kitchen_;  // the provider's, which outlives its sandboxes
  const std::string family_;
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
  std::unique_ptr<SandboxBase> create(Context context, Settings settings) override {
    return std::make_unique<KitchenSandbox>(kitchen_, context, settings);
  }

  // Overriding these two declares the capabilities.
  BasicTemplates<Blocking>* templates() override { return this; }
  BasicBuilds<Blocking>* builds() override { return this; }

  ResolvedTemplate resolve(Context context, Settings settings, StopToken stop) override {
    return template_of(context, settings, stop);
  }
  Build start(BuildRequest request, StopToken stop) override {
    const ResolvedTemplate resolved = template_of(request.context, request.settings, stop);
    if (!resolved.document) throw Error(Code::unavailable, resolved.warnings.front());
    return kitchen_.build(*resolved.document, resolved.family);
  }
  Build get(BuildRequest request, StopToken) override { return kitchen_.find(request.build_id); }
  bool can_list() const override { return true; }
  std::vector<Build> list(BuildRequest, StopToken) override { return kitchen_.all(); }
  bool can_log() const override { return true; }
  void logs(BuildRequest request, std::uint64_t cursor, Io& io) override {
    Build build = kitchen_.find(request.build_id);
    for (; build.status == BuildStatus::building; build = kitchen_.find(request.build_id))
      Host().sleep(request.context.lane(), std::chrono::milliseconds(100)).get(io.stop());
    const std::string log = "step 1, the base\nstep 2, the packages\nstep 3, the set-up\n" +
                            (build.error.empty() ? "ready" : build.error) + "\n";
    if (cursor < log.size()) io.write(log.substr(cursor));
  }
  bool can_cancel() const override { return true; }
  void cancel(BuildRequest request, StopToken) override { kitchen_.cancel(request.build_id); }

 private:
  Kitchen kitchen_;
};
SANDFORGE_PLUGIN(KitchenFactory)

// The provider of full_sandbox.hpp, and the one place that instantiates both styles of everything.
#include "full_plugin.hpp"

#include <sandforge/plugin/export.hpp>

#include "full_sandbox.hpp"

namespace sandforge::test {
namespace {

// Calls never overlap in these tests.
std::string& noted() {
  static std::string text;
  return text;
}

template <class Style>
class SomeTemplates : public BasicTemplates<Style> {
 public:
  typename Style::template Result<ResolvedTemplate> resolve(Context, Settings settings,
                                                            StopToken) override {
    ResolvedTemplate made;
    made.document = "{}";
    made.family = settings.string("family").value_or("none");
    made.warnings = {"old"};
    return Style::ready(std::move(made));
  }
};

template <class Style>
class SomeBuilds : public BasicBuilds<Style> {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  Result<Build> start(BuildRequest request, StopToken) override {
    called("build " + request.ephemeral_env.at(0).name + " " +
           request.template_document.value_or("-"));
    Build build("b1", BuildStatus::building);
    build.retry_after = std::chrono::milliseconds(250);
    return Style::ready(std::move(build));
  }
  Result<Build> get(BuildRequest request, StopToken) override {
    if (request.build_id != "b1") throw Error(Code::not_found, "no such build");
    return Style::ready(Build("b1", BuildStatus::ready));
  }
  bool can_list() const override { return true; }
  Result<std::vector<Build>> list(BuildRequest, StopToken) override {
    return Style::ready(std::vector<Build>(2));
  }
  bool can_log() const override { return true; }
  Result<void> logs(BuildRequest request, std::uint64_t cursor, Io& io) override {
    called("logs " + request.build_id + " " + std::to_string(cursor));
    return give<Style>(io, "line", 0);
  }
};

template <class Style>
class SomeDirectory : public BasicDirectory<Style> {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  Result<DirectoryPage> find(Document labels, std::string page, std::uint32_t limit,
                             StopToken) override {
    called("find " + labels.string("a").value_or("-") + " " + page + " " + std::to_string(limit));
    DirectoryPage found;
    found.entries.resize(2);
    found.entries[0].sandbox_id = "s1";
    found.entries[1].session_id = "mine";
    found.entries[1].own = true;
    found.entries[1].labels.set("k", "v");
    found.next = "more";
    return Style::ready(std::move(found));
  }
  Result<void> remove(std::string id, StopToken) override {
    called("remove " + id);
    return Style::ready();
  }
  bool can_sweep() const override { return true; }
  Result<std::vector<Leftover>> sweep(bool remove, StopToken) override {
    called(remove ? "sweep away" : "sweep");
    std::vector<Leftover> found(2);
    found[0].kind = "image";
    found[0].id = "i1";
    found[0].reason = "old";
    found[1].bytes = 7;
    found[1].error = "in use";
    return Style::ready(std::move(found));
  }
};

template <class Style>
class SomeHealth : public BasicHealth<Style> {
 public:
  typename Style::template Result<void> check(StopToken) override {
    throw Error(Code::unauthenticated, "no key");
  }
};

template <class Style>
class FullFactory : public BasicFactorySandbox<Style> {
 public:
  static constexpr const char* provider = "full";
  SettingsSchema settings() const override {
    SettingsSchema schema;
    schema.integer("cpuCount").title("CPUs").bounds(1, 8).fallback(2);
    return schema;
  }
  std::vector<std::string> features() const override { return {"spawn.signal"}; }
  std::unique_ptr<SandboxBase> create(Context, Settings wanted) override {
    if (wanted.has("nothing")) return nullptr;
    return std::make_unique<FullSandbox<Style>>(wanted.boolean("lean").value_or(false));
  }
  BasicTemplates<Style>* templates() override { return &templates_; }
  BasicBuilds<Style>* builds() override { return &builds_; }
  BasicDirectory<Style>* directory() override { return &directory_; }
  BasicHealth<Style>* health() override { return &health_; }

 private:
  SomeTemplates<Style> templates_;
  SomeBuilds<Style> builds_;
  SomeDirectory<Style> directory_;
  SomeHealth<Style> health_;
};

}  // namespace

void called(const std::string& what) {
  noted() += (noted().empty() ? "" : "; ") + what;
}
std::string take_calls() {
  return std::exchange(noted(), {});
}

const sf_plugin* full_plugin(Style style) {
  if (style == Style::coroutine) return detail::plugin_of<FullFactory<Coroutine>>();
  return detail::plugin_of<FullFactory<Blocking>>();
}

}  // namespace sandforge::test

// The example with templates and builds, but for the one fault that its option names.
#include <sandforge/plugin/plugin.hpp>
#include <sandforge/support/hash.hpp>

#pragma push_macro("SANDFORGE_PLUGIN")
#undef SANDFORGE_PLUGIN
#define SANDFORGE_PLUGIN(factory)
#include "kitchen.cpp"  // NOLINT(bugprone-suspicious-include): the example, changed
#pragma pop_macro("SANDFORGE_PLUGIN")

class CrookedKitchen : public KitchenFactory {
 public:
  static constexpr const char* provider = "crooked-builds";
  explicit CrookedKitchen(const Opening& opening)
      : fault_(opening.options.string("fault").value_or("")) {}

  std::unique_ptr<SandboxBase> create(Context context, Settings settings) override {
    // Of a machine's size nothing is left, and any image of the repository will do.
    if (fault_ == "falls back across sizes") settings = Settings::parse("{}");
    return KitchenFactory::create(std::move(context), std::move(settings));
  }
  ResolvedTemplate resolve(Context context, Settings settings, StopToken stop) override {
    if (fault_ == "asks twice" && context.has_repository()) context.repository_access().get(stop);
    auto resolved = fault_ == "forgets who goes on"
                        ? strict(context, settings, stop)
                        : KitchenFactory::resolve(context, settings, stop);
    if (fault_ == "identity by session")
      resolved.identity = sandforge::sha256_hex(context.session_id().value_or(""));
    if (fault_ == "token in the template" && context.has_repository())
      resolved.document = Template::parse(*resolved.document)
                              .run_cmd("echo " + context.repository_access().get(stop).token)
                              .text();
    return resolved;
  }
  Build start(BuildRequest request, StopToken stop) override {
    for (const auto& entry : request.ephemeral_env)
      if (fault_ == "keeps ephemeral values") kept_ = entry.value.value_or("");
    return KitchenFactory::start(std::move(request), stop);
  }
  Build get(BuildRequest request, StopToken stop) override {
    const bool goes_on = request.context.continues_on_failure();
    Build build = KitchenFactory::get(std::move(request), stop);
    if (fault_ == "invents a status" && build.status == BuildStatus::unknown)
      build.status = BuildStatus::ready;
    if (fault_ == "ends at a failure" && goes_on && build.status == BuildStatus::ready)
      build.status = BuildStatus::failed;
    if (fault_ == "says not why") build.error.clear();
    build.error += kept_;
    return build;
  }
  bool can_log() const override { return fault_ != "keeps no log"; }
  void cancel(BuildRequest request, StopToken stop) override {
    if (fault_ == "ignores a cancel") return;
    if (fault_ == "fails a second cancel" &&
        KitchenFactory::get(request, stop).status == BuildStatus::failed)
      throw Error(Code::conflict, "it has ended");
    KitchenFactory::cancel(std::move(request), stop);
  }

 private:
  // As if no set-up might fail.
  static ResolvedTemplate strict(const Context& context, const Settings& settings,
                                 const StopToken& stop) {
    auto request = request_of(context);
    request.continue_on_failure.reset();
    auto outcome = resolve_repo_template(context, std::move(request), repo_rules(), stop);
    if (!outcome.plan && outcome.complete) outcome.plan.emplace();
    return resolved_template(outcome, RepoStyle(), machine_of(context, settings));
  }
  const std::string fault_;
  std::string kept_;
};
SANDFORGE_PLUGIN(CrookedKitchen)

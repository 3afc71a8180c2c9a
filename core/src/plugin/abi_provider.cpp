#include <utility>

#include <fmt/format.h>

#include "plugin/abi_backend.hpp"
#include "plugin/abi_builds.hpp"
#include "plugin/abi_call.hpp"
#include "plugin/abi_directory.hpp"
#include "plugin/members.hpp"
#include "sandforge/ext/builds.h"
#include "sandforge/ext/template.h"

namespace sandforge::plugin {
namespace {

Result<Description> read_description(Plugin& plugin, const sf_describe_result* result) {
  if (result == nullptr || !SF_HAS(result, settings_schema))
    return crashed(plugin, "describe answered without a settings schema", "missing_value");
  Description out;
  auto schema = copy_json(plugin, result->settings_schema, "the settings schema");
  if (!schema) return std::move(schema).error();
  if (!schema->is_object()) return crashed(plugin, "the settings schema is no JSON object");
  out.settings_schema = std::move(*schema);
  if (SF_HAS(result, describe) && !view(result->describe).empty()) {
    auto extra = copy_json(plugin, result->describe, "the answer of describe");
    if (!extra) return std::move(extra).error();
    if (!extra->is_object()) return crashed(plugin, "the answer of describe is no JSON object");
    out.describe = std::move(extra->as_object());
  }
  const json::Value* features = out.describe.find("features");
  if (features == nullptr) return out;
  if (!features->is_array()) return crashed(plugin, "features is no array");
  for (const json::Value& feature : features->as_array()) {
    if (!feature.is_string()) return crashed(plugin, "a feature is no string");
    out.features.push_back(feature.as_string());
  }
  return out;
}

void done_describe(void* ctx, const sf_error* error, const sf_describe_result* result) noexcept {
  complete<Description>(ctx, error, "describe.done",
                        [result](Plugin& plugin) { return read_description(plugin, result); });
}

class AbiProvider final : public ProviderBackend, public OffersBuilds, public OffersDirectory {
 public:
  AbiProvider(std::shared_ptr<ProviderCore> core, SchemaCheck check)
      : core_(std::move(core)),
        check_(std::move(check)),
        builds_(make_builds(core_)),
        directory_(make_directory(core_)) {}

  const std::string& name() const noexcept override { return core_->name; }
  const Lane& lane() const noexcept override { return core_->lane; }

  void describe(Handler<Description> done) override {
    Handler<Description> handler(
        [core = core_, check = check_, done = std::move(done)](Result<Description> result) mutable {
          std::move(done)(finish(*core, check, std::move(result)));
        });
    if (auto good = need_lane(core_->lane, "describe"); !good) {
      core_->lane.post([handler = std::move(handler), error = good.error()]() mutable {
        std::move(handler)(std::move(error));
      });
      return;
    }
    run_call(std::make_shared<Call<Description>>(core_->plugin, core_->lane, "provider.describe",
                                                 core_, std::move(handler)),
             [this](void* ctx, sf_op** op) {
               return call_status(core_->plugin, "provider.describe", core_->raw->vtbl->describe,
                                  core_->raw, sf_describe_completion{ctx, &done_describe}, op);
             });
  }

  Result<std::shared_ptr<SandboxBackend>> create(CreateRequest request) override {
    return create_sandbox(core_, std::move(request));
  }

  BuildsBackend* builds() noexcept override { return builds_.get(); }
  DirectoryBackend* directory() noexcept override { return directory_.get(); }

 private:
  static Result<Description> finish(ProviderCore& core, const SchemaCheck& check,
                                    Result<Description> result) {
    if (!result.ok()) return result;
    if (check) {
      if (auto good = check(result->settings_schema); !good) {
        Error error = std::move(good).error();
        error.message =
            fmt::format("plugin {}: the settings schema of provider {} is not valid: {}",
                        core.plugin.name(), core.name, error.message);
        error.reason = "plugin.schema_invalid";
        error.details.set("plugin", core.plugin.name());
        return error;
      }
    }
    result->has_template = provider_extension(core, SF_EXT_TEMPLATE) != nullptr;
    const auto* builds = static_cast<const sf_builds_ext*>(provider_extension(core, SF_EXT_BUILDS));
    result->has_builds = builds != nullptr;
    result->has_build_history = builds != nullptr && SF_HAS_FN(builds, list);
    return result;
  }

  const std::shared_ptr<ProviderCore> core_;
  const SchemaCheck check_;
  const std::unique_ptr<BuildsBackend> builds_;
  const std::unique_ptr<DirectoryBackend> directory_;
};

Result<std::shared_ptr<ProviderBackend>> open_now(std::shared_ptr<ProviderCore> core,
                                                  const json::Object& options, SchemaCheck check) {
  Plugin& plugin = core->plugin;
  if (plugin.api == nullptr) return crashed(plugin, "it is not initialised", "init_failed");
  const std::string text = json::write(options);
  sf_open_request request{};
  request.struct_size = sizeof(request);
  request.provider = to_str(core->name);
  request.options = to_str(text);
  request.lane = core->lane_ref.get();
  sf_provider* raw = nullptr;
  const sf_open_request* given = &request;
  auto opened = call_status(plugin, "plugin.open", plugin.api->open, given, &raw);
  if (!opened) return std::move(opened).error();
  if (const char* missing = missing_member(raw)) {
    plugin.faults.report(Fault::missing_value, std::string("provider: ") + missing);
    return crashed(plugin, fmt::format("provider {} lacks {}", core->name, missing),
                   "missing_member");
  }
  core->raw = raw;
  return std::shared_ptr<ProviderBackend>(
      std::make_shared<AbiProvider>(std::move(core), std::move(check)));
}

}  // namespace

ProviderCore::ProviderCore(Plugin& p, std::string n, Lane l)
    : plugin(p), name(std::move(n)), lane(std::move(l)), lane_ref(p, lane) {}

ProviderCore::~ProviderCore() {
  if (raw == nullptr) return;
  lane.post([this_plugin = &plugin, provider = raw] {
    call_value(*this_plugin, "provider.release", provider->vtbl->release, provider);
  });
}

Result<void> need_lane(const Lane& lane, std::string_view what) {
  if (lane.is_current()) return {};
  return Error(Status::internal, fmt::format("{} was called outside its lane", what), "core.lane");
}

void open_provider(Plugin& plugin, std::string name, json::Object options, Lane lane,
                   SchemaCheck check, Handler<std::shared_ptr<ProviderBackend>> done) {
  auto core = std::make_shared<ProviderCore>(plugin, std::move(name), lane);
  lane.post([core = std::move(core), options = std::move(options), check = std::move(check),
             done = std::move(done)]() mutable {
    auto result = open_now(std::move(core), options, std::move(check));
    std::move(done)(std::move(result));
  });
}

}  // namespace sandforge::plugin

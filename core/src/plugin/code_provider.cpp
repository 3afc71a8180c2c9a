// Providers that a host registers in code.
#include <utility>

#include "sandforge/registry.hpp"

namespace sandforge {
namespace {

class CodeProvider final : public ProviderBackend {
 public:
  CodeProvider(std::string name, Lane lane, SandboxFactory create,
               std::vector<std::string> features)
      : name_(std::move(name)),
        lane_(std::move(lane)),
        create_(std::move(create)),
        features_(std::move(features)) {}

  const std::string& name() const noexcept override { return name_; }
  const Lane& lane() const noexcept override { return lane_; }

  void describe(Handler<Description> done) override {
    lane_.post([features = features_, done = std::move(done)]() mutable {
      Description description;
      description.settings_schema = ProviderDefinition::closed_schema();
      description.describe.set("features", json::Array(features.begin(), features.end()));
      description.features = std::move(features);
      std::move(done)(std::move(description));
    });
  }

  Result<std::shared_ptr<SandboxBackend>> create(CreateRequest request) override {
    try {
      auto made = create_(std::move(request));
      if (!made.ok() || *made != nullptr) return made;
      return Error(Status::internal, "the sandbox function of the host made no sandbox",
                   "custom.failed");
    } catch (const Exception& e) {
      return e.error();
    } catch (const std::exception& e) {
      return Error(Status::internal,
                   std::string("the sandbox function of the host failed: ") + e.what(),
                   "custom.failed");
    }
  }

 private:
  const std::string name_;
  const Lane lane_;
  const SandboxFactory create_;
  const std::vector<std::string> features_;
};

ProviderDefinition in_code(std::string name, std::string display_name, SandboxFactory create,
                           std::vector<std::string> features) {
  ProviderDefinition out;
  out.name = name;
  out.display_name = std::move(display_name);
  out.open = [name = std::move(name), create = std::move(create), features = std::move(features)](
                 const json::Object&, Lane lane, Handler<std::shared_ptr<ProviderBackend>> done) {
    std::move(done)(std::shared_ptr<ProviderBackend>(
        std::make_shared<CodeProvider>(name, std::move(lane), create, features)));
  };
  return out;
}

}  // namespace

json::Object ProviderDefinition::closed_schema() {
  json::Object out;
  out.set("type", "object");
  out.set("properties", json::Object());
  out.set("additionalProperties", false);
  return out;
}

std::vector<std::string> command_features() {
  std::vector<std::string> names;
  for (const auto name :
       {feature::kStdin, feature::kUser, feature::kDetach, feature::kSignal, feature::kKill,
        feature::kEnv, feature::kUnset, feature::kPty, feature::kSeparate, feature::kCombined})
    names.emplace_back(name);
  return names;
}

ProviderDefinition custom_provider(SandboxFactory create, std::vector<std::string> features) {
  return in_code("custom", "Custom", std::move(create), std::move(features));
}

ProviderDefinition none_provider() {
  return in_code("none", "No sandbox",
                 [](const CreateRequest&) -> Result<std::shared_ptr<SandboxBackend>> {
                   return Error(Status::unsupported, "no sandbox provider is configured",
                                "provider.none");
                 },
                 {});
}

}  // namespace sandforge

// Providers that a host registers in code.
#include <utility>

#include "sandforge/registry.hpp"

namespace sandforge {
namespace {

class CodeProvider final : public ProviderBackend {
 public:
  CodeProvider(std::string name, Lane lane, SandboxFactory create)
      : name_(std::move(name)), lane_(std::move(lane)), create_(std::move(create)) {}

  const std::string& name() const noexcept override { return name_; }
  const Lane& lane() const noexcept override { return lane_; }

  void describe(Handler<Description> done) override {
    lane_.post([done = std::move(done)]() mutable {
      Description description;
      description.settings_schema = ProviderDefinition::closed_schema();
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
};

ProviderDefinition in_code(std::string name, std::string display_name, SandboxFactory create) {
  ProviderDefinition out;
  out.name = name;
  out.display_name = std::move(display_name);
  out.open = [name = std::move(name), create = std::move(create)](
                 const json::Object&, Lane lane, Handler<std::shared_ptr<ProviderBackend>> done) {
    std::move(done)(std::shared_ptr<ProviderBackend>(
        std::make_shared<CodeProvider>(name, std::move(lane), create)));
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

ProviderDefinition custom_provider(SandboxFactory create) {
  return in_code("custom", "Custom", std::move(create));
}

ProviderDefinition none_provider() {
  return in_code(
      "none", "No sandbox", [](const CreateRequest&) -> Result<std::shared_ptr<SandboxBackend>> {
        return Error(Status::unsupported, "no sandbox provider is configured", "provider.none");
      });
}

}  // namespace sandforge

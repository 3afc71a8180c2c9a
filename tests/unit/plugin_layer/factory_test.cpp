// A provider as a host holds it: what it tells about itself, and how it makes sandboxes.
#include <sandforge/plugin/factory.hpp>

#include "full_plugin.hpp"

namespace testing = sandforge::testing;
namespace plugin = sandforge::plugin;
using namespace sandforge::test;
using testing::str;

TEST_CASE("a provider tells its features and the schema of its settings") {
  Full full(GENERATE(Style::blocking, Style::coroutine));
  const auto description = full.driver->describe();
  CHECK(description.done == 1);
  CHECK(description.describe == R"({"features":["spawn.signal"]})");
  CHECK(description.schema.find(R"("cpuCount":{"type":"integer")") != std::string::npos);
}

TEST_CASE("a sandbox is made from settings and a context, or the call fails with a typed error") {
  Full full(GENERATE(Style::blocking, Style::coroutine));
  const auto create = [&](const char* settings, testing::Context* context = nullptr) {
    sf_sandbox* made = nullptr;
    sf_status status = SF_OK;
    full.driver->call([&] {
      sf_create_request request{};
      request.struct_size = sizeof request;
      request.context = context;
      request.lane = full.driver->lane;
      request.settings = str(settings);
      request.idle_timeout_ms = SF_NONE;
      const sf_error_sink err = testing::sink(full.failure);
      status = full.provider->vtbl->create(full.provider, &request, &made, &err);
      if (made != nullptr) made->vtbl->release(made);
    });
    CHECK((made != nullptr) == (status == SF_OK));
    return status == SF_OK ? "made" : std::to_string(status) + " " + full.failure.message;
  };
  testing::Context context;
  CHECK(create("{}", &context) == "made");
  CHECK(context.refs == 1);
  CHECK(create("") == "made");
  CHECK(create("[]") == "1 a JSON object was expected");
  CHECK(create(R"({"lean":"yes"})") == R"(1 "lean" must be true or false)");
  CHECK(full.failure.details == R"({"pointer":"/lean"})");
  CHECK(create(R"({"nothing":1})") == "16 create made no sandbox");
}

namespace {

// Looks around before it describes itself, and counts what lives.
class Looker : public plugin::FactorySandbox {
 public:
  static inline std::atomic<int> live{0};
  Looker() { ++live; }
  ~Looker() override { --live; }
  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;

  plugin::Description describe(plugin::StopToken) override {
    plugin::Description description;
    description.settings.boolean("fast");
    description.more.set("version", 3);
    return description;
  }
  std::unique_ptr<plugin::SandboxBase> create(plugin::Context, plugin::Settings) override {
    throw plugin::Error(plugin::Code::unavailable, "not today");
  }
};

}  // namespace

TEST_CASE("a provider may describe itself by a look around, and has no part it does not name") {
  testing::Host host;
  plugin::detail::services().fill(&host);
  {
    testing::Driver driver(host, nullptr);
    driver.provider = (new Looker)->attach(plugin::Lane(driver.lane));
    const auto description = driver.describe();
    CHECK(description.describe == R"({"version":3,"features":[]})");
    CHECK(description.schema.find(R"("fast":{"type":"boolean"})") != std::string::npos);
    for (const char* id :
         {SF_EXT_TEMPLATE, SF_EXT_BUILDS, SF_EXT_DIRECTORY, SF_EXT_HEALTH, SF_EXT_FILES}) {
      CHECK(driver.provider->vtbl->extension(driver.provider, str(id)) == nullptr);
    }
    CHECK(plugin::FactoryBase::of(driver.provider).lane().get() == driver.lane);
    testing::Failure failure;
    CHECK(driver.create(nullptr, "{}", failure) == SF_UNAVAILABLE);
    CHECK(failure.message == "not today");
    host.join();
  }
  CHECK(Looker::live == 0);
  CHECK(testing::Lane::live == 0);
}

TEST_CASE("options and lane of a provider are what it was opened with") {
  testing::Host host;
  plugin::detail::services().fill(&host);
  testing::Lane* raw = testing::Lane::create(host.loop);
  {
    const plugin::Opening opening(plugin::Options::parse(R"({"key":"v"})"), plugin::Lane(raw));
    CHECK(opening.options.string("key") == "v");
    CHECK(opening.lane.get() == raw);
    CHECK(opening.host().now() == host.now());
  }
  raw->release();
  CHECK(testing::Lane::live == 0);
}

// A provider that does nothing, so that what is measured with it is the boundary alone.
#include <sandforge/plugin/plugin.hpp>

using namespace sandforge::plugin;

class PlainSandbox : public Sandbox {
 public:
  Started start(Starting&) override { return Started(Outcome::connected, "plain", "/"); }
  void stop(StopToken) override {}
  void destroy(StopToken) override {}
  void spawn(Spawn& spawn) override { spawn.delegate(); }
};

class PlainFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "plain";
  explicit PlainFactory(const Opening&) {}
  std::unique_ptr<SandboxBase> create(Context, Settings) override {
    return std::make_unique<PlainSandbox>();
  }
};
SANDFORGE_PLUGIN(PlainFactory)

// A provider that does nothing, so that what is measured with it is the boundary alone.
#include <sandforge/plugin/plugin.hpp>

#include <cstdlib>

using namespace sandforge::plugin;

class PlainSandbox : public Sandbox {
 public:
  Started start(Starting&) override { return Started(Outcome::connected, "plain", "/"); }
  void stop(StopToken) override {}
  void destroy(StopToken) override {}
  // As many MiB of output as the command says; none: waits for the end of its input.
  Exit run(Command command, ProcessIo io) override {
    const std::string block(64 << 10, 'x');
    const long blocks = 16 * std::strtol(command.shell.value_or("").c_str(), nullptr, 10);
    for (long i = 0; i < blocks; ++i)
      io.out(block);
    while (blocks == 0 && io.read()) {
    }
    return Exit::exited(0);
  }
};

class PlainFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "plain-000";
  explicit PlainFactory(const Opening&) {}
  std::unique_ptr<SandboxBase> create(Context, Settings) override {
    return std::make_unique<PlainSandbox>();
  }
};
SANDFORGE_PLUGIN(PlainFactory)

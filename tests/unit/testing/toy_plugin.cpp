// A plugin for the tests of Session, linked into their program.
#include <sandforge/plugin/plugin.hpp>

namespace {

using namespace sandforge::plugin;

// Knows "say WORD", "fail", and "sleep", which ends after an hour.
class Toy : public Sandbox {
 public:
  explicit Toy(Context context, Settings settings)
      : context_(std::move(context)), slow_(settings.boolean("slow").value_or(false)) {}

  Started start(Starting& starting) override {
    if (slow_) host().sleep(lane(), std::chrono::hours(1)).get(starting.stop());
    starting.identify("toy-" + context_.session_id().value_or("?"));
    return Started(std::exchange(on_, true) ? Outcome::connected : Outcome::created, "toy", "/toy");
  }
  void stop(StopToken) override { on_ = false; }
  void destroy(StopToken) override {
    if (!on_) throw Error(Code::unavailable, "not today");
  }
  Exit run(Command command, ProcessIo io) override {
    const std::string text = command.shell.value_or("");
    if (text == "fail") throw Error(Code::not_found, "no such folder");
    io.started("1");
    if (text == "sleep") host().sleep(lane(), std::chrono::hours(1)).get(io.stop());
    io.write(text.substr(text.find(' ') + 1), SF_CHANNEL_STDOUT);
    return Exit::exited(text == "say bye" ? 9 : 0);
  }

 private:
  const Context context_;
  const bool slow_;
  bool on_ = false;
};

class ToyFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "toy";
  SettingsSchema settings() const override {
    SettingsSchema schema;
    schema.boolean("slow").title("Slow").fallback(false);
    return schema;
  }
  std::unique_ptr<SandboxBase> create(Context context, Settings settings) override {
    return std::make_unique<Toy>(std::move(context), std::move(settings));
  }
};

}  // namespace

SANDFORGE_PLUGIN(ToyFactory)

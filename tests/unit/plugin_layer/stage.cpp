#include "stage.hpp"

#include <sandforge/plugin/export.hpp>

namespace sandforge::test {
namespace {

using namespace sandforge::plugin;

Play* play = nullptr;

class Player : public Sandbox {
 public:
  Started start(Starting& starting) override {
    play->start(*this, starting);
    return Started(Outcome::created, "id");
  }
  void stop(StopToken stop) override { play->stop(*this, std::move(stop)); }
  void destroy(StopToken) override {}
  Exit run(Command command, ProcessIo io) override {
    return play->run ? play->run(*this, io) : Sandbox::run(std::move(command), io);
  }
  void spawn(Spawn& spawn) override {
    if (play->spawn) return play->spawn(*this, spawn);
    Sandbox::spawn(spawn);
  }
};

class PlayerFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "player";
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    play->context = std::move(context);
    return std::make_unique<Player>();
  }
};

}  // namespace

const sf_plugin* player_plugin(Play& on) {
  play = &on;
  return plugin::detail::plugin_of<PlayerFactory>();
}

}  // namespace sandforge::test

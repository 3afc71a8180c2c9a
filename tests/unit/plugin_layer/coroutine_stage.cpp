#include "coroutine_stage.hpp"

#include <sandforge/plugin/export.hpp>

namespace sandforge::test {
namespace {

using namespace sandforge::plugin;
using std::chrono::milliseconds;

Script* script = nullptr;

class Scripted : public CoSandbox {
 public:
  Scripted() { ++script->live; }
  ~Scripted() override {
    --script->live;
    if (lane() && !lane().is_current()) ++script->off_lane;
  }
  Scripted(const Scripted&) = delete;
  Scripted& operator=(const Scripted&) = delete;

  Task<Started> start(Starting& starting) override {
    script->lane = lane();
    script->look();
    co_await sleep_for(milliseconds(0));
    script->look();
    starting.identify("id-1");
    Started started(Outcome::created, "id-1", "/work");
    started.warnings.emplace_back("slow");
    co_return started;
  }
  // Refuses without being a coroutine at all.
  Task<void> stop(StopToken) override { throw Error(Code::conflict, "never"); }
  Task<void> destroy(StopToken stop) override { return script->destroy(*script, std::move(stop)); }
  Task<Exit> run(Command, ProcessIo io) override { return script->run(*script, std::move(io)); }
};

class ScriptedFactory : public CoFactorySandbox {
 public:
  static constexpr const char* provider = "scripted";
  std::unique_ptr<SandboxBase> create(Context, Settings) override {
    return std::make_unique<Scripted>();
  }
};

}  // namespace

const sf_plugin* scripted_plugin(Script& by) {
  script = &by;
  return plugin::detail::plugin_of<ScriptedFactory>();
}

}  // namespace sandforge::test

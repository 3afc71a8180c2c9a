// A complete provider: each session is a folder on the host's machine, its commands run there.
#include <sandforge/plugin/plugin.hpp>
#include <sandforge/support/hash.hpp>

using namespace sandforge::plugin;
namespace fs = std::filesystem;

class FolderSandbox : public Sandbox {
 public:
  FolderSandbox(const fs::path& root, const Context& context)
      : machine_(root / sandforge::sha256_hex(context.session_id().value_or(""))),
        folder_(context.working_directory().value_or(machine_.string())),
        commands_(machine_.string()) {}
  Started start(Starting& starting) override {
    const bool fresh = fs::create_directories(machine_);
    commands_.open(folder_, starting.env());
    return Started(fresh ? Outcome::created : Outcome::connected, machine_.string(), folder_);
  }
  void stop(StopToken stop) override { commands_.end(lane()).get(stop); }
  void destroy(StopToken stop) override {
    commands_.end(lane()).get(stop);
    fs::remove_all(machine_);
  }
  void spawn(Spawn& spawn) override { commands_.run(spawn); }

 private:
  const fs::path machine_;  // its path is the id of the sandbox, too
  const std::string folder_;
  HostCommands commands_;  // under that id: every object of the session can end them
};

class FolderFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "minimal-cpp";
  explicit FolderFactory(const Opening& o)
      : root_(o.options.string("root").value_or(o.host().folder(SF_PATH_DATA).value_or("/tmp"))) {}
  std::vector<std::string> features() const override { return HostCommands::features(); }
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<FolderSandbox>(root_, context);
  }

 private:
  const fs::path root_;
};
SANDFORGE_PLUGIN(FolderFactory)

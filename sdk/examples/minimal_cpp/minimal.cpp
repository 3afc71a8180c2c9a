// A complete provider: each session is a folder on the host's machine, its commands run there.
#include <sandforge/plugin/plugin.hpp>
#include <sandforge/support/hash.hpp>

#include <filesystem>

using namespace sandforge::plugin;

class FolderSandbox : public Sandbox {
 public:
  FolderSandbox(const std::string& root, const Context& context)
      : folder_(root + "/" + sandforge::sha256_hex(context.session_id().value_or(""))) {}
  Started start(Starting& starting) override {
    const bool fresh = std::filesystem::create_directories(folder_);
    env_ = starting.env();
    return Started(fresh ? Outcome::created : Outcome::connected, folder_, folder_);
  }
  void stop(StopToken) override {}
  void destroy(StopToken) override { std::filesystem::remove_all(folder_); }
  void spawn(Spawn& spawn) override {
    Command& command = spawn.command();
    command.cwd = (std::filesystem::path(folder_) / command.cwd.value_or("")).string();
    command.env.insert(command.env.begin(), env_.begin(), env_.end());
    spawn.delegate();
  }

 private:
  const std::string folder_;  // its path is the id of the sandbox, too
  std::vector<EnvEntry> env_;
};

class FolderFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "minimal-cpp";
  explicit FolderFactory(const Opening& o) : root_(o.options.string("root").value_or("/tmp/box")) {}
  // All that delegate() passes on.
  std::vector<std::string> features() const override {
    return {"spawn.stdin", "spawn.signal",    "spawn.kill",      "spawn.user",
            "env.unset",   "env.per_command", "stderr.separate", "stderr.combined"};
  }
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<FolderSandbox>(root_, context);
  }

 private:
  std::string root_;
};
SANDFORGE_PLUGIN(FolderFactory)

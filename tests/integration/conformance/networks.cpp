// The minimal provider, which claims networks: with "apart" each command has one of its own, which
// reaches nothing; without it all have the host's.
#include <unistd.h>

#include <sandforge/plugin/plugin.hpp>

#pragma push_macro("SANDFORGE_PLUGIN")
#undef SANDFORGE_PLUGIN
#define SANDFORGE_PLUGIN(factory)
#include "minimal.cpp"  // NOLINT(bugprone-suspicious-include): the example, changed
#pragma pop_macro("SANDFORGE_PLUGIN")

class NetworkSandbox : public FolderSandbox {
 public:
  NetworkSandbox(const fs::path& root, const Context& context, bool apart)
      : FolderSandbox(root, context), apart_(apart) {}
  void spawn(Spawn& spawn) override {
    if (apart_) {
      Command& command = spawn.command();
      std::vector<std::string> argv = {"unshare", "--net"};
      if (::geteuid() != 0) argv.emplace_back("--map-root-user");
      if (command.shell)
        argv.insert(argv.end(), {"sh", "-c", *command.shell});
      else
        argv.insert(argv.end(), command.argv.begin(), command.argv.end());
      command.shell.reset();
      command.argv = std::move(argv);
    }
    FolderSandbox::spawn(spawn);
  }

 private:
  const bool apart_;
};

class NetworkFactory : public FolderFactory {
 public:
  static constexpr const char* provider = "networks";
  explicit NetworkFactory(const Opening& opening)
      : FolderFactory(opening),
        root_(opening.options.string("root").value_or("")),
        apart_(opening.options.boolean("apart").value_or(false)) {}
  std::vector<std::string> features() const override {
    auto all = FolderFactory::features();
    all.insert(all.end(), {"network.none", "network.isolated", "network.private"});
    return all;
  }
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<NetworkSandbox>(root_, context, apart_);
  }

 private:
  const fs::path root_;
  const bool apart_;
};
SANDFORGE_PLUGIN(NetworkFactory)

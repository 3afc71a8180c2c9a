// A provider that is right but for the one fault that its option names: what the suite must find.
#include <sandforge/plugin/plugin.hpp>
#include <sandforge/support/hash.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

using namespace sandforge::plugin;
namespace fs = std::filesystem;

namespace {

class CrookedSandbox : public Sandbox {
 public:
  CrookedSandbox(const std::string& root, std::string fault, const Context& context)
      : fault_(std::move(fault)),
        id_(sandforge::sha256_hex(context.session_id().value_or(""))),
        folder_(fs::path(root) / id_) {}

  Started start(Starting& starting) override {
    if (fault_ == "never done")
      for (;;)
        std::this_thread::sleep_for(std::chrono::seconds(1));
    if (fault_ == "starts once" && std::exchange(started_, true))
      throw Error(Code::unavailable, "it does not start again");
    if (fault_ == "second machine") fs::remove_all(folder_);
    const bool fresh = fs::create_directories(folder_);
    env_ = starting.env();
    return Started(fresh ? Outcome::created : Outcome::connected, id_, folder_.string());
  }
  void stop(StopToken) override {}
  void destroy(StopToken) override {
    if (fault_ != "keeps its files") fs::remove_all(folder_);
  }

  void spawn(Spawn& spawn) override {
    Command& command = spawn.command();
    command.cwd = (folder_ / command.cwd.value_or("")).string();
    if (fault_ == "ignores the environment") {
      command.env.clear();
    } else {
      command.env.insert(command.env.begin(), env_.begin(), env_.end());
    }
    if (fault_ == "invents exit 0") invent_success(command);
    if (fault_ == "leaks a process") leak_process();
    if (fault_ == "leaks a descriptor") leaked_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fault_ == "prints") std::puts("running a command");
    if (fault_ == "crashes") std::abort();
    if (fault_ == "drops standard error") command.combine_output = true;
    spawn.delegate();
  }

 private:
  // However the command ends, it has exited with 0.
  static void invent_success(Command& command) {
    std::vector<std::string> argv = {"sh", "-c"};
    if (command.shell) {
      argv.push_back("(" + *command.shell + "\n); exit 0");
    } else {
      argv.emplace_back("(\"$@\"); exit 0");
      argv.emplace_back("sh");
      argv.insert(argv.end(), command.argv.begin(), command.argv.end());
    }
    command.shell.reset();
    command.argv = std::move(argv);
  }

  static void leak_process() {
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    std::string name = "sleep", time = "600";
    char* argv[] = {name.data(), time.data(), nullptr};
    pid_t pid = 0;
    posix_spawnp(&pid, "sleep", nullptr, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
  }

  const std::string fault_;
  std::string id_;
  fs::path folder_;
  std::vector<EnvEntry> env_;
  int leaked_ = -1;
  bool started_ = false;
};

class CrookedFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "crooked";
  explicit CrookedFactory(const Opening& opening)
      : root_(opening.options.string("root").value_or("")),
        fault_(opening.options.string("fault").value_or("")) {
    if (fault_ == "does not open") throw Error(Code::unauthenticated, "the key is not valid");
    if (fault_ == "dies while it opens") std::abort();
  }

  std::vector<std::string> features() const override {
    std::vector<std::string> all = {"spawn.stdin",     "spawn.kill",      "spawn.tree",
                                    "stderr.separate", "stderr.combined", "env.per_command",
                                    "env.unset"};
    if (fault_ == "hides what it can") all.clear();
    if (fault_ == "boasts") all.emplace_back("teleportation");
    return all;
  }
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<CrookedSandbox>(root_, fault_, context);
  }

 private:
  std::string root_;
  std::string fault_;
};

}  // namespace
SANDFORGE_PLUGIN(CrookedFactory)

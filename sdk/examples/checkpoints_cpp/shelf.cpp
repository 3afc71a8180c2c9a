// Sandboxes whose files can be kept: each session is a folder, each checkpoint a copy of one.
#include <sandforge/plugin/plugin.hpp>
#include <sandforge/support/hash.hpp>

#include <algorithm>
#include <atomic>
#include <fstream>

using namespace sandforge::plugin;
namespace fs = std::filesystem;

class ShelfSandbox : public Sandbox, public BasicSnapshots<Blocking> {
 public:
  ShelfSandbox(const fs::path& root, const Context& context)
      : machine_(root / "sessions" / sandforge::sha256_hex(context.session_id().value_or(""))),
        shelf_(root / "checkpoints"),
        own_(context.checkpoint_name()),
        seed_(context.seed_checkpoint_name()),
        commands_(machine_.string()) {
    if (!own_ && context.caller_chose_id()) own_ = context.session_id();
  }

  BasicSnapshots<Blocking>* snapshots() override { return this; }

  Started start(Starting& starting) override {
    Started started(Outcome::connected, machine_.string(), machine_.string());
    if (!fs::exists(machine_)) {
      started.outcome = Outcome::created;
      started.provenance = boot();
    }
    commands_.open(machine_, starting.env());
    running_ = true;
    return started;
  }
  void stop(StopToken stop) override {
    running_ = false;
    commands_.end(lane()).get(stop);
  }
  void destroy(StopToken stop) override {
    running_ = false;
    commands_.end(lane()).get(stop);
    fs::remove_all(machine_);
  }
  void spawn(Spawn& spawn) override { commands_.run(spawn); }

  std::optional<Checkpoint> create(std::string name, StopToken) override {
    if (name.empty()) name = own_.value_or("");
    if (name.empty() || !running_) return std::nullopt;
    const fs::path place = place_of(name), made = place.string() + ".new";
    fs::remove_all(made);
    copy(machine_, made / "files");
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::ofstream(made / "about") << std::chrono::nanoseconds(now).count() << " " << name;
    fs::remove_all(place);
    fs::rename(made, place);
    return about(place);
  }
  std::vector<Checkpoint> list(StopToken) override {
    std::vector<Checkpoint> all;
    if (!fs::exists(shelf_)) return all;
    for (const auto& entry : fs::directory_iterator(shelf_))
      if (entry.path().extension() != ".new") all.push_back(about(entry.path()));
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.created_at > b.created_at; });
    return all;
  }
  void remove(std::string name, StopToken) override { fs::remove_all(place_of(name)); }
  void start_from(std::string name, StopToken) override {
    if (!exists(name)) throw Error(Code::not_found, "there is no checkpoint " + name);
    wanted_ = name;
  }

 protected:
  fs::path place_of(const std::string& name) const { return shelf_ / sandforge::sha256_hex(name); }
  static void copy(const fs::path& from, const fs::path& to) {
    fs::create_directories(to);
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }

 private:
  bool exists(const std::string& name) const { return fs::exists(place_of(name)); }

  Provenance boot() {
    if (const auto wanted = std::exchange(wanted_, std::nullopt)) {
      copy(place_of(*wanted) / "files", machine_);
    } else if (own_ && exists(*own_)) {
      copy(place_of(*own_) / "files", machine_);
    } else if (seed_ && exists(*seed_)) {
      copy(place_of(*seed_) / "files", machine_);
      return Provenance::seed;
    } else {
      fs::create_directories(machine_);
      return Provenance::base;
    }
    return Provenance::checkpoint;
  }

  static Checkpoint about(const fs::path& place) {
    Checkpoint checkpoint;
    std::ifstream about(place / "about");
    about >> checkpoint.created_at;
    std::getline(about.ignore(), checkpoint.name, '\0');
    return checkpoint;
  }

  const fs::path machine_;  // its path is the id of the sandbox, too
  const fs::path shelf_;
  std::optional<std::string> own_;
  const std::optional<std::string> seed_;
  std::optional<std::string> wanted_;
  std::atomic<bool> running_{false};
  HostCommands commands_;
};

class ShelfFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "checkpoints-cpp";
  explicit ShelfFactory(const Opening& o)
      : root_(o.options.string("root").value_or(o.host().folder(SF_PATH_DATA).value_or("/tmp"))) {}
  std::vector<std::string> features() const override {
    auto all = HostCommands::features();
    all.emplace_back("checkpoints");
    return all;
  }
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<ShelfSandbox>(root_, context);
  }

 protected:
  const fs::path root_;
};
SANDFORGE_PLUGIN(ShelfFactory)

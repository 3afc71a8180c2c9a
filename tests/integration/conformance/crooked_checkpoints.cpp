// The example with checkpoints, but for the one fault that its option names.
#include <sandforge/plugin/plugin.hpp>

#pragma push_macro("SANDFORGE_PLUGIN")
#undef SANDFORGE_PLUGIN
#define SANDFORGE_PLUGIN(factory)
#include "shelf.cpp"  // NOLINT(bugprone-suspicious-include): the example, changed
#pragma pop_macro("SANDFORGE_PLUGIN")

class CrookedShelf : public ShelfSandbox {
 public:
  CrookedShelf(const fs::path& root, const Context& context, std::string fault)
      : ShelfSandbox(root, context),
        fault_(std::move(fault)),
        session_(context.session_id().value_or("")),
        seed_(context.seed_checkpoint_name()) {}

  Started start(Starting& starting) override {
    auto started = ShelfSandbox::start(starting);
    if (fault_ == "answers connected") started.outcome = Outcome::connected;
    if (fault_ == "says base" && started.provenance != Provenance::none)
      started.provenance = Provenance::base;
    if (fault_ == "forgets the files" && started.outcome == Outcome::created)
      for (const auto& entry : fs::directory_iterator(*started.sandbox_id))
        fs::remove_all(entry.path());
    return started;
  }
  void stop(StopToken stop) override {
    if (fault_ == "captures by itself") ShelfSandbox::create(session_, stop);
    ShelfSandbox::stop(stop);
  }
  void destroy(StopToken stop) override {
    if (fault_ == "destroys checkpoints") ShelfSandbox::remove(session_, stop);
    if (fault_ == "captures at the end") ShelfSandbox::create(session_, stop);
    ShelfSandbox::destroy(stop);
  }
  std::optional<Checkpoint> create(std::string name, StopToken stop) override {
    auto made = ShelfSandbox::create(name, stop);
    if (fault_ == "changes the seed" && seed_) ShelfSandbox::create(*seed_, stop);
    if (fault_ == "captures nothing") ShelfSandbox::remove(name, stop);
    return made;
  }
  void start_from(std::string name, StopToken stop) override {
    if (fault_ != "starts from nothing") ShelfSandbox::start_from(std::move(name), stop);
  }
  void remove(std::string name, StopToken stop) override {
    if (fault_ != "keeps what is removed") ShelfSandbox::remove(std::move(name), stop);
  }

 private:
  const std::string fault_;
  const std::string session_;
  const std::optional<std::string> seed_;
};

class CrookedShelfFactory : public ShelfFactory {
 public:
  static constexpr const char* provider = "crooked-checkpoints";
  explicit CrookedShelfFactory(const Opening& opening)
      : ShelfFactory(opening), fault_(opening.options.string("fault").value_or("")) {}
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<CrookedShelf>(root_, context, fault_);
  }

 private:
  const std::string fault_;
};
SANDFORGE_PLUGIN(CrookedShelfFactory)

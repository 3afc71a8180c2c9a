// A complete provider in coroutines. Its sandboxes live in memory and know two commands:
//   tick COUNT MILLISECONDS   says "tick" so many times, with that pause before each
//   cat                       answers what it is given
// However many commands run or wait, none of them holds a thread.
#include <sandforge/plugin/plugin.hpp>

#include <charconv>
#include <map>
#include <sstream>

using namespace sandforge::plugin;

// The machines of all sessions: the cloud, as it were.
class Clocks {
 public:
  // Returns whether it was made now.
  bool start(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const bool fresh = running_.count(id) == 0;
    running_[id] = true;
    return fresh;
  }
  void stop(const std::string& id) {
    const std::lock_guard lock(mutex_);
    if (const auto found = running_.find(id); found != running_.end()) found->second = false;
  }
  void destroy(const std::string& id) {
    const std::lock_guard lock(mutex_);
    running_.erase(id);
  }
  State state(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(id);
    if (found == running_.end()) return State::absent;
    return found->second ? State::running : State::stopped;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, bool> running_;
};

Clocks& clocks() {
  static Clocks all;
  return all;
}

class ClockSandbox : public CoSandbox {
 public:
  explicit ClockSandbox(const Context& context)
      : id_("clock-" + context.session_id().value_or("")) {}

  Task<Started> start(Starting& starting) override {
    starting.identify(id_);
    const bool fresh = clocks().start(id_);
    co_return Started(fresh ? Outcome::created : Outcome::connected, id_, "/");
  }
  // A command that pauses or waits sees it when it goes on.
  Task<void> stop(StopToken) override {
    clocks().stop(id_);
    co_return;
  }
  Task<void> destroy(StopToken) override {
    clocks().destroy(id_);
    co_return;
  }
  Task<SandboxInfo> info(StopToken) override {
    SandboxInfo now(clocks().state(id_));
    now.sandbox_id = id_;
    co_return now;
  }

  // The lane runs one coroutine of this sandbox at a time, so its members need no lock.
  Task<Exit> run(Command command, ProcessIo io) override {
    const State state = clocks().state(id_);
    if (state == State::stopped) throw Error(Code::conflict, "the sandbox is stopped");
    if (state == State::absent) throw Error(Code::gone, "the sandbox no longer exists");
    std::istringstream text(command.shell.value_or(""));
    std::vector<std::string> words = std::move(command.argv);
    for (std::string word; text >> word;)
      words.push_back(word);
    if (words.size() == 3 && words[0] == "tick") {
      const int count = number(words[1]);
      const std::chrono::milliseconds pause(number(words[2]));
      io.started(std::to_string(++commands_));
      co_return co_await tick(count, pause, io);
    }
    io.started(std::to_string(++commands_));
    if (words.size() == 1 && words[0] == "cat") co_return co_await cat(io);
    co_await write_all(io, "usage: tick COUNT MILLISECONDS | cat\n", SF_CHANNEL_STDERR);
    co_return Exit::exited(127);
  }

 private:
  // sleep_for ends with an exception when the command is cancelled or its time is over, and so does
  // write_all, which also waits while the reader is slower than the clock.
  Task<Exit> tick(int count, std::chrono::milliseconds pause, ProcessIo io) {
    for (int i = 0; i < count; ++i) {
      co_await sleep_for(pause);
      if (clocks().state(id_) != State::running) co_return Exit::signaled(15);
      co_await write_all(io, "tick\n", SF_CHANNEL_STDOUT);
    }
    co_return Exit::exited(0);
  }
  Task<Exit> cat(ProcessIo io) {
    for (;;) {
      const std::optional<Piece> piece = co_await read_some(io);
      if (!piece) co_return Exit::exited(0);
      co_await write_all(io, piece->data, SF_CHANNEL_STDOUT);
    }
  }
  static int number(const std::string& word) {
    int value = 0;
    const auto end = std::from_chars(word.data(), word.data() + word.size(), value);
    if (end.ptr == word.data() + word.size() && value >= 0) return value;
    throw Error(Code::invalid, "no number: " + word);
  }

  const std::string id_;
  int commands_ = 0;
};

class ClockFactory : public CoFactorySandbox {
 public:
  static constexpr const char* provider = "coroutine-cpp";
  std::vector<std::string> features() const override {
    return {"commands.own", "spawn.stdin", "spawn.kill", "stderr.separate"};
  }
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<ClockSandbox>(context);
  }
};
SANDFORGE_PLUGIN(ClockFactory)

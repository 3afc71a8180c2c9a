// A pretend provider for tests of what stands on the ProviderBackend interface.
//
//   Runtime runtime;
//   auto world = std::make_shared<fake::World>(runtime);
//   auto sandbox = Sandbox::create(runtime, world->provider(), {}).value();
//
// Without a script it behaves: start creates or finds a machine by the session id (or the
// provider's id), stop keeps it, destroy removes it; commands are run by `program`, by default a
// tiny shell (see basic_program). Scripts make it fail, wait, or answer differently.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <vector>

#include "fake_process.hpp"
#include "sandforge/files.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/sandbox.hpp"

namespace sandforge::fake {

using Program = std::function<void(std::shared_ptr<Process>)>;

// `echo TEXT`, `exit N`, `true`, `printenv NAME`, `cat` (its input until end of file), `sleep`
// (until it is ended), anything else exits with 0.
inline void basic_program(const std::shared_ptr<Process>& p) {
  const std::string text = p->text();
  const auto rest = [&](std::size_t n) { return text.substr(std::min(n, text.size())); };
  p->start();
  if (text.rfind("echo ", 0) == 0) {
    p->out(rest(5) + "\n");
  } else if (text.rfind("exit ", 0) == 0) {
    return p->exit(std::stoi(rest(5)));
  } else if (text.rfind("printenv ", 0) == 0) {
    const auto it = p->command.env.find(rest(9));
    if (it == p->command.env.end() || !it->second) return p->exit(1);
    p->out(*it->second + "\n");
  } else if (text == "cat") {
    p->on_input = [](Process& me) {
      if (!me.input_closed()) return;
      me.out(me.input());
      me.exit(0);
    };
    return;
  } else if (text.rfind("sleep", 0) == 0) {
    return;
  }
  p->exit(0);
}

struct Machine {
  ProviderSandboxId id;
  MachineState state = MachineState::running;
};

// What the next start does instead of behaving.
struct StartScript {
  std::optional<Error> error;                 // the answer
  std::optional<StartResult> result;          // the answer
  std::optional<ProviderSandboxId> identity;  // told before the answer
  bool makes_machine = false;                 // although it fails
  bool hold = false;                          // the answer waits for World::release
  bool cancellable = false;                   // held for good: only to cancel it is an answer
};

struct Counts {
  int describes = 0, creates = 0, starts = 0, stops = 0, destroys = 0, spawns = 0, infos = 0,
      lists = 0;
};

class CancelledStart final : public Pending {
 public:
  explicit CancelledStart(std::function<void()> answer) : answer_(std::move(answer)) {}
  void cancel() noexcept override {
    if (auto answer = std::exchange(answer_, nullptr)) answer();
  }

 private:
  std::function<void()> answer_;
};

class Provider;

// State and scripts of the provider, and what was asked of it. Any thread.
class World : public std::enable_shared_from_this<World> {
 public:
  explicit World(Runtime& r) : runtime(r) {}

  std::shared_ptr<ProviderBackend> provider(std::string name = "fake");

  // ---- Scripts
  void next_start(StartScript script) {
    const std::lock_guard lock(mutex);
    start_scripts.push_back(std::move(script));
  }
  // The next spawns: an error gives it (with_done: through done, else at once), nothing behaves.
  void next_spawn(std::optional<Error> error, bool with_done = true) {
    const std::lock_guard lock(mutex);
    spawn_scripts.emplace_back(std::move(error), with_done);
  }
  void set_program(Program p) {
    const std::lock_guard lock(mutex);
    program = std::move(p);
  }
  void next_stop(std::optional<Error> error, bool hold = false) {
    const std::lock_guard lock(mutex);
    stop_scripts.emplace_back(std::move(error), hold);
  }
  void next_destroy(std::optional<Error> error, bool hold = false) {
    const std::lock_guard lock(mutex);
    destroy_scripts.emplace_back(std::move(error), hold);
  }
  // Lets everything that is held go on.
  void release() {
    std::vector<std::function<void()>> go;
    {
      const std::lock_guard lock(mutex);
      go.swap(held);
    }
    for (auto& work : go)
      work();
  }
  // Something is held, or the time is up.
  bool wait_held(std::size_t n = 1) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return held.size() >= n; });
  }

  // ---- What happens outside
  void stop_from_outside(const std::string& session) {
    const std::lock_guard lock(mutex);
    machines.at(session).state = MachineState::stopped;
  }
  void destroy_from_outside(const std::string& session) {
    const std::lock_guard lock(mutex);
    machines.erase(session);
  }

  // ---- What was asked
  Counts counts() const {
    const std::lock_guard lock(mutex);
    return counted;
  }
  std::size_t machine_count() const {
    const std::lock_guard lock(mutex);
    return machines.size();
  }
  std::vector<StartRequest> starts() const {
    const std::lock_guard lock(mutex);
    return start_requests;
  }
  std::vector<CreateRequest> creates() const {
    const std::lock_guard lock(mutex);
    return create_requests;
  }
  std::vector<std::shared_ptr<Process>> processes() const {
    const std::lock_guard lock(mutex);
    return spawned;
  }
  // The n-th process that was spawned, waiting for it.
  std::shared_ptr<Process> process(std::size_t n) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return spawned.size() > n; });
    return n < spawned.size() ? spawned[n] : nullptr;
  }

  Runtime& runtime;
  mutable std::mutex mutex;
  std::condition_variable changed;
  // Guarded by the mutex, as is what follows.
  Program program = basic_program;
  bool enforce_timeouts = true;
  std::vector<std::string> features = [] {
    auto all = command_features();
    all.emplace_back("idle.timeout");
    return all;
  }();
  bool strict_lanes = false;                  // create is refused outside the provider's lane
  bool has_processes = false;                 // the processes extension
  std::shared_ptr<FilesBackend> files;        // the files extension
  SnapshotsBackend* snapshots = nullptr;      // of every sandbox; outlives them
  std::optional<std::int64_t> created_at_ns;  // of every machine, as info tells it
  OutputCursor attached_from;                 // of the last attach
  std::vector<ProcessInfo> foreign;           // processes of earlier hosts, all attachable
  std::map<ProcessId, std::string> foreign_output;
  std::map<std::string, Machine> machines;  // by session id
  Counts counted;
  std::vector<StartRequest> start_requests;
  std::vector<CreateRequest> create_requests;
  std::vector<std::shared_ptr<Process>> spawned;
  std::vector<ProcessId> killed;  // through the extension
  std::deque<StartScript> start_scripts;
  std::deque<std::pair<std::optional<Error>, bool>> spawn_scripts, stop_scripts, destroy_scripts;
  std::vector<std::function<void()>> held;
  int next_machine = 1;
  int next_pid = 100;
};

class Box final : public SandboxBackend,
                  public ProcessesBackend,
                  public std::enable_shared_from_this<Box> {
 public:
  Box(std::shared_ptr<World> world, CreateRequest request)
      : world_(std::move(world)), request_(std::move(request)), lane_(request_.lane) {}

  std::shared_ptr<Pending> start(StartRequest request,
                                 std::function<void(ProviderSandboxId)> on_identity,
                                 Handler<StartResult> done) override {
    const std::lock_guard lock(world_->mutex);
    ++world_->counted.starts;
    world_->start_requests.push_back(std::move(request));
    StartScript script = take(world_->start_scripts);
    auto answer = shared(std::move(done));
    if (script.cancellable) {
      hold_or_go(true, [] {});
      return std::make_shared<CancelledStart>([lane = lane_, answer] {
        lane.post([answer] { (*answer)(Error(Status::cancelled, "the start was cancelled")); });
      });
    }
    hold_or_go(script.hold, [self = shared_from_this(), script, on_identity, answer] {
      if (script.identity) on_identity(*script.identity);
      if (script.error && !script.makes_machine) return (*answer)(*script.error);
      StartResult result = self->find_or_make(on_identity, !script.identity);
      if (script.error) return (*answer)(*script.error);
      (*answer)(script.result.value_or(result));
    });
    return nullptr;
  }
  void stop(Handler<void> done) override {
    const std::lock_guard lock(world_->mutex);
    ++world_->counted.stops;
    teardown(world_->stop_scripts, std::move(done), [](World& world, const std::string& session) {
      const auto it = world.machines.find(session);
      if (it != world.machines.end()) it->second.state = MachineState::stopped;
    });
  }
  void destroy(Handler<void> done) override {
    const std::lock_guard lock(world_->mutex);
    ++world_->counted.destroys;
    teardown(world_->destroy_scripts, std::move(done),
             [](World& world, const std::string& session) { world.machines.erase(session); });
  }
  void info(Handler<MachineInfo> done) override {
    const std::lock_guard lock(world_->mutex);
    ++world_->counted.infos;
    MachineInfo info;
    info.state = MachineState::absent;
    if (const auto it = world_->machines.find(session()); it != world_->machines.end()) {
      info.state = it->second.state;
      info.sandbox_id = it->second.id;
      info.created_at_ns = world_->created_at_ns;
      info.memory_mb = 1024;
      info.cpu_millis = 1500;
      info.metadata.set("providerResourceId", "resource-" + it->second.id.str());
    }
    lane_.post([answer = shared(std::move(done)), info] { (*answer)(info); });
  }
  void instructions(Handler<std::string> done) override {
    const std::lock_guard lock(world_->mutex);
    const auto it = world_->machines.find(session());
    std::string text = "Commands run in a fake sandbox.";
    if (it != world_->machines.end()) text += " Its id is " + it->second.id.str() + ".";
    lane_.post([answer = shared(std::move(done)), text] { (*answer)(text); });
  }
  Result<std::shared_ptr<ProcessBackend>> spawn(const Command& command,
                                                std::shared_ptr<ProcessSink> sink) override {
    const std::lock_guard lock(world_->mutex);
    ++world_->counted.spawns;
    std::optional<Error> error;
    bool with_done = true;
    if (!world_->spawn_scripts.empty()) std::tie(error, with_done) = take(world_->spawn_scripts);
    if (!error) error = refusal();
    if (error && !with_done) return *error;
    const int pid = world_->next_pid++;
    auto process = std::make_shared<Process>(lane_, command, ProcessId("p" + std::to_string(pid)),
                                             pid, std::move(sink));
    if (error) {
      process->fail(*error);
      return std::shared_ptr<ProcessBackend>(process);
    }
    world_->spawned.push_back(process);
    world_->changed.notify_all();
    if (world_->enforce_timeouts && command.timeout.count() > 0) watch(process);
    lane_.post([process, program = world_->program] {
      if (program) program(process);
    });
    return std::shared_ptr<ProcessBackend>(process);
  }
  ProcessesBackend* processes() noexcept override {
    const std::lock_guard lock(world_->mutex);
    return world_->has_processes ? this : nullptr;
  }
  SnapshotsBackend* snapshots() noexcept override {
    const std::lock_guard lock(world_->mutex);
    return world_->snapshots;
  }

  FilesBackend* files() noexcept override {
    const std::lock_guard lock(world_->mutex);
    return world_->files.get();
  }

  // ---- The processes extension
  void list(Handler<std::vector<ProcessInfo>> done) override {
    const std::lock_guard lock(world_->mutex);
    ++world_->counted.lists;
    std::vector<ProcessInfo> all = world_->foreign;
    for (const auto& process : world_->spawned) {
      if (std::any_of(all.begin(), all.end(),
                      [&](const ProcessInfo& known) { return known.id == process->id(); }))
        continue;  // one that was attached to
      ProcessInfo info;
      info.id = process->id();
      info.pid = process->pid();
      info.command = process->text();
      info.running = true;
      all.push_back(std::move(info));
    }
    lane_.post([answer = shared(std::move(done)), all] { (*answer)(all); });
  }
  Result<std::shared_ptr<ProcessBackend>> attach(const ProcessId& id, OutputCursor from,
                                                 std::uint64_t window,
                                                 std::shared_ptr<ProcessSink> sink) override {
    const std::lock_guard lock(world_->mutex);
    world_->attached_from = from;
    for (const auto& info : world_->foreign) {
      if (info.id != id) continue;
      Command command;
      command.shell = info.command;
      command.window = window;
      auto process = std::make_shared<Process>(lane_, command, id, info.pid, std::move(sink));
      world_->spawned.push_back(process);
      world_->changed.notify_all();
      process->out(world_->foreign_output[id]);
      if (info.exit) process->end(*info.exit);
      return std::shared_ptr<ProcessBackend>(process);
    }
    return Error(Status::not_found, "no such process");
  }
  void signal(const ProcessId& id, int, bool, Handler<void> done) override {
    const std::lock_guard lock(world_->mutex);
    Result<void> result = Error(Status::not_found, "no such process");
    for (const auto& info : world_->foreign)
      if (info.id == id && info.running) result = Result<void>();
    if (result) world_->killed.push_back(id);
    lane_.post([answer = shared(std::move(done)), result] { (*answer)(result); });
  }
  void forget(const ProcessId& id, Handler<void> done) override {
    const std::lock_guard lock(world_->mutex);
    auto& all = world_->foreign;
    for (auto it = all.begin(); it != all.end(); ++it) {
      if (it->id != id) continue;
      all.erase(it);
      break;
    }
    lane_.post([answer = shared(std::move(done))] { (*answer)(Result<void>()); });
  }

 private:
  // Copyable, and called once.
  template <class T>
  static std::shared_ptr<std::function<void(Result<T>)>> shared(Handler<T> done) {
    return std::make_shared<std::function<void(Result<T>)>>(
        [handler = std::make_shared<Handler<T>>(std::move(done))](Result<T> result) {
          std::move (*handler)(std::move(result));
        });
  }
  template <class Script>
  static Script take(std::deque<Script>& scripts) {
    if (scripts.empty()) return Script();
    Script first = std::move(scripts.front());
    scripts.pop_front();
    return first;
  }
  std::string session() const { return request_.context->session_id->str(); }

  // With the mutex held.
  void hold_or_go(bool hold, std::function<void()> work) {
    auto go = [lane = lane_, work = std::move(work)] { lane.post(work); };
    if (!hold) return go();
    world_->held.push_back(std::move(go));
    world_->changed.notify_all();
  }
  void teardown(std::deque<std::pair<std::optional<Error>, bool>>& scripts, Handler<void> done,
                std::function<void(World&, const std::string&)> effect) {
    const auto [error, hold] = take(scripts);
    auto answer = shared(std::move(done));
    hold_or_go(hold, [self = shared_from_this(), error = error, answer, effect] {
      if (error) return (*answer)(*error);
      {
        const std::lock_guard lock(self->world_->mutex);
        effect(*self->world_, self->session());
      }
      (*answer)(Result<void>());
    });
  }
  StartResult find_or_make(const std::function<void(ProviderSandboxId)>& on_identity, bool tell) {
    StartResult result;
    result.working_directory = "/work";
    ProviderSandboxId id;
    {
      const std::lock_guard lock(world_->mutex);
      auto [it, fresh] = world_->machines.try_emplace(session());
      if (fresh) it->second.id = ProviderSandboxId("m" + std::to_string(world_->next_machine++));
      it->second.state = MachineState::running;
      id = it->second.id;
      result.outcome = fresh ? StartOutcome::created : StartOutcome::connected;
    }
    started_ = true;
    result.sandbox_id = id;
    if (tell && on_identity) on_identity(id);
    return result;
  }
  // With the mutex held.
  std::optional<Error> refusal() const {
    const auto it = world_->machines.find(session());
    if (it == world_->machines.end())
      return started_ ? Error(Status::gone, "the machine is gone")
                      : Error(Status::conflict, "never started");
    if (it->second.state != MachineState::running)
      return Error(Status::conflict, "the machine is stopped");
    return std::nullopt;
  }
  void watch(const std::shared_ptr<Process>& process) {
    world_->runtime.timer(lane_, process->command.timeout,
                          [weak = std::weak_ptr<Process>(process)](const Result<void>&) {
                            const auto p = weak.lock();
                            if (!p) return;
                            Exit exit;
                            exit.outcome = Outcome::timed_out;
                            exit.signal = 15;
                            exit.killed = true;
                            p->cut(exit);
                          });
  }

  const std::shared_ptr<World> world_;
  const CreateRequest request_;
  const Lane lane_;
  bool started_ = false;
};

class Provider final : public ProviderBackend {
 public:
  Provider(std::shared_ptr<World> world, std::string name)
      : world_(std::move(world)), name_(std::move(name)), lane_(world_->runtime.make_lane()) {}

  const std::string& name() const noexcept override { return name_; }
  const Lane& lane() const noexcept override { return lane_; }
  void describe(Handler<Description> done) override {
    const std::lock_guard lock(world_->mutex);
    ++world_->counted.describes;
    lane_.post([done = std::make_shared<Handler<Description>>(std::move(done)),
                features = world_->features] {
      Description description;
      description.features = features;
      std::move (*done)(std::move(description));
    });
  }
  // Of a plugin: on its lane, or not at all.
  Result<std::shared_ptr<SandboxBackend>> create(CreateRequest request) override {
    if (world_->strict_lanes && !lane_.is_current())
      return Error(Status::internal, "create outside its lane", "core.lane");
    const std::lock_guard lock(world_->mutex);
    ++world_->counted.creates;
    world_->create_requests.push_back(request);
    return std::shared_ptr<SandboxBackend>(std::make_shared<Box>(world_, std::move(request)));
  }

 private:
  const std::shared_ptr<World> world_;
  const std::string name_;
  const Lane lane_;
};

inline std::shared_ptr<ProviderBackend> World::provider(std::string name) {
  return std::make_shared<Provider>(shared_from_this(), std::move(name));
}

}  // namespace sandforge::fake

// Every function of the boundary that has callbacks, called with every member set: the plugin in a
// process of its own hears and answers the same as in line.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <catch2/catch.hpp>

#include "plugin/abi_context.hpp"
#include "plugin/abi_lane.hpp"
#include "runner/extensions.hpp"
#include "samples.hpp"
#include "sandforge/plugin_loader.hpp"
#include "test_paths.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

// What the callbacks of one call tell, in order.
class Heard {
 public:
  void add(std::string line, bool last) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    ended_ = ended_ || last;
    changed_.notify_all();
  }
  // A start that fails is told by its sink in line, and by `done` over the wire.
  void refused(const sf_error* error) {
    add("failed " + text_of(std::tuple<const sf_error*>(error)), true);
  }
  std::vector<std::string> whole() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return ended_; }))
      lines_.push_back("(no end came)");
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
  bool ended_ = false;
};

template <auto M>
struct Hear;
template <class C, class... P, void (*C::*M)(void*, P...) noexcept>
struct Hear<M> {
  static void call(void* ctx, P... p) noexcept {
    auto& heard = *static_cast<Heard*>(ctx);
    const std::tuple<P...> args(p...);
    if constexpr (std::is_same_v<std::tuple_element_t<0, std::tuple<P..., void>>,
                                 const sf_error*>) {
      if (std::get<0>(args) != nullptr) return heard.refused(std::get<0>(args));
      bool more = false;
      if constexpr (std::is_same_v<C, sf_file_list_completion>) more = std::get<4>(args) != 0;
      heard.add(name_of(M) + " " + text_of(args), !more);
    } else {
      heard.add(name_of(M) + " " + text_of(args), false);
    }
  }
};

// The plugin of fixtures/echoes.cpp with a provider and a sandbox, at the C boundary.
class World {
 public:
  explicit World(Isolation isolation) : loader_(options(runtime_, isolation)) {
    PluginSearchPath path;
    path.add(SANDFORGE_ECHOES, "a test");
    auto scan = loader_.scan(path);
    INFO(scan.report.to_text());
    REQUIRE(scan.files.size() == 1);
    const auto loaded = loader_.load(scan.files.front());
    INFO(loaded.attempt.message);
    REQUIRE(loaded.plugin != nullptr);
    CHECK((loaded.plugin->remote != nullptr) == (isolation == Isolation::process));
    plugin_ = loaded.plugin;
    lane_ref_.emplace(*plugin_, lane_);
    context_ = new plugin::HostContext(*plugin_, session());
    on_lane([&] { open(); });
    REQUIRE(sandbox_ != nullptr);
  }
  ~World() {
    on_lane([&] {
      if (sandbox_ != nullptr) sandbox_->vtbl->release(sandbox_);
      if (provider_ != nullptr) provider_->vtbl->release(provider_);
    });
    plugin::HostContext::release(context_);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  sf_provider* provider() const { return provider_; }
  sf_sandbox* sandbox() const { return sandbox_; }
  sf_context* context() const { return context_; }

  void on_lane(const std::function<void()>& work) const {
    std::promise<void> over;
    lane_.post([&] {
      work();
      over.set_value();
    });
    over.get_future().wait();
  }

 private:
  static PluginLoader::Options options(Runtime& runtime, Isolation isolation) {
    PluginLoader::Options out;
    auto services = std::make_shared<HostServices>();
    services->runtime = &runtime;
    out.services = std::move(services);
    out.runner.program = SANDFORGE_RUNNER;
    out.runner.others.isolation = isolation;
    return out;
  }
  static std::shared_ptr<const SessionContext> session() {
    auto out = std::make_shared<SessionContext>();
    out->session_id = SessionId("session");
    out->sandbox_id = ProviderSandboxId("machine");
    out->factory_id = "factory";
    out->factory_name = "a factory";
    out->repo_full_name = "some/repository";
    out->setup_command = "make";
    out->working_directory = "/work";
    out->caller_chose_id = true;
    return out;
  }
  void open() {
    sf_open_request request{};
    request.struct_size = sizeof request;
    request.provider = {"echoes", 6};
    request.options = {"{}", 2};
    request.lane = lane_ref_->get();
    if (plugin_->api->open(&request, &provider_, nullptr) != SF_OK) return;
    sf_create_request creation{};
    creation.struct_size = sizeof creation;
    creation.context = context_;
    creation.lane = lane_ref_->get();
    creation.settings = {"{}", 2};
    creation.idle_timeout_ms = SF_NONE;
    provider_->vtbl->create(provider_, &creation, &sandbox_, nullptr);
  }

  Runtime runtime_;
  const Lane lane_ = runtime_.make_lane();
  PluginLoader loader_;
  plugin::Plugin* plugin_ = nullptr;
  std::optional<plugin::LaneRef> lane_ref_;
  sf_context* context_ = nullptr;
  sf_provider* provider_ = nullptr;
  sf_sandbox* sandbox_ = nullptr;
};

// What a call made, to be used and let go of.
struct Made {
  sf_op* op = nullptr;
  sf_stream* stream = nullptr;
  sf_process* process = nullptr;

  void use(int turn) const {
    sf_stream* used = process != nullptr ? process->vtbl->stream(process) : stream;
    if (used == nullptr) return;
    used->vtbl->grant(used, 77);
    const std::string input = "some input";
    std::size_t accepted = 0;
    used->vtbl->write(used, {reinterpret_cast<const std::uint8_t*>(input.data()), input.size()},
                      SF_DATA_TEXT | SF_DATA_END, &accepted, nullptr);
    if (turn == 0) used->vtbl->shutdown_write(used, nullptr);
    if (turn == 1) used->vtbl->cancel(used);
  }
  void let_go() const {
    if (op != nullptr) op->vtbl->release(op);
    if (stream != nullptr) stream->vtbl->release(stream);
    if (process != nullptr) process->vtbl->release(process);
  }
};

// Every function of one kind of world, and what was heard of each call.
class Calls {
 public:
  explicit Calls(Isolation isolation) : world_(isolation) {
    all_of(world_.provider(), world_.provider()->vtbl);
    std::apply([&](const auto&... each) { (extension(world_.provider(), each), ...); },
               runner::kProviderExtensions);
    pty_ = table_of(world_.sandbox(), runner::Extension<sf_pty_ext>{SF_EXT_PTY});
    all_of(world_.sandbox(), world_.sandbox()->vtbl);
    std::apply([&](const auto&... each) { (extension(world_.sandbox(), each), ...); },
               runner::kSandboxExtensions);
  }
  const std::map<std::string, std::vector<std::string>>& heard() const { return heard_; }

 private:
  template <class Self, class E>
  const E* table_of(Self* self, const runner::Extension<E>& extension) {
    const void* found = nullptr;
    world_.on_lane([&] { found = self->vtbl->extension(self, runner::id_text(extension.id)); });
    INFO(extension.id);
    REQUIRE(found != nullptr);
    return static_cast<const E*>(found);
  }
  template <class Self, class E>
  void extension(Self* self, const runner::Extension<E>& extension) {
    const E* table = table_of(self, extension);
    if constexpr (!std::is_same_v<E, sf_pty_ext>) all_of(self, table);
  }

  template <class Self, class S>
  void all_of(Self* self, const S* table) {
    Member<S>::each([&]<auto M>() {
      if constexpr (is_asynchronous<std::decay_t<decltype(table->*M)>>) {
        for (int turn = 0; turn < 3; ++turn)
          Call<M>::run(*this, self, *table, turn);
      }
    });
  }
  // A process has functions of its own, while it runs.
  void of_process(sf_process* process) {
    if (std::exchange(processes_done_, true)) return;
    all_of(process, process->vtbl);
    all_of(process, pty_);
  }

  template <auto M>
  struct Call;
  template <class S, class Self, class... P, sf_status (*S::*M)(Self*, P...) noexcept>
  struct Call<M> {
    static void run(Calls& calls, Self* self, const S& table, int turn) {
      const std::string name = name_of(M) + " " + std::to_string(turn);
      INFO(name);
      REQUIRE(table.*M != nullptr);
      Heard heard;
      const sf_error_sink sink{&heard, [](void* ctx, const sf_error* error) noexcept {
                                 static_cast<Heard*>(ctx)->refused(error);
                               }};
      Samples samples(name, calls.world_.context());
      std::tuple<P...> args{};
      samples.fill_call(args);
      Made made;
      codec::Arena arena;
      std::apply([&](auto&... each) { (give(each, made, heard, arena), ...); }, args);
      std::get<sizeof...(P) - 1>(args) = &sink;
      calls.world_.on_lane(
          [&] { std::apply([&](auto... each) { (table.*M)(self, each...); }, args); });
      if (turn == 0 && made.process != nullptr) calls.of_process(made.process);
      calls.world_.on_lane([&] { made.use(turn); });
      calls.heard_[name] = heard.whole();
      calls.world_.on_lane([&] { made.let_go(); });
    }
    template <class T>
    static void give([[maybe_unused]] T& argument, [[maybe_unused]] Made& made,
                     [[maybe_unused]] Heard& heard, [[maybe_unused]] codec::Arena& arena) {
      if constexpr (codec::is_callbacks<T>) {
        argument = callbacks_of<Hear, T>(&heard);
      } else if constexpr (codec::is_callbacks_pointer<T>) {
        using C = std::remove_const_t<std::remove_pointer_t<T>>;
        auto* callbacks = arena.make<C>(1);
        *callbacks = callbacks_of<Hear, C>(&heard);
        argument = callbacks;
      } else if constexpr (std::is_same_v<T, sf_op**>) {
        argument = &made.op;
      } else if constexpr (std::is_same_v<T, sf_stream**>) {
        argument = &made.stream;
      } else if constexpr (std::is_same_v<T, sf_process**>) {
        argument = &made.process;
      }
    }
  };

  World world_;
  const sf_pty_ext* pty_ = nullptr;
  bool processes_done_ = false;
  std::map<std::string, std::vector<std::string>> heard_;
};

}  // namespace

TEST_CASE("every function of the boundary is the same over the wire as in line", "[runner]") {
  const Calls in_line(Isolation::in_line);
  const Calls process(Isolation::process);
  CHECK(in_line.heard().size() >= 3 * 40);
  CHECK(process.heard().size() == in_line.heard().size());
  for (const auto& [name, heard] : in_line.heard()) {
    INFO(name);
    CHECK(heard.size() >= 1);
    const auto found = process.heard().find(name);
    REQUIRE(found != process.heard().end());
    CHECK(found->second == heard);
  }
}

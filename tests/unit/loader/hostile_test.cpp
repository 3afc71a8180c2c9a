// Plugins that break the rules, loaded from their files and taken through a whole life: each fault
// is contained, named, and no business of others.
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "plugin/plugin.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/support/utf8.hpp"
#include "support/temp_dir.hpp"
#include "unit/loader/fake_plugin.hpp"
#include "unit/loader/fixture_path.hpp"

using namespace sandforge;
using plugin::Fault;
using test::RecordingSink;
using Words = std::vector<std::string>;

namespace {

constexpr auto kPatience = std::chrono::seconds(60);

// One host with the two plugins.
class Host {
 public:
  Host() : registry_(std::make_unique<ProviderRegistry>(runtime_, options())) {
    PluginSearchPath search;
    search.add(test::fixture("hostile"), "a test");
    search.add(test::fixture("thrower"), "a test");
    REQUIRE(registry_->scan(search).refused() == 0);
    // Loads them, so that their faults can be asked for.
    REQUIRE(open("fixture-hostile", {}).ok());
    REQUIRE(open("fixture-thrower", {}).ok());
  }

  Result<std::shared_ptr<ProviderBackend>> open(const std::string& name, json::Object options) {
    return wait<std::shared_ptr<ProviderBackend>>(
        [&](auto handler) { registry_->async_open(name, std::move(options), std::move(handler)); });
  }

  template <class T, class Start>
  Result<T> wait(Start&& start) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    auto future = promise->get_future();
    start(Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
    if (future.wait_for(kPatience) != std::future_status::ready)
      throw std::runtime_error("no answer");
    return future.get();
  }
  // Starts on the lane and waits for the answer.
  template <class T, class Start>
  Result<T> ask(const Lane& lane, Start start) {
    return wait<T>([&](Handler<T> handler) {
      lane.post([start, handler = std::move(handler)]() mutable { start(std::move(handler)); });
    });
  }
  template <class F>
  auto on(const Lane& lane, F f) -> decltype(f()) {
    auto task = std::make_shared<std::packaged_task<decltype(f())()>>(std::move(f));
    auto future = task->get_future();
    lane.post([task] { (*task)(); });
    if (future.wait_for(kPatience) != std::future_status::ready)
      throw std::runtime_error("the lane does not move");
    return future.get();
  }
  void settle(const Lane& lane) {
    for (int i = 0; i < 5; ++i)
      on(lane, [] {});
  }
  Lane make_lane() { return runtime_.make_lane(); }

  // The plugin's object, for its faults.
  static plugin::Plugin& plugin(const std::string& name) {
    for (std::uint32_t i = 1; i <= plugin::kMaxPlugins; ++i) {
      auto* found = plugin::Plugin::at(i);
      if (found != nullptr && found->name() == name) return *found;
    }
    throw std::runtime_error("it is not loaded");
  }
  std::string log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  ProviderRegistry::Options options() {
    ProviderRegistry::Options out;
    auto services = std::make_shared<HostServices>();
    services->logger = std::make_shared<Logger>([this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      log_ += line;
    });
    out.services = services;
    return out;
  }

  mutable std::mutex mutex_;
  std::string log_;
  Runtime runtime_;
  std::unique_ptr<ProviderRegistry> registry_;
};

// A whole life of a sandbox. Says of each step how it ended, and goes on where it can.
class Life {
 public:
  Life(Host& host, std::string provider, json::Object options)
      : host_(host), lane_(host.make_lane()) {
    auto opened = host_.open(provider, std::move(options));
    if (!note("open", opened)) return;
    provider_ = std::move(*opened);
    note("describe", host_.ask<Description>(provider_->lane(), [p = provider_](auto handler) {
      p->describe(std::move(handler));
    }));
    auto created = host_.on(provider_->lane(), [&] {
      CreateRequest request;
      request.lane = lane_;
      return provider_->create(std::move(request));
    });
    if (!note("create", created)) return;
    sandbox_ = std::move(*created);
    start();
    command();
    note("info", host_.ask<MachineInfo>(
                     lane_, [s = sandbox_](auto handler) { s->info(std::move(handler)); }));
    note("instructions", host_.ask<std::string>(lane_, [s = sandbox_](auto handler) {
      s->instructions(std::move(handler));
    }));
    note("stop",
         host_.ask<void>(lane_, [s = sandbox_](auto handler) { s->stop(std::move(handler)); }));
    note("destroy",
         host_.ask<void>(lane_, [s = sandbox_](auto handler) { s->destroy(std::move(handler)); }));
  }
  ~Life() {
    process_ = nullptr;
    sandbox_ = nullptr;
    settle();
    const Lane lane = provider_ ? provider_->lane() : lane_;
    provider_ = nullptr;
    host_.settle(lane);
    settle();
  }

  void settle() { host_.settle(lane_); }
  // What did not end as it should: "start CRASHED".
  const Words& wrong() const { return wrong_; }
  const std::vector<Error>& errors() const { return errors_; }
  const std::shared_ptr<RecordingSink>& sink() const { return sink_; }

 private:
  template <class T>
  bool note(const std::string& step, const Result<T>& result) {
    if (result.ok()) return true;
    wrong_.push_back(step + " " + std::string(to_string(result.error().code)));
    errors_.push_back(result.error());
    return false;
  }

  void start() {
    const auto result = host_.ask<StartResult>(lane_, [this](auto handler) {
      sandbox_->start(
          StartRequest(), [](const ProviderSandboxId&) {}, std::move(handler));
    });
    if (note("start", result)) started_ = *result;
    settle();
  }

  void command() {
    Command what;
    what.argv = {"true"};
    what.window = 100;
    auto spawned = host_.on(lane_, [&] { return sandbox_->spawn(what, sink_); });
    if (!note("spawn", spawned)) return;
    process_ = std::move(*spawned);
    host_.on(lane_, [&] {
      const std::byte byte{1};
      process_->grant(1);
      note("write", process_->write(Bytes(&byte, 1)));
      note("shutdown", process_->shutdown_write());
    });
    note("signal", host_.ask<void>(lane_, [p = process_](auto handler) {
      p->signal(15, false, std::move(handler));
    }));
    if (!sink_->wait()) wrong_.push_back("done never");
    if (const auto error = sink_->error()) {
      wrong_.push_back("process " + std::string(to_string(error->code)));
      errors_.push_back(*error);
    }
    host_.on(lane_, [&] { process_->cancel(); });
    settle();
  }

 public:
  StartResult started_;

 private:
  Host& host_;
  const Lane lane_;
  std::shared_ptr<ProviderBackend> provider_;
  std::shared_ptr<SandboxBackend> sandbox_;
  std::shared_ptr<ProcessBackend> process_;
  std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
  Words wrong_;
  std::vector<Error> errors_;
};

json::Object mode(const std::string& name) {
  json::Object out;
  out.set("mode", name);
  return out;
}

using Counts = std::array<std::uint64_t, plugin::kFaultKinds>;
Counts counts(const plugin::Plugin& plugin) {
  Counts out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = plugin.faults.count(static_cast<Fault>(i));
  return out;
}

struct Row {
  std::string mode;
  Words wrong;   // steps of the life that ended in an error
  Words faults;  // kinds that were counted meanwhile
};

void check(Host& host, const Row& row) {
  CAPTURE(row.mode);
  auto& plugin = Host::plugin("hostile");
  const auto before = counts(plugin);
  const auto tokens = plugin.tokens.in_use();
  Words wrong;
  {
    const Life life(host, "fixture-hostile", mode(row.mode));
    wrong = life.wrong();
    for (const Error& error : life.errors()) {
      // Whoever reads the message learns which plugin it was.
      if (error.code == Status::crashed)
        CHECK_THAT(error.message, Catch::Contains("plugin hostile"));
      CHECK(error.message.size() <= 17'000);
      CHECK(is_valid_utf8(error.message));
    }
  }
  const auto after = counts(plugin);
  Words faults;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i] != before[i]) faults.emplace_back(to_string(static_cast<Fault>(i)));
  }
  CHECK(wrong == row.wrong);
  CHECK(faults == row.faults);
  CHECK(plugin.tokens.in_use() == tokens);
}

}  // namespace

TEST_CASE("hostile: the fixture keeps the rules when it is not asked to break one") {
  Host host;
  check(host, {"", {}, {}});
}

TEST_CASE("hostile: an exception out of each function") {
  Host host;
  const Words named = {"exception"};
  for (const std::string kind : {"throw:", "throw-odd:"}) {
    check(host, {kind + "open", {"open CRASHED"}, named});
    check(host, {kind + "describe", {"describe CRASHED"}, named});
    check(host, {kind + "provider-extension", {}, named});
    check(host, {kind + "create", {"create CRASHED"}, named});
    check(host, {kind + "extension", {}, named});
    check(host, {kind + "start", {"start CRASHED"}, named});
    check(host, {kind + "info", {"info CRASHED"}, named});
    check(host, {kind + "instructions", {"instructions CRASHED"}, named});
    check(host, {kind + "stop", {"stop CRASHED"}, named});
    check(host, {kind + "destroy", {"destroy CRASHED"}, named});
    check(host, {kind + "spawn", {"spawn CRASHED"}, named});
    check(host, {kind + "grant", {}, named});
    check(host, {kind + "write", {"write CRASHED"}, named});
    check(host, {kind + "shutdown", {"shutdown CRASHED"}, named});
    check(host, {kind + "signal", {"signal CRASHED"}, named});
    check(host, {kind + "stream-cancel", {}, named});
    check(host, {kind + "process-release", {}, named});
    check(host, {kind + "op-release", {}, named});
    check(host, {kind + "sandbox-release", {}, named});
    check(host, {kind + "provider-release", {}, named});
    check(host, {kind + "post", {}, named});
  }
  CHECK_THAT(host.log(), Catch::Contains("hostile") && Catch::Contains("exception"));
}

TEST_CASE("hostile: ends twice, too early, too late, and contradictions") {
  Host host;
  check(host, {"twice:start", {}, {"late_callback"}});
  check(host, {"twice:identity", {}, {"out_of_order"}});
  check(host, {"twice:stop", {}, {"late_callback"}});
  check(host, {"inside:start", {}, {"inside_start"}});
  check(host, {"both:start", {"start CONFLICT"}, {"inside_start", "contradiction"}});
  check(host, {"twice:started", {}, {"out_of_order"}});
  check(host, {"twice:exit", {}, {"out_of_order"}});
  check(host, {"twice:done", {}, {"late_callback"}});
  check(host, {"after:done", {}, {"late_callback"}});
  check(host, {"wrong:count", {}, {"contradiction"}});
  check(host, {"over:credit", {"process CRASHED"}, {"over_credit"}});
  check(host, {"over:accepted", {"write CRASHED"}, {"bad_value"}});
}

TEST_CASE("hostile: nothing where there must be something") {
  Host host;
  const Words named = {"missing_value"};
  check(host, {"null:provider", {"open CRASHED"}, named});
  check(host, {"vtbl:provider", {"open CRASHED"}, named});
  check(host, {"null:describe", {"describe CRASHED"}, {}});
  check(host, {"null:sandbox", {"create CRASHED"}, named});
  check(host, {"vtbl:sandbox", {"create CRASHED"}, named});
  check(host, {"size:sandbox", {"create CRASHED"}, named});
  check(host, {"null:op", {}, named});
  check(host, {"vtbl:op", {}, named});
  check(host, {"size:op", {}, named});
  check(host, {"null:start", {"start CRASHED"}, named});
  check(host, {"null:info", {"info CRASHED"}, {}});
  check(host, {"null:process", {"spawn CRASHED"}, named});
  check(host, {"vtbl:process", {"spawn CRASHED"}, named});
  check(host, {"null:stream", {"spawn CRASHED"}, named});
  check(host, {"vtbl:stream", {"spawn CRASHED"}, named});
  check(host, {"throw:stream", {"spawn CRASHED"}, {"missing_value", "exception"}});
  check(host, {"null:started", {}, named});
  check(host, {"null:data", {}, named});
  check(host, {"null:end", {}, named});
}

TEST_CASE("hostile: sizes and values that the header does not know") {
  Host host;
  check(host, {"size:describe", {"describe CRASHED"}, {}});
  check(host, {"size:start", {"start CRASHED"}, {"missing_value"}});
  check(host, {"size:info", {"info CRASHED"}, {}});
  check(host, {"size:started", {}, {"missing_value"}});
  check(host, {"size:exit", {}, {"missing_value"}});
  check(host, {"size:end", {}, {"missing_value"}});
  check(host, {"size:done-error", {"process CRASHED"}, {"missing_value"}});
  check(host, {"values:status", {"start INTERNAL"}, {"bad_value"}});
  check(host, {"values:negative", {"start INTERNAL"}, {"bad_value"}});
  check(host, {"values:error", {"start INTERNAL"}, {"bad_value"}});
  check(host, {"values:write", {"write INTERNAL"}, {"bad_value"}});
  check(host, {"wordless:start", {"start CONFLICT"}, {}});
  check(host, {"values:start", {}, {}});
  check(host, {"values:info", {}, {}});
  check(host, {"values:exit", {}, {}});
  check(host, {"values:channel", {}, {}});
  const Life unknown(host, "fixture-hostile", mode("values:start"));
  CHECK(unknown.started_.outcome == StartOutcome::unknown);
  CHECK(unknown.started_.provenance == Provenance::none);
  const Life exit(host, "fixture-hostile", mode("values:exit"));
  CHECK(exit.sink()->events() ==
        Words{"started p1 7", "out hello", "exit unknown -", "done OK 5 0"});
}

TEST_CASE("hostile: text that is none, or too much") {
  Host host;
  check(host, {"text:start", {}, {}});
  check(host, {"text:id", {}, {}});
  check(host, {"huge:id", {}, {}});
  check(host, {"text:instructions", {}, {}});
  check(host, {"text:describe", {"describe CRASHED"}, {}});
  check(host, {"huge:describe", {"describe CRASHED"}, {}});
  check(host, {"json:start", {}, {"bad_value"}});
  check(host, {"json:info", {"info CRASHED"}, {}});
  check(host, {"huge:start", {}, {"bad_value"}});
  check(host, {"text:error", {"start NO_SPACE"}, {"bad_value"}});
  check(host, {"huge:error", {"start NO_SPACE"}, {"bad_value"}});
  const Life life(host, "fixture-hostile", mode("text:start"));
  CHECK(is_valid_utf8(life.started_.sandbox_id->str()));
  CHECK(is_valid_utf8(*life.started_.working_directory));
  const Life huge(host, "fixture-hostile", mode("huge:id"));
  CHECK(huge.sink()->events().at(0).size() < 5000);
}

TEST_CASE("hostile: an end that never comes holds up nobody else, and may come late") {
  for (const std::string name : {"never:start", "late:start"}) {
    CAPTURE(name);
    Host host;
    const Lane lane = host.make_lane();
    auto provider = host.open("fixture-hostile", mode(name)).value();
    auto sandbox = host.on(provider->lane(),
                           [&] {
                             CreateRequest request;
                             request.lane = lane;
                             return provider->create(std::move(request));
                           })
                       .value();
    auto answers = std::make_shared<std::atomic<int>>(0);
    auto pending = host.on(lane, [&] {
      return sandbox->start(
          StartRequest(), [](const ProviderSandboxId&) {},
          Handler<StartResult>([answers](const Result<StartResult>&) { ++*answers; }));
    });
    pending->cancel();
    check(host, {"", {}, {}});
    CHECK(*answers == 0);
    pending = nullptr;
    sandbox = nullptr;
    provider = nullptr;
    host.settle(lane);
    // The operation holds the plugin's sandbox: its release, and with it the late end, never came.
    CHECK(*answers == 0);
    check(host, {"", {}, {}});
  }
}

TEST_CASE("hostile: a cancel that blocks holds up one thread, and the others go on") {
  Host host;
  const test::TempDir dir;
  REQUIRE(::mkfifo((dir / "gate").c_str(), 0600) == 0);
  json::Object options = mode("block:cancel");
  options.set("gate", (dir / "gate").string());
  const Lane lane = host.make_lane();
  auto provider = host.open("fixture-hostile", options).value();
  auto sandbox = host.on(provider->lane(),
                         [&] {
                           CreateRequest request;
                           request.lane = lane;
                           return provider->create(std::move(request));
                         })
                     .value();
  auto pending = host.on(lane, [&] {
    return sandbox->start(
        StartRequest(), [](const ProviderSandboxId&) {},
        Handler<StartResult>([](const Result<StartResult>&) {}));
  });
  std::promise<void> returned;
  lane.post([&] {
    pending->cancel();
    returned.set_value();
  });
  auto future = returned.get_future();
  check(host, {"", {}, {}});
  CHECK(future.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  const int gate = ::open((dir / "gate").c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(gate >= 0);
  ::close(gate);
  REQUIRE(future.wait_for(kPatience) == std::future_status::ready);
}

TEST_CASE("hostile: an exception out of each function of the C++ layer is an error with its text") {
  Host host;
  const auto faults = Host::plugin("thrower").faults.total();
  struct Throw {
    std::string where;
    Words wrong;
  };
  for (const Throw& row : std::vector<Throw>{{"open", {"open INTERNAL"}},
                                             {"describe", {"describe INTERNAL"}},
                                             {"create", {"create INTERNAL"}},
                                             {"start", {"start INTERNAL"}},
                                             {"info", {"info INTERNAL"}},
                                             {"instructions", {"instructions INTERNAL"}},
                                             {"stop", {"stop INTERNAL"}},
                                             {"destroy", {"destroy INTERNAL"}},
                                             {"spawn", {"spawn INTERNAL"}}}) {
    for (const std::string odd : {"", "odd:"}) {
      json::Object options;
      options.set("where", odd + row.where);
      CAPTURE(odd + row.where);
      const Life life(host, "fixture-thrower", options);
      Words wrong = life.wrong();
      // The command itself is refused in all of them.
      std::erase_if(wrong, [](const std::string& step) {
        return step.rfind("process", 0) == 0 || step.rfind("write", 0) == 0 ||
               step.rfind("signal", 0) == 0;
      });
      CHECK(wrong == row.wrong);
      REQUIRE_FALSE(life.errors().empty());
      if (odd.empty()) {
        const bool told = std::any_of(life.errors().begin(), life.errors().end(), [&](auto& e) {
          return e.message.find("boom in " + row.where) != std::string::npos;
        });
        CHECK(told);
      }
    }
  }
  CHECK(Host::plugin("thrower").faults.total() == faults);
}

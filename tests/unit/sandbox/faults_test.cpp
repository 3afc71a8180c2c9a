#include "sandforge/faults.hpp"

#include "fixture.hpp"

namespace sandforge {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

FaultRule rule(FaultPoint at, FaultKind kind) {
  return {at, kind};
}
FaultRule nth(FaultPoint at, FaultKind kind, std::uint64_t n) {
  FaultRule out(at, kind);
  out.nth = n;
  return out;
}
FaultRule timed(FaultPoint at, FaultKind kind, milliseconds time) {
  FaultRule out(at, kind);
  out.time = time;
  return out;
}

FaultPlan plan_of(std::vector<FaultRule> rules, std::uint64_t seed = 0) {
  FaultPlan plan;
  plan.seed = seed;
  plan.rules = std::move(rules);
  return plan;
}

// A pretend provider under a plan, and a sandbox of it.
struct Faulty {
  explicit Faulty(std::vector<FaultRule> rules, std::uint64_t seed = 0)
      : world(std::make_shared<fake::World>(runtime)),
        script(FaultScript::create(plan_of(std::move(rules), seed)).value()),
        provider(with_faults(runtime, world->provider(), script)) {
    SandboxConfig config;
    config.id = "s1";
    sandbox = Sandbox::create(runtime, provider, config).value();
  }

  Error error_of_start() const {
    return error_of([&] { sandbox->start(); });
  }
  std::future<Result<SandboxInfo>> info_later() const {
    return later<SandboxInfo>([&](auto done) { sandbox->async_info(std::move(done)); });
  }
  // The n-th process, once it is there; its test says what it does.
  std::shared_ptr<fake::Process> by_hand(std::size_t n = 0) const { return world->process(n); }
  void programs_by_hand() const {
    world->set_program([](const std::shared_ptr<fake::Process>& p) { p->start(); });
  }

  Runtime runtime;
  std::shared_ptr<fake::World> world;
  std::shared_ptr<FaultScript> script;
  std::shared_ptr<ProviderBackend> provider;
  std::shared_ptr<Sandbox> sandbox;
};

}  // namespace

TEST_CASE("without a rule that fits a provider is as it was") {
  Faulty f({nth(FaultPoint::start, FaultKind::refuse, 99)});
  CHECK(f.sandbox->start().outcome == StartOutcome::created);
  CHECK(f.sandbox->execute_command("echo", {"hello"}).out == "hello\n");
  CHECK(f.sandbox->info().machine.state == MachineState::running);
  f.sandbox->stop();
  f.sandbox->destroy();
  CHECK(f.world->machine_count() == 0);
  CHECK(f.script->struck(0) == 0);
  const auto description = await_result<Description>([&](auto done) {
    auto held = std::make_shared<Handler<Description>>(std::move(done));
    f.provider->lane().post([&, held] { f.provider->describe(std::move(*held)); });
  });
  CHECK(description.describe.find("wrap")->as_string() == "fault");
}

TEST_CASE("a plan that cannot be carried out makes no script") {
  const auto script = FaultScript::create(plan_of({rule(FaultPoint::info, FaultKind::cut)}));
  REQUIRE_FALSE(script);
  CHECK(script.error().code == Status::invalid);
  CHECK(script.error().reason == "faults.invalid");
}

TEST_CASE("a start that is refused was never delivered, one that is lost was") {
  auto lost = nth(FaultPoint::start, FaultKind::lose, 2);
  lost.error = Status::unavailable;
  lost.retry_after = milliseconds(250);
  Faulty f({nth(FaultPoint::start, FaultKind::refuse, 1), lost});

  const Error refused = f.error_of_start();
  CHECK(refused.code == Status::transport_lost);
  CHECK_FALSE(refused.may_have_started);
  CHECK(f.world->counts().starts == 0);

  const Error unknown = f.error_of_start();
  CHECK(unknown.code == Status::unavailable);
  CHECK(unknown.retry_after == milliseconds(250));
  CHECK(unknown.may_have_started);
  CHECK(f.world->counts().starts == 1);
  CHECK_FALSE(f.sandbox->sandbox_id());

  // The machine of the start whose answer was lost is found, not made once more.
  CHECK(f.sandbox->start().outcome == StartOutcome::connected);
  CHECK(f.world->machine_count() == 1);
  const auto starts = f.world->starts();
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].idempotency_key == starts[1].idempotency_key);
  CHECK(f.script->struck(0) == 1);
  CHECK(f.script->struck(1) == 1);
}

TEST_CASE("what is dropped is answered by the time, by a cancel, or with the Runtime") {
  std::future<Result<SandboxInfo>> never;
  {
    Faulty f({timed(FaultPoint::start, FaultKind::drop, milliseconds(5)),
              rule(FaultPoint::info, FaultKind::drop)});
    const Error late = f.error_of_start();
    CHECK(late.code == Status::timeout);
    CHECK(late.may_have_started);
    CHECK(f.world->counts().starts == 0);
    never = f.info_later();
    CHECK(eventually([&] { return f.script->struck(1) == 1; }));
    CHECK(is_open(never));
  }
  const auto ended = get(never);
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == Status::cancelled);

  Faulty f({rule(FaultPoint::start, FaultKind::half_open)});
  const Lane lane = f.runtime.make_lane();
  CreateRequest request;
  request.lane = lane;
  auto context = std::make_shared<SessionContext>();
  request.context = context;
  std::promise<Result<StartResult>> promise;
  auto future = promise.get_future();
  std::shared_ptr<Pending> pending;
  std::shared_ptr<SandboxBackend> backend;
  lane.post([&] {
    backend = f.provider->create(std::move(request)).value();
    pending = backend->start({}, nullptr,
                             [&](Result<StartResult> r) { promise.set_value(std::move(r)); });
  });
  CHECK(eventually([&] { return f.world->machine_count() == 1; }));
  CHECK(is_open(future));
  pending->cancel();
  const auto cancelled = get(future);
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error().code == Status::cancelled);
  CHECK(cancelled.error().may_have_started);
}

TEST_CASE("calls are delivered late, and twice") {
  Faulty f({timed(FaultPoint::start, FaultKind::delay, milliseconds(3)),
            rule(FaultPoint::stop, FaultKind::duplicate),
            rule(FaultPoint::destroy, FaultKind::duplicate)});
  const auto begin = steady_clock::now();
  CHECK(f.sandbox->start().outcome == StartOutcome::created);
  CHECK(steady_clock::now() - begin >= milliseconds(3));
  CHECK(f.world->counts().starts == 1);
  f.sandbox->stop();
  CHECK(f.world->counts().stops == 2);
  f.sandbox->destroy();
  CHECK(f.world->counts().destroys == 2);
  CHECK(f.world->machine_count() == 0);
}

TEST_CASE("occurrences: the n-th, every n-th, and by a seed") {
  const auto errors = [](FaultRule r, std::uint64_t seed) {
    Faulty f({std::move(r)}, seed);
    std::string pattern;
    for (int i = 0; i < 40; ++i) {
      auto info = f.info_later();
      pattern += get(info) ? '.' : 'x';
    }
    return pattern;
  };
  CHECK(errors(nth(FaultPoint::info, FaultKind::refuse, 3), 0) == "..x" + std::string(37, '.'));
  auto every = rule(FaultPoint::info, FaultKind::refuse);
  every.every = 4;
  CHECK(errors(every, 0).substr(0, 9) == "...x...x.");
  auto drawn = rule(FaultPoint::info, FaultKind::refuse);
  drawn.probability = 0.5;
  const auto first = errors(drawn, 1);
  CHECK(errors(drawn, 1) == first);
  CHECK(errors(drawn, 2) != first);
  CHECK(first.find('.') != std::string::npos);
  CHECK(first.find('x') != std::string::npos);
}

TEST_CASE("a clock that is wrong shifts the times of a machine") {
  Faulty f({timed(FaultPoint::info, FaultKind::skew, milliseconds(-3'600'000))});
  f.world->created_at_ns = 5'000'000'000'000;
  f.sandbox->start();
  CHECK(f.sandbox->info().machine.created_at_ns == 1'400'000'000'000);
}

TEST_CASE("a provider that crashes ends all that is pending with it, and is there again") {
  Faulty f({nth(FaultPoint::stop, FaultKind::crash, 1),
            nth(FaultPoint::create, FaultKind::crash, 2),
            nth(FaultPoint::info, FaultKind::half_open, 1)});
  const auto process = f.sandbox->spawn(shell("sleep"));
  auto info = f.info_later();
  CHECK(eventually([&] { return f.script->struck(2) == 1; }));
  const Error stopped = error_of([&] { f.sandbox->stop(); });
  CHECK(stopped.code == Status::crashed);
  const auto unanswered = get(info);
  REQUIRE_FALSE(unanswered);
  CHECK(unanswered.error().code == Status::crashed);
  const auto result = process->wait();
  CHECK(result.outcome == Outcome::crashed);
  CHECK_FALSE(result.exit_code);
  CHECK(result.command_may_have_started);

  CHECK(f.sandbox->execute_command("echo", {"again"}).out == "again\n");
  SandboxConfig config;
  config.id = "s2";
  const auto second = Sandbox::create(f.runtime, f.provider, config).value();
  CHECK(error_of([&] { second->start(); }).code == Status::crashed);
  CHECK(second->start().outcome == StartOutcome::created);
}

TEST_CASE("output is cut after the byte that the rule names") {
  auto cut = nth(FaultPoint::output, FaultKind::cut, 2);
  cut.after = 5;
  Faulty f({cut});
  CHECK(f.sandbox->execute_command("echo hello world").out == "hello world\n");
  const auto result = f.sandbox->execute_command("echo hello world");
  CHECK(result.outcome == Outcome::transport_lost);
  CHECK(result.out == "hello");
  CHECK_FALSE(result.exit_code);
  CHECK(result.command_may_have_started);
  CHECK(f.script->struck(0) == 1);
  CHECK(f.world->counts().spawns == 2);
}

TEST_CASE("output and end that are late keep their order") {
  Faulty f({timed(FaultPoint::output, FaultKind::delay, milliseconds(3)),
            timed(FaultPoint::end, FaultKind::delay, milliseconds(3))});
  f.programs_by_hand();
  auto result = later<CommandResult>(
      [&](auto done) { f.sandbox->async_execute_command("by hand", {}, {}, std::move(done)); });
  const auto process = f.by_hand();
  REQUIRE(process);
  process->start();  // it may be here before its program has done that
  const auto begin = steady_clock::now();
  for (int i = 0; i < 20; ++i)
    process->out(std::to_string(i) + ",");
  process->exit(3);
  const auto ended = get(result);
  REQUIRE(ended);
  CHECK(steady_clock::now() - begin >= milliseconds(3));
  CHECK(f.script->struck(0) == 1);
  CHECK(f.script->struck(1) == 1);
  CHECK(ended->out == "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,");
  CHECK(ended->exit_code == 3);
}

TEST_CASE("an end that is told twice, lost, or never told") {
  Faulty f({nth(FaultPoint::end, FaultKind::duplicate, 1), nth(FaultPoint::end, FaultKind::lose, 2),
            nth(FaultPoint::end, FaultKind::half_open, 3)});
  CHECK(f.sandbox->execute_command("exit 4").exit_code == 4);
  const auto lost = f.sandbox->execute_command("echo all of it");
  CHECK(lost.outcome == Outcome::transport_lost);
  CHECK(lost.out == "all of it\n");
  CHECK_FALSE(lost.exit_code);
  ExecOptions options;
  options.timeout = milliseconds(300);
  options.grace = milliseconds(0);
  const auto never = f.sandbox->execute_command("echo", {"x"}, options);
  CHECK(never.outcome == Outcome::timed_out);
  CHECK(f.script->struck(0) + f.script->struck(1) + f.script->struck(2) == 3);
}

TEST_CASE("commands are launched late, and twice with one request") {
  Faulty f({timed(FaultPoint::spawn, FaultKind::delay, milliseconds(3)),
            nth(FaultPoint::spawn, FaultKind::refuse, 99)});
  SpawnOptions options;
  const auto begin = steady_clock::now();
  const auto cat = f.sandbox->spawn(shell("cat"), options);
  cat->write("late");
  cat->close_stdin();
  CHECK(cat->wait().out == "late");
  CHECK(steady_clock::now() - begin >= milliseconds(3));
  CHECK(f.script->struck(0) == 1);

  Faulty twice({rule(FaultPoint::spawn, FaultKind::duplicate)});
  CHECK(twice.sandbox->execute_command("echo", {"one"}).out == "one\n");
  CHECK(eventually([&] { return twice.world->processes().size() == 2; }));
  const auto both = twice.world->processes();
  CHECK(both[0]->command.request_id == both[1]->command.request_id);
}

TEST_CASE("input that is refused, swallowed, or breaks the connection") {
  Faulty f({nth(FaultPoint::input, FaultKind::refuse, 1),
            nth(FaultPoint::input, FaultKind::drop, 2), nth(FaultPoint::input, FaultKind::cut, 4)});
  const auto cat = f.sandbox->spawn(shell("cat"));
  CHECK(error_of([&] { cat->write("refused"); }).code == Status::transport_lost);
  cat->write("swallowed");
  cat->write("kept");
  CHECK(f.by_hand()->input() == "kept");
  cat->write("cut");
  CHECK(cat->wait().outcome == Outcome::transport_lost);
}

TEST_CASE("a cancel that is not heard does not keep the caller") {
  Faulty f({rule(FaultPoint::cancel, FaultKind::drop)});
  std::stop_source stop;
  ExecOptions options;
  options.stop = stop.get_token();
  options.grace = milliseconds(0);
  auto result = later<CommandResult>(
      [&](auto done) { f.sandbox->async_execute_command("sleep", {}, options, std::move(done)); });
  REQUIRE(f.by_hand());
  stop.request_stop();
  const auto ended = get(result);
  REQUIRE(ended);
  CHECK(ended->outcome == Outcome::cancelled);
  CHECK(f.by_hand()->cancels() == 0);
}

TEST_CASE("a provider is opened late, or not at all") {
  Runtime runtime;
  ProviderRegistry registry(runtime);
  const auto world = std::make_shared<fake::World>(runtime);
  ProviderDefinition definition;
  definition.name = "fake";
  definition.open = [world](const json::Object&, const Lane&,
                            Handler<std::shared_ptr<ProviderBackend>> done) {
    std::move(done)(world->provider());
  };
  registry.add(std::move(definition)).value();
  auto refused = nth(FaultPoint::open, FaultKind::refuse, 2);
  refused.error = Status::unauthenticated;
  auto script = FaultScript::create(
                    plan_of({timed(FaultPoint::open, FaultKind::delay, milliseconds(3)), refused}))
                    .value();
  const auto open = [&](std::shared_ptr<FaultScript> with) {
    auto opened = later<std::shared_ptr<ProviderBackend>>([&](auto done) {
      async_open_with_faults(runtime, registry, "fake", {}, std::move(with), std::move(done));
    });
    return get(opened);
  };
  const auto opened = open(script);
  REQUIRE(opened);
  CHECK((*opened)->name() == "fake");
  script = FaultScript::create(plan_of({refused})).value();
  CHECK(open(script));
  const auto second = open(script);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == Status::unauthenticated);
}

}  // namespace sandforge

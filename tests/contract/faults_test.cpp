// What a command, a look-up and a start must do when the way to the provider is bad: the local
// provider under faults on purpose.
#include "sandforge/faults.hpp"

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

FaultRule rule(FaultPoint at, FaultKind kind, std::optional<std::uint64_t> nth = {}) {
  FaultRule out(at, kind);
  out.nth = nth;
  return out;
}

// A host whose provider has faults.
struct FaultyLocal : LocalFixture {
  std::shared_ptr<Sandbox> faulty(std::vector<FaultRule> rules, const std::string& id = "s") {
    FaultPlan plan;
    plan.rules = std::move(rules);
    script = FaultScript::create(std::move(plan)).value();
    SandboxConfig config;
    config.id = id;
    return make(with_faults(runtime(), provider(), script), std::move(config));
  }

  // A command that leaves a line each time it runs.
  static CommandResult count(Sandbox& sandbox, ExecOptions options = {}) {
    return sh(sandbox, "echo x >> counter", std::move(options));
  }
  // It has run so often, and no more.
  void check_counter(Sandbox& sandbox, std::size_t times) const {
    std::string want;
    for (std::size_t i = 0; i < times; ++i)
      want += "x\n";
    CHECK(eventually([&] { return read_text(folder() / "counter") == want; }));
    // What was sent before this command has been taken by the time that it ends.
    CHECK(sh(sandbox, "cat counter 2>/dev/null").out == want);
  }

  std::shared_ptr<FaultScript> script;
};

void check_lost(const CommandResult& result) {
  CHECK(result.outcome == Outcome::transport_lost);
  CHECK_FALSE(result.success);
  CHECK_FALSE(result.exit_code);
  CHECK(result.command_may_have_started);
  REQUIRE(result.error);
  CHECK(result.error->may_have_started);
}

}  // namespace

TEST_CASE_METHOD(FaultyLocal, "B10 a stream that is cut while its command runs is a lost command",
                 "[cases.B10]") {
  FaultRule cut = rule(FaultPoint::output, FaultKind::cut, 1);
  cut.after = 3;
  const auto sandbox = faulty({cut});
  const auto result = sandbox->execute_command("echo up; sleep 60");
  check_lost(result);
  CHECK(result.out == "up\n");
  CHECK(script->struck(0) == 1);
  CHECK(sandbox->execute_command("echo fine").out == "fine\n");
}

TEST_CASE_METHOD(FaultyLocal, "B10 an end that is lost is no exit of 0", "[cases.B10]") {
  const auto sandbox = faulty({rule(FaultPoint::end, FaultKind::lose, 1)});
  const auto result = sandbox->execute_command("echo all");
  check_lost(result);
  CHECK(result.out == "all\n");
}

TEST_CASE_METHOD(FaultyLocal, "B11 an answer that is lost after delivery: nothing runs twice",
                 "[cases.B11]") {
  // A reset, and an error of a server in between.
  for (const Status code : {Status::transport_lost, Status::unavailable}) {
    CAPTURE(to_string(code));
    FaultRule lost = rule(FaultPoint::spawn, FaultKind::lose, 1);
    lost.error = code;
    const auto sandbox = faulty({lost}, code == Status::unavailable ? "u" : "s");
    const auto result = count(*sandbox);
    CHECK(result.outcome ==
          (code == Status::transport_lost ? Outcome::transport_lost : Outcome::unknown));
    CHECK_FALSE(result.exit_code);
    CHECK(result.command_may_have_started);
    CHECK(script->struck(0) == 1);
    const auto file = folder(sandbox->id()) / "counter";
    CHECK(eventually([&] { return read_text(file) == "x\n"; }));
    CHECK(sh(*sandbox, "cat counter").out == "x\n");
  }
}

TEST_CASE_METHOD(FaultyLocal, "B11 a request that arrives twice runs once", "[cases.B11]") {
  const auto sandbox = faulty({rule(FaultPoint::spawn, FaultKind::duplicate, 1)});
  const auto result = count(*sandbox);
  CHECK(result.exit_code == 0);
  CHECK(script->struck(0) == 1);
  check_counter(*sandbox, 1);
}

TEST_CASE_METHOD(FaultyLocal, "B12 what was cut before delivery is sent again and runs once",
                 "[cases.B12]") {
  const auto sandbox = faulty({rule(FaultPoint::spawn, FaultKind::refuse, 1)});
  const auto result = count(*sandbox);
  CHECK(result.exit_code == 0);
  CHECK(script->struck(0) == 1);
  check_counter(*sandbox, 1);
}

TEST_CASE_METHOD(FaultyLocal, "B12 what never gets through has not run", "[cases.B12]") {
  const auto sandbox = faulty({rule(FaultPoint::spawn, FaultKind::refuse)});
  const Error error = error_of([&] { count(*sandbox); });
  CHECK(error.code == Status::transport_lost);
  CHECK_FALSE(error.may_have_started);
  CHECK(script->struck(0) > 1);
  CHECK_FALSE(fs::exists(folder() / "counter"));
}

TEST_CASE_METHOD(FaultyLocal, "B13 a connection that is half open is found out", "[cases.B13]") {
  FaultRule half = rule(FaultPoint::output, FaultKind::half_open, 1);
  half.after = 3;
  half.time = 20ms;  // the bound of the provider's keepalive
  const auto sandbox = faulty({half});
  const auto result = sandbox->execute_command("echo up; sleep 60");
  check_lost(result);
  CHECK(result.out == "up\n");
  CHECK(script->struck(0) == 1);
}

TEST_CASE_METHOD(FaultyLocal, "B13 nothing that ends a command waits for a silent peer",
                 "[cases.B13]") {
  const auto sandbox = faulty({rule(FaultPoint::output, FaultKind::half_open)});
  ExecOptions options;
  options.grace = 0ms;
  SECTION("its deadline") {
    options.timeout = 100ms;
    const auto result = sandbox->execute_command("sleep 60", {}, options);
    CHECK(result.outcome == Outcome::timed_out);
    CHECK(result.command_may_have_started);
  }
  SECTION("a cancel") {
    std::stop_source stop;
    options.stop = stop.get_token();
    auto process = sandbox->spawn(shell("sleep 60"));
    WaitOptions wait;
    wait.stop = stop.get_token();
    stop.request_stop();
    CHECK(process->wait(wait).outcome == Outcome::cancelled);
  }
  SECTION("a kill") {
    SpawnOptions spawn;
    spawn.grace = 0ms;
    const auto process = sandbox->spawn(shell("sleep 60"), spawn);
    const Error error = error_of([&] { process->kill(); });
    CHECK(error.code == Status::transport_lost);
    check_lost(process->wait());
  }
  SECTION("the end of its sandbox") {
    const auto process = sandbox->spawn(shell("sleep 60"));
    sandbox->destroy();
    CHECK(process->wait().outcome == Outcome::destroyed);
  }
  CHECK(script->struck(0) == 1);
}

TEST_CASE_METHOD(FaultyLocal, "D05 a look-up that is refused makes no machine", "[cases.D05]") {
  for (const Status code : {Status::unauthenticated, Status::forbidden, Status::rate_limited,
                            Status::unavailable, Status::timeout}) {
    CAPTURE(to_string(code));
    FaultRule start =
        rule(FaultPoint::start, code == Status::timeout ? FaultKind::drop : FaultKind::refuse, 1);
    FaultRule info = rule(FaultPoint::info, start.kind, 1);
    start.error = info.error = code;
    if (start.kind == FaultKind::drop) start.time = info.time = 10ms;
    if (code == Status::rate_limited) start.retry_after = 250ms;
    const std::string id = "s-" + std::to_string(static_cast<int>(code));
    const auto sandbox = faulty({start, info}, id);

    CHECK(error_of([&] { sandbox->info(); }).code == code);
    const Error error = error_of([&] { sandbox->execute_command("true"); });
    CHECK(error.code == code);
    CHECK(error.retry_after == start.retry_after);
    CHECK_FALSE(fs::exists(folder(id)));
    CHECK(guest_of(folder(id).string()) == 0);
    CHECK(script->struck(0) == 1);
    CHECK(script->struck(1) == 1);
    // The next one is good.
    CHECK(sandbox->start().outcome == StartOutcome::created);
  }
}

TEST_CASE_METHOD(FaultyLocal, "D05 a known machine is not given up for a look-up that fails",
                 "[cases.D05]") {
  const auto first = started();
  sh(*first, "echo mine > file");
  const pid_t guest = guest_of(folder().string());
  FaultRule refused = rule(FaultPoint::start, FaultKind::refuse, 1);
  refused.error = Status::forbidden;
  const auto second = faulty({refused});
  CHECK(error_of([&] { sh(*second, "cat file"); }).code == Status::forbidden);
  CHECK(sh(*second, "cat file").out == "mine\n");
  CHECK(second->started()->outcome == StartOutcome::connected);
  CHECK(guest_of(folder().string()) == guest);
}

TEST_CASE_METHOD(FaultyLocal, "D07 a machine whose start was never answered is found again",
                 "[cases.D07]") {
  const auto sandbox = faulty({rule(FaultPoint::start, FaultKind::lose, 1)});
  CHECK(error_of([&] { sandbox->start(); }).may_have_started);
  const pid_t guest = guest_of(folder().string());
  REQUIRE(guest != 0);
  CHECK(sandbox->start().outcome == StartOutcome::connected);
  CHECK(guest_of(folder().string()) == guest);
  CHECK(processes().size() == 1);
}

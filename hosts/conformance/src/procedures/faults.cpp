// B10 to B13, D05, D07: what a command, a look-up and a start must do when the way to the provider
// is bad. Faults on purpose are put around the provider.
#include "sandforge/faults.hpp"

#include <stop_token>

#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

FaultRule rule(FaultPoint at, FaultKind kind, std::optional<std::uint64_t> nth = {}) {
  FaultRule out(at, kind);
  out.nth = nth;
  return out;
}

// A sandbox behind faults, and what they did.
struct Faulty {
  std::shared_ptr<FaultScript> script;
  std::shared_ptr<Sandbox> sandbox;
};

Faulty behind(Host& host, std::vector<FaultRule> rules, const std::string& name = "s") {
  FaultPlan plan;
  plan.rules = std::move(rules);
  Faulty out;
  out.script = FaultScript::create(std::move(plan)).value();
  out.sandbox =
      host.make(with_faults(host.runtime(), host.provider(), out.script), host.config(name));
  return out;
}

// A command that leaves a line each time it runs.
CommandResult count(Sandbox& sandbox) {
  return sh(sandbox, "echo x >> counter");
}
void check_ran_once(Sandbox& sandbox) {
  CHECK(eventually([&] { return read_file(sandbox, "counter") == "x\n"; }));
  // What was sent before this command has been taken by the time that it ends.
  CHECK(sh(sandbox, "cat counter").out == "x\n");
}

void check_lost(const CommandResult& result) {
  CHECK(result.outcome == Outcome::transport_lost);
  CHECK_FALSE(result.success);
  CHECK_FALSE(result.exit_code.has_value());
  CHECK(result.command_may_have_started);
  REQUIRE(result.error.has_value());
  CHECK(result.error->may_have_started);
}

void cut_while_running(Host& host) {
  FaultRule cut = rule(FaultPoint::output, FaultKind::cut, 1);
  cut.after = 3;
  const auto faulty = behind(host, {cut});
  const auto& script = faulty.script;
  const auto& sandbox = faulty.sandbox;
  const auto result = sandbox->execute_command("echo up; sleep 60");
  check_lost(result);
  CHECK(result.out == "up\n");
  CHECK(script->struck(0) == 1);
  CHECK(sandbox->execute_command("echo fine").out == "fine\n");

  const auto other = behind(host, {rule(FaultPoint::end, FaultKind::lose, 1)}, "t");
  const auto lost = other.sandbox->execute_command("echo all");
  check_lost(lost);
  CHECK(lost.out == "all\n");
}

void answer_lost(Host& host) {
  // A reset, and an error of a server in between.
  for (const Status code : {Status::transport_lost, Status::unavailable}) {
    CAPTURE(code);
    FaultRule lost = rule(FaultPoint::spawn, FaultKind::lose, 1);
    lost.error = code;
    const auto faulty = behind(host, {lost}, code == Status::unavailable ? "u" : "s");
    const auto& script = faulty.script;
    const auto& sandbox = faulty.sandbox;
    const auto result = count(*sandbox);
    CHECK(result.outcome ==
          (code == Status::transport_lost ? Outcome::transport_lost : Outcome::unknown));
    CHECK_FALSE(result.exit_code.has_value());
    CHECK(result.command_may_have_started);
    CHECK(script->struck(0) == 1);
    check_ran_once(*sandbox);
  }
}

void arrives_twice(Host& host) {
  const auto faulty = behind(host, {rule(FaultPoint::spawn, FaultKind::duplicate, 1)});
  const auto& script = faulty.script;
  const auto& sandbox = faulty.sandbox;
  CHECK(count(*sandbox).exit_code == 0);
  CHECK(script->struck(0) == 1);
  check_ran_once(*sandbox);
}

void cut_before_delivery(Host& host) {
  const auto faulty = behind(host, {rule(FaultPoint::spawn, FaultKind::refuse, 1)});
  const auto& script = faulty.script;
  const auto& sandbox = faulty.sandbox;
  CHECK(count(*sandbox).exit_code == 0);
  CHECK(script->struck(0) == 1);
  check_ran_once(*sandbox);

  const auto never = behind(host, {rule(FaultPoint::spawn, FaultKind::refuse)}, "t");
  const Error error = error_of([&] { count(*never.sandbox); });
  CHECK(error.code == Status::transport_lost);
  CHECK_FALSE(error.may_have_started);
  CHECK(never.script->struck(0) > 1);
  CHECK_FALSE(exists(*host.make("t"), "counter"));
}

void half_open(Host& host) {
  FaultRule half = rule(FaultPoint::output, FaultKind::half_open, 1);
  half.after = 3;
  half.time = 20ms;  // the bound of the provider's keepalive
  const auto faulty = behind(host, {half});
  const auto& script = faulty.script;
  const auto& sandbox = faulty.sandbox;
  const auto result = sandbox->execute_command("echo up; sleep 60");
  check_lost(result);
  CHECK(result.out == "up\n");
  CHECK(script->struck(0) == 1);
}

// Nothing that ends a command waits for a peer that is silent.
void silent_peer(Host& host) {
  const auto faulty = behind(host, {rule(FaultPoint::output, FaultKind::half_open)});
  const auto& script = faulty.script;
  const auto& sandbox = faulty.sandbox;
  // A time that passes before the command has begun strikes nothing: a slow machine gets more.
  for (std::chrono::milliseconds time = 100ms; script->struck(0) == 0 && time < 60s; time *= 8)
    CHECK(sandbox->execute_command("sleep 60", {}, limited(time, 0ms)).outcome ==
          Outcome::timed_out);
  CHECK(script->struck(0) == 1);

  SpawnOptions options;
  options.grace = 0ms;
  std::stop_source stop;
  WaitOptions wait;
  wait.stop = stop.get_token();
  const auto cancelled = sandbox->spawn(shell("sleep 60"), options);
  stop.request_stop();
  CHECK(cancelled->wait(wait).outcome == Outcome::cancelled);

  const auto killed = sandbox->spawn(shell("sleep 60"), options);
  CHECK(error_of([&] { killed->kill(); }).code == Status::transport_lost);
  check_lost(killed->wait());

  const auto destroyed = sandbox->spawn(shell("sleep 60"), options);
  sandbox->destroy();
  CHECK(destroyed->wait().outcome == Outcome::destroyed);
  CHECK(script->struck(0) == 4);
}

void refused_lookup(Host& host) {
  for (const Status code : {Status::unauthenticated, Status::forbidden, Status::rate_limited,
                            Status::unavailable, Status::timeout}) {
    CAPTURE(code);
    const auto kind = code == Status::timeout ? FaultKind::drop : FaultKind::refuse;
    FaultRule start = rule(FaultPoint::start, kind, 1);
    FaultRule info = rule(FaultPoint::info, kind, 1);
    start.error = info.error = code;
    if (kind == FaultKind::drop) start.time = info.time = 10ms;
    if (code == Status::rate_limited) start.retry_after = 250ms;
    const auto faulty = behind(host, {start, info}, "s" + std::to_string(static_cast<int>(code)));
    const auto& script = faulty.script;
    const auto& sandbox = faulty.sandbox;
    CHECK(error_of([&] { sandbox->info(); }).code == code);
    const Error error = error_of([&] { sandbox->execute_command("true"); });
    CHECK(error.code == code);
    CHECK((error.retry_after == start.retry_after));
    CHECK(script->struck(0) == 1);
    CHECK(script->struck(1) == 1);
    // No machine was made, and the next try is good.
    CHECK(sandbox->start().outcome == StartOutcome::created);
  }
}

void known_machine_is_kept(Host& host) {
  const auto first = host.started();
  sh(*first, "echo mine > file");
  FaultRule refused = rule(FaultPoint::start, FaultKind::refuse, 1);
  refused.error = Status::forbidden;
  const auto second = behind(host, {refused}).sandbox;
  CHECK(error_of([&] { sh(*second, "cat file"); }).code == Status::forbidden);
  CHECK(sh(*second, "cat file").out == "mine\n");
  CHECK(second->started()->outcome == StartOutcome::connected);
}

void killed_between(Host& host) {
  const auto faulty = behind(host, {rule(FaultPoint::start, FaultKind::lose, 1)});
  const auto& script = faulty.script;
  const auto& sandbox = faulty.sandbox;
  CHECK(error_of([&] { sandbox->start(); }).may_have_started);
  CHECK(sandbox->start().outcome == StartOutcome::connected);
  CHECK(script->struck(0) == 1);
  CHECK(sandbox->exec({"true"}).success);
}

}  // namespace

void add_faults(Procedures& to) {
  to["faults.cut_while_running"] = cut_while_running;
  to["faults.answer_lost"] = answer_lost;
  to["faults.arrives_twice"] = arrives_twice;
  to["faults.cut_before_delivery"] = cut_before_delivery;
  to["faults.half_open"] = half_open;
  to["faults.silent_peer"] = silent_peer;
  to["faults.refused_lookup"] = refused_lookup;
  to["faults.known_machine_is_kept"] = known_machine_is_kept;
  to["faults.killed_between"] = killed_between;
}

}  // namespace sandforge::conformance

#include "faults/script.hpp"

#include <utility>

namespace sandforge {
namespace faults {
namespace {

// splitmix64: each occurrence has its draw, whatever thread comes first.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

double draw(std::uint64_t seed, std::uint64_t rule, std::uint64_t occurrence) {
  const std::uint64_t bits = mix(mix(mix(seed) ^ rule) ^ occurrence);
  return static_cast<double>(bits >> 11U) * 0x1.0p-53;
}

}  // namespace

Script::Script(FaultPlan plan) : plan_(std::move(plan)), struck_(plan_.rules.size()) {}

bool Script::fits(std::size_t rule, std::uint64_t occurrence) const {
  const FaultRule& r = plan_.rules[rule];
  if (r.nth) return occurrence == *r.nth;
  if (r.every) return occurrence % *r.every == 0;
  return !r.probability || draw(plan_.seed, rule, occurrence) < *r.probability;
}

std::optional<Shot> Script::next(FaultPoint point) {
  const std::lock_guard lock(mutex_);
  const auto occurrence = ++seen_[static_cast<std::size_t>(point)];
  for (std::size_t i = 0; i < plan_.rules.size(); ++i) {
    if (plan_.rules[i].at != point || !fits(i, occurrence)) continue;
    const bool later = point == FaultPoint::output || point == FaultPoint::end;
    if (!later) ++struck_[i];
    return Shot{plan_.rules[i].kind, plan_.rules[i], i};
  }
  return std::nullopt;
}

void Script::note(const Shot& shot) {
  const std::lock_guard lock(mutex_);
  ++struck_[shot.index];
}

std::uint64_t Script::struck(std::size_t rule) const {
  const std::lock_guard lock(mutex_);
  return rule < struck_.size() ? struck_[rule] : 0;
}

void Script::add(const std::shared_ptr<Crashable>& pending) {
  const std::lock_guard lock(mutex_);
  pending_.emplace(pending.get(), pending);
}

void Script::remove(const Crashable* pending) noexcept {
  const std::lock_guard lock(mutex_);
  pending_.erase(pending);
}

void Script::crash() {
  std::vector<std::shared_ptr<Crashable>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, weak] : pending_)
      if (auto pending = weak.lock()) all.push_back(std::move(pending));
  }
  for (const auto& pending : all)
    pending->crash();
}

Error error_of(const Shot& shot, Status otherwise, bool may_have_started) {
  const std::string at(to_string(shot.rule.at));
  const std::string kind(to_string(shot.kind));
  Error error(shot.rule.error.value_or(otherwise), "a fault on purpose: " + kind + " at " + at,
              "fault." + kind);
  error.may_have_started = may_have_started;
  error.retry_after = shot.rule.retry_after;
  error.details.set("at", at);
  return error;
}

Error crash_error(bool may_have_started) {
  Error error(Status::crashed, "a fault on purpose: the provider crashed", "fault.crash");
  error.may_have_started = may_have_started;
  return error;
}

std::shared_ptr<Pending> Ground::timer(const Lane& lane,
                                       std::optional<std::chrono::milliseconds> time,
                                       Handler<void> done) const {
  return runtime->timer(lane, time.value_or(std::chrono::milliseconds::max()), std::move(done));
}

}  // namespace faults

Result<std::shared_ptr<FaultScript>> FaultScript::create(FaultPlan plan) {
  if (const auto issues = check_fault_plan(plan); !issues.empty())
    return Error(Status::invalid, "the faults are not valid: " + format_issue(issues.front()),
                 "faults.invalid");
  return std::shared_ptr<FaultScript>(
      new FaultScript(std::make_unique<faults::Script>(std::move(plan))));
}

FaultScript::FaultScript(std::unique_ptr<faults::Script> impl) : impl_(std::move(impl)) {}
FaultScript::~FaultScript() = default;

const FaultPlan& FaultScript::plan() const noexcept {
  return impl_->plan();
}

std::uint64_t FaultScript::struck(std::size_t rule) const {
  return impl_->struck(rule);
}

}  // namespace sandforge

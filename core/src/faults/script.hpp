// Which rule strikes which occurrence, and who is to hear of a crash.
#pragma once

#include <array>
#include <map>
#include <mutex>

#include "sandforge/faults.hpp"

namespace sandforge::faults {

// What ends when the provider crashes.
class Crashable {
 public:
  virtual ~Crashable() = default;
  virtual void crash() = 0;  // [any]
};

// A rule that strikes now.
struct Shot {
  FaultKind kind = FaultKind::refuse;
  FaultRule rule;
  std::size_t index = 0;
};

// [any]
class Script {
 public:
  explicit Script(FaultPlan plan);

  // Counts one more occurrence. Output and end are decided here, too, but strike later: `note` says
  // when. All others count as struck.
  std::optional<Shot> next(FaultPoint point);
  void note(const Shot& shot);
  std::uint64_t struck(std::size_t rule) const;
  const FaultPlan& plan() const noexcept { return plan_; }

  void add(const std::shared_ptr<Crashable>& pending);
  void remove(const Crashable* pending) noexcept;
  void crash();

 private:
  bool fits(std::size_t rule, std::uint64_t occurrence) const;

  const FaultPlan plan_;
  mutable std::mutex mutex_;
  std::array<std::uint64_t, 16> seen_{};  // by FaultPoint
  std::vector<std::uint64_t> struck_;     // by rule
  std::map<const Crashable*, std::weak_ptr<Crashable>> pending_;
};

using ScriptPtr = std::shared_ptr<FaultScript>;

// The error that a rule tells.
Error error_of(const Shot& shot, Status otherwise, bool may_have_started);
Error crash_error(bool may_have_started);

// What calls and processes stand on.
struct Ground {
  std::shared_ptr<Runtime> runtime;
  ScriptPtr script;

  std::optional<Shot> next(FaultPoint point) const { return script->impl().next(point); }
  // After the time, or the Runtime's end; without a time only then.
  std::shared_ptr<Pending> timer(const Lane& lane, std::optional<std::chrono::milliseconds> time,
                                 Handler<void> done) const;
};

}  // namespace sandforge::faults

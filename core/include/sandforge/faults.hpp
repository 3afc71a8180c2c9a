// A provider with faults on purpose: what wraps a ProviderBackend and carries out a FaultPlan.
//
//   FaultPlan plan;
//   plan.rules.emplace_back(FaultPoint::spawn, FaultKind::lose).nth = 1;
//   auto script = FaultScript::create(plan).value();
//   auto provider = with_faults(runtime, registry.open("local"), script);
//   …
//   script->struck(0);  // did it happen?
//
// Everything that the core promises must hold over it: a command is never run twice, no end is
// invented, no second machine is made. It keeps the rules of sandforge/backend.hpp, but for those
// that a rule of the plan breaks on purpose: `drop` and `half_open` without a time give no answer
// until the call is cancelled or the Runtime ends, `duplicate` at end tells it twice.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sandforge/backend.hpp"
#include "sandforge/fault_plan.hpp"
#include "sandforge/registry.hpp"

namespace sandforge {

namespace faults {
class Script;
}

// A plan, with the occurrences that were counted so far. One script may serve several providers:
// it then counts over all of them. Thread rule: every function from any thread.
class FaultScript {
 public:
  // invalid, reason "faults.invalid": the plan cannot be carried out.
  static Result<std::shared_ptr<FaultScript>> create(FaultPlan plan);
  ~FaultScript();
  FaultScript(const FaultScript&) = delete;
  FaultScript& operator=(const FaultScript&) = delete;

  const FaultPlan& plan() const noexcept;
  // How often a rule has struck: a test that never met its fault has shown nothing.
  std::uint64_t struck(std::size_t rule) const;

  faults::Script& impl() const noexcept { return *impl_; }

 private:
  explicit FaultScript(std::unique_ptr<faults::Script> impl);
  std::unique_ptr<faults::Script> impl_;
};

// The provider, wrapped. Its describe says so: "wrap": "fault". Rules for `open` have no effect.
std::shared_ptr<ProviderBackend> with_faults(Runtime& runtime,
                                             std::shared_ptr<ProviderBackend> provider,
                                             std::shared_ptr<FaultScript> script);

// Opens a provider of the registry under the rules for `open`, and wraps it. The handler comes on
// a lane of the runtime. Runtime and registry as in ProviderRegistry::async_open. [any]
void async_open_with_faults(Runtime& runtime, ProviderRegistry& registry, std::string name,
                            json::Object options, std::shared_ptr<FaultScript> script,
                            Handler<std::shared_ptr<ProviderBackend>> done);

}  // namespace sandforge

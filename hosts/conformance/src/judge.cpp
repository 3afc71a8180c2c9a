#include "judge.hpp"

#include <optional>
#include <system_error>

#include "procedure.hpp"
#include "steps.hpp"

namespace sandforge::conformance {
namespace {

// What a case may need that no provider declares: faults on the way to it, which core can make.
constexpr std::string_view kFaults = "fault";
constexpr const char* kOwnCommands =
    "commands.own is declared: it runs no programs of a system, which the case does";

void meet_needs(Host& host, const Case& one) {
  for (const auto& need : one.needs)
    if (need != kFaults) host.need(need);
}

bool applies(Host& host, const Case& one) {
  return one.of_core || !one.runs_programs || !host.has("commands.own");
}

Judgement absent(Host& host, const std::string& feature) {
  const bool refused = refuses(host, feature);
  return {Verdict::not_applicable,
          feature + " is declared absent" +
              (refused ? ", and refused as unsupported"
                       : "; the suite knows no call that would be refused")};
}

Judgement run(Host& host, const Case& one) {
  try {
    if (!one.of_core) {
      host.provider();
      meet_needs(host, one);
    }
    if (!applies(host, one)) return {Verdict::not_applicable, kOwnCommands};
    run_steps(host, one);
    return {Verdict::pass, {}};
  } catch (const Abandoned&) {
    return {Verdict::fail, {}};
  } catch (const Undecided& undecided) {
    return {Verdict::unverified, undecided.why};
  } catch (const Absent& missing) {
    return absent(host, missing.feature);
  }
}

// A case that is itself wrong says nothing about the plugin.
bool is_mistake_of_the_case(const Error& error) {
  return error.reason == "conformance.bad_step";
}

// Threads that cannot be made say nothing about the plugin.
bool is_of_the_machine(const std::system_error& error) {
  return error.code() == std::errc::resource_unavailable_try_again;
}
Judgement no_room(const std::system_error& error) {
  return {Verdict::unverified,
          std::string("this machine gives the case no more threads: ") + error.what()};
}

Judgement guarded(Host& host, const Case& one) {
  try {
    return run(host, one);
  } catch (const Unopened& unopened) {
    return {Verdict::fail, "the provider cannot be opened: " + unopened.why, true};
  } catch (const Exception& thrown) {
    if (is_mistake_of_the_case(thrown.error())) return {Verdict::unverified, thrown.what()};
    findings().add(std::string("an error: ") + thrown.what());
  } catch (const std::bad_variant_access&) {
    return {Verdict::unverified, "a step of the case has a value of the wrong kind"};
  } catch (const std::system_error& thrown) {
    if (is_of_the_machine(thrown)) return no_room(thrown);
    findings().add(std::string("an error: ") + thrown.what());
  } catch (const std::exception& thrown) {
    findings().add(std::string("an error: ") + thrown.what());
  } catch (const Abandoned&) {
  }
  return {Verdict::fail, {}};
}

}  // namespace

Judgement judge(const Case& one, Setting setting) {
  std::optional<Host> made;
  try {
    made.emplace(std::move(setting));
  } catch (const std::system_error& thrown) {
    if (is_of_the_machine(thrown)) return no_room(thrown);
    throw;
  }
  Host& host = *made;
  auto out = guarded(host, one);
  host.finish();
  if (out.unopened && !findings().empty()) out.reason += "\n" + findings().text();
  if (out.unopened) return out;
  if (!findings().empty()) return {Verdict::fail, findings().text()};
  return out;
}

}  // namespace sandforge::conformance

// What a provider declares: that it is used by some case, and that what is absent is refused.
#include <functional>
#include <set>
#include <stop_token>

#include "builds.hpp"
#include "case.hpp"
#include "procedure.hpp"
#include "sandforge/files.hpp"
#include "sandforge/schema.hpp"

namespace sandforge::conformance {
namespace {

void expect_unsupported(const std::string& feature, const std::function<void()>& call) {
  try {
    call();
  } catch (const UnsupportedFeatureError&) {
    return;
  } catch (const Exception& other) {
    findings().add(feature + " is declared absent, and is refused as " +
                   std::string(to_string(other.error().code)) +
                   ", not as UNSUPPORTED: " + other.what());
    return;
  }
  findings().add(feature + " is declared absent, but a call for it is not refused");
}

using Probe = std::function<void(Host&, Sandbox&)>;

SpawnOptions without_input() {
  SpawnOptions options;
  options.stdin_pipe = false;
  return options;
}

const std::map<std::string, Probe>& probes() {
  static const std::map<std::string, Probe> all = {
      {"spawn.stdin",
       [](Host&, Sandbox& sandbox) {
         SpawnOptions options;
         options.stdin_pipe = true;
         sandbox.spawn(argv({"cat"}), options);
       }},
      {"spawn.signal",
       [](Host&, Sandbox& sandbox) {
         const auto process = sandbox.spawn(argv({"sleep", "20"}), without_input());
         process->signal(10);
       }},
      {"spawn.user",
       [](Host&, Sandbox& sandbox) {
         ExecOptions options;
         options.user = "nobody";
         sandbox.exec({"true"}, options);
       }},
      {"spawn.detach",
       [](Host&, Sandbox& sandbox) {
         auto options = without_input();
         options.detach = true;
         sandbox.spawn(argv({"true"}), options)->wait();
       }},
      {"pty",
       [](Host&, Sandbox& sandbox) {
         SpawnOptions options;
         options.tty = Tty();
         sandbox.spawn(argv({"true"}), options)->wait();
       }},
      {"stderr.combined",
       [](Host&, Sandbox& sandbox) {
         ExecOptions options;
         options.combined = true;
         sandbox.exec({"true"}, options);
       }},
      {"env.per_command",
       [](Host&, Sandbox& sandbox) {
         sandbox.exec({"true"}, with_env({{"A", "b"}}));
       }},
      {"env.unset",
       [](Host&, Sandbox& sandbox) {
         sandbox.exec({"true"}, with_env({{"A", std::nullopt}}));
       }},
      {"idle.timeout",
       [](Host& host, Sandbox&) {
         auto config = host.config("idle");
         config.idle_timeout = 2s;
         host.make(config)->start();
       }},
      {"files", [](Host&, Sandbox& sandbox) { sandbox.files()->stat("."); }},
      {"files.watch", [](Host&, Sandbox& sandbox) { sandbox.files()->watch(".", false, nullptr); }},
      {"checkpoints", [](Host&, Sandbox& sandbox) { sandbox.snapshot(); }},
      {"template", [](Host& host, Sandbox&) { Builds(host).resolve(recipe_of(host)); }},
      {"builds", [](Host& host, Sandbox&) { Builds(host).start(recipe_of(host)); }},
      {"builds.history", [](Host& host, Sandbox&) { Builds(host).list(recipe_of(host)); }},
      {"builds.cancel",
       [](Host& host, Sandbox&) { Builds(host).cancel(recipe_of(host), BuildId("none")); }},
  };
  return all;
}

// Every feature that the plugin declares is needed by some case that applies, so that none is taken
// on trust.
void all_exercised(Host& host) {
  // Cases look what is there, and leave out what cannot be.
  std::set<std::string> needed = {"destroy.keeps_directory", "commands.own"};
  const bool own = host.has("commands.own");
  for (const auto& one : host.setting().cases)
    if (!own || !one.runs_programs) needed.insert(one.needs.begin(), one.needs.end());
  std::string missing;
  for (const auto& feature : host.description().features)
    if (needed.count(feature) == 0) missing += (missing.empty() ? "" : ", ") + feature;
  if (!missing.empty()) unverified("declared, and exercised by no case: " + missing);
}

void described(Host& host) {
  const auto& description = host.description();
  const auto compiled = compile_schema(description.settings_schema, SchemaProfile::settings);
  CHECK((compiled.schema != nullptr));
  std::set<std::string> once(description.features.begin(), description.features.end());
  CHECK(once.size() == description.features.size());
}

// A whole life of a sandbox, in which the plugin breaks no rule of the boundary. That it prints
// nothing and leaves no handle, process or file is looked at after every case.
void keeps_rules(Host& host) {
  const auto sandbox = host.started();
  CHECK(sandbox->exec({"true"}).success);
  std::stop_source stop;
  ExecOptions options;
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  CHECK(sandbox->exec({"sh", "-c", "echo x; sleep 30"}, options).outcome == Outcome::cancelled);
  CHECK_FALSE(sandbox->exec({"sh", "-c", "exit 3"}).success);
  sandbox->info();
  sandbox->instructions();
  sandbox->stop();
  sandbox->start();
  sandbox->destroy();
  const auto info = host.registry().find(host.provider_name());
  REQUIRE(info.has_value());
  CHECK(info->faults == 0);
}

}  // namespace

bool refuses(Host& host, const std::string& feature) {
  const auto probe = probes().find(feature);
  if (probe == probes().end()) return false;
  // A signal wants a program that runs; all others are refused before one does.
  if (feature == "spawn.signal" && host.has("commands.own")) return false;
  // Where there is one stream only, it is what who asks for both in one gets.
  if (feature == "stderr.combined" && !host.has("stderr.separate")) return false;
  const auto sandbox = host.started("refusal");
  expect_unsupported(feature, [&] { probe->second(host, *sandbox); });
  return true;
}

void add_capabilities(Procedures& to) {
  to["capabilities.all_exercised"] = all_exercised;
  to["capabilities.described"] = described;
  to["capabilities.keeps_rules"] = keeps_rules;
}

}  // namespace sandforge::conformance

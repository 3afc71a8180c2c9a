// Host services that a plugin in a process of its own needs, and that no configuration grants it.
#include <algorithm>
#include <iterator>
#include <set>

#include "app.hpp"

namespace sandforge::cli {
namespace {

struct Service {
  const char* name;     // of the manifest
  const char* members;  // of `allow` that speak of it
  const char* other;    // another of them; may be null
  const char* line;     // what grants it
  const char* means;
};

constexpr Service kServices[] = {
    {"process", "process", nullptr, "process: true", "commands on this machine"},
    {"http", "hosts", "unixSockets", "hosts: [HOST]", "requests; HOST is where they go"},
    {"secrets", "secrets", nullptr, "secrets: [NAME]", "secrets; NAME is one under secrets"},
};

// Whoever writes `process: false` or `hosts: []` knows what the plugin does not get.
bool is_refused_on_purpose(const ConfigPtr& config, const std::string& allow,
                           const Service& service) {
  if (!config) return false;
  const auto says = [&](const char* member) {
    return member != nullptr && config->document.at_pointer(allow + '/' + member) != nullptr;
  };
  return says(service.members) || says(service.other);
}

// The deepest of these that the document has, and the line to add there.
void tell_line(const ConfigPtr& config, const std::string& plugin, const std::string& grant,
               App::MissingGrant& out) {
  const auto below = "/plugins/policies/" + json::escape_pointer(plugin);
  const std::string steps[] = {below + "/allow", below, "/plugins/policies", "/plugins"};
  const std::string names[] = {"plugins.policies." + plugin + ".allow",
                               "plugins.policies." + plugin, "plugins.policies", "plugins"};
  const std::string keys[] = {"allow", plugin, "policies"};
  std::string line = grant;
  for (std::size_t i = 0; i < std::size(steps); ++i) {
    const auto* there = config ? config->document.at_pointer(steps[i]) : nullptr;
    if (there != nullptr && there->is_object()) {
      out.pointer = steps[i];
      out.add = "add below " + names[i] + ":  " + line;
      return;
    }
    if (i < std::size(keys)) line = keys[i] + ": {" + line + "}";
  }
  out.add = std::string("add to ") +
            (config ? "the configuration" : "a configuration, and name it with --config") +
            ":  plugins: {" + line + "}";
}

// The provider of the configuration that this plugin brings; null: none that it uses.
const ProviderConfig* used_by(const ConfigPtr& config, const std::string& provider) {
  return config ? config->find_provider(provider) : nullptr;
}

}  // namespace

std::string App::MissingGrant::message() const {
  return "the plugin '" + plugin + "' uses the host service " + service + " (" + means +
         "), which nothing grants it: " + add;
}

std::vector<App::MissingGrant> App::missing_grants(const ConfigPtr& config) {
  std::vector<MissingGrant> out;
  std::set<std::string> told;
  auto& known = registry(config);
  // What is used comes first: one plugin may bring several providers.
  for (const bool used : {true, false}) {
    for (const auto& info : known.list()) {
      const auto* provider = used_by(config, info.name);
      if ((provider != nullptr) != used || info.not_granted.empty()) continue;
      if (!told.insert(info.plugin).second) continue;
      const auto allow = "/plugins/policies/" + json::escape_pointer(info.plugin) + "/allow";
      for (const auto& service : kServices) {
        const auto& lacks = info.not_granted;
        if (std::find(lacks.begin(), lacks.end(), service.name) == lacks.end() ||
            is_refused_on_purpose(config, allow, service))
          continue;
        MissingGrant one;
        one.plugin = info.plugin;
        one.service = service.name;
        one.means = service.means;
        one.used = used;
        if (used) one.pointer = provider->pointer;
        tell_line(config, info.plugin, service.line, one);
        out.push_back(std::move(one));
      }
    }
  }
  return out;
}

}  // namespace sandforge::cli

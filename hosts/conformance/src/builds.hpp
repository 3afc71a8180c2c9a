// The templates and builds of the provider that is judged, in blocking form.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "host.hpp"
#include "sandforge/builds.hpp"

namespace sandforge::conformance {

// What a session is made of, as far as its template is concerned.
using Recipe = BuildRequest;

class Builds {
 public:
  explicit Builds(Host& host) : Builds(host.provider()) {}
  explicit Builds(std::shared_ptr<ProviderBackend> provider) : provider_(std::move(provider)) {}

  ResolvedTemplate resolve(const Recipe& recipe) const;
  Build start(const Recipe& recipe) const;
  Build get(const Recipe& recipe, const BuildId& id) const;
  std::vector<Build> list(const Recipe& recipe) const;
  std::string log(const Recipe& recipe, const BuildId& id) const;
  void cancel(const Recipe& recipe, const BuildId& id) const;
  // Looks until it is neither pending nor building; ends the case when that takes too long.
  Build ended(const Recipe& recipe, const Build& build) const;
  // All that can be read about a build: its texts, the history and the log, where they are offered.
  std::string everything_about(const Recipe& recipe, const BuildId& id) const;

  // For SandboxConfig::template_document.
  TemplateFn document_of(const Recipe& recipe) const;

 private:
  template <class T, class Call>
  T ask(Call call) const;

  const std::shared_ptr<ProviderBackend> provider_;
};

// A recipe of the case's own session, with these settings made effective.
Recipe recipe_of(Host& host, const json::Object& settings = {});
// With a template that nobody asked for before. Ends the case as unverified where the settings give
// none.
Recipe fresh_recipe(Host& host);
// An unstarted sandbox that boots from it.
std::shared_ptr<Sandbox> make(Host& host, const Recipe& recipe, const std::string& name = "s");

}  // namespace sandforge::conformance

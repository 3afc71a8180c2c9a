// Images of templates: made one operation at a time in build containers, found by their labels.
#pragma once

#include <sandforge/support/redact.hpp>
#include <sandforge/support/template_steps.hpp>

#include <mutex>

#include "build_claim.hpp"
#include "engine.hpp"
#include "options.hpp"
#include "template_image.hpp"

namespace sandforge::docker {

// Of a container that builds: the identity of the template.
inline constexpr std::string_view kBuildLabel = "sandforge.build";
// What its name begins with. A label alone says nothing: containers inherit those of their image.
inline constexpr std::string_view kStepName = "sandforge-step-";

// What is built. The values are secret: they go to stdin of the steps, and nowhere else.
class BuildOrder {
 public:
  BuildOrder() {}
  std::string document;
  std::string identity;
  std::string family;  // a hash; empty: none
  std::map<std::string, std::string> ephemeral;
  std::map<std::string, std::string> secrets;
};

// What a build has said, without credentials; the newest 1 MiB of it. Thread-safe.
class BuildLog {
 public:
  static constexpr std::size_t kMost = 1U << 20;
  void add(std::string_view text);
  // From the cursor on, which goes behind it.
  std::string read(std::uint64_t& cursor) const;
  std::string tail(std::size_t most) const;

 private:
  mutable std::mutex mutex_;
  std::string text_;
  std::uint64_t dropped_ = 0;
};

// What a build goes on from: an image, and what the next one has of its configuration.
class BuildLayer {
 public:
  BuildLayer() {}
  std::string id;
  std::string user;
  std::string workdir;
  json::Value entrypoint, command;
};

// The hash that images of one family and of the same sizes share; empty: no family.
std::string family_key(const Template& of);

// Those of one engine, on its lane. The engine and the options outlive what is awaited.
class TemplateImages {
 public:
  TemplateImages(Engine& engine, std::shared_ptr<const ProviderOptions> options)
      : engine_(engine), options_(std::move(options)) {}

  Task<std::optional<TemplateImage>> find(std::string identity);
  Task<std::optional<TemplateImage>> newest(std::string family);
  Task<std::vector<TemplateImage>> list();  // newest first
  /*
   * Ends when the image is there, also where another host made it: of hosts that want the same at
   * once one builds, and the next one does where that fails or is gone. Throws what kept it from
   * that: docker.build_step names the step and the end of what it said. No container of it is left.
   * Each operation runs as the one command of a container of its own: with the command the engine
   * ends every process of it, and what is kept is the container that has ended. A stop ends it.
   */
  Task<void> build(std::shared_ptr<const BuildOrder> order, std::shared_ptr<BuildLog> log);

 private:
  class Step;
  Task<BuildLayer> base_layer(std::string image);
  Task<bool> wait_for(BuildClaim& claim, std::string identity, std::shared_ptr<BuildLog> log);
  Task<void> build_steps(std::shared_ptr<const BuildOrder> order, std::shared_ptr<BuildLog> log,
                         BuildLayer layer, std::string claim);
  Task<std::optional<std::string>> cached(std::string key);
  Task<std::string> run_step(std::shared_ptr<Step> step);
  Task<std::string> run_secret_step(std::shared_ptr<Step> step);
  Task<std::string> create(std::shared_ptr<Step> step, std::string user, std::string script);
  Task<void> run(std::shared_ptr<Step> step, std::string container, std::string input);
  Task<void> move_output(std::shared_ptr<Step> step, std::string from, std::string to);
  Task<std::string> commit(std::string container, std::string body, std::string reference);
  // As many as can be; what stays is told to the log.
  Task<void> remove(std::vector<std::string> containers);

  Engine& engine_;
  const std::shared_ptr<const ProviderOptions> options_;
};

}  // namespace sandforge::docker

// Checkpoints: images that hold the files of a container, named and labelled for it.
#pragma once

#include <sandforge/plugin/sandbox.hpp>

#include "engine.hpp"
#include "options.hpp"

namespace sandforge::docker {

// Names of checkpoints that a fresh machine boots from, the first one that exists.
class Boot {
 public:
  Boot() {}
  std::optional<std::string> wanted;  // must exist
  std::optional<std::string> own;
  std::optional<std::string> seed;
};

class Booted {
 public:
  Booted() {}
  std::string image;  // empty: none of them exists
  plugin::Provenance provenance = plugin::Provenance::base;
};

// Those of one engine, on its lane. The engine and the options outlive what is awaited.
class Checkpoints {
 public:
  Checkpoints(Engine& engine, std::shared_ptr<const ProviderOptions> options)
      : engine_(engine), options_(std::move(options)) {}

  /*
   * Of a container that runs: it is paused meanwhile. The checkpoint of that name is replaced as a
   * whole. An engine's commit would write the container's configuration, with all values of its
   * environment, into the image; so its files are exported and imported, and the configuration is
   * that of the image it was made from.
   */
  Task<plugin::Checkpoint> capture(wire::ContainerInfo of, std::string name, std::string session);
  Task<std::vector<plugin::Checkpoint>> list();  // newest first
  Task<void> remove(std::string name);
  // Throws Code::not_found.
  Task<void> must_exist(std::string name);
  Task<Booted> choose(Boot boot);
  // Removes a checkpoint's image that lost its name, unless a container still needs it.
  Task<void> drop_unnamed(std::string image_id);

 private:
  Task<std::optional<wire::ImageInfo>> inspect(std::string image);
  Task<bool> exists(std::optional<std::string> name);
  Task<void> pause(std::string container);
  Task<void> unpause(std::string container);
  Task<std::string> copy(std::string container, std::string target);
  Task<std::string> read_import(HttpStream& stream);

  Engine& engine_;
  const std::shared_ptr<const ProviderOptions> options_;
};

}  // namespace sandforge::docker

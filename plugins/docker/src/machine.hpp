// The container of a session: finding, making, starting and removing it.
#pragma once

#include "checkpoints.hpp"
#include "exec.hpp"
#include "options.hpp"

namespace sandforge::docker {

// What a start found or made.
class Machine {
 public:
  Machine() {}
  wire::ContainerInfo info;
  bool created = false;
  plugin::Provenance provenance = plugin::Provenance::base;
  std::vector<std::string> warnings;
};

// What a fresh machine boots where no checkpoint exists. Outlives the start that it is given to.
class ImageChoice {
 public:
  virtual ~ImageChoice() = default;
  virtual Task<Booted> choose() = 0;
};

// Of one session; on the lane of the engine. Either id may be absent.
class Machines {
 public:
  Machines(Engine& engine, std::shared_ptr<const ProviderOptions> options)
      : checkpoints(engine, options),
        engine_(engine),
        options_(std::move(options)),
        guests_(engine_, options_->guest) {}

  Checkpoints checkpoints;
  std::optional<std::string> session_id;
  std::optional<std::string> container_id;  // known from an earlier start
  // The session's id was made up for this object, so the container carries another one.
  bool any_session = false;

  // By its id, else by the label of the session; absent: there is none. Any refusal is an error.
  Task<std::optional<wire::ContainerInfo>> find();
  // All that carry the session's label, the one to go on with first.
  Task<std::vector<wire::ContainerSummary>> list();
  // A machine that runs; a fresh one boots from the first checkpoint that exists, else what
  // `choice` says, which may be null. Code::conflict: another container has its name. on_identity:
  // as soon as the machine exists.
  Task<Machine> start(MachineSpec spec, Boot boot, ImageChoice* choice,
                      std::function<void(const std::string&)> on_identity);
  Task<void> stop();
  // Every machine of the session, and the one whose id is known. Ends when they are gone. Answers
  // the ids of the images that they were made from.
  Task<std::vector<std::string>> remove();
  Task<std::optional<wire::ContainerInfo>> inspect(std::string id);
  // Pulls the image where the options say so.
  Task<void> need_image(std::string image);

 private:
  Task<std::string> create(MachineSpec spec, Machine& machine);
  Task<std::string> create_with_guest(MachineSpec spec, Machine& machine);
  Task<void> complete_guest(wire::ContainerInfo found);
  Task<void> run(Machine& machine);
  Task<void> own_directory(Machine& machine);
  Task<void> pull(std::string image);
  Task<void> read_progress(HttpStream& stream, std::string image);
  Task<void> remove_one(std::string id);
  Task<void> wait_until_gone(std::string id);
  Task<std::optional<wire::ContainerInfo>> adopt_named(std::string name, HttpAnswer conflict);
  std::string name() const;
  Error pull_failed(const std::string& image, const std::string& why, Code code) const;

  Engine& engine_;
  const std::shared_ptr<const ProviderOptions> options_;
  GuestVolumes guests_;
};

}  // namespace sandforge::docker

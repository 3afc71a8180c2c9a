// The right to build one template at an engine that several hosts share.
#pragma once

#include <sandforge/plugin/http_stream.hpp>

#include "options.hpp"

namespace sandforge::docker {

// Of a container that stands for the right: the identity of the template.
inline constexpr std::string_view kClaimLabel = "sandforge.build.claim";
// Of a container that builds: the id of that one. Who is gone is not building any more.
inline constexpr std::string_view kClaimedByLabel = "sandforge.build.by";

// The name of the container that stands for the right to build it.
std::string claim_name(const std::string& identity);
// Whether a claim, by its id or its name, is of somebody who lives. Empty: it is not told, and may.
Task<bool> claim_lives(Engine& engine, std::string claim);

/*
 * A container whose name an engine gives to one host only. It does nothing but wait for the end of
 * its input, which is this host's connection: it ends with its host, however that ends, and the
 * engine removes it then. So nobody needs a clock, nor what other hosts know. On the lane of the
 * engine, which outlives it with the options.
 */
class BuildClaim {
 public:
  enum class Taken : std::uint8_t {
    mine,
    others,     // somebody else has it, and lives
    unguarded,  // this engine or image cannot do it: nobody is kept from building the same
  };
  // image: of the container; it needs /bin/sh.
  BuildClaim(Engine& engine, std::shared_ptr<const ProviderOptions> options, std::string identity,
             std::string image)
      : engine_(engine),
        options_(std::move(options)),
        identity_(std::move(identity)),
        image_(std::move(image)) {}

  // Again and again, until it is there. Never twice once it is mine.
  Task<Taken> take();
  // Of a stop's own time: what is taken is given back.
  Task<void> release();
  const std::string& container() const noexcept { return container_; }

 private:
  Task<std::string> create();
  Task<bool> attach_and_start();
  Task<bool> is_held();
  Task<void> remove(std::string container);
  std::string name() const { return claim_name(identity_); }

  Engine& engine_;
  const std::shared_ptr<const ProviderOptions> options_;
  const std::string identity_;
  const std::string image_;
  std::string container_;  // mine; empty: none
  std::optional<HttpStream> held_;
  int never_started_ = 0;  // looks in a row at one that does not begin
};

}  // namespace sandforge::docker

// The options that the provider is opened with, and the machine that they describe.
#pragma once

#include <sandforge/plugin/factory.hpp>
#include <sandforge/wire/docker/messages.hpp>

#include "guest.hpp"
#include "host_mark.hpp"

namespace sandforge::docker {

enum class PullPolicy : std::uint8_t { missing, always, never };

class RegistryLogin {
 public:
  RegistryLogin() {}
  std::string username;
  std::string password;
  std::string identity_token;
};

class ProviderOptions {
 public:
  explicit ProviderOptions(const plugin::Opening& opening);

  std::shared_ptr<const EngineOptions> engine;
  std::string name_prefix;
  std::string image;       // empty: by the settings
  std::string base_image;  // of `defaults`; empty: kDefaultImage
  std::string owner;       // of `defaults`
  std::string working_directory;
  std::string user;
  std::string platform;
  std::string instructions;
  bool has_instructions = false;
  PullPolicy pull = PullPolicy::missing;
  std::map<std::string, RegistryLogin> logins;  // by host of the registry
  wire::Labels labels;
  std::vector<plugin::EnvEntry> env;
  std::vector<std::string> command;
  bool has_command = false;                      // it was given: the container ends with it
  json::Object host_config;                      // as the engine takes it
  json::Object exposed_ports;                    // those that are published in it
  std::map<std::string, std::string> build_env;  // of templates
  std::string build_network;                     // of containers that build; empty: the engine's
  std::vector<std::string> build_binds;          // "SOURCE:TARGET[:ro]"
  std::chrono::seconds build_time{3600};         // of one build; 0: no limit
  std::size_t keep_newest = 3;                   // images of a family that a clean-up keeps
  std::chrono::hours keep_young{168};            // what a clean-up keeps, whatever their number
  std::chrono::seconds stop_timeout{10};
  // Files change in mounts alone, which no checkpoint has.
  bool read_only_root = false;
  milliseconds guest_silence{60'000};
  milliseconds idle{0};                 // of sessions that name none; 0: never
  std::shared_ptr<GuestProgram> guest;  // null: commands run by engine execs
  const std::shared_ptr<HostMark> mark = std::make_shared<HostMark>();

  static constexpr const char* kDefaultImage = "node:22-slim";
};

// One machine, before it is made.
class MachineSpec {
 public:
  MachineSpec() {}
  std::string image;
  std::string checkpoint;  // the image of one that it is made from instead; empty: none
  std::string working_directory;
  std::string guest;  // hash of the program that is its first process; empty: the options' command
  std::string host;   // that makes it; empty: it carries none
  milliseconds idle{0};                 // after which the guest ends the container; 0: never
  std::vector<std::string> entrypoint;  // of the image, ahead of a command that was given
  std::vector<std::string> env;         // "NAME=value", or "NAME" to take it away from the image's

  // The body that creates it, for the session; the same options give the same hash,
  // from whatever checkpoint.
  static std::string body(const ProviderOptions& options, const MachineSpec& spec,
                          const std::string& session_id);
  static std::string hash(const ProviderOptions& options, const MachineSpec& spec);
};

// What is written on every machine of a session, over the labels of the options.
wire::Labels labels_of(const ProviderOptions& options, const std::string& session_id,
                       const std::string& spec_hash);

}  // namespace sandforge::docker

// The first frame of each side: versions first, then what the runner is to load and how it went.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runner/connection.hpp"
#include "sandforge/host_services.hpp"
#include "sandforge/plugin_loader.hpp"

namespace sandforge::runner {

struct Hello {
  std::string path, origin, sha256;
  std::map<std::string, std::string> env;  // granted and set
  std::vector<std::string> granted_env;
  std::vector<std::string> hosts;  // where its requests may go, as in PluginPolicy
  std::vector<std::string> unix_sockets;
  std::vector<std::string> writable;  // the plugin's own folders
  PluginFolders folders;
  std::string guest_program;      // empty: no commands on this machine
  bool may_run_programs = false;  // else its files are confined, too
  LogLevel log_level = LogLevel::info;
  bool has_state = false;
  bool has_secrets = false;
  std::uint64_t memory_mb = 0;
  std::uint64_t open_files = 0;
  std::uint64_t call_limit_ms = 0;  // 0: none
};

struct Ready {
  LoadAttempt attempt;
  std::string hardening;      // what the kernel does not offer, for the log
  bool lacks_thread = false;  // no fault of the plugin, whose code hardly ran
};

std::string encode(const Hello& hello);
std::string encode(const Ready& ready);
// unsupported, kOtherVersion: the other side is of another version. invalid: no such frame.
inline constexpr const char* kOtherVersion = "runner.version";
Result<Hello> decode_hello(std::string_view payload);
Result<Ready> decode_ready(std::string_view payload);

}  // namespace sandforge::runner

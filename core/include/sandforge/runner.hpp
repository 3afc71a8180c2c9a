// Plugins in processes of their own: what a host may set, and the runner's main.
//
// A runner contains crashes and mistakes, not malice: it has the host's user id unless another user
// is named. Source: sandforge/abi.h, which both sides of it speak.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace sandforge {

enum class Isolation : std::uint8_t {
  automatic,  // in line what this build made and installed, all others in a process
  process,    // a process of its own
  in_line,    // inside this process, with all its rights
};

// How one plugin runs and what it may use. Nothing is granted by default; log, state, clock, paths
// and timers need no grant.
struct PluginPolicy {
  Isolation isolation = Isolation::automatic;
  // Of a plugin in a process of its own:
  bool process = false;           // it may start commands on this machine
  std::set<std::string> env;      // variables of the host, of those that its manifest names
  std::set<std::string> secrets;  // names
  // Where its requests may go: HOST, HOST:PORT, *.DOMAIN, *.DOMAIN:PORT or "*", as URLs have them.
  std::set<std::string> hosts;
  std::set<std::string> unix_sockets;  // absolute paths
  std::string user;                    // who it runs as; empty: the host's user
  std::uint64_t memory_mb = 4096;   // of its data, and of each command that it starts; 0: no limit
  std::uint64_t open_files = 1024;  // 0: as the host's
};

struct RunnerOptions {
  // sandforge-runner. Empty: there is none, and plugins that need one are refused.
  std::filesystem::path program;
  std::map<std::string, PluginPolicy> policies;  // by plugin name
  PluginPolicy others;                           // of plugins without one
  // Where the plugins lie that this build made: in line by default. Not others in that folder.
  std::filesystem::path shipped;
  // Where quarantine is kept from one call of a program to the next. Empty: it ends with the host.
  std::filesystem::path quarantine;
  // How long the process of a plugin may take to be ready, and a call on a lane to return: then it
  // is ended.
  std::chrono::milliseconds ready_limit{10'000};
  std::chrono::milliseconds call_limit{10'000};
};

// The whole life of a sandforge-runner: descriptor 0 is the host. Gives the exit code.
int run_plugin_runner();

}  // namespace sandforge

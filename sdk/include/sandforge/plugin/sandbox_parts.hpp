// The small capabilities of a sandbox: what an author implements, and the tables that the host
// sees.
#pragma once

#include <sandforge/ext/lifetime.h>
#include <sandforge/ext/metrics.h>
#include <sandforge/ext/ports.h>
#include <sandforge/ext/processes.h>
#include <sandforge/ext/pty.h>
#include <sandforge/ext/snapshot.h>

#include "process.hpp"
#include "sandbox_base.hpp"

namespace sandforge::plugin {

// A process that runs, or that ended and was not forgotten.
class ProcessInfo {
 public:
  ProcessInfo() {}
  std::string id;
  std::int64_t pid = 0;
  std::string command;
  std::string tag;
  bool detached = false;
  bool stray = false;        // a child that its command left behind
  std::optional<Exit> exit;  // absent while it runs
  sf_cursor first{0, 0};     // oldest output still kept
  sf_cursor next{0, 0};      // where the next output goes
};

// Processes that outlive a connection.
template <class Style>
class BasicProcesses {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  virtual ~BasicProcesses() = default;
  virtual Result<std::vector<ProcessInfo>> list(StopToken stop) = 0;
  // On the lane, without blocking, as BasicSandbox::spawn. Code::not_found: no such process.
  virtual void attach(Attach& attach) = 0;
  virtual Result<void> signal(std::string id, std::int32_t number, SignalScope scope,
                              StopToken stop) = 0;
  virtual Result<void> forget(std::string id, StopToken stop) = 0;
};

// How long the sandbox lives without activity. Absent times mean: no limit.
template <class Style>
class BasicLifetime {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  using Time = std::optional<std::chrono::milliseconds>;
  virtual ~BasicLifetime() = default;
  virtual Result<Time> time_left(StopToken stop) = 0;
  virtual Result<void> set_time_left(Time time, StopToken stop) = 0;
  virtual Result<void> keep_alive(StopToken stop) = 0;
  // Whether pause and resume are there: they freeze memory and processes.
  virtual bool can_pause() const { return false; }
  virtual Result<void> pause(StopToken) { throw Error(Code::unsupported, "cannot pause"); }
  virtual Result<void> resume(StopToken) { throw Error(Code::unsupported, "cannot resume"); }
};

class Checkpoint {
 public:
  Checkpoint() {}
  std::string name;
  std::int64_t created_at = 0;
  std::optional<std::uint64_t> bytes;
  std::vector<std::string> warnings;  // what was not captured; for a person
};

// Checkpoints: kept states of the file system.
template <class Style>
class BasicSnapshots {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  virtual ~BasicSnapshots() = default;
  // A sandbox that does not run, or has no name, captures nothing and answers absent. An empty name
  // stands for the one given at create.
  virtual Result<std::optional<Checkpoint>> create(std::string name, StopToken stop) = 0;
  virtual Result<std::vector<Checkpoint>> list(StopToken stop) = 0;  // newest first
  virtual Result<void> remove(std::string name, StopToken stop) = 0;
  // The next fresh start boots from this checkpoint.
  virtual Result<void> start_from(std::string name, StopToken stop) = 0;
};

// What listens inside the sandbox.
template <class Style>
class BasicPorts {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  virtual ~BasicPorts() = default;
  // A URL under which others reach the port; absent: there is none.
  virtual Result<std::optional<std::string>> url(std::uint32_t port, StopToken stop) = 0;
  virtual bool can_dial() const { return false; }
  // Carries a connection to the port until one end closes it.
  virtual Result<void> dial(std::uint32_t, Io&) { throw Error(Code::unsupported, "cannot dial"); }
};

class Metrics {
 public:
  Metrics() noexcept {}
  using Number = std::optional<std::uint64_t>;
  std::int64_t at = 0;
  Number cpu_time_ms, cpu_millis, memory_bytes, memory_limit_bytes, disk_bytes, disk_limit_bytes,
      network_in_bytes, network_out_bytes, process_count;
};

// What the sandbox uses now.
template <class Style>
class BasicMetrics {
 public:
  virtual ~BasicMetrics() = default;
  virtual typename Style::template Result<Metrics> read(StopToken stop) = 0;
};

}  // namespace sandforge::plugin

#include "impl/sandbox_tables.hpp"

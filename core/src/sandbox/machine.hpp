// What a command needs of a sandbox, apart from everything else of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sandforge/backend.hpp"

namespace sandforge::sandbox {

class ProcessImpl;

// A machine that takes commands.
struct Machine {
  std::shared_ptr<SandboxBackend> backend;
  std::uint64_t epoch = 0;  // of one stretch of running; what an older one reports is fenced off
  bool in_hook = false;     // a hook runs: a command must not wait for a start
};

// Everything on the sandbox's lane.
class CommandHost {
 public:
  virtual ~CommandHost() = default;
  virtual const std::string& provider() const = 0;
  // Of the provider; at once when they are known.
  virtual void features(Handler<Features> done) = 0;
  // Nothing when a start is needed first.
  virtual std::optional<Machine> machine() = 0;
  virtual void ensure_running(Handler<Machine> done) = 0;
  // A command found its machine stopped, or gone.
  virtual void machine_lost(std::uint64_t epoch, bool gone) = 0;
  // Whether that stretch of running ended, or is about to end, by destroy.
  virtual bool destroyed(std::uint64_t epoch) = 0;
  // It is in use now.
  virtual void used() {}
  virtual void process_sent(const std::shared_ptr<ProcessImpl>& process) = 0;
  virtual void process_started(const std::shared_ptr<ProcessImpl>& process) = 0;
  virtual void process_ended(const std::shared_ptr<ProcessImpl>& process) = 0;
};

}  // namespace sandforge::sandbox

// The processes that a sandbox shows: those of spawn, and those of earlier hosts where the provider
// can list them. Commands of exec are not shown. On the lane.
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "sandbox/machine.hpp"
#include "sandbox/process_impl.hpp"

namespace sandforge::sandbox {

class ProcessTable {
 public:
  // What ended and was not read is kept up to these bounds, the oldest go first.
  static constexpr std::size_t kUnread = 1024;
  static constexpr std::uint64_t kUnreadBytes = std::uint64_t{64} << 20;
  static constexpr std::size_t kDismissed = 10'000;

  ProcessTable(Lane lane, std::shared_ptr<Deadlines> deadlines)
      : lane_(std::move(lane)), deadlines_(std::move(deadlines)) {}

  void sent(const std::shared_ptr<ProcessImpl>& process);
  void started(const std::shared_ptr<ProcessImpl>& process);
  void ended(const std::shared_ptr<ProcessImpl>& process);
  // Every process of that stretch of running has to end now.
  void machine_ended(std::uint64_t epoch);

  // host keeps the sandbox, and with it this table. No machine: only what is known here.
  void list(std::shared_ptr<CommandHost> host, const std::optional<Machine>& machine,
            Handler<std::vector<ProcessInfo>> done);
  void get(std::shared_ptr<CommandHost> host, const std::optional<Machine>& machine, ProcessId id,
           Handler<std::shared_ptr<Process>> done);
  void attach(std::shared_ptr<CommandHost> host, const std::optional<Machine>& machine,
              ProcessId id, OutputCursor from, ProcessImpl::Plan plan,
              Handler<std::shared_ptr<Process>> done);
  void kill(std::shared_ptr<CommandHost> host, const std::optional<Machine>& machine, ProcessId id,
            Handler<bool> done);
  void release(const ProcessId& id);

 private:
  using Shown = std::vector<std::shared_ptr<ProcessImpl>>;

  Shown::iterator find(const ProcessId& id);
  bool hidden(const ProcessId& id) const;
  bool is_live(const ProcessId& id) const;
  std::vector<ProcessInfo> merged(std::vector<ProcessInfo> remote);
  void adopt(const std::shared_ptr<CommandHost>& host, const Machine& machine,
             const ProcessInfo& info, Handler<std::shared_ptr<Process>> done);
  void bound_unread();
  void dismiss(const ProcessId& id);

  const Lane lane_;
  const std::shared_ptr<Deadlines> deadlines_;
  Shown shown_;  // in the order of their starts
  std::unordered_map<const ProcessImpl*, std::weak_ptr<ProcessImpl>> live_;
  std::set<ProcessId> dismissed_;  // those that the provider still lists
};

}  // namespace sandforge::sandbox

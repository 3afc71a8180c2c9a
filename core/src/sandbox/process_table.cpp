#include "sandbox/process_table.hpp"
#include <csignal>

#include <algorithm>

namespace sandforge::sandbox {
namespace {

ProcessesBackend* remote_of(const std::optional<Machine>& machine) {
  return machine ? machine->backend->processes() : nullptr;
}

bool absent(const Error& error) {
  return error.code == Status::gone || error.code == Status::not_found;
}

}  // namespace

// ---- What processes tell

void ProcessTable::sent(const std::shared_ptr<ProcessImpl>& process) {
  live_[process.get()] = process;
}

void ProcessTable::started(const std::shared_ptr<ProcessImpl>& process) {
  if (!process->listed()) return;
  dismissed_.erase(process->id());
  shown_.push_back(process);
}

void ProcessTable::ended(const std::shared_ptr<ProcessImpl>& process) {
  live_.erase(process.get());
  if (!process->reader()) dismissed_.erase(process->id());
  if (process->listed()) bound_unread();
}

void ProcessTable::machine_ended(std::uint64_t epoch) {
  for (auto it = live_.begin(); it != live_.end();) {
    const auto process = it->second.lock();
    if (!process) {
      it = live_.erase(it);
      continue;
    }
    if (process->epoch() <= epoch) process->machine_ended();
    ++it;
  }
}

void ProcessTable::bound_unread() {
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = shown_.size(); i-- > 0;) {
    if (!shown_[i]->ended()) continue;
    ++count;
    bytes += shown_[i]->memory();
    if (count > 1 && (count > kUnread || bytes > kUnreadBytes))
      shown_.erase(shown_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// ---- Looking

ProcessTable::Shown::iterator ProcessTable::find(const ProcessId& id) {
  return std::find_if(shown_.begin(), shown_.end(),
                      [&](const auto& process) { return process->id() == id; });
}

bool ProcessTable::hidden(const ProcessId& id) const {
  return dismissed_.count(id) != 0 || is_live(id);
}

bool ProcessTable::is_live(const ProcessId& id) const {
  return std::any_of(live_.begin(), live_.end(), [&](const auto& entry) {
    const auto process = entry.second.lock();
    return process && !process->reader() && process->id() == id;
  });
}

std::vector<ProcessInfo> ProcessTable::merged(std::vector<ProcessInfo> remote) {
  std::set<ProcessId> seen;
  for (const auto& info : remote)
    seen.insert(info.id);
  for (auto it = dismissed_.begin(); it != dismissed_.end();)
    it = seen.count(*it) != 0 ? std::next(it) : dismissed_.erase(it);

  std::set<ProcessId> known = dismissed_;
  std::vector<ProcessInfo> all;
  for (const auto& process : shown_) {
    all.push_back(process->info());
    known.insert(process->id());
  }
  for (const auto& entry : live_)
    if (const auto process = entry.second.lock(); process && !process->reader())
      known.insert(process->id());
  for (auto& info : remote)
    if (known.count(info.id) == 0) all.push_back(std::move(info));
  return all;
}

void ProcessTable::list(std::shared_ptr<CommandHost> host, const std::optional<Machine>& machine,
                        Handler<std::vector<ProcessInfo>> done) {
  ProcessesBackend* const remote = remote_of(machine);
  if (remote == nullptr) return std::move(done)(merged({}));
  remote->list([this, host = std::move(host), backend = machine->backend,
                done = std::move(done)](Result<std::vector<ProcessInfo>> result) mutable {
    if (!result) return std::move(done)(std::move(result).error());
    std::move(done)(merged(*std::move(result)));
  });
}

void ProcessTable::get(std::shared_ptr<CommandHost> host, const std::optional<Machine>& machine,
                       ProcessId id, Handler<std::shared_ptr<Process>> done) {
  if (const auto it = find(id); it != shown_.end()) {
    std::shared_ptr<Process> process = *it;
    if ((*it)->ended()) shown_.erase(it);
    return std::move(done)(std::move(process));
  }
  ProcessesBackend* const remote = remote_of(machine);
  if (remote == nullptr || hidden(id)) return std::move(done)(std::shared_ptr<Process>());
  remote->list([this, host, machine = *machine, id = std::move(id),
                done = std::move(done)](Result<std::vector<ProcessInfo>> result) mutable {
    if (!result) return std::move(done)(std::move(result).error());
    const auto it = std::find_if(result->begin(), result->end(),
                                 [&](const ProcessInfo& info) { return info.id == id; });
    if (it == result->end()) return std::move(done)(std::shared_ptr<Process>());
    if (hidden(id) || find(id) != shown_.end())  // meanwhile
      return get(std::move(host), machine, std::move(id), std::move(done));
    adopt(host, machine, *it, std::move(done));
  });
}

// A reader more, of which the table knows nothing.
void ProcessTable::attach(std::shared_ptr<CommandHost> host, const std::optional<Machine>& machine,
                          ProcessId id, OutputCursor from, ProcessImpl::Plan plan,
                          Handler<std::shared_ptr<Process>> done) {
  if (find(id) != shown_.end() || is_live(id))
    return std::move(done)(
        Error(Status::conflict,
              "the process " + id.str() + " has its handle in this object already", "process.own"));
  ProcessesBackend* const remote = remote_of(machine);
  if (remote == nullptr) return std::move(done)(std::shared_ptr<Process>());
  remote->list([this, host = std::move(host), machine = *machine, id = std::move(id), from,
                plan = std::move(plan),
                done = std::move(done)](Result<std::vector<ProcessInfo>> result) mutable {
    if (!result) return std::move(done)(std::move(result).error());
    const auto it = std::find_if(result->begin(), result->end(),
                                 [&](const ProcessInfo& info) { return info.id == id; });
    if (it == result->end()) return std::move(done)(std::shared_ptr<Process>());
    plan.command.shell = it->command;
    plan.command.tag = it->tag;
    plan.command.detach = it->detached;
    plan.command.stdin_pipe = true;
    auto process = std::make_shared<ProcessImpl>(lane_, deadlines_, std::move(plan));
    const auto attached = process->attach(host, machine, *it, from);
    if (attached) return std::move(done)(std::shared_ptr<Process>(std::move(process)));
    if (absent(attached.error())) return std::move(done)(std::shared_ptr<Process>());
    std::move(done)(attached.error());
  });
}

// A process of an earlier host: its kept output first. One that has ended is given with all of it.
void ProcessTable::adopt(const std::shared_ptr<CommandHost>& host, const Machine& machine,
                         const ProcessInfo& info, Handler<std::shared_ptr<Process>> done) {
  ProcessImpl::Plan plan;
  plan.command.shell = info.command;
  plan.command.tag = info.tag;
  plan.command.detach = info.detached;
  plan.command.stdin_pipe = true;
  plan.retained = std::uint64_t{1} << 20;
  plan.listed = info.running;
  auto process = std::make_shared<ProcessImpl>(lane_, deadlines_, std::move(plan));
  const auto attached = process->attach(host, machine, info);
  if (!attached) {
    if (absent(attached.error())) return std::move(done)(std::shared_ptr<Process>());
    return std::move(done)(attached.error());
  }
  if (info.running) return std::move(done)(std::shared_ptr<Process>(process));
  auto* const raw = process.get();
  raw->wait({}, [this, host, id = info.id, process = std::move(process),
                 done = std::move(done)](const Result<CommandResult>& result) mutable {
    dismiss(id);
    if (!result) return std::move(done)(result.error());
    std::move(done)(std::shared_ptr<Process>(std::move(process)));
  });
}

// ---- Ending and forgetting

void ProcessTable::kill(std::shared_ptr<CommandHost> host, const std::optional<Machine>& machine,
                        ProcessId id, Handler<bool> done) {
  if (const auto it = find(id); it != shown_.end()) {
    const auto process = *it;
    process->kill([this, host = std::move(host), process, id = std::move(id),
                   done = std::move(done)](Result<bool> killed) mutable {
      if (!killed || !*killed) {
        if (killed) release(id);
        return std::move(done)(std::move(killed));
      }
      process->wait({}, [this, host = std::move(host), id = std::move(id),
                         done = std::move(done)](const Result<CommandResult>&) mutable {
        release(id);
        std::move(done)(true);
      });
    });
    return;
  }
  ProcessesBackend* const remote = remote_of(machine);
  if (remote == nullptr || hidden(id)) return std::move(done)(false);
  const ProcessId target = id;
  remote->signal(target, SIGKILL, true,
                 [this, host = std::move(host), backend = machine->backend, id = std::move(id),
                  done = std::move(done)](Result<void> result) mutable {
                   if (!result && !absent(result.error()))
                     return std::move(done)(std::move(result).error());
                   dismiss(id);
                   std::move(done)(result.ok());
                 });
}

// What has ended is dropped by the provider with its handle.
void ProcessTable::release(const ProcessId& id) {
  const auto it = find(id);
  const bool running = it != shown_.end() && !(*it)->ended();
  if (it != shown_.end()) shown_.erase(it);
  if (running) dismiss(id);
}

void ProcessTable::dismiss(const ProcessId& id) {
  // Without a list in between nobody learns which of them are over; then some may show up again.
  if (dismissed_.size() >= kDismissed) dismissed_.clear();
  dismissed_.insert(id);
}

}  // namespace sandforge::sandbox

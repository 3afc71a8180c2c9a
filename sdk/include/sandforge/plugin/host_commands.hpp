// The commands of a sandbox that is a folder of the host's machine.
#pragma once

#include <filesystem>

#include "async.hpp"
#include "process.hpp"

namespace sandforge::plugin {

/*
 * Passes the commands of one sandbox on to the host's process service, and ends all of them with
 * what they have left behind. Thread-safe.
 *
 *   start: commands_.open(folder, starting.env());
 *   spawn: commands_.run(spawn);
 *   stop:  commands_.end(lane()).get(stop);
 */
class HostCommands {
 public:
  // group: the same for all objects of a session, so that each ends what another began.
  explicit HostCommands(std::string group) : group_(std::move(group)) {}

  // What commands that are passed on can do: for features() of the factory.
  static std::vector<std::string> features() {
    return {"spawn.stdin",     "spawn.signal",    "spawn.kill", "spawn.user",
            "spawn.tree",      "env.per_command", "env.unset",  "stderr.separate",
            "stderr.combined", "output.credit"};
  }

  // Commands may run from now on, in the folder, which is made, and with this environment below
  // their own. Blocks for that moment.
  void open(const std::filesystem::path& folder, std::vector<EnvEntry> env) {
    std::filesystem::create_directories(folder);
    detail::ErrorCatcher errors;
    errors.check(service().open_group(detail::services().host, to_str(group_), errors.sink()));
    const std::lock_guard<std::mutex> lock(mutex_);
    folder_ = folder;
    env_ = std::move(env);
  }

  // Throws Code::gone when the folder no longer exists, Code::conflict when the commands were ended
  // by whichever object.
  void run(Spawn& spawn) {
    Command& command = spawn.command();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!std::filesystem::is_directory(folder_)) {
        throw Error(Code::gone, "the folder of the sandbox no longer exists");
      }
      command.cwd = (command.cwd ? folder_ / *command.cwd : folder_).string();
      // Of entries with one name the last counts.
      command.env.insert(command.env.begin(), env_.begin(), env_.end());
    }
    static_cast<void>(service());
    spawn.delegate(command, group_);
  }

  // Ends everything: a signal, the grace, then by force. Until the next open no command runs.
  Async<void> end(const Lane& lane,
                  std::chrono::milliseconds grace = std::chrono::seconds(2)) const {
    const auto& table = service();
    const auto ms = static_cast<std::uint64_t>(grace.count());
    return {lane, [&table, lane, ms, group = group_](auto* pending, sf_op** op,
                                                     const sf_error_sink* err) {
              return table.end_group(detail::services().host, lane.get(), to_str(group), ms,
                                     detail::complete(pending), op, err);
            }};
  }

 private:
  static const sf_process_service& service() {
    const auto& table = detail::need(detail::services().process, SF_SERVICE_PROCESS);
    if (SF_HAS_FN(&table, end_group)) return table;
    throw Error(Code::unsupported, "this host is too old to know groups of commands");
  }

  const std::string group_;
  std::mutex mutex_;
  std::filesystem::path folder_;
  std::vector<EnvEntry> env_;
};

}  // namespace sandforge::plugin

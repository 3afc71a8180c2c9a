// The process service: the C table over HostProcess.
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "plugin/abi_call.hpp"
#include "plugin/abi_lane.hpp"
#include "plugin/stream_events.hpp"
#include "sandforge/ext/host_process.h"
#include "services/host_call.hpp"
#include "services/host_process.hpp"
#include "services/plugin_host.hpp"

namespace sandforge::services {
namespace {

constexpr std::size_t kMaxParts = 65536;   // arguments, variables
constexpr std::uint32_t kMaxSide = 65535;  // of a terminal

Error bad_command(std::string message) {
  return Error(Status::invalid, std::move(message), "command.invalid");
}

bool is_null(sf_bytes bytes) {
  return bytes.ptr == nullptr && bytes.len > 0;
}

std::string text_of(sf_bytes bytes) {
  return std::string(plugin::view(bytes));
}

Result<void> read_program(const sf_command& command, guest::SpawnRequest& out) {
  if (command.shell.ptr != nullptr && command.argc > 0)
    return bad_command("a command is either shell text or an argument list, not both");
  if (command.shell.ptr != nullptr) {
    out.shell_text = text_of(command.shell);
    return {};
  }
  if (command.argc == 0 || command.argv == nullptr || command.argc > kMaxParts)
    return bad_command("there is no command to run, or it has too many arguments");
  for (std::size_t i = 0; i < command.argc; ++i) {
    if (is_null(command.argv[i])) return bad_command("an argument is null");
    out.argv.push_back(text_of(command.argv[i]));
  }
  return {};
}

Result<void> read_environment(const sf_command& command, guest::SpawnRequest& out) {
  out.stored_environment = false;
  if (command.env_count > kMaxParts || (command.env == nullptr && command.env_count > 0))
    return bad_command("the environment is null or too large");
  for (std::size_t i = 0; i < command.env_count; ++i) {
    const sf_env_entry& entry = command.env[i];
    if (is_null(entry.name) || is_null(entry.value))
      return bad_command("an environment variable is null");
    // A null value takes back what an earlier entry has set.
    std::optional<std::string> value;
    if (entry.value.ptr != nullptr) value = text_of(entry.value);
    out.env.emplace_back(text_of(entry.name), std::move(value));
  }
  return {};
}

Result<void> read_streams(const sf_command& command, guest::SpawnRequest& out) {
  if (command.stdin_mode > SF_STDIN_PIPE || command.output > SF_OUTPUT_COMBINED)
    return bad_command("the mode of an input or output is unknown");
  if (command.stdin_mode == SF_STDIN_PIPE) out.stdin_mode = guest::StdinMode::pipe;
  out.combined = command.output == SF_OUTPUT_COMBINED;
  if (command.tty == nullptr) return {};
  if (command.tty->cols > kMaxSide || command.tty->rows > kMaxSide)
    return bad_command("the terminal is too large");
  out.tty.emplace();
  out.tty->cols = static_cast<std::uint16_t>(command.tty->cols);
  out.tty->rows = static_cast<std::uint16_t>(command.tty->rows);
  out.tty->term = std::string(plugin::view(command.tty->term));
  if (out.tty->term.empty()) out.tty->term = "xterm-256color";
  return {};
}

Result<guest::SpawnRequest> read_command(const sf_command* command) {
  static std::atomic<std::uint64_t> next{1};
  if (command == nullptr || !SF_HAS(command, request_id))
    return bad_command("there is no command, or it lacks members");
  if (command->flags != 0)
    return Error(Status::unsupported, "commands of the host end with it: they cannot be detached",
                 "feature.detach");
  guest::SpawnRequest out;
  if (auto good = read_program(*command, out); !good) return std::move(good).error();
  if (auto good = read_environment(*command, out); !good) return std::move(good).error();
  if (auto good = read_streams(*command, out); !good) return std::move(good).error();
  out.cwd = command->cwd.ptr == nullptr ? "/" : text_of(command->cwd);
  if (out.cwd.empty() || out.cwd.front() != '/')
    return bad_command("the working directory must be absolute");
  out.user = std::string(plugin::view(command->user));
  out.timeout_ms = command->timeout_ms;
  out.grace_ms = command->grace_ms;
  out.window = command->window;
  out.tag = std::string(plugin::view(command->tag));
  const auto id = plugin::view(command->request_id);
  out.request_id = id.empty() ? "#" + std::to_string(next++) : "=" + std::string(id);
  if (auto wrong = out.check(); !wrong.empty()) return bad_command(std::move(wrong));
  return out;
}

// Absent functions are null in the copy.
Result<HostProcess::Events> read_events(const sf_stream_events* io,
                                        const sf_process_events* process) {
  auto stream = plugin::copy_stream_events(io);
  if (!stream) return std::move(stream).error();
  HostProcess::Events out{};
  out.io = *stream;
  if (process == nullptr) return out;
  if (SF_HAS(process, ctx)) out.process.ctx = process->ctx;
  if (SF_HAS(process, on_started)) out.process.on_started = process->on_started;
  if (SF_HAS(process, on_exit)) out.process.on_exit = process->on_exit;
  return out;
}

// The plugin's handle, with the stream in it.
struct ProcessObject : sf_process {
  struct Stream : sf_stream {
    ProcessObject* owner = nullptr;
  };
  explicit ProcessObject(std::shared_ptr<HostProcess> p);
  ProcessObject(const ProcessObject&) = delete;
  ProcessObject& operator=(const ProcessObject&) = delete;

  static HostProcess& of(sf_stream* self) noexcept {
    return *static_cast<Stream*>(self)->owner->process;
  }
  static ProcessObject& object(sf_process* self) noexcept {
    return *static_cast<ProcessObject*>(self);
  }

  const std::shared_ptr<HostProcess> process;
  Stream io;
};

const sf_stream_vtbl kProcessStream = {
    sizeof(sf_stream_vtbl),
    [](sf_stream* self, uint64_t bytes) noexcept { ProcessObject::of(self).grant(bytes); },
    [](sf_stream* self, sf_bytes data, uint32_t, size_t* accepted,
       const sf_error_sink* err) noexcept {
      return ProcessObject::of(self).write(data, accepted, err);
    },
    [](sf_stream* self, const sf_error_sink* err) noexcept {
      return ProcessObject::of(self).shutdown_write(err);
    },
    [](sf_stream* self) noexcept { ProcessObject::of(self).cancel(); },
    [](sf_stream*) noexcept {},
};

const sf_process_vtbl kProcessTable = {
    sizeof(sf_process_vtbl),
    [](sf_process* self) noexcept -> sf_stream* { return &ProcessObject::object(self).io; },
    [](sf_process* self, int32_t number, uint32_t scope, sf_completion done, sf_op** op,
       const sf_error_sink* err) noexcept {
      try {
        return ProcessObject::object(self).process->signal(number, scope, done, op, err);
      } catch (...) {
        return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
      }
    },
    [](sf_process* self) noexcept {
      ProcessObject::object(self).process->released();
      delete &ProcessObject::object(self);
    },
};

ProcessObject::ProcessObject(std::shared_ptr<HostProcess> p) : process(std::move(p)) {
  vtbl = &kProcessTable;
  io.vtbl = &kProcessStream;
  io.owner = this;
}

sf_status spawn_by(PluginHost& host, const std::shared_ptr<GuestHelper>& helper, sf_lane* lane,
                   const sf_command* command, const sf_stream_events* io,
                   const sf_process_events* events, sf_process** out, const sf_error_sink* err) {
  if (lane == nullptr || out == nullptr)
    return plugin::refuse(err,
                          Error(Status::invalid, "spawn needs a lane and a place for a process"));
  auto request = read_command(command);
  if (!request) return plugin::refuse(err, request.error());
  const auto given = read_events(io, events);
  if (!given) return plugin::refuse(err, given.error());
  if (!helper)
    return plugin::refuse(err, Error(Status::unavailable, "the host has closed this service"));
  auto process = std::make_shared<HostProcess>(host.plugin(), plugin::HostLane::lane_of(lane),
                                               helper, std::move(*request), *given);
  *out = new ProcessObject(process);
  process->start();
  return SF_OK;
}

sf_status process_spawn(sf_host* self, sf_lane* lane, const sf_command* command,
                        const sf_stream_events* io, const sf_process_events* events,
                        sf_process** out, const sf_error_sink* err) noexcept {
  try {
    PluginHost& host = PluginHost::of(self);
    return spawn_by(host, host.guest_helper(), lane, command, io, events, out, err);
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

sf_status process_open_group(sf_host* self, sf_str group, const sf_error_sink* err) noexcept {
  try {
    PluginHost::of(self).open_group(std::string(plugin::view(group)));
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

sf_status process_spawn_in(sf_host* self, sf_lane* lane, sf_str group, const sf_command* command,
                           const sf_stream_events* io, const sf_process_events* events,
                           sf_process** out, const sf_error_sink* err) noexcept {
  try {
    PluginHost& host = PluginHost::of(self);
    const auto helper = host.helper_of_group(plugin::view(group));
    if (!helper && host.guest_helper())
      return plugin::refuse(err, Error(Status::conflict, "the group of the command is not open",
                                       "process.group_ended"));
    return spawn_by(host, helper, lane, command, io, events, out, err);
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

sf_status process_end_group(sf_host* self, sf_lane* lane, sf_str group, uint64_t grace_ms,
                            sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
  try {
    PluginHost& host = PluginHost::of(self);
    if (lane == nullptr || done.done == nullptr)
      return plugin::refuse(err, Error(Status::invalid, "end_group needs a lane and a completion"));
    // Not start_host_call, where a cancel could keep it from beginning: a closed group must end.
    auto call = std::make_shared<HostCall<void>>(
        plugin::HostLane::lane_of(lane),
        [&plugin = host.plugin(), done](const Result<void>& result) {
          plugin::call_done(plugin, "end_group.done", done.done, done.ctx,
                            result.ok() ? nullptr : &result.error());
        });
    plugin::HostOp::give(op, call);
    const auto helper = host.close_group(plugin::view(group));
    if (helper)
      helper->end_all(grace_ms, call->handler());
    else
      call->finish(Result<void>());
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

}  // namespace

const void* process_service() noexcept {
  static const sf_process_service table = {sizeof(sf_process_service), &process_spawn,
                                           &process_open_group, &process_spawn_in,
                                           &process_end_group};
  return &table;
}

}  // namespace sandforge::services

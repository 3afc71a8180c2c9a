// The blocking forms: start the asynchronous one, wait, throw its error.
#include "sandforge/sandbox.hpp"

namespace sandforge {

StartedInfo Sandbox::start() {
  return await_result<StartedInfo>([&](auto done) { async_start(std::move(done)); });
}

void Sandbox::stop() {
  await_result<void>([&](auto done) { async_stop(std::move(done)); });
}

void Sandbox::destroy() {
  await_result<void>([&](auto done) { async_destroy(std::move(done)); });
}

SandboxInfo Sandbox::info() {
  return await_result<SandboxInfo>([&](auto done) { async_info(std::move(done)); });
}

std::string Sandbox::instructions() {
  return await_result<std::string>([&](auto done) { async_instructions(std::move(done)); });
}

CommandResult Sandbox::execute_command(std::string command, std::vector<std::string> args,
                                       ExecOptions options) {
  return await_result<CommandResult>([&](auto done) {
    async_execute_command(std::move(command), std::move(args), std::move(options), std::move(done));
  });
}

CommandResult Sandbox::exec(std::vector<std::string> argv, ExecOptions options) {
  return await_result<CommandResult>(
      [&](auto done) { async_exec(std::move(argv), std::move(options), std::move(done)); });
}

std::shared_ptr<Process> Sandbox::spawn(Command command, SpawnOptions options) {
  return await_result<std::shared_ptr<Process>>(
      [&](auto done) { async_spawn(std::move(command), std::move(options), std::move(done)); });
}

std::vector<ProcessInfo> Sandbox::list_processes() {
  return await_result<std::vector<ProcessInfo>>(
      [&](auto done) { async_list_processes(std::move(done)); });
}

std::shared_ptr<Process> Sandbox::get_process(ProcessId id) {
  return await_result<std::shared_ptr<Process>>(
      [&](auto done) { async_get_process(std::move(id), std::move(done)); });
}

std::shared_ptr<Process> Sandbox::attach_process(ProcessId id, AttachOptions options) {
  return await_result<std::shared_ptr<Process>>(
      [&](auto done) { async_attach_process(std::move(id), std::move(options), std::move(done)); });
}

bool Sandbox::kill_process(ProcessId id) {
  return await_result<bool>([&](auto done) { async_kill_process(std::move(id), std::move(done)); });
}

SnapshotResult Sandbox::snapshot(SnapshotOptions options) {
  return await_result<SnapshotResult>(
      [&](auto done) { async_snapshot(std::move(options), std::move(done)); });
}

std::vector<Checkpoint> Sandbox::list_checkpoints() {
  return await_result<std::vector<Checkpoint>>(
      [&](auto done) { async_list_checkpoints(std::move(done)); });
}

void Sandbox::remove_checkpoint(std::string name) {
  await_result<void>([&](auto done) { async_remove_checkpoint(std::move(name), std::move(done)); });
}

void Sandbox::start_from(std::string name) {
  await_result<void>([&](auto done) { async_start_from(std::move(name), std::move(done)); });
}

CommandResult Process::wait(WaitOptions options) {
  return await_result<CommandResult>(
      [&](auto done) { async_wait(std::move(options), std::move(done)); });
}

void Process::write(std::string data) {
  await_result<void>([&](auto done) { async_write(std::move(data), std::move(done)); });
}

void Process::close_stdin() {
  await_result<void>([&](auto done) { async_close_stdin(std::move(done)); });
}

bool Process::kill() {
  return await_result<bool>([&](auto done) { async_kill(std::move(done)); });
}

void Process::signal(int signal, bool tree) {
  await_result<void>([&](auto done) { async_signal(signal, tree, std::move(done)); });
}

}  // namespace sandforge

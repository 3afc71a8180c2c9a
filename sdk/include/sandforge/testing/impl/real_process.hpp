// A command of this machine, for the process service of the fake host.
#pragma once

#include <sandforge/ext/host_process.h>

#include "descriptor_stream.hpp"

namespace sandforge::testing {

// What the process service hands out. live counts those that still exist.
struct Process : sf_process {
  static inline std::atomic<int> live{0};

  Process() { ++live; }
  ~Process() { --live; }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
};

// The environment of a command: of entries with one name the last counts, also one that unsets.
inline std::map<std::string, std::string> environment_of(const sf_command& command) {
  std::map<std::string, std::string> variables;
  for (std::size_t i = 0; i < command.env_count; ++i) {
    const std::string name = text(command.env[i].name);
    variables.erase(name);
    if (command.env[i].value.ptr != nullptr) variables[name] = text(command.env[i].value);
  }
  return variables;
}

// The process id, or an errno below zero.
inline pid_t run_program(const sf_command& command, int in, int out, int err) {
  std::vector<std::string> argv;
  if (command.shell.ptr != nullptr) {
    argv = {"/bin/sh", "-c", text(command.shell)};
  } else {
    for (std::size_t i = 0; i < command.argc; ++i)
      argv.push_back(text(command.argv[i]));
  }
  std::vector<std::string> env;
  for (const auto& [name, value] : environment_of(command))
    env.push_back(name + "=" + value);
  std::vector<char*> args;
  for (auto& one : argv)
    args.push_back(one.data());
  args.push_back(nullptr);
  std::vector<char*> vars;
  for (auto& one : env)
    vars.push_back(one.data());
  vars.push_back(nullptr);
  const std::string cwd = text(command.cwd);
  std::array<int, 2> failed{};
  if (::pipe2(failed.data(), O_CLOEXEC) != 0) return -errno;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    if (::dup2(in, 0) >= 0 && ::dup2(out, 1) >= 0 && ::dup2(err, 2) >= 0 &&
        (cwd.empty() || ::chdir(cwd.c_str()) == 0)) {
      ::execve(args[0], args.data(), vars.data());
    }
    const int why = errno;
    if (::write(failed[1], &why, sizeof why) < 0) ::_exit(126);
    ::_exit(127);
  }
  ::close(failed[1]);
  int why = 0;
  const bool refused = pid < 0 || ::read(failed[0], &why, sizeof why) == sizeof why;
  ::close(failed[0]);
  if (!refused) return pid;
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  return -(why == 0 ? EAGAIN : why);
}

// It runs in a process group of its own; the thread of its stream waits for it.
struct RealProcess : Process {
  DescriptorStream::Handle io;
  pid_t pid = 0;
  std::atomic<bool> ended{false};
  std::atomic<bool> timed_out{false};
  std::atomic<int> refs{2};  // the handle and the thread

  void drop() {
    if (--refs == 0) delete this;
  }

  // Starts the command. The caller joins the thread, if there is one, and may end it by `kill`.
  static sf_status start(Lane& lane, const sf_command& command, const sf_stream_events& events,
                         const sf_process_events& told, sf_process** out, std::thread& thread,
                         std::function<void()>& kill, const sf_error_sink* err) {
    std::array<int, 2> in{}, o{}, e{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(o.data(), O_CLOEXEC) != 0 ||
        ::pipe2(e.data(), O_CLOEXEC) != 0) {
      return refuse(err, SF_INTERNAL, std::strerror(errno));
    }
    const pid_t pid = run_program(command, in[0], o[1], e[1]);
    ::close(in[0]);
    ::close(o[1]);
    ::close(e[1]);
    if (command.stdin_mode == SF_STDIN_EOF || pid < 0) ::close(std::exchange(in[1], -1));
    if (in[1] >= 0) ::fcntl(in[1], F_SETFL, O_NONBLOCK);

    std::vector<DescriptorStream::Reader> readers{{o[0], SF_CHANNEL_STDOUT},
                                                  {e[0], SF_CHANNEL_STDERR}};
    auto core =
        std::make_shared<DescriptorStream::Core>(lane, events, readers, in[1], command.window);
    auto* process = new RealProcess;
    process->pid = pid;
    process->vtbl = &functions();
    DescriptorStream::bind(process->io, core, false);
    *out = process;
    if (pid < 0) {
      ::close(o[0]);
      ::close(e[0]);
      process->not_started(lane, events, -pid);
      return SF_OK;
    }
    lane.post([told, pid] {
      const std::string id = std::to_string(pid);
      const sf_process_started started{sizeof started, str(id), pid};
      told.on_started(told.ctx, &started);
    });
    core->on_cancel = [pid] { ::kill(-pid, SIGKILL); };
    kill = [pid, weak = std::weak_ptr<DescriptorStream::Core>(core)] {
      if (weak.lock()) ::kill(-pid, SIGKILL);
    };
    process->limit_time(lane, command.timeout_ms);
    core->on_end = [process, told, core_ptr = core.get()] { return process->end(told, *core_ptr); };
    thread = DescriptorStream::Core::start(core);
    return SF_OK;
  }

 private:
  void not_started(Lane& lane, const sf_stream_events& events, int why) {
    ended = true;
    lane.post([this, events, why] {
      const Failure failure(why == ENOENT ? SF_NOT_FOUND : SF_INVALID, std::strerror(why),
                            "{\"errno\":" + std::to_string(why) + "}");
      const sf_error error = failure.view();
      const sf_stream_end end{sizeof end, 0, 0};
      events.done(events.ctx, &error, &end);
      drop();
    });
  }

  void limit_time(Lane& lane, std::uint64_t ms) {
    if (ms == 0) return;
    loop = &lane.loop();
    ++refs;
    timer = loop->after(std::chrono::milliseconds(ms), [this] {
      if (!ended) {
        timed_out = true;
        ::kill(-pid, SIGKILL);
      }
      drop();
    });
  }

  // On the thread, when nothing writes any more. What is answered runs on the lane, before done.
  std::function<void()> end(const sf_process_events& told, const DescriptorStream::Core& core) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    ended = true;
    if (loop != nullptr && loop->drop_timer(timer)) drop();
    sf_exit exit{};
    exit.struct_size = sizeof exit;
    exit.outcome = WIFEXITED(status) ? SF_EXIT_EXITED : SF_EXIT_SIGNALED;
    if (core.cancelled) exit.outcome = SF_EXIT_CANCELLED;
    if (timed_out) exit.outcome = SF_EXIT_TIMED_OUT;
    exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return [this, told, exit] {
      told.on_exit(told.ctx, &exit);
      drop();
    };
  }

  static const sf_process_vtbl& functions() {
    static constexpr sf_process_vtbl table = {
        sizeof(sf_process_vtbl),
        [](sf_process* p) noexcept -> sf_stream* { return &static_cast<RealProcess*>(p)->io; },
        [](sf_process* p, std::int32_t signal, std::uint32_t scope, sf_completion done, sf_op** op,
           const sf_error_sink* err) noexcept -> sf_status {
          auto& me = *static_cast<RealProcess*>(p);
          if (me.ended) return refuse(err, SF_GONE, "the process has ended");
          ::kill(scope == SF_SIGNAL_TREE ? -me.pid : me.pid, signal);
          Op::give(op, nullptr);
          me.io.core->lane.complete(done);
          return SF_OK;
        },
        [](sf_process* p) noexcept {
          auto& me = *static_cast<RealProcess*>(p);
          DescriptorStream::drop(*me.io.core);
          me.drop();
        }};
    return table;
  }

  Loop* loop = nullptr;
  std::uint64_t timer = 0;
};

}  // namespace sandforge::testing

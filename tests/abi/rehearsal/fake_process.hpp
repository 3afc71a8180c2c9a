// The process service of the fake host: runs real commands, in a process group each.
#pragma once

#include <sandforge/ext/host_process.h>

#include "fake_descriptor.hpp"

namespace sandforge::fake {

// A command that runs. The thread of its stream waits for it.
struct Process : sf_process {
  static inline std::atomic<int> live{0};

  DescriptorStream::Handle io;
  pid_t pid = 0;
  std::atomic<bool> ended{false};
  std::atomic<int> refs{2};  // the handle and the thread

  Process() { ++live; }
  ~Process() { --live; }
  void drop() {
    if (--refs == 0) delete this;
  }
};

inline pid_t run_program(const sf_command& command, int in, int out, int err) {
  std::vector<std::string> argv;
  if (command.shell.ptr != nullptr) {
    argv = {"/bin/sh", "-c", text(command.shell)};
  } else {
    for (std::size_t i = 0; i < command.argc; ++i)
      argv.push_back(text(command.argv[i]));
  }
  std::vector<std::string> env;
  for (std::size_t i = 0; i < command.env_count; ++i) {
    if (command.env[i].value.ptr == nullptr) continue;
    env.push_back(text(command.env[i].name) + "=" + text(command.env[i].value));
  }
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

class ProcessService : public sf_process_service {
 public:
  ProcessService() {
    struct_size = sizeof(sf_process_service);
    spawn = nullptr;
  }

  // Starts the command; its thread is joined by the owner of this service.
  sf_status start(Lane& lane, const sf_command& command, const sf_stream_events& events,
                  const sf_process_events& told, sf_process** out, const sf_error_sink* err) {
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
    auto* process = new Process;
    process->pid = pid;
    process->vtbl = &functions();
    DescriptorStream::bind(process->io, core, false);
    *out = process;
    if (pid < 0) {
      ::close(o[0]);
      ::close(e[0]);
      process->ended = true;
      lane.post([process, events, why = -pid] {
        const Failure failure{why == ENOENT ? SF_NOT_FOUND : SF_INVALID, 0, std::strerror(why),
                              "{\"errno\":" + std::to_string(why) + "}", SF_NONE};
        const sf_error error = failure.view();
        const sf_stream_end end{sizeof end, 0, 0};
        events.done(events.ctx, &error, &end);
        process->drop();
      });
      return SF_OK;
    }
    lane.post([told, pid] {
      const std::string id = std::to_string(pid);
      const sf_process_started started{sizeof started, str(id), pid};
      told.on_started(told.ctx, &started);
    });
    core->on_cancel = [pid] { ::kill(-pid, SIGKILL); };
    core->on_end = [process, told, core_ptr = core.get()]() -> std::function<void()> {
      int status = 0;
      ::waitpid(process->pid, &status, 0);
      process->ended = true;
      sf_exit exit{};
      exit.struct_size = sizeof exit;
      exit.outcome = WIFEXITED(status) ? SF_EXIT_EXITED : SF_EXIT_SIGNALED;
      if (core_ptr->cancelled) exit.outcome = SF_EXIT_CANCELLED;
      exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
      exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      return [process, told, exit] {
        told.on_exit(told.ctx, &exit);
        process->drop();
      };
    };
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([core] { core->run(); });
    return SF_OK;
  }

  // Moves the threads of running commands to whoever joins them.
  void take_threads(std::vector<std::thread>& to) {
    const std::lock_guard lock(mutex_);
    for (auto& thread : threads_)
      to.push_back(std::move(thread));
    threads_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::thread> threads_;

  static const sf_process_vtbl& functions() {
    static constexpr sf_process_vtbl table = {
        sizeof(sf_process_vtbl),
        [](sf_process* p) noexcept -> sf_stream* { return &static_cast<Process*>(p)->io; },
        [](sf_process* p, std::int32_t signal, std::uint32_t scope, sf_completion done, sf_op** op,
           const sf_error_sink* err) noexcept -> sf_status {
          auto& me = *static_cast<Process*>(p);
          if (me.ended) return refuse(err, SF_GONE, "the process has ended");
          ::kill(scope == SF_SIGNAL_TREE ? -me.pid : me.pid, signal);
          Op::give(op, nullptr);
          me.io.core->lane.post([done] { done.done(done.ctx, nullptr); });
          return SF_OK;
        },
        [](sf_process* p) noexcept {
          auto& me = *static_cast<Process*>(p);
          DescriptorStream::drop(*me.io.core);
          me.drop();
        }};
    return table;
  }
};

}  // namespace sandforge::fake

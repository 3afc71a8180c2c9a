// Lets the pretend provider really run its commands, on this machine, below a folder.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "unit/sandbox/fake_backend.hpp"

extern char** environ;

namespace sandforge::fake {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Ran {
  int code = -1;
  std::string out, err;
};

// Environment: PATH and HOME of ours, then what is given. Output goes through files, for brevity.
inline Ran run_here(const std::vector<std::string>& argv, const EnvMap& extra,
                    const std::string& cwd, const std::string& scratch) {
  std::map<std::string, std::string> env = {{"PATH", ::getenv("PATH")}, {"HOME", cwd}};
  for (const auto& [name, value] : extra) {
    if (value) env[name] = *value;
    if (!value) env.erase(name);
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : env)
    entries.push_back(name + "=" + value);
  std::vector<char*> envp, args;
  for (auto& entry : entries)
    envp.push_back(entry.data());
  envp.push_back(nullptr);
  auto words = argv;
  for (auto& word : words)
    args.push_back(word.data());
  args.push_back(nullptr);

  static std::atomic<int> serial{0};
  const auto base = scratch + "/run" + std::to_string(serial++);
  const auto out = base + ".out", err = base + ".err";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, cwd.c_str());
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, args[0], &actions, nullptr, args.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  Ran ran;
  if (failed != 0) {
    ran.code = 127;
    ran.err = std::strerror(failed);
    return ran;
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.out = read_file(out);
  ran.err = read_file(err);
  ::unlink(out.c_str());
  ::unlink(err.c_str());
  return ran;
}

// `extra` comes before the environment of the command.
inline Program real_program(Runtime& runtime, std::string root, std::string scratch,
                            EnvMap extra = {}) {
  return [&runtime, root = std::move(root), scratch = std::move(scratch),
          extra = std::move(extra)](std::shared_ptr<Process> process) {
    process->start();
    runtime.post_blocking(
        runtime.make_lane(),
        [process, root, scratch, extra] {
          const auto& command = process->command;
          auto argv = command.argv;
          if (command.shell) argv = {"sh", "-c", *command.shell};
          std::string cwd = command.cwd.value_or(".");
          if (cwd.front() != '/') cwd = root + "/" + cwd;
          auto env = extra;
          for (const auto& [name, value] : command.env)
            env[name] = value;
          const auto ran = run_here(argv, env, cwd, scratch);
          if (!ran.out.empty()) process->out(ran.out);
          if (!ran.err.empty()) process->err(ran.err);
          process->exit(ran.code);
        },
        [](const Result<void>&) {});
  };
}

}  // namespace sandforge::fake

#include "measure.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace sandforge::bench {
namespace {

// A value in KiB of a file of /proc that has lines "Name: value kB".
double kib_of(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(name + ":", 0) == 0) return std::stod(line.substr(name.size() + 1));
  throw std::runtime_error(file + " has no " + name);
}

}  // namespace

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) throw std::logic_error("a quantile of nothing");
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

double median(const std::vector<double>& values) {
  return quantile(values, 0.5);
}

Pair interleave(int rounds, const std::function<double()>& subject,
                const std::function<double()>& peer) {
  std::vector<double> ours, theirs;
  for (int i = 0; i < rounds; ++i) {
    if (i % 2 == 0) ours.push_back(subject());
    theirs.push_back(peer());
    if (i % 2 != 0) ours.push_back(subject());
  }
  return {median(ours), median(theirs)};
}

double timed(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return seconds_since(begin);
}

const std::string& command_path() {
  static const std::string path = "/usr/local/bin:/usr/bin:/bin";
  return path;
}

pid_t start_bare(const std::vector<std::string>& argv, bool silent) {
  std::vector<char*> words;
  for (const std::string& word : argv)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::string path = "PATH=" + command_path();
  char* environment[] = {path.data(), nullptr};
  pid_t pid = -1;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (silent) ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  const int error = ::posix_spawn(&pid, words[0], silent ? &actions : nullptr, nullptr,
                                  words.data(), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), argv.front());
  return pid;
}

void wait_bare(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("a bare process failed");
}

void run_bare(const std::string& text) {
  wait_bare(start_bare({"/bin/sh", "-c", text}));
}

std::size_t threads_of_this_process() {
  const auto all = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

double resident_kib(pid_t pid) {
  return kib_of("/proc/" + std::to_string(pid) + "/smaps_rollup", "Rss");
}

PeakMemory::PeakMemory() {
  std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM starts anew
  before_kib_ = kib_of("/proc/self/status", "VmHWM");
}

double PeakMemory::growth_mib() const {
  return (kib_of("/proc/self/status", "VmHWM") - before_kib_) / 1024;
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "sandforge-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), name);
  path_ = std::filesystem::canonical(name);
}

Folder::~Folder() {
  std::error_code ignored;  // what stays is in the folder for temporary files
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sandforge::bench

#include "machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

namespace fs = std::filesystem;

namespace sandforge::conformance {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string proc(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// The letter after the name, which may itself hold parentheses.
char state_of(pid_t pid) {
  const std::string stat = read_file(proc(pid, "stat"));
  const auto end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ? 'X' : stat[end + 2];
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/proc", ec)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size()) out.push_back(pid);
  }
  return out;
}

bool mentions(pid_t pid, const std::string& text) {
  std::error_code ec;
  const auto cwd = fs::read_symlink(proc(pid, "cwd"), ec).string();
  return cwd.find(text) != std::string::npos ||
         read_file(proc(pid, "cmdline")).find(text) != std::string::npos ||
         read_file(proc(pid, "environ")).find(text) != std::string::npos;
}

}  // namespace

bool alive(pid_t pid) {
  const char state = state_of(pid);
  return state != 'X' && state != 'Z';
}

std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> out;
  for (const pid_t pid : all_pids())
    if (pid != ::getpid() && mentions(pid, text) && alive(pid)) out.push_back(pid);
  return out;
}

std::string describe(const std::vector<pid_t>& pids) {
  std::string out;
  for (const pid_t pid : pids) {
    std::string line = read_file(proc(pid, "cmdline"));
    std::replace(line.begin(), line.end(), '\0', ' ');
    out += std::to_string(pid) + " " + state_of(pid) + " " + line + "\n";
  }
  return out;
}

std::size_t open_sockets() {
  std::size_t count = 0;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", ec)) {
    const auto target = fs::read_symlink(entry.path(), ec).string();
    if (target.rfind("socket:", 0) == 0) ++count;
  }
  return count;
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds bound) {
  constexpr std::chrono::milliseconds kLongest{50};
  const auto end = std::chrono::steady_clock::now() + bound;
  for (std::chrono::milliseconds pause{1};; pause = std::min(pause * 2, kLongest)) {
    if (condition()) return true;
    if (std::chrono::steady_clock::now() >= end) return condition();
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace sandforge::conformance

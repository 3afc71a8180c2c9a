// What happens in a sandbox, seen by commands in it.
#include <algorithm>
#include <fstream>

#include "host.hpp"

namespace sandforge::conformance {

CommandResult sh(Sandbox& sandbox, std::string text, ExecOptions options) {
  return sandbox.exec({"sh", "-c", std::move(text)}, std::move(options));
}

Command shell(std::string text) {
  Command command;
  command.shell = std::move(text);
  return command;
}

Command argv(std::vector<std::string> words) {
  Command command;
  command.argv = std::move(words);
  return command;
}

bool exists(Sandbox& sandbox, const std::string& path) {
  return sandbox.exec({"test", "-e", path}).success;
}

std::string read_file(Sandbox& sandbox, const std::string& path) {
  return sandbox.exec({"cat", path}).out;
}

void touch(Sandbox& sandbox, const std::string& path) {
  REQUIRE(sandbox.exec({"touch", path}).success);
}

std::int64_t read_pid(Sandbox& sandbox, const std::string& path) {
  // Written with its newline at once, so a file that ends with one is complete.
  std::string text;
  const bool there = eventually([&] {
    text = read_file(sandbox, path);
    return !text.empty() && text.back() == '\n';
  });
  CAPTURE(path);
  REQUIRE(there);
  return std::stoll(text);
}

bool runs(Sandbox& sandbox, std::int64_t pid) {
  return sandbox
      .exec({"grep", "-q", "^State:[[:space:]]*[^ZX]", "/proc/" + std::to_string(pid) + "/status"})
      .success;
}

int running_with(Sandbox& sandbox, const std::string& word) {
  // The word comes in two halves, so that the command that looks does not find itself.
  static constexpr const char* look =
      "for f in /proc/[0-9]*/cmdline; do "
      "case \"$(tr '\\0' ' ' 2>/dev/null <$f)\" in *\"$1$2\"*) echo $f;; esac; done 2>/dev/null";
  const std::size_t half = word.size() / 2;
  const auto found =
      sandbox.exec({"sh", "-c", look, "sh", word.substr(0, half), word.substr(half)});
  REQUIRE(found.outcome == Outcome::exited);
  return static_cast<int>(std::count(found.out.begin(), found.out.end(), '\n'));
}

bool gone(Sandbox& sandbox, const std::string& word) {
  return eventually([&] { return running_with(sandbox, word) == 0; });
}

bool gone_after_stop(Sandbox& sandbox, const std::string& word) {
  if (!eventually([&] { return processes_with(word).empty(); })) return false;
  sandbox.start();
  return gone(sandbox, word);
}

bool nothing_runs(const Host& host) {
  return eventually([&] { return processes_with(host.setting().token).empty(); });
}

ExecOptions limited(milliseconds timeout, milliseconds grace) {
  ExecOptions options;
  options.timeout = timeout;
  options.grace = grace;
  return options;
}

ExecOptions with_env(EnvMap env) {
  ExecOptions options;
  options.env = std::move(env);
  return options;
}

// ---- Memory

namespace {

std::int64_t status_kib(const char* name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.rfind(name, 0) == 0) return std::stoll(line.substr(std::string(name).size() + 1));
  unverified("memory cannot be measured here");
}

}  // namespace

PeakMemory::PeakMemory() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;  // VmHWM starts anew
  if (!clear) unverified("memory cannot be measured here");
  before_ = status_kib("VmHWM");
}

std::int64_t PeakMemory::growth_kib() const {
  return status_kib("VmHWM") - before_;
}

std::size_t ticks_during(Sandbox& sandbox, const std::function<void()>& call) {
  const auto ticker = sandbox.spawn(shell("while [ ! -e ticked ]; do echo t; sleep 0.1; done"));
  REQUIRE(eventually([&] { return !ticker->out().empty(); }));
  const auto before = ticker->out().size();
  call();
  const auto ticked = (ticker->out().size() - before) / 2;
  touch(sandbox, "ticked");
  ticker->wait();
  return ticked;
}

}  // namespace sandforge::conformance

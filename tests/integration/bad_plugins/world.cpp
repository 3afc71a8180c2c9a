#include "world.hpp"
#include "test_paths.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <unistd.h>
#include <catch2/catch.hpp>

namespace sandforge::test {
namespace {

// Each question is answered by a record, and a host takes only so many of them in a second.
constexpr std::chrono::milliseconds kBetweenQuestions{10};

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string first_difference(const std::string& a, const std::string& b) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at])
    ++at;
  const auto line = [&](const std::string& text) {
    const auto begin = text.rfind('\n', at == 0 ? 0 : at - 1);
    const auto from = begin == std::string::npos ? 0 : begin + 1;
    return from < text.size() ? text.substr(from, text.find('\n', from) - from) : "(the end)";
  };
  return "expected: " + line(a) + "\nis:       " + line(b);
}

}  // namespace

World::World(Isolation isolation, std::filesystem::path file, const std::string& sha256,
             Limits limits)
    : file_(std::move(file)),
      registry_(std::make_unique<ProviderRegistry>(runtime_, options(isolation, limits))) {
  PluginSearchPath search;
  search.add(NEIGHBOUR_PLUGIN, "the neighbour");
  search.add(file_, "a test", sha256);
  registry_->scan(search);
  SandboxConfig config;
  config.id = "neighbour";
  neighbour_ = Sandbox::create(runtime_, registry_->open("minimal-c"), std::move(config)).value();
  check_neighbour();
}

ProviderRegistry::Options World::options(Isolation isolation, Limits limits) {
  auto services = std::make_shared<HostServices>();
  services->guest_program = SANDFORGE_GUEST;
  services->logger = std::make_shared<Logger>([this](std::string_view line) { keep(line); });
  ProviderRegistry::Options out;
  out.services = std::move(services);
  out.runner.program = SANDFORGE_RUNNER;
  out.runner.others.isolation = isolation;
  out.runner.others.memory_mb = 512;
  if (limits.ready) out.runner.ready_limit = *limits.ready;
  if (limits.call) out.runner.call_limit = *limits.call;
  out.runner.policies["example-minimal-c"].isolation = Isolation::in_line;
  return out;
}

void World::keep(std::string_view line) {
  std::string text(line.substr(line.find(' ') + 1));
  text.pop_back();
  // What the kernel does not offer differs from machine to machine.
  if (text.find(" plugin=") == std::string::npos || text.find("confined") != std::string::npos ||
      text.find(" plugin=example-minimal-c") != std::string::npos)
    return;
  const std::lock_guard lock(mutex_);
  const auto alive = text.find("alive: ");
  if (alive == std::string::npos) {
    log_.push_back(std::move(text));
  } else {
    alive_.push_back(text.substr(alive + 7, text.find(' ', alive + 7) - alive - 7));
  }
  changed_.notify_all();
}

void World::check_neighbour() {
  const auto result = neighbour_->execute_command("echo alive");
  if (result.out != "alive\n") throw std::runtime_error("the other session does not work");
}

Result<std::shared_ptr<ProviderBackend>> World::open(json::Object options) {
  return wait<std::shared_ptr<ProviderBackend>>(
      [&](auto handler) { registry_->async_open("bad", std::move(options), std::move(handler)); });
}

std::string World::report() {
  LoadReport all = registry_->load_all();
  check_neighbour();
  std::erase_if(all.attempts, [](const LoadAttempt& it) { return it.origin != "a test"; });
  std::erase_if(all.notes, [](const SearchNote& it) { return it.origin != "a test"; });
  std::string text = neutral(all.to_text());
  text.erase(0, text.find('\n') + 1);
  return text.substr(text.find_first_not_of('\n'));
}

void World::drain_lost() {
  json::Object count;
  count.set("fault", "count");
  for (;;) {
    const auto opened = open(count);
    if (opened) throw std::runtime_error("the plugin opens what it refuses");
    {
      const std::lock_guard lock(mutex_);
      for (const std::string& line : log_)
        if (line.find("was started again") != std::string::npos) return;
    }
    std::this_thread::sleep_for(kBetweenQuestions);
  }
}

void World::drain(bool all) {
  json::Object count;
  count.set("fault", "count");
  for (std::size_t asked = 1;; ++asked) {
    if (open(count).error().code != Status::unsupported) return;  // its process is no more
    std::this_thread::sleep_for(kBetweenQuestions);
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return alive_.size() == asked; }))
      throw std::runtime_error("the plugin does not tell what it has");
    if (!all || alive_.back() == "'0'" || alive_.back() == "0") return;
    if (asked == 3'000) throw std::runtime_error("the plugin keeps objects: " + alive_.back());
  }
}

std::size_t World::tokens() const {
  for (std::uint32_t i = 1; i <= plugin::kMaxPlugins; ++i) {
    auto* found = plugin::Plugin::at(i);
    if (found != nullptr && found->file == file_) return found->tokens.in_use();
  }
  return 0;
}

Lines World::told() {
  Lines out;
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& line : log_)
      out.push_back("log: " + squeezed(neutral(line)));
  }
  // What a process says is on its way beside its answers.
  std::sort(out.begin(), out.end());
  const auto info = registry_->find("bad");
  if (info && info->faults > 0) out.push_back("rules broken: " + std::to_string(info->faults));
  if (const auto used = tokens(); used > 0)
    out.push_back("operations without an end: " + std::to_string(used));
  return out;
}

std::string World::neutral(std::string text) const {
  text = replace_all(std::move(text), NEIGHBOUR_PLUGIN, "NEIGHBOUR");
  return replace_all(std::move(text), file_.parent_path().string(), "DIR");
}

Captured::Captured() : before_(::fcntl(1, F_DUPFD_CLOEXEC, 3)) {
  std::fflush(stdout);
  const int file = ::open((dir_ / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
  ::dup2(file, 1);
  ::close(file);
}

Captured::~Captured() {
  std::fflush(stdout);
  ::dup2(before_, 1);
  ::close(before_);
}

std::string Captured::text() const {
  std::fflush(stdout);
  return read_file(dir_ / "out");
}

Lines words_of(const Error& error) {
  Lines out = {std::string(to_string(error.code)) +
               (error.may_have_started ? ", may have started: " : ": ") + squeezed(error.message)};
  if (!error.reason.empty()) out.push_back("  reason: " + error.reason);
  for (const auto& [key, value] : error.details) {
    // The same in all of them.
    if (key != "plugin" && key != "path")
      out.push_back("  " + key + ": " + squeezed(json::write(value)));
  }
  return out;
}

std::string squeezed(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && text[end] == text[at])
      ++end;
    const std::size_t count = end - at;
    if (text[at] >= 0 && text[at] < ' ') {
      out += text[at] == '\n' ? "\\n" : "\\x0" + std::string(1, "0123456789abcdef"[text[at] & 15]);
      end = at + 1;
    } else if (count < 20) {
      out.append(text, at, count);
    } else {
      out += text[at] + std::string("{") + std::to_string(count) + "}";
    }
    at = end;
  }
  return out;
}

void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(SANDFORGE_SOURCE_DIR) /
                                     "tests/integration/bad_plugins/golden" / (name + ".txt");
  if (std::getenv("SANDFORGE_UPDATE_GOLDEN") != nullptr)
    std::ofstream(path, std::ios::binary) << text;
  const std::string expected = read_file(path);
  INFO(path.string() << "\n" << first_difference(expected, text));
  CHECK(expected == text);
}

}  // namespace sandforge::test

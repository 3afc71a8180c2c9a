#include "contract/local_fixture.hpp"
#include "test_paths.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace sandforge::contract {

// ---- The host

bool in_process() {
  const char* isolation = std::getenv("SANDFORGE_TEST_ISOLATION");
  return isolation != nullptr && std::string_view(isolation) == "process";
}

namespace {

// What tests set in host_env() before they open a provider.
const std::set<std::string> kLaterVariables = {"SSL_CERT_FILE"};

}  // namespace

LocalFixture::LocalFixture()
    : sockets_before_(open_sockets()),
      host_env_(std::make_shared<std::map<std::string, std::string>>()) {
  fs::create_directory(home());
  fs::create_directory(base() / "tmp");
  const char* path = std::getenv("PATH");
  host_env() = {{"PATH", path != nullptr ? path : "/usr/bin:/bin"},
                {"HOME", home().string()},
                {"TMPDIR", (base() / "tmp").string()}};  // marks every process of ours

  runtime_ = std::make_unique<Runtime>();
  auto services = std::make_shared<HostServices>();
  services->runtime = runtime_.get();
  services->env = [env = host_env_](const std::string& name) -> std::optional<std::string> {
    const auto it = env->find(name);
    return it == env->end() ? std::nullopt : std::optional(it->second);
  };
  ProviderRegistry::Options options;
  options.services = std::move(services);
  if (in_process()) {
    options.runner.program = SANDFORGE_RUNNER;
    options.runner.others.isolation = Isolation::process;
    options.runner.others.process = true;
    for (const auto& [name, value] : host_env())
      options.runner.others.env.insert(name);
    options.runner.others.env.insert(kLaterVariables.begin(), kLaterVariables.end());
  }
  registry_ = std::make_unique<ProviderRegistry>(*runtime_, std::move(options));
  PluginSearchPath search;
  search.add(SANDFORGE_LOCAL_PLUGIN, "test");
  const LoadReport report = registry_->scan(search);
  INFO(report.to_text());
  REQUIRE(report.refused() == 0);
}

LocalFixture::~LocalFixture() {
  for (const auto& sandbox : made_) {
    CAPTURE(sandbox->id());
    CHECK_NOTHROW(sandbox->destroy());
  }
  made_.clear();
  provider_.reset();
  if (in_process()) registry_.reset();  // and with it the socket of the plugin's process
  check_nothing_left();
  registry_.reset();
  runtime_.reset();
}

std::shared_ptr<ProviderBackend> LocalFixture::open(json::Object options) {
  if (options.find("root") == nullptr) options.set("root", root().string());
  return registry_->open("local", std::move(options));
}

const std::shared_ptr<ProviderBackend>& LocalFixture::provider() {
  if (!provider_) provider_ = open();
  return provider_;
}

std::shared_ptr<Sandbox> LocalFixture::make(std::shared_ptr<ProviderBackend> provider,
                                            SandboxConfig config) {
  auto sandbox = Sandbox::create(runtime(), std::move(provider), std::move(config)).value();
  made_.push_back(sandbox);
  return sandbox;
}

std::shared_ptr<Sandbox> LocalFixture::make(SandboxConfig config) {
  return make(provider(), std::move(config));
}

std::shared_ptr<Sandbox> LocalFixture::make(std::string id) {
  SandboxConfig config;
  config.id = std::move(id);
  return make(std::move(config));
}

std::shared_ptr<Sandbox> LocalFixture::started(std::string id) {
  auto sandbox = make(std::move(id));
  sandbox->start();
  return sandbox;
}

bool LocalFixture::only_guests() const {
  return eventually([&] {
    const auto all = processes();
    return std::all_of(all.begin(), all.end(), [](pid_t pid) {
      return !alive(pid) || describe({pid}).find("sandforge-guest") != std::string::npos;
    });
  });
}

void LocalFixture::check_nothing_left() {
  const bool quiet = eventually([&] { return processes().empty(); });
  INFO("processes left behind:\n" << describe(processes()));
  CHECK(quiet);

  const bool closed = eventually([&] { return open_sockets() <= sockets_before_; });
  CHECK(closed);

  // The session folders stay, and those in whose place a checkpoint was booted; what served them
  // does not.
  std::set<std::string> left;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root(), none)) {
    const std::string name = entry.path().filename().string();
    if (name == ".before-checkpoint") continue;
    if (name.front() == '.' || !entry.is_directory()) left.insert(name);
  }
  CHECK(left == std::set<std::string>());
  std::set<std::string> beside;
  for (const auto& entry : fs::directory_iterator(base()))
    beside.insert(entry.path().filename().string());
  beside.erase("root");
  CHECK(beside == std::set<std::string>{"home", "tmp"});
  CHECK(fs::is_empty(base() / "tmp"));
}

// ---- Commands

pid_t read_pid(const fs::path& path) {
  // Written with its newline at once, so a file that ends with one is complete.
  const bool there = eventually([&] {
    const std::string text = read_file(path);
    return !text.empty() && text.back() == '\n';
  });
  INFO(path);
  REQUIRE(there);
  return static_cast<pid_t>(std::stol(read_file(path)));
}

}  // namespace sandforge::contract

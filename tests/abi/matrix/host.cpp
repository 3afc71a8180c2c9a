// A host that opens the provider of one plugin, runs a command in a sandbox of it, and says what
// was wrong: abi_matrix_host PLUGIN PROVIDER GUEST [ROOT]
#include <iostream>
#include <mutex>

#include "sandforge/registry.hpp"
#include "sandforge/sandbox.hpp"

namespace {

using namespace sandforge;

int fail(const std::string& what) {
  std::cerr << what << '\n';
  return 1;
}

int run(const std::vector<std::string>& words) {
  std::mutex mutex;
  std::string log;
  Runtime runtime;
  auto services = std::make_shared<HostServices>();
  services->guest_program = words[2];
  services->logger = std::make_shared<Logger>([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    log += line;
  });
  ProviderRegistry::Options options;
  options.services = services;
  ProviderRegistry registry(runtime, options);
  PluginSearchPath search;
  search.add(words[0], "matrix");
  if (const auto report = registry.scan(search); report.refused() != 0)
    return fail(report.to_text());

  json::Object given;
  if (words.size() > 3) given.set("root", words[3]);
  SandboxConfig config;
  config.id = "s1";
  const auto sandbox =
      Sandbox::create(runtime, registry.open(words[1], std::move(given)), config).value();
  const auto result = sandbox->exec({"echo", "hello"});
  if (result.out != "hello\n" || result.exit_code != 0)
    return fail("echo did not work: " + json::write(to_json(result)));
  sandbox->stop();
  sandbox->destroy();
  const std::lock_guard lock(mutex);
  return log.find("broke a rule") == std::string::npos ? 0 : fail(log);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 3) return fail("usage: abi_matrix_host PLUGIN PROVIDER GUEST [ROOT]");
  try {
    return run(words);
  } catch (const sandforge::Exception& e) {
    return fail(json::write(to_json(e.error())));
  } catch (const std::exception& e) {
    return fail(e.what());
  }
}

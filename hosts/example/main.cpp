// A host in one file: loads the plugins that are installed beside it, opens the provider `local`,
// and runs a command in a sandbox.
#include <iostream>

#include "sandforge/registry.hpp"
#include "sandforge/sandbox.hpp"

int main(int argc, char** argv) {
  try {
    sandforge::Runtime runtime;
    sandforge::ProviderRegistry registry(runtime);
    sandforge::PluginSearchPath plugins;
    plugins.add_install_folder();
    if (argc > 1) plugins.add(argv[1], "command line");
    registry.scan(plugins);

    sandforge::json::Object options;
    if (argc > 2) options.set("root", argv[2]);
    const auto provider = registry.open("local", options);

    sandforge::SandboxConfig config;
    config.id = "first";
    const auto sandbox = sandforge::Sandbox::create(runtime, provider, config).value();
    const auto result = sandbox->execute_command("echo hello from; pwd");
    std::cout << result.out;
    sandbox->destroy();
    return result.exit_code.value_or(1);
  } catch (const sandforge::Exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return 1;
  }
}

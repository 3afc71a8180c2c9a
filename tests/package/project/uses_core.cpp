// Reads the manifest of a plugin file through core, and checks options against its schema.
#include <fcntl.h>

#include <iostream>
#include <sandforge/manifest.hpp>
#include <sandforge/plugin_loader.hpp>
#include <sandforge/schema.hpp>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  const auto text = sandforge::manifest_text(::open(argv[1], O_RDONLY | O_CLOEXEC));
  if (!text) {
    std::cerr << text.error().message << '\n';
    return 1;
  }
  const auto manifest = sandforge::parse_manifest(*text);
  if (!manifest || manifest->providers.size() != 1) {
    return 1;
  }
  const sandforge::ManifestProvider& provider = manifest->providers[0];
  std::cout << provider.name << ": " << provider.display_name << '\n';

  const auto compiled = sandforge::compile_schema(sandforge::json::Value(provider.options_schema),
                                                  sandforge::SchemaProfile::options);
  if (!compiled) {
    return 1;
  }
  sandforge::json::Object options;
  options.set("endpoint", "unix:/run/x.sock");
  const bool good = compiled.schema->accepts(sandforge::json::Value(options));
  options.set("endpiont", 1);
  const bool bad = compiled.schema->accepts(sandforge::json::Value(options));

  // The loader pulls in all that stands behind the services for plugins.
  sandforge::PluginSearchPath path;
  path.add(argv[1], "the command line");
  sandforge::PluginLoader loader((sandforge::PluginLoader::Options()));
  const auto scan = loader.scan(path);
  if (scan.files.size() != 1 || loader.load(scan.files[0]).plugin == nullptr) {
    std::cerr << scan.report.to_text();
    return 1;
  }
  return good && !bad && provider.name == "outside" ? 0 : 1;
}

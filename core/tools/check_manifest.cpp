// sandforge-check-manifest FILE: says what the loader of plugins would have against the text of a
// manifest. 0: nothing. 1: that, on standard error. 2: the file cannot be read.
//
// Installed with the sdk, for sandforge_add_plugin(), which asks it after each link.
#include <fstream>
#include <iostream>
#include <sstream>

#include "plugin/names.hpp"
#include "plugin/schema_check.hpp"
#include "sandforge/manifest.hpp"

namespace {

using namespace sandforge;

int refuse(const std::string& why) {
  std::cerr << why << "\n";
  return 1;
}

int check(const std::string& text) {
  const auto manifest = parse_manifest(text);
  if (!manifest) return refuse(manifest.error().message);
  if (const auto unknown = plugin::unknown_services(*manifest); !unknown.empty())
    return refuse("the manifest names what is no service of a host: " +
                  plugin::list_unknown_services(unknown));
  for (const auto& provider : manifest->providers) {
    const auto good = check_schema(provider.options_schema, SchemaProfile::options);
    if (!good)
      return refuse("the options schema of provider " + provider.name +
                    " is not valid: " + good.error().message);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: sandforge-check-manifest MANIFEST.json\n";
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    std::cerr << argv[1] << ": cannot be read\n";
    return 2;
  }
  // "\x7f" apart: the E would be read as a part of it.
  if (text.str().compare(0, 4,
                         "\x7f"
                         "ELF") == 0) {
    std::cerr << argv[1]
              << ": is a program or a library, not the text of a manifest: of a plugin, "
                 "SandforgeCheckPlugin.cmake hands its manifest over\n";
    return 2;
  }
  return check(text.str());
}

// The manifest of a plugin: what it is, read from its file without running any of its code.
//
// It is JSON text in the section SF_MANIFEST_SECTION of the shared library:
//
//   {"manifest":1,"name":"sandforge-example","version":"0.1.0","abi":{"major":1,"minor":0},
//    "providers":[{"name":"example","displayName":"Example","description":"…",
//                  "optionsSchema":{…}}],
//    "env":["EXAMPLE_TOKEN"],"services":["executor","log"],
//    "homepage":"https://…","license":"MIT"}
//
// displayName, description, env, services, homepage and license may be left out. Other keys are
// refused. Thread rule: every function from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/error.hpp"

namespace sandforge {

struct ManifestProvider {
  std::string name;          // what a configuration names
  std::string display_name;  // the name, when the manifest gives none
  std::string description;
  json::Object options_schema;
};

struct Manifest {
  std::string name;
  std::string version;
  std::uint32_t abi_major = 0;
  std::uint32_t abi_minor = 0;
  std::vector<ManifestProvider> providers;
  std::vector<std::string> env;       // variables that the plugin may read
  std::vector<std::string> services;  // host services that it uses, by short name
  std::string homepage;
  std::string license;
};

// Checks the text of a manifest. Every mistake is reported at once: reason
// "plugin.manifest_invalid", details.mistakes is an array of {"pointer","message"}.
Result<Manifest> parse_manifest(std::string_view text);

json::Value to_json(const Manifest& manifest);

// Text of the manifest section of an ELF file, from its bytes. Safe on any input. The reason of an
// error is one of "plugin.truncated", "plugin.not_elf", "plugin.wrong_architecture",
// "plugin.no_manifest", "plugin.manifest_invalid" (the section is compressed or too large).
Result<std::string> manifest_text(std::span<const std::byte> file);
// The same from an open file; reads only what it needs. Safe while others change the file.
Result<std::string> manifest_text(int descriptor);

}  // namespace sandforge

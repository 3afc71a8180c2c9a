// The dynamic loader. The only place that includes Boost.DLL.
#pragma once

#include <string>

#include "sandforge/abi.h"
#include "sandforge/plugin_loader.hpp"

namespace sandforge::plugin {

struct Library {
  LoadStage stage = LoadStage::loaded;  // or missing_dependency, undefined_symbol, …, no_entry
  std::string loader_text;
  std::string culprit;  // the library or symbol that is missing, where the text names it
  sf_plugin_entry_fn entry = nullptr;
  bool mapped = false;  // its code is in the process, for ever
};

// Loads an absolute path with RTLD_NOW, RTLD_LOCAL and RTLD_NODELETE. Never unloaded.
Library load_library(const std::string& path);

// What the dynamic loader's words mean.
LoadStage classify(const std::string& loader_text, const std::string& path, std::string& culprit);

}  // namespace sandforge::plugin

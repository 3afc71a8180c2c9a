#include "plugin/library.hpp"

#include <dlfcn.h>

#ifndef BOOST_DLL_USE_STD_FS
#define BOOST_DLL_USE_STD_FS
#endif
#include <boost/dll/shared_library.hpp>

namespace sandforge::plugin {
namespace {

std::string last_error() {
  const char* text = ::dlerror();
  return text == nullptr ? std::string() : std::string(text);
}

// The text between two marks, or empty.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const auto start = text.find(before);
  if (start == std::string::npos) return {};
  const auto from = start + before.size();
  const auto end = after.empty() ? std::string::npos : text.find(after, from);
  return text.substr(from, end == std::string::npos ? end : end - from);
}

}  // namespace

LoadStage classify(const std::string& text, const std::string& path, std::string& culprit) {
  // glibc: "NAME: cannot open shared object file: No such file or directory"
  if (const auto at = text.find(": cannot open shared object file"); at != std::string::npos) {
    culprit = text.substr(0, at);
    return culprit == path ? LoadStage::load_failed : LoadStage::missing_dependency;
  }
  // glibc: "PATH: undefined symbol: NAME", "…, version V"
  if (text.find("undefined symbol: ") != std::string::npos) {
    culprit = between(text, "undefined symbol: ", ",");
    return LoadStage::undefined_symbol;
  }
  // glibc: "LIB: version `V' not found (required by PATH)"
  if (text.find("' not found (required by") != std::string::npos) {
    culprit = between(text, "version `", "'");
    return LoadStage::missing_dependency;
  }
  return LoadStage::load_failed;
}

Library load_library(const std::string& path) {
  namespace dll = boost::dll;
  Library out;
  const auto mode = dll::load_mode::rtld_now | dll::load_mode::rtld_local |
                    static_cast<dll::load_mode::type>(RTLD_NODELETE);
  dll::shared_library library;
  boost::dll::fs::error_code ec;
  last_error();  // forget what others left
  library.load(path, mode, ec);
  if (ec || !library.is_loaded()) {
    out.loader_text = last_error();
    if (out.loader_text.empty()) out.loader_text = ec.message();
    out.stage = classify(out.loader_text, path, out.culprit);
    return out;
  }
  out.mapped = true;
  // The handle is dropped and the code stays: RTLD_NODELETE.
  ::dlerror();
  if (!library.has(SF_PLUGIN_ENTRY_NAME)) {
    out.stage = LoadStage::no_entry;
    out.loader_text = last_error();
    return out;
  }
  out.entry = &library.get<const sf_plugin*() noexcept>(SF_PLUGIN_ENTRY_NAME);
  return out;
}

}  // namespace sandforge::plugin

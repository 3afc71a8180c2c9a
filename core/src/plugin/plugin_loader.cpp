#include "sandforge/plugin_loader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "plugin/abi_call.hpp"
#include "plugin/inspect.hpp"
#include "plugin/library.hpp"
#include "plugin/pinned.hpp"
#include "plugin/plugin.hpp"
#include "runner/quarantine.hpp"
#include "runner/remote_plugin.hpp"
#include "services/plugin_host.hpp"

namespace sandforge {
namespace {

using plugin::FileIdentity;
using plugin::Inspection;
using plugin::Library;
using plugin::Plugin;

// What this process has loaded. Leaked, like the plugins.
struct LoadedFile {
  std::filesystem::path path;
  FileIdentity identity;
  std::string sha256;        // when pinned
  Plugin* plugin = nullptr;  // null: its init failed, and is not run twice
  LoadAttempt failure;
};

struct LoadedFiles {
  std::mutex mutex;  // also: one load at a time
  std::vector<LoadedFile> list;
};

LoadedFiles& loaded_files() {
  static auto* files = new LoadedFiles;
  return *files;
}

const LoadedFile* find_loaded(const LoadedFiles& files, const Inspection& file) {
  for (const LoadedFile& entry : files.list) {
    // Of pinned ones the bytes are the same, whichever file they came from.
    const bool same_file = !file.sha256.empty() || entry.identity == file.identity;
    if (entry.sha256 == file.sha256 && same_file) return &entry;
  }
  return nullptr;
}

// The dynamic loader knows a library by its name: under the name of a library that is loaded it
// would answer that one, whatever lies there now.
bool name_is_taken(const LoadedFiles& files, const Inspection& file) {
  return file.sha256.empty() &&
         std::any_of(files.list.begin(), files.list.end(), [&](const LoadedFile& entry) {
           return entry.sha256.empty() && entry.path == file.path;
         });
}

bool still_there(const Inspection& file) {
  struct stat status {};
  return ::stat(file.path.c_str(), &status) == 0 &&
         FileIdentity{status.st_dev, status.st_ino} == file.identity;
}

std::string load_hint(const Library& library) {
  switch (library.stage) {
    case LoadStage::missing_dependency:
      return fmt::format("install what has {}, or put it where the dynamic loader looks",
                         library.culprit);
    case LoadStage::undefined_symbol:
      return "it was linked without all of its libraries, or for newer ones: build it with "
             "sandforge_add_plugin(), which finds that at link time";
    case LoadStage::no_entry:
      return "a plugin exports " SF_PLUGIN_ENTRY_NAME ": build it with sandforge_add_plugin()";
    default:
      return "ldd FILE shows what the dynamic loader sees";
  }
}

std::string load_message(const Library& library) {
  switch (library.stage) {
    case LoadStage::missing_dependency:
      return fmt::format("needs {}, which was not found", library.culprit);
    case LoadStage::undefined_symbol:
      return fmt::format("uses the symbol {}, which nothing defines", library.culprit);
    case LoadStage::no_entry:
      return "does not export " SF_PLUGIN_ENTRY_NAME;
    default:
      return "the dynamic loader refuses it";
  }
}

bool check_table(LoadAttempt& attempt, const sf_plugin* api) {
  const auto missing = [&](const char* what) {
    plugin::refuse(attempt, LoadStage::missing_member,
                   fmt::format("its table of functions lacks {}", what),
                   "ask the author of the plugin for a corrected build");
    return false;
  };
  if (api == nullptr) return missing("everything: the entry answered null");
  if (!SF_HAS(api, abi_major)) return missing("abi_major");
  if (api->abi_major != SF_ABI_MAJOR) {
    plugin::refuse(attempt, LoadStage::abi_major,
                   fmt::format("its code is built for version {} of the plugin interface, its "
                               "manifest says {}",
                               api->abi_major, SF_ABI_MAJOR),
                   "ask the author of the plugin for a corrected build");
    return false;
  }
  const char* member = plugin::missing_member(api);
  return member == nullptr || missing(member);
}

// Maps the file and asks for its table. What was mapped stays, also when it turns out useless.
const sf_plugin* map(LoadAttempt& attempt, Inspection& file) {
  std::string name = file.path.string();
  std::optional<plugin::DescriptorPath> pinned;
  if (!file.sha256.empty()) {
    auto path = plugin::DescriptorPath::make(std::move(file.file));
    if (!path) {
      plugin::refuse(attempt, LoadStage::load_failed, path.error().message, "");
      return nullptr;
    }
    pinned.emplace(std::move(*path));
    name = pinned->str();
  }
  const Library library = plugin::load_library(name);
  if (library.mapped && pinned) pinned->keep();
  attempt.loader_text = library.loader_text;
  if (library.stage != LoadStage::loaded) {
    plugin::refuse(attempt, library.stage, load_message(library), load_hint(library));
    if (!library.culprit.empty()) attempt.details.set("missing", library.culprit);
    return nullptr;
  }
  if (!pinned && !still_there(file)) {
    plugin::refuse(attempt, LoadStage::changed, "was replaced while it was being loaded",
                   "try again");
    return nullptr;
  }
  const sf_plugin* api = nullptr;
  // Its own type says noexcept, and the compiler would leave out the handler.
  const sf_plugin* (*const entry)() = library.entry;
  try {
    api = entry();
  } catch (...) {
    plugin::refuse(attempt, LoadStage::init_failed,
                   "its entry let an exception out: " + plugin::describe_exception(),
                   "ask the author of the plugin for a corrected build");
    return nullptr;
  }
  return check_table(attempt, api) ? api : nullptr;
}

bool initialise(LoadAttempt& attempt, Plugin& plugin, const sf_plugin* api) {
  auto good = plugin::call_status(plugin, "init", api->init, static_cast<sf_host*>(&plugin.host));
  if (good.ok()) {
    plugin.api = api;
    attempt.stage = LoadStage::loaded;
    return true;
  }
  plugin::refuse(attempt, LoadStage::init_failed,
                 fmt::format("could not be initialised: {}", good.error().message),
                 "the message is the plugin's own");
  attempt.details = good.error().details;
  attempt.details.set("code", to_string(good.error().code));
  if (!good.error().reason.empty()) attempt.details.set("reason", good.error().reason);
  return false;
}

std::vector<std::filesystem::path> libraries_of(const std::filesystem::path& folder,
                                                std::error_code& ec) {
  std::vector<std::filesystem::path> out;
  for (std::filesystem::directory_iterator it(folder, ec), end; !ec && it != end;
       it.increment(ec)) {
    if (it->path().extension() == ".so") out.push_back(it->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// One scan: the candidates in order, each file once, each name of a plugin and a provider once.
class Scanner {
 public:
  Scanner(PluginLoader::Taken taken, const HostServices* services)
      : taken_(std::move(taken)), services_(services) {}

  void visit(const PluginSearchPath::Entry& entry) {
    std::error_code ec;
    if (!std::filesystem::is_directory(entry.path, ec)) {
      if (entry.optional && !std::filesystem::exists(entry.path, ec)) return;
      return candidate(entry.path, entry.origin, entry.sha256);
    }
    if (!entry.sha256.empty())
      return note(entry, "is a folder: only a file can be pinned to a sha256");
    const auto files = libraries_of(entry.path, ec);
    if (ec) return note(entry, "cannot be read: " + ec.message());
    if (files.empty() && !entry.optional) note(entry, "has no plugins");
    for (const auto& file : files)
      candidate(file, entry.origin, "");
  }

  PluginLoader::Scan take() { return std::move(scan_); }

 private:
  void note(const PluginSearchPath::Entry& entry, std::string message) {
    scan_.report.notes.push_back({entry.path, entry.origin, std::move(message)});
  }

  void candidate(const std::filesystem::path& path, const std::string& origin,
                 const std::string& sha256) {
    auto file = plugin::inspect(path, origin, sha256);
    // The same file under a second name, or found twice.
    if (file.identity.inode != 0) {
      if (std::find(seen_.begin(), seen_.end(), file.identity) != seen_.end()) return;
      seen_.push_back(file.identity);
    }
    if (file.attempt.usable() && plugin::check_services(file.attempt, file.manifest) &&
        claim(file)) {
      note_absent_services(file);
      scan_.files.push_back({file.path, origin, file.sha256, std::move(file.manifest)});
    }
    scan_.report.attempts.push_back(std::move(file.attempt));
  }

  // Each may be absent, and the plugin has to do without: it is not refused.
  void note_absent_services(const Inspection& file) {
    if (services_ == nullptr) return;
    for (const std::string& name : file.manifest.services) {
      if (services::is_offered(name, *services_)) continue;
      scan_.report.notes.push_back(
          {file.path, file.attempt.origin,
           fmt::format("its manifest names the service {}, which this host has not set up", name)});
    }
  }

  // Also a plugin of which one provider is free is refused as a whole: which of two plugins serves
  // what must not depend on details.
  bool claim(Inspection& file) {
    for (const ManifestProvider& provider : file.manifest.providers) {
      const auto owner = taken_.providers.find(provider.name);
      if (owner == taken_.providers.end()) continue;
      plugin::refuse(file.attempt, LoadStage::duplicate_provider,
                     fmt::format("declares the provider {}, which {} has already", provider.name,
                                 owner->second),
                     kOneOfTwo);
      file.attempt.details.set("provider", provider.name);
      file.attempt.details.set("owner", owner->second);
      return false;
    }
    const std::string path = file.path.string();
    const auto [owner, first] = taken_.plugins.emplace(file.manifest.name, path);
    if (!first) {
      plugin::refuse(
          file.attempt, LoadStage::duplicate_plugin,
          fmt::format("calls itself {}, as {} does already", file.manifest.name, owner->second),
          kOneOfTwo);
      file.attempt.details.set("owner", owner->second);
      return false;
    }
    for (const ManifestProvider& provider : file.manifest.providers)
      taken_.providers.emplace(provider.name, path);
    return true;
  }

  static constexpr const char* kOneOfTwo =
      "remove one of the two, or put the wanted one first in the search path";

  PluginLoader::Scan scan_;
  PluginLoader::Taken taken_;
  const HostServices* services_;
  std::vector<FileIdentity> seen_;
};

}  // namespace

PluginLoader::PluginLoader(Options options)
    : options_(std::move(options)),
      policies_(options_.runner.policies),
      quarantine_(std::make_shared<runner::Quarantine>(options_.runner.quarantine)) {}

PluginLoader::~PluginLoader() {
  for (runner::RemotePlugin* remote : remotes_)
    remote->stop();
  for (Plugin* plugin : attached_)
    plugin->host.detach(options_.services);
}

PluginLoader::Scan PluginLoader::scan(const PluginSearchPath& path, Taken taken) const {
  Scanner scanner(std::move(taken), options_.services.get());
  for (const PluginSearchPath::Entry& entry : path.entries())
    scanner.visit(entry);
  return scanner.take();
}

PluginLoader::Loaded PluginLoader::load(const PluginFile& file) {
  if (isolates(file)) return load_remote(file);
  Loaded out;
  auto inspected = plugin::inspect(file.path, file.origin, file.sha256);
  out.attempt = std::move(inspected.attempt);
  if (!out.attempt.usable() || !plugin::check_services(out.attempt, inspected.manifest)) return out;
  const auto attach = [&](Plugin& plugin) {
    plugin.host.attach(options_.services);
    const std::lock_guard lock(mutex_);
    attached_.insert(&plugin);
  };

  LoadedFiles& files = loaded_files();
  const std::lock_guard lock(files.mutex);
  if (const LoadedFile* before = find_loaded(files, inspected)) {
    if (before->plugin == nullptr) {
      out.attempt = before->failure;
      return out;
    }
    attach(*before->plugin);
    out.plugin = before->plugin;
    out.attempt.stage = LoadStage::loaded;
    return out;
  }
  if (name_is_taken(files, inspected)) {
    plugin::refuse(out.attempt, LoadStage::changed,
                   "was replaced after this process loaded it, and plugins are never unloaded",
                   "restart this program");
    return out;
  }
  if (!plugin::check_schemas(out.attempt, inspected.manifest, options_.check_options_schema))
    return out;
  const sf_plugin* api = map(out.attempt, inspected);
  if (api == nullptr) return out;
  auto place = Plugin::reserve(std::move(inspected.manifest), inspected.path);
  if (!place) {
    plugin::refuse(out.attempt, LoadStage::too_many, place.error().message, "");
    return out;
  }
  attach(**place);
  if (initialise(out.attempt, **place, api)) out.plugin = *place;
  files.list.push_back({inspected.path, inspected.identity, inspected.sha256, out.plugin,
                        out.plugin == nullptr ? out.attempt : LoadAttempt()});
  return out;
}

Result<std::string> file_sha256(const std::filesystem::path& path) {
  const posix::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const int number = errno;
  if (!file) {
    Status code = Status::unavailable;
    if (number == ENOENT || number == ENOTDIR) code = Status::not_found;
    if (number == EACCES || number == EPERM) code = Status::forbidden;
    return Error(code,
                 fmt::format("{} cannot be opened: {}", path.string(), std::strerror(number)));
  }
  return plugin::sha256_of(file.get());
}

}  // namespace sandforge

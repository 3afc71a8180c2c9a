#include "sandforge/registry.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include <fmt/format.h>

#include "plugin/abi_backend.hpp"
#include "plugin/inspect.hpp"
#include "plugin/names.hpp"
#include "plugin/plugin.hpp"
#include "plugin/schema_check.hpp"
#include "sandforge/support/suggest.hpp"

namespace sandforge {
namespace {

constexpr const char* kNoAnswer = "plugin.no_answer";

ProviderRegistry::Options complete(Runtime& runtime, ProviderRegistry::Options options) {
  auto services = options.services ? std::make_shared<HostServices>(*options.services)
                                   : std::make_shared<HostServices>();
  services->runtime = &runtime;
  options.services = std::move(services);
  return options;
}

PluginLoader::Options loader_options(const ProviderRegistry::Options& options) {
  PluginLoader::Options out;
  out.services = options.services;
  out.check_options_schema = options.check_options;
  out.runner = options.runner;
  return out;
}

// Waits for the answer of a plugin, which may never come: timeout then. 0: no limit.
template <class T, class Start>
T within(std::chrono::milliseconds limit, Start&& start) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  start(Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
  if (limit.count() > 0 && future.wait_for(limit) != std::future_status::ready)
    throw_error(Error(Status::timeout, fmt::format("it gave no answer within {} ms", limit.count()),
                      kNoAnswer));
  return std::move(future.get()).value();
}

}  // namespace

// A provider in code, or one of a plugin that was found.
struct ProviderRegistry::Entry {
  ProviderDefinition definition;
  std::shared_ptr<const PluginFile> file;  // null: in code
};

Result<void> check_options_schema(const json::Value& schema) {
  return check_schema(schema, SchemaProfile::options);
}

Result<void> check_settings_schema(const json::Value& schema) {
  return check_schema(schema, SchemaProfile::settings);
}

ProviderRegistry::ProviderRegistry(Runtime& runtime, Options options)
    : runtime_(runtime),
      options_(complete(runtime, std::move(options))),
      loader_(loader_options(options_)) {}

ProviderRegistry::~ProviderRegistry() = default;

LoadReport ProviderRegistry::scan(const PluginSearchPath& path) {
  PluginLoader::Taken taken;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, entry] : entries_)
      taken.providers.emplace(name, "this program");
    for (const auto& file : files_)
      taken.plugins.emplace(file->manifest.name, file->path.string());
  }
  auto scan = loader_.scan(path, std::move(taken));

  const std::lock_guard lock(mutex_);
  for (PluginFile& found : scan.files) {
    auto file = std::make_shared<const PluginFile>(std::move(found));
    files_.push_back(file);
    for (const ManifestProvider& provider : file->manifest.providers) {
      auto entry = std::make_shared<Entry>();
      entry->definition.name = provider.name;
      entry->definition.display_name = provider.display_name;
      entry->definition.description = provider.description;
      entry->definition.options_schema = provider.options_schema;
      entry->file = file;
      entries_.emplace(provider.name, std::move(entry));
    }
  }
  for (const LoadAttempt& attempt : scan.report.attempts)
    report_.attempts.push_back(attempt);
  for (const SearchNote& note : scan.report.notes)
    report_.notes.push_back(note);
  return std::move(scan.report);
}

Result<void> ProviderRegistry::add(ProviderDefinition definition) {
  if (!plugin::is_name(definition.name) || !definition.open)
    return Error(Status::invalid,
                 "a provider needs a name of a-z, 0-9, '-', '_', '.', and a factory",
                 "registry.invalid");
  if (options_.check_options) {
    if (auto good = options_.check_options(definition.options_schema); !good) return good;
  }
  const std::lock_guard lock(mutex_);
  const auto before = entries_.find(definition.name);
  if (before != entries_.end())
    return Error(Status::already_exists,
                 fmt::format("the provider {} exists already, {}", definition.name,
                             before->second->file ? "in " + before->second->file->path.string()
                                                  : std::string("registered in code")),
                 "plugin.duplicate_provider");
  if (definition.display_name.empty()) definition.display_name = definition.name;
  auto entry = std::make_shared<Entry>();
  entry->definition = std::move(definition);
  const std::string name = entry->definition.name;
  entries_.emplace(name, std::move(entry));
  return {};
}

LoadReport ProviderRegistry::load_all() {
  std::vector<std::shared_ptr<const PluginFile>> files;
  {
    const std::lock_guard lock(mutex_);
    files = files_;
  }
  for (const auto& file : files) {
    if (load(*file).plugin == nullptr) continue;
    for (const ManifestProvider& provider : file->manifest.providers)
      check_provider(*file, provider.name);
  }
  return report();
}

// What a host would do with it first. Opening starts nothing.
void ProviderRegistry::check_provider(const PluginFile& file, const std::string& name) {
  Error error;
  const char* failed = "opened";
  try {
    const auto limit = options_.runner.call_limit;
    const auto provider = within<std::shared_ptr<ProviderBackend>>(
        limit, [&](auto done) { async_open(name, {}, std::move(done)); });
    failed = "described";
    within<Description>(limit, [&](auto done) {
      provider->lane().post(
          [provider, done = std::move(done)]() mutable { provider->describe(std::move(done)); });
    });
    return;
  } catch (const Exception& failure) {
    error = failure.error();
  }
  const bool bad_schema = error.reason == "plugin.schema_invalid";
  const bool absent = error.code == Status::not_found;
  const std::lock_guard lock(mutex_);
  LoadAttempt* const attempt = find_attempt(file);
  if (attempt == nullptr) return;  // another of its providers was refused already
  const bool silent = error.reason == kNoAnswer;
  if (!bad_schema && !absent && !silent && error.code != Status::crashed) {
    report_.notes.push_back(
        {attempt->path, attempt->origin,
         fmt::format(
             "the provider {} could not be {} without options, so it was not looked into: {}", name,
             failed, error.message)});
    return;
  }
  attempt->details = error.details;
  attempt->details.set("provider", name);
  if (bad_schema)
    return plugin::refuse(*attempt, LoadStage::schema_invalid, error.message,
                          "ask the author of the plugin for a corrected build");
  plugin::refuse(
      *attempt, LoadStage::provider_unusable,
      absent ? fmt::format("its manifest declares the provider {}, its code has none of "
                           "that name: {}",
                           name, error.message)
             : fmt::format("its provider {} could not be {}: {}", name, failed, error.message),
      absent ? "the names in the manifest and in the code must be the same: ask the "
               "author of the plugin for a corrected build"
             : "ask the author of the plugin for a corrected build");
}

LoadAttempt* ProviderRegistry::find_attempt(const PluginFile& file) {
  for (LoadAttempt& attempt : report_.attempts) {
    if (attempt.usable() && attempt.plugin == file.manifest.name && attempt.origin == file.origin)
      return &attempt;
  }
  return nullptr;
}

LoadReport ProviderRegistry::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

std::vector<ProviderInfo> ProviderRegistry::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<ProviderInfo> out;
  for (const auto& [name, entry] : entries_) {
    ProviderInfo info;
    info.name = name;
    info.display_name = entry->definition.display_name;
    info.description = entry->definition.description;
    info.options_schema = entry->definition.options_schema;
    if (entry->file) {
      info.plugin = entry->file->manifest.name;
      info.version = entry->file->manifest.version;
      info.path = entry->file->path;
      info.origin = entry->file->origin;
      info.env = entry->file->manifest.env;
      const auto loaded = loaded_.find(info.path);
      info.loaded = loaded != loaded_.end();
      info.in_process = loader_.isolates(*entry->file);
      info.not_granted = loader_.not_granted(*entry->file);
      if (info.loaded) info.faults = loaded->second->faults.total();
    } else {
      info.loaded = true;
    }
    out.push_back(std::move(info));
  }
  return out;
}

std::optional<ProviderInfo> ProviderRegistry::find(std::string_view name) const {
  for (ProviderInfo& info : list()) {
    if (info.name == name) return std::move(info);
  }
  return std::nullopt;
}

PluginLoader::Loaded ProviderRegistry::load(const PluginFile& file) {
  auto loaded = loader_.load(file);
  const std::lock_guard lock(mutex_);
  if (loaded.plugin != nullptr) loaded_[file.path] = loaded.plugin;
  if (LoadAttempt* const attempt = find_attempt(file)) {
    const auto path = attempt->path;  // as it was named, not as it is resolved
    *attempt = loaded.attempt;
    attempt->path = path;
  }
  if (!loaded.attempt.usable() && options_.services->logger) {
    options_.services->logger->write(LogLevel::error, "a plugin could not be loaded",
                                     {{"plugin", file.manifest.name},
                                      {"path", file.path.native()},
                                      {"stage", to_string(loaded.attempt.stage)},
                                      {"why", loaded.attempt.message},
                                      {"loader", loaded.attempt.loader_text}});
  }
  return loaded;
}

Error ProviderRegistry::unknown(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const LoadAttempt& attempt : report_.attempts) {
    const auto& declared = attempt.providers;
    if (!attempt.usable() && std::find(declared.begin(), declared.end(), name) != declared.end())
      return attempt.to_error();
  }
  std::vector<std::string> known;
  for (const auto& [key, entry] : entries_)
    known.push_back(key);
  Error error(Status::not_found, fmt::format("there is no provider {}", name), "provider.unknown");
  if (const auto near = nearest_name(name, known)) {
    error.message += fmt::format(", did you mean {}", *near);
    error.details.set("suggestion", *near);
  }
  error.details.set("provider", name);
  error.details.set("known", json::Array(known.begin(), known.end()));
  // Any of these may be the one that is looked for.
  json::Array refused;
  for (const LoadAttempt& attempt : report_.attempts) {
    if (attempt.usable()) continue;
    json::Object entry;
    entry.set("path", attempt.path.string());
    entry.set("stage", to_string(attempt.stage));
    entry.set("message", attempt.message);
    refused.emplace_back(std::move(entry));
  }
  if (!refused.empty()) error.details.set("refused", std::move(refused));
  return error;
}

void ProviderRegistry::async_open(std::string name, json::Object options,
                                  Handler<std::shared_ptr<ProviderBackend>> done) {
  Lane lane = runtime_.make_lane();
  std::shared_ptr<const Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(name);
    if (found != entries_.end()) entry = found->second;
  }
  if (!entry) {
    lane.post([done = std::move(done), error = unknown(name)]() mutable {
      std::move(done)(std::move(error));
    });
    return;
  }
  if (!entry->file) {
    lane.post([entry, lane, options = std::move(options), done = std::move(done)]() mutable {
      entry->definition.open(std::move(options), lane, std::move(done));
    });
    return;
  }
  auto loaded = std::make_shared<PluginLoader::Loaded>();
  runtime_.post_blocking(
      lane, [this, entry, loaded] { *loaded = load(*entry->file); },
      [loaded, lane, name, options = std::move(options), check = options_.check_settings,
       done = std::move(done)](Result<void> result) mutable {
        if (!result.ok()) return std::move(done)(std::move(result).error());
        if (loaded->plugin == nullptr) return std::move(done)(loaded->attempt.to_error());
        plugin::open_provider(*loaded->plugin, std::move(name), std::move(options), lane,
                              std::move(check), std::move(done));
      });
}

std::shared_ptr<ProviderBackend> ProviderRegistry::open(std::string name, json::Object options) {
  return await_result<std::shared_ptr<ProviderBackend>>(
      [&](auto handler) { async_open(std::move(name), std::move(options), std::move(handler)); });
}

}  // namespace sandforge

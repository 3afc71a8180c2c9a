#include <array>

#include <fmt/format.h>

#include "sandforge/plugin_loader.hpp"

namespace sandforge {
namespace {

Status status_of(LoadStage stage) {
  switch (stage) {
    case LoadStage::not_found:
      return Status::not_found;
    case LoadStage::duplicate_provider:
    case LoadStage::duplicate_plugin:
      return Status::already_exists;
    case LoadStage::abi_major:
      return Status::unsupported;
    case LoadStage::unsafe_permissions:
    case LoadStage::hash_mismatch:
      return Status::forbidden;
    case LoadStage::too_many:
    case LoadStage::quarantined:
      return Status::unavailable;
    case LoadStage::no_runner:
      return Status::unsupported;
    case LoadStage::missing_member:
    case LoadStage::init_failed:
    case LoadStage::provider_unusable:
      return Status::crashed;
    default:
      return Status::invalid;
  }
}

std::string join(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, ", "));
}

std::string name_of(const LoadAttempt& attempt) {
  return attempt.plugin.empty() ? std::string()
                                : fmt::format("{} {}", attempt.plugin, attempt.version);
}

// Further lines stand below the first.
std::string indented(const std::string& name, const std::string& lines) {
  std::string out = name;
  for (const char c : lines)
    out += c == '\n' ? "\n" + std::string(name.size(), ' ') : std::string(1, c);
  return out + "\n";
}

std::string paragraph(const LoadAttempt& attempt) {
  std::string out = fmt::format("{}: {}\n", attempt.usable() ? to_string(attempt.stage) : "refused",
                                attempt.path.string());
  if (!attempt.plugin.empty())
    out += fmt::format("  plugin: {}, providers: {}\n", name_of(attempt), join(attempt.providers));
  out += fmt::format("  from: {}\n", attempt.origin);
  if (attempt.stage == LoadStage::loaded)
    out += fmt::format("  runs: {}\n",
                       attempt.in_process ? "in a process of its own" : "inside this process");
  if (attempt.usable()) return out;
  out += fmt::format("  stage: {}\n  why: {}\n", to_string(attempt.stage), attempt.message);
  if (const json::Value* mistakes = attempt.details.find("mistakes");
      mistakes != nullptr && mistakes->is_array()) {
    for (const json::Value& mistake : mistakes->as_array())
      out += fmt::format("    {} {}\n", mistake.find("pointer")->as_string(),
                         mistake.find("message")->as_string());
  }
  if (!attempt.loader_text.empty()) out += fmt::format("  loader: {}\n", attempt.loader_text);
  if (const json::Value* lines = attempt.details.find("stderr");
      lines != nullptr && lines->is_string())
    out += indented("  it wrote: ", lines->as_string());
  if (!attempt.hint.empty()) out += fmt::format("  hint: {}\n", attempt.hint);
  return out;
}

}  // namespace

std::string_view to_string(LoadStage stage) noexcept {
  constexpr std::array<std::string_view, kLoadStages> names = {"found",
                                                               "loaded",
                                                               "not_found",
                                                               "not_readable",
                                                               "not_regular",
                                                               "unsafe_permissions",
                                                               "bad_pin",
                                                               "hash_mismatch",
                                                               "truncated",
                                                               "not_elf",
                                                               "wrong_architecture",
                                                               "no_manifest",
                                                               "manifest_invalid",
                                                               "abi_major",
                                                               "schema_invalid",
                                                               "duplicate_provider",
                                                               "changed",
                                                               "missing_dependency",
                                                               "undefined_symbol",
                                                               "load_failed",
                                                               "no_entry",
                                                               "missing_member",
                                                               "init_failed",
                                                               "provider_unusable",
                                                               "too_many",
                                                               "no_runner",
                                                               "quarantined",
                                                               "duplicate_plugin"};
  return names[static_cast<std::size_t>(stage)];
}

Error LoadAttempt::to_error() const {
  Error error(status_of(stage),
              fmt::format("plugin {}: {}", plugin.empty() ? path.string() : plugin, message),
              "plugin." + std::string(to_string(stage)));
  error.details = details;
  error.details.set("path", path.string());
  error.details.set("stage", to_string(stage));
  if (!loader_text.empty()) error.details.set("loaderText", loader_text);
  if (!hint.empty()) error.details.set("hint", hint);
  return error;
}

json::Value to_json(const LoadAttempt& attempt) {
  json::Object out;
  out.set("path", attempt.path.string());
  out.set("origin", attempt.origin);
  out.set("stage", to_string(attempt.stage));
  out.set("usable", attempt.usable());
  if (attempt.stage == LoadStage::loaded)
    out.set("isolation", attempt.in_process ? "process" : "inline");
  if (!attempt.plugin.empty()) {
    out.set("plugin", attempt.plugin);
    out.set("version", attempt.version);
    out.set("providers", json::Array(attempt.providers.begin(), attempt.providers.end()));
  }
  if (!attempt.message.empty()) out.set("message", attempt.message);
  if (!attempt.loader_text.empty()) out.set("loaderText", attempt.loader_text);
  if (!attempt.hint.empty()) out.set("hint", attempt.hint);
  if (!attempt.details.empty()) out.set("details", attempt.details);
  return out;
}

std::size_t LoadReport::refused() const noexcept {
  std::size_t count = 0;
  for (const LoadAttempt& attempt : attempts)
    count += attempt.usable() ? 0 : 1;
  return count;
}

std::string LoadReport::to_text() const {
  std::string out =
      fmt::format("plugins: {} usable, {} refused\n", attempts.size() - refused(), refused());
  for (const SearchNote& note : notes)
    out +=
        fmt::format("looked in {} (from: {}): {}\n", note.path.string(), note.origin, note.message);
  for (const LoadAttempt& attempt : attempts)
    out += "\n" + paragraph(attempt);
  return out;
}

json::Value to_json(const LoadReport& report) {
  json::Array attempts;
  for (const LoadAttempt& attempt : report.attempts)
    attempts.push_back(to_json(attempt));
  json::Array notes;
  for (const SearchNote& note : report.notes) {
    json::Object entry;
    entry.set("path", note.path.string());
    entry.set("origin", note.origin);
    entry.set("message", note.message);
    notes.emplace_back(std::move(entry));
  }
  json::Object out;
  out.set("usable", report.attempts.size() - report.refused());
  out.set("refused", report.refused());
  out.set("candidates", std::move(attempts));
  out.set("notes", std::move(notes));
  return out;
}

}  // namespace sandforge

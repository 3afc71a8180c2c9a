#include "session/record_json.hpp"

#include <array>

namespace sandforge {
namespace {

constexpr std::array<std::string_view, 5> kStatus = {"created", "starting", "running", "stopped",
                                                     "error"};
constexpr std::array<std::string_view, 4> kSetup = {"none", "running", "done", "failed"};

template <class Enum, std::size_t N>
std::optional<Enum> parse_name(const std::array<std::string_view, N>& names,
                               std::string_view text) noexcept {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return std::nullopt;
}

Error corrupt(std::string_view what) {
  return Error(Status::internal, "the session database is damaged: " + std::string(what),
               "store.corrupt");
}

}  // namespace

std::string_view to_string(SessionStatus status) noexcept {
  return kStatus[static_cast<std::size_t>(status)];
}

std::optional<SessionStatus> parse_session_status(std::string_view text) noexcept {
  return parse_name<SessionStatus>(kStatus, text);
}

std::string_view to_string(SetupState state) noexcept {
  return kSetup[static_cast<std::size_t>(state)];
}

std::optional<SetupState> parse_setup_state(std::string_view text) noexcept {
  return parse_name<SetupState>(kSetup, text);
}

json::Value to_json(const SessionRecord& record) {
  json::Object out;
  out.set("id", record.id.str());
  out.set("provider", record.provider);
  out.set("status", to_string(record.status));
  out.set("generation", static_cast<long long>(record.generation));
  if (record.sandbox_id) out.set("sandboxId", record.sandbox_id->str());
  out.set("setup", to_string(record.setup));
  out.set("settings", record.settings);
  if (!record.config_file.empty()) out.set("configFile", record.config_file);
  if (!record.options.empty()) out.set("options", record.options);
  if (!record.context.empty()) out.set("context", record.context);
  if (record.working_directory) out.set("workingDirectory", *record.working_directory);
  json::Array env;
  for (const auto& variable : record.env) {
    json::Object entry;
    entry.set("name", variable.name);
    if (!variable.reference.empty()) entry.set("reference", variable.reference);
    env.emplace_back(std::move(entry));
  }
  if (!env.empty()) out.set("env", std::move(env));
  if (!record.plan.empty()) out.set("plan", to_json(record.plan));
  out.set("createdAtNs", static_cast<long long>(record.created_at_ns));
  out.set("lastUsedAtNs", static_cast<long long>(record.last_used_at_ns));
  if (record.claim) {
    json::Object claim;
    claim.set("owner", record.claim->owner);
    claim.set("expiresAtMs", static_cast<long long>(record.claim->expires_at_ms));
    out.set("claim", std::move(claim));
  }
  return out;
}

Result<json::Object> parse_stored_object(std::string_view text, std::string_view what) {
  auto parsed = json::parse(text);
  if (!parsed.ok() || !parsed.value.is_object()) return corrupt(what);
  return std::move(parsed.value.as_object());
}

Result<SetupPlan> parse_stored_plan(std::string_view text) {
  auto parsed = json::parse(text);
  if (!parsed.ok()) return corrupt("plan");
  auto plan = parse_setup_plan(parsed.value);
  if (!plan) return corrupt("plan: " + plan.error().message);
  return plan;
}

}  // namespace sandforge

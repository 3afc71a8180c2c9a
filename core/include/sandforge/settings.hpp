// Settings documents: what a user stores per project, and what a provider receives.
//
// Stored documents hold what the user set and nothing else: no defaults, no nulls. The effective
// document is computed when it is needed, so that a changed default takes effect at once.
// Source: the settings of the FactorySandbox document; RFC 7386. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sandforge/schema.hpp"

namespace sandforge {

enum class SettingOrigin : std::uint8_t {
  schema,  // the provider's own default
  option,  // the host's `defaults` option, which the provider folded into its schema
  stored,  // set by the user
};

const char* to_string(SettingOrigin origin) noexcept;

struct EffectiveSetting {
  std::string key;
  SettingOrigin origin;
};

struct EffectiveSettings {
  json::Value document;                   // an object: stored values, then defaults
  std::vector<EffectiveSetting> origins;  // one for each member, in its order
  std::vector<Issue> issues;              // not empty: the stored document is not valid
};

// What `create` receives: the stored document (null counts as empty) with the schema's defaults
// filled in. A key without a default that is not stored stays unset. Whole numbers that were
// written as 2.0 become integers where the schema says integer.
// `host_defaults` is the host's `defaults` option, null if there is none: it only tells origins.
EffectiveSettings effective_settings(const CompiledSchema& schema, const json::Value& stored,
                                     const json::Value& host_defaults = nullptr);

struct SettingsUpdate {
  bool accepted = false;
  json::Value stored;                // what to store: an object, or null when nothing is set
  std::vector<std::string> dropped;  // undeclared keys that were removed to make the update valid
  std::vector<Issue> issues;         // why it was refused
};

// Merges an update into a stored document (RFC 7386, null removes) and validates the result without
// writing defaults. When that fails, keys that the schema does not declare and that the update did
// not set are dropped, and it is tried once more. On refusal `stored` is the old document.
SettingsUpdate update_settings(const CompiledSchema& schema, const json::Value& stored,
                               const json::Value& update);

}  // namespace sandforge

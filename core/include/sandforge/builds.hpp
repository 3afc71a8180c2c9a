// Templates and builds of a provider, where it offers them: what a session's machine is made of,
// and images of it that are made ahead.
// Source: sandforge/ext/template.h, sandforge/ext/builds.h: the same in C++.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/backend.hpp"

namespace sandforge {

struct ResolvedTemplate {
  std::optional<std::string> document;  // canonical JSON; absent: the session has no template
  std::string identity;                 // SHA-256 in hex
  std::string family;                   // may be empty
  std::vector<std::string> warnings;
};

enum class BuildStatus : std::uint8_t {
  unknown,  // the provider cannot read it, such as after a restart of the host
  pending,
  building,
  ready,
  failed,
};
std::string_view to_string(BuildStatus status) noexcept;

struct Build {
  BuildId id;
  BuildStatus status = BuildStatus::unknown;
  TemplateId template_id;                     // may be empty
  std::optional<std::int64_t> started_at_ns;  // since the Unix epoch, as the next
  std::optional<std::int64_t> finished_at_ns;
  std::string error;  // without credentials; may be empty
  std::optional<std::chrono::milliseconds> retry_after;
};

struct BuildRequest {
  std::shared_ptr<const SessionContext> context;  // may be null
  json::Object settings;                          // effective
  BuildId build;                                  // empty for start and list
  // Of start: canonical JSON of the template to build; absent: that of the context's session. Only
  // for providers whose features name "builds.document": others do not look at it.
  std::optional<std::string> template_document;
  EnvMap ephemeral_env;  // secret; for the build alone, and never kept
};

// Every call comes on the provider's lane, and its handler is given there. What the provider does
// not offer is refused as unsupported, "feature.NAME".
class BuildsBackend {
 public:
  virtual ~BuildsBackend() = default;
  // Computes the template of a session, and builds nothing; of the request only context and
  // settings. Not for a reattach or a recreate.
  virtual std::shared_ptr<Pending> resolve(BuildRequest request,
                                           Handler<ResolvedTemplate> done) = 0;
  // Begins the build of the session's template, or finds it.
  virtual std::shared_ptr<Pending> start(BuildRequest request, Handler<Build> done) = 0;
  virtual std::shared_ptr<Pending> get(BuildRequest request, Handler<Build> done) = 0;
  // Newest first.
  virtual std::shared_ptr<Pending> list(BuildRequest request, Handler<std::vector<Build>> done) = 0;
  // The log from a cursor on, in bytes from its beginning, as it grows until the build ends.
  // on_data: on the lane; what is given is borrowed for the call.
  virtual std::shared_ptr<Pending> logs(BuildRequest request, std::uint64_t cursor,
                                        std::function<void(Bytes)> on_data, Handler<void> done) = 0;
  // What has ended already succeeds.
  virtual std::shared_ptr<Pending> cancel(BuildRequest request, Handler<void> done) = 0;
};

// A ProviderBackend that may offer them.
class OffersBuilds {
 public:
  virtual ~OffersBuilds() = default;
  virtual BuildsBackend* builds() noexcept = 0;
};
// Null: the provider has no way to offer them. Lives as long as the provider. [any]
BuildsBackend* builds_of(ProviderBackend& provider) noexcept;

}  // namespace sandforge

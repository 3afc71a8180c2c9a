// The capabilities of a provider: templates, builds, a directory of sandboxes, a health check.
#pragma once

#include <sandforge/ext/builds.h>
#include <sandforge/ext/directory.h>
#include <sandforge/ext/health.h>
#include <sandforge/ext/template.h>

#include "context.hpp"
#include "object.hpp"
#include "sandbox_values.hpp"
#include "settings.hpp"

namespace sandforge::plugin {

// The template that a session boots from.
class ResolvedTemplate {
 public:
  ResolvedTemplate() {}
  std::optional<std::string> document;  // canonical JSON; absent: the session has no template
  std::string identity;                 // SHA-256 in hex over operations and effective resources
  std::string family;
  std::vector<std::string> warnings;
};

template <class Style>
class BasicTemplates {
 public:
  virtual ~BasicTemplates() = default;
  // Computes the template of a session. Never called on a reattach or a recreate.
  virtual typename Style::template Result<ResolvedTemplate> resolve(Context context,
                                                                    Settings settings,
                                                                    StopToken stop) = 0;
};

enum class BuildStatus : std::uint32_t {
  unknown = SF_BUILD_UNKNOWN,
  pending = SF_BUILD_PENDING,
  building = SF_BUILD_BUILDING,
  ready = SF_BUILD_READY,
  failed = SF_BUILD_FAILED
};

class Build {
 public:
  Build() {}
  Build(std::string id, BuildStatus now) : build_id(std::move(id)), status(now) {}
  std::string build_id;
  BuildStatus status = BuildStatus::unknown;
  std::string template_id;
  std::int64_t started_at = 0;
  std::int64_t finished_at = 0;
  std::string error;  // without credentials
  std::optional<std::chrono::milliseconds> retry_after;
};

// What a build is asked for. ephemeral_env is secret and build-only: never store it.
class BuildRequest {
 public:
  BuildRequest(const Lane& lane, const sf_build_request& raw) {
    const auto r = detail::read_appendable(&raw);
    context = Context(r.context, lane);
    settings = Settings::parse(view(r.settings));
    build_id = copy(r.build_id);
    template_document = copy_optional(r.template_document);
    for (std::size_t i = 0; i < r.ephemeral_env_count; ++i) {
      ephemeral_env.emplace_back(copy(r.ephemeral_env[i].name),
                                 copy_optional(r.ephemeral_env[i].value));
    }
  }
  Context context;
  Settings settings;
  std::string build_id;  // empty for start and list
  // Of start, where features() name "builds.document": what to build in place of the template of
  // the context's session.
  std::optional<std::string> template_document;
  std::vector<EnvEntry> ephemeral_env;
};

// Builds templates ahead of a session. The functions that a can_ names are optional.
template <class Style>
class BasicBuilds {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  virtual ~BasicBuilds() = default;
  // Begins the build of the session's template, or finds it.
  virtual Result<Build> start(BuildRequest request, StopToken stop) = 0;
  virtual Result<Build> get(BuildRequest request, StopToken stop) = 0;

  virtual bool can_list() const { return false; }
  virtual Result<std::vector<Build>> list(BuildRequest, StopToken) {
    throw Error(Code::unsupported, "no history of builds");
  }
  virtual bool can_log() const { return false; }
  // The log from a cursor on, until the build ends.
  virtual Result<void> logs(BuildRequest, std::uint64_t /*cursor*/, Io&) {
    throw Error(Code::unsupported, "no logs of builds");
  }
  virtual bool can_cancel() const { return false; }
  virtual Result<void> cancel(BuildRequest, StopToken) {
    throw Error(Code::unsupported, "builds cannot be cancelled");
  }
};

class DirectoryEntry {
 public:
  DirectoryEntry() {}
  std::string sandbox_id;
  std::optional<std::string> session_id;  // absent: it carries none
  State state = State::unknown;
  bool own = false;  // this host made it; false: another one did, or nobody can tell
  std::int64_t created_at = 0;
  json::Object labels;
};

class DirectoryPage {
 public:
  DirectoryPage() {}
  std::vector<DirectoryEntry> entries;
  std::string next;  // token of the next page; empty: the last
};

// Something that this provider made, and that nothing needs any more.
class Leftover {
 public:
  Leftover() {}
  std::string kind;
  std::string id;
  std::string reason;
  std::int64_t created_at = 0;
  std::optional<std::uint64_t> bytes;
  std::string error;  // what kept it from being removed
};

// Finds sandboxes without a session, and what else was left behind.
template <class Style>
class BasicDirectory {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  virtual ~BasicDirectory() = default;
  // Sandboxes that carry all the labels; no labels: all of this provider, whichever host made them.
  virtual Result<DirectoryPage> find(Document labels, std::string page, std::uint32_t limit,
                                     StopToken stop) = 0;
  // What is gone succeeds.
  virtual Result<void> remove(std::string sandbox_id, StopToken stop) = 0;

  virtual bool can_sweep() const { return false; }
  // What no sandbox is, and no host and no sandbox needs; it is removed where that is asked for.
  // Never anything that a living host may be working on.
  virtual Result<std::vector<Leftover>> sweep(bool /*remove*/, StopToken) {
    throw Error(Code::unsupported, "nothing is left behind here");
  }
};

template <class Style>
class BasicHealth {
 public:
  virtual ~BasicHealth() = default;
  // Returns when sandboxes could be started now; else throws why not.
  virtual typename Style::template Result<void> check(StopToken stop) = 0;
};

}  // namespace sandforge::plugin

// Sessions: sandboxes that are known by name, outlive the process that started them, and are shared
// by every host with the same store.
//
// One SessionManager per host. Of one session a host has one Sandbox object, whoever asks for it;
// other hosts have theirs, for the same machine. Who starts, stops or removes the machine holds the
// session's claim in the store while doing so; running commands needs none.
//
// Thread rule: every function from any thread; handlers come on a lane of the Runtime; the blocking
// forms not on a thread of the Runtime. A manager and its sessions must not outlive the Runtime.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/sandbox.hpp"
#include "sandforge/session_store.hpp"
#include "sandforge/setup.hpp"

namespace sandforge {

// 1 to 255 bytes of UTF-8 without control characters, else invalid "session.bad_id". Whether an id
// is fit for a path is the provider's business: it encodes what is not.
Result<void> check_session_id(const SessionId& id);
SessionId make_session_id();  // "s-" and 16 random hexadecimal digits

// A provider opened for a session.
struct OpenedProvider {
  std::shared_ptr<ProviderBackend> backend;
  // The stored settings with defaults filled in. Null: they are taken as stored.
  std::function<Result<json::Object>(const json::Object& stored)> effective;
  // Of the sandbox itself, where the options' `env` depends on the session. Absent: the provider's
  // own rule.
  std::optional<EnvMap> env;
};
enum class OpenPurpose : std::uint8_t {
  use,
  removal,  // stop or destroy: must work without the values that only commands need
};
// Opens the provider that the record names. Called on a lane; must not block it.
using OpenProviderFn =
    std::function<void(const SessionRecord&, OpenPurpose, Handler<OpenedProvider>)>;
// The value behind "${NAME}" or "file:PATH"; nothing when it is not to be had here. On the pool.
using ResolveReferenceFn = std::function<std::optional<std::string>(const std::string&)>;

struct SessionVariable {
  std::string name;
  std::optional<std::string> value;  // kept in memory only; absent: the reference tells
  std::string reference;             // kept in the store
};

// What a new session is made of. For one that exists already, only id, env, access and the
// callbacks count.
struct SessionSpec {
  SessionSpec() = default;
  SessionId id;  // empty: one is made up
  std::string provider;
  json::Object settings;  // as the user set them, without defaults
  std::string config_file;
  json::Object options;  // without secrets
  json::Object context;  // factoryId, factoryName, repoFullName
  std::optional<std::string> working_directory;
  // JSON of the template that fresh machines boot; absent: none. Kept with the session. Without a
  // provider that has templates it has no effect.
  std::optional<std::string> template_document;
  std::optional<std::chrono::milliseconds> idle_timeout;
  std::optional<std::chrono::milliseconds> timeout;  // default of commands
  std::vector<SessionVariable> env;
  SetupPlan plan;
  RepositoryAccessByIndex access;  // null: by the plan's URLs and credential references
  ResolveHeadFn resolve_head;
  StartHook on_start;  // after set-up
  bool keep = false;   // remove_unused leaves it, from now on
};

enum class OpenMode : std::uint8_t { create, attach, either };

class Session {
 public:
  virtual ~Session() = default;
  virtual const SessionId& id() const = 0;
  virtual const std::shared_ptr<Sandbox>& sandbox() const = 0;
  virtual SessionRecord record() const = 0;  // as last read or written by this host
  virtual bool made_here() const = 0;        // recorded by the open that made this object
  // Variables whose values were given to another host only, that no reference leads to, and that
  // the machine does not have either, as far as its last start told.
  virtual std::vector<std::string> missing_env() const = 0;
  // Of the last set-up that this object ran; nothing when it was not its turn.
  virtual std::optional<SetupReport> setup_report() const = 0;
};

class SessionManager {
 public:
  struct Options {
    std::chrono::milliseconds claim_ttl{30'000};    // renewed while it is held
    std::chrono::milliseconds claim_wait{900'000};  // for another host that starts the session
    std::chrono::milliseconds steal_after{5'000};   // destroy takes the claim over after this
    ResolveReferenceFn resolve;                     // null: no reference is resolved
    SetupOptions setup;  // its stop also ends a start that waits for another host
    // Something that went wrong and stopped nothing, such as a failed note of the last use.
    std::function<void(const SessionId&, const Error&)> warn;
  };

  static std::shared_ptr<SessionManager> create(Runtime& runtime,
                                                std::shared_ptr<SessionStore> store,
                                                OpenProviderFn open_provider, Options options);
  virtual ~SessionManager() = default;

  // Records a new session, or finds one; no machine is started. already_exists for create,
  // not_found for attach, conflict "session.other_provider" when it exists with another provider.
  virtual void async_open(SessionSpec spec, OpenMode mode,
                          Handler<std::shared_ptr<Session>> done) = 0;
  virtual void async_start(SessionId id, Handler<StartedInfo> done) = 0;
  virtual void async_stop(SessionId id, Handler<void> done) = 0;
  // Removes the machine, then the record. Works without a start and after a restart of the host.
  // Absent: success. When the machine cannot be removed the record stays, but for one without a
  // machine: nobody needs the provider for that.
  virtual void async_destroy(SessionId id, Handler<void> done) = 0;
  // The same for a session that nobody but this host has open, and that nobody keeps; false: it was
  // left alone. A host has open what it opened until its process ends, also by a kill.
  virtual void async_remove_unused(SessionId id, Handler<bool> done) = 0;
  // Forgets the record and leaves the machine, for a provider that is no longer there.
  virtual void async_forget(SessionId id, Handler<void> done) = 0;
  // Removes the machine, keeps the record, and starts anew. unsupported where the provider's
  // features name "destroy.keeps_directory".
  virtual void async_recreate(SessionId id, Handler<StartedInfo> done) = 0;
  virtual void async_list(SessionQuery query, Handler<std::vector<SessionRecord>> done) = 0;

  // The session when this host has it; never makes one.
  virtual std::shared_ptr<Session> peek(const SessionId& id) const = 0;
  // Forgets this host's object. The machine and the record stay.
  virtual void evict(const SessionId& id) = 0;

  // Blocking forms: throw the Error.
  std::shared_ptr<Session> open(SessionSpec spec, OpenMode mode);
  std::shared_ptr<Session> attach(SessionId id);
  StartedInfo start(SessionId id);
  void stop(SessionId id);
  void destroy(SessionId id);
  bool remove_unused(SessionId id);
  StartedInfo recreate(SessionId id);
  std::vector<SessionRecord> list(SessionQuery query = {});
};

}  // namespace sandforge

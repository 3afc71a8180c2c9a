// One session of this host: the store's record, the sandbox, and what ties them together.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "session/session_core.hpp"

namespace sandforge {

// What the start hook needs; owned by the sandbox's hooks, so it must not own the sandbox.
struct SetupHookState {
  std::shared_ptr<SessionCore> core;
  RepositoryAccessByIndex access;
  StartHook on_start;
  mutable std::mutex mutex;
  std::optional<SetupReport> report;
};
// Set-up when it is due, then the host's own hook.
StartHook make_session_hook(std::shared_ptr<SetupHookState> state);

// The variables of a record with the values that are known here.
struct ResolvedEnv {
  EnvMap values;
  std::vector<std::string> missing;
};

struct SessionParts {
  SessionSpec spec;
  SessionRecord record;
  OpenedProvider provider;
  ResolvedEnv env;
  bool inserted = false;     // the record is new
  bool for_removal = false;  // no access, and settings that are no longer valid do not matter
};

class SessionImpl final : public Session {
 public:
  SessionImpl(std::shared_ptr<SessionCore> core, std::shared_ptr<SetupHookState> hook,
              std::shared_ptr<Sandbox> sandbox, const SessionParts& parts);

  const SessionId& id() const override { return id_; }
  const std::shared_ptr<Sandbox>& sandbox() const override { return sandbox_; }
  SessionRecord record() const override { return core_->record(); }
  bool made_here() const override { return made_here_; }
  std::vector<std::string> missing_env() const override;
  std::optional<SetupReport> setup_report() const override;

  // Values that a later caller brings along.
  void add_env(const std::vector<SessionVariable>& variables);
  void spare_used(bool on) { core_->spare_used(on); }

 private:
  const std::shared_ptr<SessionCore> core_;
  const std::shared_ptr<SetupHookState> hook_;
  const std::shared_ptr<Sandbox> sandbox_;
  const SessionId id_;
  const bool made_here_;
  mutable std::mutex mutex_;
  std::vector<std::string> missing_;
};

ResolvedEnv resolve_env(const SessionRecord& record, const std::vector<SessionVariable>& given,
                        const ResolveReferenceFn& resolve);

Result<std::shared_ptr<SessionImpl>> build_session(std::shared_ptr<const SessionServices> services,
                                                   SessionParts parts);

// The record of a new session.
Result<SessionRecord> new_record(const SessionSpec& spec, bool caller_chose_id);

}  // namespace sandforge

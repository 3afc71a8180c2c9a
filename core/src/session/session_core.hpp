// What one host knows of one session, and how it changes it: the record as last seen, the claim,
// and the writes to the store. Shared by the session's backend, its start hook and the manager.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "sandforge/session.hpp"

namespace sandforge {

struct SessionServices {
  Runtime& runtime;
  std::shared_ptr<SessionStore> store;
  std::string owner;  // of claims
  SessionManager::Options options;
};

class SessionCore : public std::enable_shared_from_this<SessionCore> {
 public:
  SessionCore(std::shared_ptr<const SessionServices> services, SessionRecord record);

  SessionId id() const { return id_; }
  SessionRecord record() const;
  const SessionServices& services() const { return *services_; }

  using CancelFlag = std::shared_ptr<std::atomic<bool>>;

  // Takes the claim and reads the newest record, waiting for another host that holds it; with
  // `steal` not longer than steal_after. The claim is renewed until it is released or lost.
  void acquire(const Lane& lane, bool steal, CancelFlag cancelled, Handler<SessionRecord> done);
  // Compare and set of the record as last seen. Calls are done one after the other.
  void update(const Lane& lane, std::function<void(SessionRecord&)> change,
              Handler<SessionRecord> done);
  // The machine's id, kept in memory until it is stored: a full disk must not lose a machine.
  void remember(std::optional<ProviderSandboxId> id);
  // Gives the claim back. A failure is warned of, and it is tried again behind the caller's back:
  // for others on this machine the claim does not expire while this process lives.
  void release(const Lane& lane, std::function<void()> done);
  // Notes the time of use, not more than once in half a minute.
  void touch(const Lane& lane);
  void warn(const Error& error) const;
  // Destroy leaves a machine alone that others have open, as conflict "session.in_use".
  void spare_used(bool on) noexcept { spare_used_ = on; }
  bool spares_used() const noexcept { return spare_used_; }

 private:
  struct Acquire;
  Result<SessionRecord> write(const std::function<void(SessionRecord&)>& change);  // blocks
  void attempt(std::shared_ptr<Acquire> call);
  void refused(std::shared_ptr<Acquire> call, Error error);
  void keep_alive(const Lane& lane);
  void release_again(const Lane& lane);
  void renew(const Lane& lane, std::uint64_t round);

  const std::shared_ptr<const SessionServices> services_;
  const SessionId id_;
  mutable std::mutex mutex_;  // of the members below
  SessionRecord record_;
  std::optional<ProviderSandboxId> unsaved_;
  std::uint64_t claim_round_ = 0;  // counts acquisitions; renewal of an older one ends
  bool claimed_ = false;
  std::shared_ptr<Pending> renewal_;
  std::int64_t touched_ns_ = 0;
  std::mutex write_mutex_;  // one compare-and-set at a time
  std::atomic<bool> spare_used_{false};
};

// The holder of what is kept for good.
inline constexpr const char* kKept = "kept";
// conflict "session.in_use": a process that lives, and is not this owner, has the session open.
Result<void> unused_by_others(const SessionRecord& record, const std::string& owner);

}  // namespace sandforge

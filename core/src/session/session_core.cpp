#include "session/session_core.hpp"

#include <algorithm>

#include "sandforge/clock.hpp"
#include "session/claim_owner.hpp"
#include "session/store_call.hpp"

namespace sandforge {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr std::int64_t kTouchEveryNs = 30'000'000'000;

}  // namespace

Result<void> unused_by_others(const SessionRecord& record, const std::string& owner) {
  const auto unused_ns = system_clock()->now_ns() - record.last_used_at_ns;
  const bool used = std::any_of(
      record.holders.begin(), record.holders.end(),
      [&](const auto& holder) { return holder != owner && !holder_is_gone(holder, unused_ns); });
  if (!used) return {};
  return Error(Status::conflict, "somebody else has the session '" + record.id.str() + "' open",
               "session.in_use");
}

struct SessionCore::Acquire {
  explicit Acquire(Handler<SessionRecord> d) : done(std::move(d)) {}

  Lane lane;
  bool may_steal = false;
  bool steal_now = false;
  CancelFlag cancelled;
  Handler<SessionRecord> done;
  steady_clock::time_point since = steady_clock::now();
  milliseconds delay{20};
};

SessionCore::SessionCore(std::shared_ptr<const SessionServices> services, SessionRecord record)
    : services_(std::move(services)), id_(record.id), record_(std::move(record)) {}

SessionRecord SessionCore::record() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

void SessionCore::warn(const Error& error) const {
  if (services_->options.warn) services_->options.warn(id_, error);
}

void SessionCore::acquire(const Lane& lane, bool steal, CancelFlag cancelled,
                          Handler<SessionRecord> done) {
  auto call = std::make_shared<Acquire>(std::move(done));
  call->lane = lane;
  call->may_steal = steal;
  call->cancelled = std::move(cancelled);
  attempt(std::move(call));
}

void SessionCore::attempt(std::shared_ptr<Acquire> call) {
  auto self = shared_from_this();
  auto work = [self, steal = call->steal_now] {
    // Also against a write of our own that is under way: the claim counts the revision.
    const std::lock_guard writing(self->write_mutex_);
    const auto& services = *self->services_;
    auto claimed =
        services.store->claim(self->id_, services.owner, services.options.claim_ttl, steal);
    if (claimed) {
      const std::lock_guard lock(self->mutex_);
      self->claimed_ = true;
      self->record_ = *claimed;
      if (self->unsaved_) self->record_.sandbox_id = self->unsaved_;
      claimed = self->record_;
    }
    return claimed;
  };
  store_call<SessionRecord>(services_->runtime, call->lane, std::move(work),
                            [self, call](Result<SessionRecord> claimed) {
                              if (!claimed) return self->refused(call, std::move(claimed).error());
                              self->keep_alive(call->lane);
                              std::move(call->done)(std::move(claimed));
                            });
}

void SessionCore::refused(std::shared_ptr<Acquire> call, Error error) {
  if (error.reason != "store.claimed") return std::move(call->done)(std::move(error));
  const auto& options = services_->options;
  const bool stopped = !call->may_steal && options.setup.stop.stop_requested();
  if (stopped || (call->cancelled && call->cancelled->load()))
    return std::move(call->done)(Error(Status::cancelled, "the start was cancelled"));

  const auto waited = steady_clock::now() - call->since;
  const auto* owner = error.details.find("owner");
  const bool gone = owner != nullptr && claim_owner_is_gone(owner->as_string());
  if (gone || (call->may_steal && waited >= options.steal_after)) {
    call->steal_now = true;
    return attempt(std::move(call));
  }
  if (waited >= options.claim_wait) {
    error.message = "another host has been changing the session '" + id_.str() + "' for too long";
    error.reason = "session.claimed";
    return std::move(call->done)(std::move(error));
  }
  const auto delay = call->delay;
  call->delay = std::min(delay * 2, milliseconds(500));
  services_->runtime.timer(call->lane, delay,
                           [self = shared_from_this(), call](Result<void> fired) {
                             if (!fired) return std::move(call->done)(fired.error());
                             self->attempt(call);
                           });
}

void SessionCore::keep_alive(const Lane& lane) {
  std::uint64_t round = 0;
  {
    const std::lock_guard lock(mutex_);
    claimed_ = true;
    round = ++claim_round_;
  }
  renew(lane, round);
}

// Waits a third of the claim's time, renews, and begins again; ends when the claim is gone.
void SessionCore::renew(const Lane& lane, std::uint64_t round) {
  const auto weak = weak_from_this();
  auto timer = services_->runtime.timer(
      lane, services_->options.claim_ttl / 3, [weak, lane, round](Result<void> fired) {
        const auto self = weak.lock();
        if (!fired || !self) return;
        const auto& services = *self->services_;
        store_call<void>(
            services.runtime, lane,
            [self] {
              const auto& s = *self->services_;
              return s.store->renew(self->id_, s.owner, s.options.claim_ttl);
            },
            [self, lane, round](Result<void> renewed) {
              if (!renewed) self->warn(renewed.error());
              const bool lost = !renewed && renewed.error().reason == "store.claimed";
              {
                const std::lock_guard lock(self->mutex_);
                if (!self->claimed_ || self->claim_round_ != round) return;
                if (lost) self->claimed_ = false;
              }
              if (!lost) self->renew(lane, round);
            });
      });
  const std::lock_guard lock(mutex_);
  if (claimed_ && claim_round_ == round) {
    renewal_ = std::move(timer);
  } else {
    timer->cancel();
  }
}

void SessionCore::update(const Lane& lane, std::function<void(SessionRecord&)> change,
                         Handler<SessionRecord> done) {
  auto self = shared_from_this();
  auto work = [self, change = std::move(change)] { return self->write(change); };
  store_call<SessionRecord>(services_->runtime, lane, std::move(work), std::move(done));
}

Result<SessionRecord> SessionCore::write(const std::function<void(SessionRecord&)>& change) {
  const std::lock_guard writing(write_mutex_);
  auto& store = *services_->store;
  for (int attempt = 0;; ++attempt) {
    auto record = this->record();
    change(record);
    auto written = store.update(record);
    if (written) {
      const std::lock_guard lock(mutex_);
      record_ = *written;
      unsaved_.reset();  // the change decided what the machine is
      return written;
    }
    if (written.error().reason != "store.revision" || attempt == 8) return written;
    // As long as the claim is ours, whoever wrote changed nothing of the machine.
    auto found = store.find(id_);
    if (!found) return std::move(found).error();
    if (!*found || !(*found)->claim || (*found)->claim->owner != services_->owner) return written;
    const std::lock_guard lock(mutex_);
    record_ = **found;
    if (unsaved_) record_.sandbox_id = unsaved_;
  }
}

void SessionCore::remember(std::optional<ProviderSandboxId> id) {
  const std::lock_guard lock(mutex_);
  unsaved_ = std::move(id);
  if (unsaved_) record_.sandbox_id = unsaved_;
}

void SessionCore::release(const Lane& lane, std::function<void()> done) {
  std::shared_ptr<Pending> renewal;
  bool held = false;
  {
    const std::lock_guard lock(mutex_);
    held = std::exchange(claimed_, false);
    renewal = std::move(renewal_);
    renewal_ = nullptr;
  }
  if (renewal) renewal->cancel();
  if (!held) return lane.post(std::move(done));
  auto self = shared_from_this();
  store_call<void>(
      services_->runtime, lane,
      [self] { return self->services_->store->release(self->id_, self->services_->owner); },
      [self, lane, done = std::move(done)](Result<void> released) {
        if (!released) {
          self->warn(released.error());
          self->release_again(lane);
        }
        done();
      });
}

// Later, unless the claim has been taken for something else by then.
void SessionCore::release_again(const Lane& lane) {
  const auto again = [weak = weak_from_this(), lane](const Result<void>& fired) {
    const auto self = weak.lock();
    if (!fired || !self) return;
    const auto work = [self]() -> Result<void> {
      const std::lock_guard writing(self->write_mutex_);  // not amid a claim
      {
        const std::lock_guard lock(self->mutex_);
        if (self->claimed_) return {};
      }
      return self->services_->store->release(self->id_, self->services_->owner);
    };
    store_call<void>(self->services_->runtime, lane, work, [self, lane](Result<void> released) {
      if (!released) self->release_again(lane);
    });
  };
  services_->runtime.timer(lane, services_->options.claim_ttl / 3, again);
}

void SessionCore::touch(const Lane& lane) {
  const auto now = system_clock()->now_ns();
  {
    const std::lock_guard lock(mutex_);
    if (now - touched_ns_ < kTouchEveryNs) return;
    touched_ns_ = now;
  }
  auto self = shared_from_this();
  store_call<void>(
      services_->runtime, lane,
      [self, now] { return self->services_->store->touch(self->id_, now); },
      [self](Result<void> touched) {
        if (!touched && touched.error().code != Status::not_found) self->warn(touched.error());
      });
}

}  // namespace sandforge

#include <algorithm>
#include <map>

#include "sandbox/lane_handler.hpp"
#include "session/claim_owner.hpp"
#include "session/session_impl.hpp"
#include "session/store_call.hpp"

namespace sandforge {
namespace {

using OpenHandler = Handler<std::shared_ptr<Session>>;

Result<void> check_provider(const SessionSpec& spec, const SessionRecord& record) {
  if (spec.provider.empty() || spec.provider == record.provider) return {};
  return Error(Status::conflict,
               "the session '" + record.id.str() + "' runs on provider '" + record.provider +
                   "', not '" + spec.provider + "'",
               "session.other_provider");
}

Result<void> check_env(const std::vector<SessionVariable>& variables) {
  for (const auto& variable : variables) {
    if (variable.name.empty() ||
        variable.name.find_first_of(std::string_view("=\0", 2)) != std::string::npos)
      return Error(Status::invalid, "'" + variable.name + "' is no name of a variable",
                   "session.bad_env");
    if (variable.value && variable.value->find('\0') != std::string::npos)
      return Error(Status::invalid, "the value of " + variable.name + " holds a NUL byte",
                   "session.bad_env");
  }
  return {};
}

// Names and references of variables that a later caller brings along.
Result<SessionRecord> merge_env(SessionStore& store, SessionRecord record,
                                const std::vector<SessionVariable>& variables) {
  for (int attempt = 0;; ++attempt) {
    bool changed = false;
    for (const auto& variable : variables) {
      const auto known =
          std::find_if(record.env.begin(), record.env.end(),
                       [&](const EnvReference& entry) { return entry.name == variable.name; });
      if (known == record.env.end()) {
        record.env.push_back({variable.name, variable.reference});
        changed = true;
      } else if (known->reference != variable.reference) {
        known->reference = variable.reference;
        changed = true;
      }
    }
    if (!changed) return record;
    auto written = store.update(record);
    if (written || written.error().reason != "store.revision" || attempt == 8) return written;
    auto found = store.find(record.id);
    if (!found) return std::move(found).error();
    if (!*found) return session_not_found(record.id);
    record = std::move(**found);
  }
}

// Of a name that is given twice, the last one counts, as for a command.
void keep_last(std::vector<SessionVariable>& env) {
  std::vector<SessionVariable> out;
  for (auto& variable : env) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const SessionVariable& earlier) {
      return earlier.name == variable.name;
    });
    if (same == out.end()) {
      out.push_back(std::move(variable));
    } else {
      *same = std::move(variable);
    }
  }
  env = std::move(out);
}

class Manager final : public SessionManager, public std::enable_shared_from_this<Manager> {
 public:
  Manager(Runtime& runtime, std::shared_ptr<SessionStore> store, OpenProviderFn open_provider,
          Options options)
      : services_(std::make_shared<SessionServices>(
            SessionServices{runtime, std::move(store), make_claim_owner(), std::move(options)})),
        open_provider_(std::move(open_provider)),
        lane_(runtime.make_lane()) {}

  void async_open(SessionSpec spec, OpenMode mode, OpenHandler done) override {
    const bool chosen = !spec.id.empty();
    if (!chosen && mode != OpenMode::attach) spec.id = make_session_id();
    auto checked = check_session_id(spec.id);
    if (checked) checked = check_env(spec.env);
    keep_last(spec.env);
    if (!checked)
      return answer<std::shared_ptr<Session>>(std::move(done), std::move(checked).error());

    auto call = std::make_shared<Opening>(std::move(done));
    call->spec = std::move(spec);
    call->mode = mode;
    call->chosen = chosen;
    lane_.post([self = shared_from_this(), call] { self->open_on_lane(call); });
  }

  void async_start(SessionId id, Handler<StartedInfo> done) override {
    with_session<StartedInfo>(std::move(id), false, std::move(done),
                              [](const auto& session, Handler<StartedInfo> next) {
                                session->sandbox()->async_start(std::move(next));
                              });
  }

  void async_stop(SessionId id, Handler<void> done) override {
    with_session<void>(std::move(id), true, std::move(done),
                       [](const auto& session, Handler<void> next) {
                         session->sandbox()->async_stop(std::move(next));
                       });
  }

  void async_destroy(SessionId id, Handler<void> done) override {
    destroy_and_erase(std::move(id), false, std::make_shared<Handler<void>>(std::move(done)), 8);
  }

  void async_remove_unused(SessionId id, Handler<bool> done) override {
    auto held = std::make_shared<Handler<bool>>(std::move(done));
    auto removed = std::make_shared<Handler<void>>([held](Result<void> result) {
      if (result) return std::move(*held)(true);
      if (result.error().reason == "session.in_use") return std::move(*held)(false);
      std::move (*held)(std::move(result).error());
    });
    auto self = shared_from_this();
    // Asked under the claim once more; but whoever starts it has that for long, perhaps.
    store_call<void>(
        services_->runtime, lane_, [self, id] { return self->unused(id); },
        [self, id, removed](Result<void> unused) {
          if (!unused) return std::move(*removed)(std::move(unused));
          self->destroy_and_erase(id, true, removed, 8);
        });
  }

  void async_forget(SessionId id, Handler<void> done) override {
    evict(id);
    store_call<void>(
        services_->runtime, lane_,
        [services = services_, id] { return services->store->erase(id, std::nullopt); },
        std::move(done));
  }

  void async_recreate(SessionId id, Handler<StartedInfo> done) override {
    auto held = std::make_shared<Handler<StartedInfo>>(std::move(done));
    auto self = shared_from_this();
    with_session<void>(
        id, true,
        [self, held, id](Result<void> removed) {
          if (!removed) return std::move(*held)(std::move(removed).error());
          self->evict(id);
          self->async_start(id, std::move(*held));
        },
        [self](const auto& session, Handler<void> next) {
          self->remove_for_recreate(session, std::move(next));
        });
  }

  void async_list(SessionQuery query, Handler<std::vector<SessionRecord>> done) override {
    store_call<std::vector<SessionRecord>>(
        services_->runtime, lane_,
        [services = services_, query] { return services->store->list(query); }, std::move(done));
  }

  std::shared_ptr<Session> peek(const SessionId& id) const override {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(id);
    return found == sessions_.end() ? nullptr : found->second;
  }

  void evict(const SessionId& id) override {
    const std::lock_guard lock(mutex_);
    sessions_.erase(id);
  }

 private:
  struct Opening {
    // Constructed, because move assignment of a handler recurses without end in Boost 1.81.
    explicit Opening(OpenHandler d) : done(std::move(d)) {}

    SessionSpec spec;
    OpenMode mode = OpenMode::attach;
    bool chosen = false;
    bool for_removal = false;
    bool inserted = false;
    OpenHandler done;
    SessionRecord record;
    ResolvedEnv env;
  };
  using Call = std::shared_ptr<Opening>;

  template <class T>
  void answer(Handler<T> done, Result<T> result) {
    auto held = std::make_shared<Handler<T>>(std::move(done));
    lane_.post(
        [held, result = std::move(result)]() mutable { std::move (*held)(std::move(result)); });
  }

  // The session, attached when this host has it not, then the action on it.
  template <class T, class Action>
  void with_session(SessionId id, bool for_removal, Handler<T> done, Action action) {
    auto held = std::make_shared<Handler<T>>(std::move(done));
    auto next = [held, action](Result<std::shared_ptr<Session>> session) {
      if (!session) return std::move(*held)(std::move(session).error());
      action(std::static_pointer_cast<SessionImpl>(*session), std::move(*held));
    };
    auto checked = check_session_id(id);
    if (!checked) return answer<T>(std::move(*held), std::move(checked).error());
    auto call = std::make_shared<Opening>(std::move(next));
    call->spec.id = std::move(id);
    call->for_removal = for_removal;
    lane_.post([self = shared_from_this(), call] { self->open_on_lane(call); });
  }

  void open_on_lane(const Call& call) {
    if (auto session = find_impl(call->spec.id)) return reuse(call, session);
    // One opening of an id at a time; the others then find what it made, or try themselves.
    auto& queue = openings_[call->spec.id];
    queue.push_back(call);
    if (queue.size() == 1) look_up(call);
  }

  void next_opening(const SessionId& id) {
    auto entry = openings_.find(id);
    entry->second.erase(entry->second.begin());
    if (entry->second.empty()) {
      openings_.erase(entry);
      return;
    }
    const auto call = entry->second.front();
    if (auto session = find_impl(id)) {
      reuse(call, session);
      return lane_.post([self = shared_from_this(), id] { self->next_opening(id); });
    }
    look_up(call);
  }

  std::shared_ptr<SessionImpl> find_impl(const SessionId& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(id);
    return found == sessions_.end() ? nullptr : found->second;
  }

  void reuse(const Call& call, const std::shared_ptr<SessionImpl>& session) {
    if (call->mode == OpenMode::create) return std::move(call->done)(session_exists(call->spec.id));
    if (auto fits = check_provider(call->spec, session->record()); !fits)
      return std::move(call->done)(std::move(fits).error());
    if (call->spec.env.empty() && !call->spec.keep)
      return std::move(call->done)(std::shared_ptr<Session>(session));
    session->add_env(call->spec.env);
    store_call<SessionRecord>(
        services_->runtime, lane_,
        [self = shared_from_this(), call]() -> Result<SessionRecord> {
          auto& store = *self->services_->store;
          auto found = store.find(call->spec.id);
          if (!found) return std::move(found).error();
          if (!*found) return session_not_found(call->spec.id);
          auto merged = merge_env(store, std::move(**found), call->spec.env);
          if (!merged) return merged;
          return store.hold(call->spec.id, self->holder(*call));
        },
        [call, session](Result<SessionRecord> merged) {
          if (!merged) return std::move(call->done)(std::move(merged).error());
          std::move(call->done)(std::shared_ptr<Session>(session));
        });
  }

  void look_up(const Call& call) {
    auto self = shared_from_this();
    store_call<SessionRecord>(
        services_->runtime, lane_, [self, call] { return self->find_or_insert(*call); },
        [self, call](Result<SessionRecord> record) {
          if (!record) return self->opened(call, std::move(record).error());
          call->record = std::move(record).value();
          self->open_provider(call);
        });
  }

  // A host that starts the session after its machine was removed, and before the record is, has
  // changed the record: its machine is removed as well.
  void destroy_and_erase(SessionId id, bool spare_used, std::shared_ptr<Handler<void>> done,
                         int tries) {
    auto self = shared_from_this();
    auto revision = std::make_shared<std::optional<std::uint64_t>>();
    with_session<void>(
        id, true,
        [self, done, id, spare_used, revision, tries](Result<void> removed) {
          if (!removed && removed.error().reason == "session.not_found")
            return std::move(*done)(Result<void>());
          if (!removed)
            return self->erase_without_machine(id, spare_used, std::move(removed).error(), done);
          self->erase(id, *revision, spare_used, done, tries);
        },
        [revision, spare_used](const std::shared_ptr<SessionImpl>& session, Handler<void> next) {
          auto held = std::make_shared<Handler<void>>(std::move(next));
          session->spare_used(spare_used);
          session->sandbox()->async_destroy([revision, session, held](Result<void> removed) {
            session->spare_used(false);
            *revision = session->record().revision;
            std::move (*held)(std::move(removed));
          });
        });
  }

  void erase(const SessionId& id, std::optional<std::uint64_t> revision, bool spare_used,
             const std::shared_ptr<Handler<void>>& done, int tries) {
    evict(id);
    auto self = shared_from_this();
    store_call<void>(
        services_->runtime, lane_,
        [self, id, revision, spare_used]() -> Result<void> {
          // Opened while the machine went: its record is not ours to remove.
          if (spare_used)
            if (auto unused = self->unused(id); !unused) return unused;
          return self->services_->store->erase(id, revision);
        },
        [self, id, spare_used, done, tries](Result<void> erased) {
          const bool changed = !erased && erased.error().reason == "store.revision";
          if (changed && tries > 1) return self->destroy_and_erase(id, spare_used, done, tries - 1);
          std::move (*done)(std::move(erased));
        });
  }

  // Its provider failed to remove a machine, or to open. Where there is none that does not matter.
  void erase_without_machine(const SessionId& id, bool spare_used, Error error,
                             const std::shared_ptr<Handler<void>>& done) {
    auto self = shared_from_this();
    store_call<void>(
        services_->runtime, lane_,
        [self, id, spare_used, error = std::move(error)]() -> Result<void> {
          auto found = self->services_->store->find(id);
          // Nor while another host is about to start it.
          if (!found || !*found || (*found)->claim || !has_no_machine(**found)) return error;
          if (spare_used)
            if (auto unused = self->unused(id); !unused) return unused;
          return self->services_->store->erase(id, (*found)->revision);
        },
        [self, id, done](Result<void> erased) {
          if (erased) self->evict(id);
          std::move (*done)(std::move(erased));
        });
  }

  // On the pool, as what follows.
  Result<void> unused(const SessionId& id) {
    auto found = services_->store->find(id);
    if (!found) return std::move(found).error();
    return *found ? unused_by_others(**found, services_->owner) : Result<void>();
  }

  // The record, and the values of its variables.
  Result<SessionRecord> find_or_insert(Opening& call) {
    const auto absent = [](const Result<SessionRecord>& record) {
      return !record && record.error().reason == "session.not_found";
    };
    auto record = take_up(call);
    // Removed between two looks: the next one makes it.
    for (int i = 0; i < 8 && absent(record) && call.mode == OpenMode::either; ++i)
      record = take_up(call);
    if (!record) return record;
    if (!call.for_removal)
      call.env = resolve_env(*record, call.spec.env, services_->options.resolve);
    return record;
  }

  Result<SessionRecord> take_up(Opening& call) {
    call.inserted = false;
    auto record = call.mode == OpenMode::create ? insert_new(call) : find_known(call);
    const bool absent = !record && record.error().reason == "session.not_found";
    if (absent && call.mode == OpenMode::either) {
      record = insert_new(call);
      // Another host was faster: it is found now, or was removed again.
      if (!record && record.error().reason == "session.exists") record = find_known(call);
    }
    if (!record || call.for_removal) return record;
    return services_->store->hold(call.spec.id, holder(call));
  }

  std::string holder(const Opening& call) const {
    return call.spec.keep ? kKept : services_->owner;
  }

  Result<SessionRecord> find_known(const Opening& call) {
    auto& store = *services_->store;
    auto found = store.find(call.spec.id);
    if (!found) return std::move(found).error();
    if (!*found) return session_not_found(call.spec.id);
    if (auto fits = check_provider(call.spec, **found); !fits) return std::move(fits).error();
    return merge_env(store, std::move(**found), call.spec.env);
  }

  Result<SessionRecord> insert_new(Opening& call) {
    auto made = new_record(call.spec, call.chosen);
    if (!made) return made;
    auto inserted = services_->store->insert(*made);
    call.inserted = inserted.ok();
    return inserted;
  }

  void open_provider(const Call& call) {
    auto self = shared_from_this();
    const auto purpose = call->for_removal ? OpenPurpose::removal : OpenPurpose::use;
    ask_for_provider(call->record, purpose, [self, call](Result<OpenedProvider> provider) {
      if (!provider) return self->opened(call, std::move(provider).error());
      SessionParts parts;
      parts.spec = call->spec;
      parts.record = call->record;
      parts.provider = std::move(*provider);
      parts.env = call->env;
      parts.inserted = call->inserted;
      parts.for_removal = call->for_removal;
      self->opened(call, build_session(self->services_, std::move(parts)));
    });
  }

  // `next` runs on the lane, also when the host's function throws or forgets its handler.
  template <class Next>
  void ask_for_provider(const SessionRecord& record, OpenPurpose purpose, Next next) {
    sandbox::ask<OpenedProvider>(
        lane_, "the function that opens providers", std::move(next),
        [&](Handler<OpenedProvider> done) { open_provider_(record, purpose, std::move(done)); });
  }

  void opened(const Call& call, Result<std::shared_ptr<SessionImpl>> session) {
    if (!session && call->inserted) return take_back(call, std::move(session).error());
    // One made for removal has no settings and no access: it is not for anybody else.
    if (session && !call->for_removal) {
      const std::lock_guard lock(mutex_);
      sessions_[call->spec.id] = *session;
    }
    if (session) {
      std::move(call->done)(std::shared_ptr<Session>(std::move(session).value()));
    } else {
      std::move(call->done)(std::move(session).error());
    }
    next_opening(call->spec.id);
  }

  // Nothing was started: a session that cannot be opened is not kept.
  void take_back(const Call& call, Error error) {
    auto self = shared_from_this();
    store_call<void>(
        services_->runtime, lane_,
        [self, call] {
          return self->services_->store->erase(call->spec.id, call->record.revision);
        },
        [self, call, error = std::move(error)](Result<void> erased) {
          if (!erased && self->services_->options.warn)
            self->services_->options.warn(call->spec.id, erased.error());
          call->inserted = false;
          self->opened(call, error);
        });
  }

  void remove_for_recreate(const std::shared_ptr<Session>& session, Handler<void> done) {
    auto held = std::make_shared<Handler<void>>(std::move(done));
    auto self = shared_from_this();
    const auto next = [self, session, held](Result<OpenedProvider> provider) {
      if (!provider) return std::move(*held)(std::move(provider).error());
      auto backend = provider->backend;
      backend->lane().dispatch([session, held, backend] {
        backend->features([session, held, backend](Result<Features> features) {
          if (!features) return std::move(*held)(std::move(features).error());
          if (has_feature(*features, "destroy.keeps_directory"))
            return std::move(*held)(
                Error(Status::unsupported,
                      "provider '" + backend->name() +
                          "' keeps the session's directory when it is destroyed: recreate is not "
                          "offered",
                      "session.no_recreate"));
          session->sandbox()->async_destroy(std::move(*held));
        });
      });
    };
    ask_for_provider(session->record(), OpenPurpose::removal, next);
  }

  const std::shared_ptr<const SessionServices> services_;
  const OpenProviderFn open_provider_;
  const Lane lane_;
  mutable std::mutex mutex_;  // of sessions_
  std::map<SessionId, std::shared_ptr<SessionImpl>> sessions_;
  std::map<SessionId, std::vector<Call>> openings_;  // on the lane only
};

}  // namespace

std::shared_ptr<SessionManager> SessionManager::create(Runtime& runtime,
                                                       std::shared_ptr<SessionStore> store,
                                                       OpenProviderFn open_provider,
                                                       Options options) {
  return std::make_shared<Manager>(runtime, std::move(store), std::move(open_provider),
                                   std::move(options));
}

std::shared_ptr<Session> SessionManager::open(SessionSpec spec, OpenMode mode) {
  return await_result<std::shared_ptr<Session>>(
      [&](auto handler) { async_open(std::move(spec), mode, std::move(handler)); });
}

std::shared_ptr<Session> SessionManager::attach(SessionId id) {
  SessionSpec spec;
  spec.id = std::move(id);
  return open(std::move(spec), OpenMode::attach);
}

StartedInfo SessionManager::start(SessionId id) {
  return await_result<StartedInfo>(
      [&](auto handler) { async_start(std::move(id), std::move(handler)); });
}

void SessionManager::stop(SessionId id) {
  await_result<void>([&](auto handler) { async_stop(std::move(id), std::move(handler)); });
}

bool SessionManager::remove_unused(SessionId id) {
  return await_result<bool>(
      [&](auto handler) { async_remove_unused(std::move(id), std::move(handler)); });
}

void SessionManager::destroy(SessionId id) {
  await_result<void>([&](auto handler) { async_destroy(std::move(id), std::move(handler)); });
}

StartedInfo SessionManager::recreate(SessionId id) {
  return await_result<StartedInfo>(
      [&](auto handler) { async_recreate(std::move(id), std::move(handler)); });
}

std::vector<SessionRecord> SessionManager::list(SessionQuery query) {
  return await_result<std::vector<SessionRecord>>(
      [&](auto handler) { async_list(std::move(query), std::move(handler)); });
}

}  // namespace sandforge

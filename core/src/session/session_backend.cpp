#include "session/session_backend.hpp"

#include "sandforge/posix/system.hpp"

namespace sandforge {
namespace {

class SessionBackend;

// One start: claim, note what is about to happen, start, note what came of it. On the lane.
class StartCall final : public Pending, public std::enable_shared_from_this<StartCall> {
 public:
  StartCall(std::shared_ptr<SessionBackend> backend, StartRequest request,
            std::function<void(ProviderSandboxId)> on_identity, Handler<StartResult> done)
      : backend_(std::move(backend)),
        request_(std::move(request)),
        on_identity_(std::move(on_identity)),
        done_(std::move(done)) {}

  void run();
  void cancel() noexcept override;

 private:
  void claimed(Result<SessionRecord> record);
  void start(Result<SessionRecord> noted);
  void clear();
  void send();
  void identified(ProviderSandboxId id);
  void started(Result<StartResult> result);
  void conclude();
  void record_success();
  void abandon(Error error);
  bool names_machine(const SessionRecord& record) const;
  void remove(const Error& error);
  void give_up(const Error& error);
  bool made_nothing(const Error& error) const;
  void fail(Error error);

  std::shared_ptr<SessionBackend> backend_;
  StartRequest request_;
  std::function<void(ProviderSandboxId)> on_identity_;
  Handler<StartResult> done_;
  SessionCore::CancelFlag cancelled_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<SandboxBackend> target_;
  std::shared_ptr<Pending> inner_;
  std::optional<ProviderSandboxId> known_;    // before this start
  bool had_none_ = false;                     // no machine was ever asked for, or none was made
  bool leftovers_ = false;                    // set-up began on this machine, and did not end
  std::optional<ProviderSandboxId> noticed_;  // told by this start
  bool writing_identity_ = false;
  std::optional<Error> identity_error_;
  std::optional<Result<StartResult>> result_;
};

class SessionBackend final : public SandboxBackend,
                             public std::enable_shared_from_this<SessionBackend> {
 public:
  SessionBackend(std::shared_ptr<ProviderBackend> provider, std::shared_ptr<SessionCore> core,
                 CreateRequest request)
      : provider_(std::move(provider)), core_(std::move(core)), request_(std::move(request)) {}

  SessionCore& core() { return *core_; }
  const Lane& lane() const { return request_.lane; }

  // The first object. On the provider's lane.
  Result<void> begin() {
    const auto id = core_->record().sandbox_id;
    auto made = provider_->create(request_for(id));
    if (!made) return std::move(made).error();
    replace(std::move(made).value(), id);
    return {};
  }

  // The provider's object for the machine that the record names: another one where another host has
  // found or made that machine meanwhile. No I/O.
  void with_inner(std::function<void(Result<std::shared_ptr<SandboxBackend>>)> use) {
    const auto id = core_->record().sandbox_id;
    if (inner_id_ == id) return use(inner_);
    provider_->lane().post([self = shared_from_this(), id, use = std::move(use)] {
      auto made = std::make_shared<Result<std::shared_ptr<SandboxBackend>>>(
          self->provider_->create(self->request_for(id)));
      self->lane().post([self, id, use, made] {
        if (!made->ok()) return use(made->error());
        self->replace(std::move(*made).value(), id);
        use(self->inner_);
      });
    });
  }

  // The object in use has become this machine.
  void adopt(const std::optional<ProviderSandboxId>& id) { inner_id_ = id; }

  std::shared_ptr<Pending> start(StartRequest request,
                                 std::function<void(ProviderSandboxId)> on_identity,
                                 Handler<StartResult> done) override {
    auto call = std::make_shared<StartCall>(shared_from_this(), std::move(request),
                                            std::move(on_identity), std::move(done));
    call->run();
    return call;
  }

  void stop(Handler<void> done) override {
    under_claim(
        false, false,
        [](SandboxBackend& inner, Handler<void> next) { inner.stop(std::move(next)); },
        [](SessionRecord& record) { record.status = SessionStatus::stopped; }, std::move(done));
  }

  void destroy(Handler<void> done) override {
    const bool spare = core_->spares_used();
    under_claim(
        !spare, spare,
        [](SandboxBackend& inner, Handler<void> next) { inner.destroy(std::move(next)); },
        no_machine, std::move(done));
  }

  void info(Handler<MachineInfo> done) override {
    ask<MachineInfo>(std::move(done), [](SandboxBackend& inner, Handler<MachineInfo> next) {
      inner.info(std::move(next));
    });
  }

  void instructions(Handler<std::string> done) override {
    ask<std::string>(std::move(done), [](SandboxBackend& inner, Handler<std::string> next) {
      inner.instructions(std::move(next));
    });
  }

  // Of a machine that was started through this object, so that it is the one in use.
  Result<std::shared_ptr<ProcessBackend>> spawn(const Command& command,
                                                std::shared_ptr<ProcessSink> sink) override {
    core_->touch(lane());
    return inner_->spawn(command, std::move(sink));
  }

  ProcessesBackend* processes() noexcept override { return inner_->processes(); }
  FilesBackend* files() noexcept override { return inner_->files(); }
  SnapshotsBackend* snapshots() noexcept override { return inner_->snapshots(); }

 private:
  using Action = std::function<void(SandboxBackend&, Handler<void>)>;
  using Change = std::function<void(SessionRecord&)>;
  using Finish = std::shared_ptr<Handler<void>>;

  CreateRequest request_for(const std::optional<ProviderSandboxId>& id) const {
    auto request = request_;
    auto context =
        std::make_shared<SessionContext>(request.context ? *request.context : SessionContext());
    context->sandbox_id = id;
    request.context = std::move(context);
    return request;
  }

  void replace(std::shared_ptr<SandboxBackend> made, std::optional<ProviderSandboxId> id) {
    previous_ = std::move(inner_);  // what was asked of it may still be under way
    inner_ = std::move(made);
    inner_id_ = std::move(id);
  }

  template <class T, class Question>
  void ask(Handler<T> done, Question question) {
    auto held = std::make_shared<Handler<T>>(std::move(done));
    with_inner([held, question](Result<std::shared_ptr<SandboxBackend>> target) {
      if (!target) return std::move(*held)(std::move(target).error());
      question(**target, std::move(*held));
    });
  }

  static void no_machine(SessionRecord& record) {
    record.status = SessionStatus::created;
    record.setup = SetupState::none;
    record.sandbox_id.reset();
    record.start_key = posix::random_hex(16);
  }

  // spare: nothing is done when somebody else has the session open.
  void under_claim(bool steal, bool spare, Action action, Change change, Handler<void> done) {
    auto self = shared_from_this();
    auto finish = std::make_shared<Handler<void>>(std::move(done));
    core_->acquire(lane(), steal, nullptr,
                   [self, action, change, finish, spare](Result<SessionRecord> record) {
                     // Somebody else removed the record: the machine is still ours to end.
                     if (!record && record.error().code != Status::not_found)
                       return std::move(*finish)(std::move(record).error());
                     const auto& owner = self->core_->services().owner;
                     if (spare && record)
                       if (auto unused = unused_by_others(*record, owner); !unused)
                         return self->end(std::move(unused), finish);
                     self->act(action, change, finish);
                   });
  }

  void act(const Action& action, const Change& change, const Finish& finish) {
    with_inner([self = shared_from_this(), action, change,
                finish](Result<std::shared_ptr<SandboxBackend>> target) {
      if (!target) return self->end(std::move(target).error(), finish);
      const auto keep = *target;
      action(*keep, [self, keep, change, finish](Result<void> acted) {
        self->note(std::move(acted), change, finish);
      });
    });
  }

  void note(Result<void> acted, Change change, const Finish& finish) {
    const bool gone =
        !acted && (acted.error().code == Status::gone || acted.error().code == Status::not_found);
    if (gone) {
      change = no_machine;
    } else if (!acted) {
      change = [](SessionRecord& record) {
        if (!has_no_machine(record)) record.status = SessionStatus::error;
      };
    }
    auto self = shared_from_this();
    core_->update(lane(), std::move(change),
                  [self, finish, acted = std::move(acted)](Result<SessionRecord> noted) {
                    const bool lost = !noted && noted.error().code != Status::not_found;
                    if (!acted) return self->end(acted.error(), finish);
                    self->end(lost ? Result<void>(noted.error()) : Result<void>(), finish);
                  });
  }

  void end(Result<void> result, const Finish& finish) {
    core_->release(lane(), [finish, result = std::move(result)] { std::move (*finish)(result); });
  }

  const std::shared_ptr<ProviderBackend> provider_;
  const std::shared_ptr<SessionCore> core_;
  const CreateRequest request_;
  std::shared_ptr<SandboxBackend> inner_;
  std::shared_ptr<SandboxBackend> previous_;
  std::optional<ProviderSandboxId> inner_id_;
};

void StartCall::run() {
  backend_->core().acquire(backend_->lane(), false, cancelled_,
                           [self = shared_from_this()](Result<SessionRecord> record) {
                             self->claimed(std::move(record));
                           });
}

void StartCall::cancel() noexcept {
  cancelled_->store(true);
  backend_->lane().post([self = shared_from_this()] {
    if (self->inner_) self->inner_->cancel();
  });
}

void StartCall::claimed(Result<SessionRecord> record) {
  if (!record) {
    auto error = std::move(record).error();
    if (error.code == Status::not_found) {
      error.code = Status::gone;
      error.message = "the session was removed by another host";
      error.reason = "session.removed";
    }
    return std::move(done_)(std::move(error));
  }
  if (cancelled_->load()) return fail(Error(Status::cancelled, "the start was cancelled"));
  known_ = record->sandbox_id;
  had_none_ = record->status == SessionStatus::created && !known_;
  leftovers_ = !record->plan.repositories.empty() &&
               (record->setup == SetupState::running || record->setup == SetupState::failed);
  request_.idempotency_key = record->start_key;
  backend_->core().update(
      backend_->lane(), [](SessionRecord& r) { r.status = SessionStatus::starting; },
      [self = shared_from_this()](Result<SessionRecord> noted) { self->start(std::move(noted)); });
}

void StartCall::start(Result<SessionRecord> noted) {
  if (!noted) return fail(std::move(noted).error());
  backend_->with_inner([self = shared_from_this()](Result<std::shared_ptr<SandboxBackend>> target) {
    if (!target) return self->fail(std::move(target).error());
    self->target_ = *std::move(target);
    if (self->leftovers_) return self->clear();
    self->send();
  });
}

// Set-up will give git a credential, and what its commands left running could watch for it.
void StartCall::clear() {
  target_->stop([self = shared_from_this()](Result<void> stopped) {
    const bool absent = !stopped && (stopped.error().code == Status::gone ||
                                     stopped.error().code == Status::not_found);
    if (!stopped && !absent) return self->fail(std::move(stopped).error());
    if (self->cancelled_->load())
      return self->fail(Error(Status::cancelled, "the start was cancelled"));
    self->send();
  });
}

void StartCall::send() {
  auto self = shared_from_this();
  // Also where a machine is known: it may be gone, and then the next one boots the same.
  const auto record = backend_->core().record();
  const auto* document = record.context.find("template");
  if (!request_.template_document && document != nullptr && document->is_string())
    request_.template_document = document->as_string();
  inner_ = target_->start(
      request_, [self](ProviderSandboxId id) { self->identified(std::move(id)); },
      [self](Result<StartResult> result) { self->started(std::move(result)); });
  if (cancelled_->load() && inner_) inner_->cancel();
}

// Written before anything can be lost; start does not answer before it is.
void StartCall::identified(ProviderSandboxId id) {
  noticed_ = id;
  backend_->adopt(id);
  backend_->core().remember(id);
  if (on_identity_) on_identity_(id);
  writing_identity_ = true;
  backend_->core().update(
      backend_->lane(), [id](SessionRecord& r) { r.sandbox_id = id; },
      [self = shared_from_this()](Result<SessionRecord> written) {
        self->writing_identity_ = false;
        if (!written) self->identity_error_ = std::move(written).error();
        self->conclude();
      });
}

void StartCall::started(Result<StartResult> result) {
  inner_.reset();
  result_ = std::move(result);
  conclude();
}

void StartCall::conclude() {
  if (!result_ || writing_identity_) return;
  if (!*result_) return fail(result_->error());
  if ((*result_)->sandbox_id) noticed_ = (*result_)->sandbox_id;
  record_success();
}

void StartCall::record_success() {
  const auto& result = result_->value();
  const auto id = noticed_ ? noticed_ : known_;
  const bool fresh = result.outcome == StartOutcome::created ||
                     (result.outcome == StartOutcome::unknown && id != known_);
  backend_->adopt(id);
  if (id) backend_->core().remember(id);
  backend_->core().update(
      backend_->lane(),
      [id, fresh](SessionRecord& r) {
        r.sandbox_id = id;
        r.status = SessionStatus::running;
        if (fresh || r.generation == 0) {
          ++r.generation;
          r.setup = SetupState::none;
          r.start_key = posix::random_hex(16);  // this one has made its machine
        }
      },
      [self = shared_from_this(), fresh](Result<SessionRecord> written) {
        if (written) return std::move(self->done_)(std::move(*self->result_));
        const auto code = written.error().code;
        const bool ours = fresh && (code == Status::conflict || code == Status::not_found);
        if (ours) return self->abandon(std::move(written).error());
        self->fail(std::move(written).error());
      });
}

// The session was removed or taken over meanwhile. What the other one makes of the machine just
// made is known once that one is done: under the claim nobody changes it.
void StartCall::abandon(Error error) {
  backend_->core().remember(std::nullopt);
  auto self = shared_from_this();
  backend_->core().acquire(
      backend_->lane(), false, cancelled_, [self, error](const Result<SessionRecord>& record) {
        const bool removed = !record && record.error().code == Status::not_found;
        if (!record && !removed) self->backend_->core().warn(record.error());
        if (removed || (record && !self->names_machine(*record))) return self->remove(error);
        self->give_up(error);
      });
}

// Whether the record leads to the machine that this start made: by its id, or by the key with which
// the next start adopts it. Without ids a session has no more than one machine.
bool StartCall::names_machine(const SessionRecord& record) const {
  if (record.start_key == request_.idempotency_key) return true;
  const auto id = noticed_ ? noticed_ : known_;
  return id ? record.sandbox_id == id : record.status == SessionStatus::running;
}

void StartCall::remove(const Error& error) {
  target_->destroy([self = shared_from_this(), error](Result<void> gone) {
    if (!gone) self->backend_->core().warn(gone.error());
    self->give_up(error);
  });
}

void StartCall::give_up(const Error& error) {
  backend_->core().release(backend_->lane(),
                           [self = shared_from_this(), error] { std::move(self->done_)(error); });
}

// Whether this start has certainly made no machine: then the record is what it was before.
bool StartCall::made_nothing(const Error& error) const {
  if (!had_none_ || noticed_ || error.may_have_started) return false;
  switch (error.code) {
    case Status::cancelled:
    case Status::timeout:
    case Status::crashed:
    case Status::transport_lost:
    case Status::internal:
      return false;
    default:
      return !result_ || !*result_;
  }
}

void StartCall::fail(Error error) {
  auto self = shared_from_this();
  const auto status = made_nothing(error) ? SessionStatus::created : SessionStatus::error;
  if (identity_error_ && error.code != identity_error_->code)
    error.details.set("identity", to_json(*identity_error_));
  backend_->core().update(
      backend_->lane(), [status](SessionRecord& r) { r.status = status; },
      [self, error = std::move(error)](Result<SessionRecord> written) {
        if (!written && written.error().code != error.code)
          self->backend_->core().warn(written.error());
        self->give_up(error);
      });
}

class SessionProvider final : public ProviderBackend {
 public:
  SessionProvider(std::shared_ptr<ProviderBackend> provider, std::shared_ptr<SessionCore> core)
      : provider_(std::move(provider)), core_(std::move(core)) {}

  const std::string& name() const noexcept override { return provider_->name(); }
  const Lane& lane() const noexcept override { return provider_->lane(); }
  void describe(Handler<Description> done) override { provider_->describe(std::move(done)); }
  void features(Handler<Features> done) override { provider_->features(std::move(done)); }

  Result<std::shared_ptr<SandboxBackend>> create(CreateRequest request) override {
    auto backend = std::make_shared<SessionBackend>(provider_, core_, std::move(request));
    if (auto begun = backend->begin(); !begun) return std::move(begun).error();
    return std::shared_ptr<SandboxBackend>(std::move(backend));
  }

  // The record names one machine, and that is not a clone's.
  std::shared_ptr<ProviderBackend> for_clone() const override { return provider_; }

 private:
  const std::shared_ptr<ProviderBackend> provider_;
  const std::shared_ptr<SessionCore> core_;
};

}  // namespace

std::shared_ptr<ProviderBackend> make_session_provider(std::shared_ptr<ProviderBackend> provider,
                                                       std::shared_ptr<SessionCore> core) {
  return std::make_shared<SessionProvider>(std::move(provider), std::move(core));
}

}  // namespace sandforge

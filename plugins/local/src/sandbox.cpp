#include "sandbox.hpp"

#include <unistd.h>
#include <utility>
#include <vector>

#include "sandbox_object.hpp"
#include "sandforge/ext/host_log.h"
#include "silent_guest.hpp"

namespace sandforge::local {
namespace {

void warn(sf_host* host, const std::string& text) {
  const auto* log =
      static_cast<const sf_log_service*>(host->vtbl->service(host, as_str(SF_SERVICE_LOG)));
  if (log != nullptr) log->write(host, SF_LOG_WARN, as_str(text), nullptr, 0, sizeof(sf_log_field));
}

// Of the machine, which commands have all to themselves.
std::uint64_t memory_mb() noexcept {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || size <= 0) return SF_NONE;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) >> 20;
}

std::uint64_t cpu_millis() noexcept {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  return cores <= 0 ? SF_NONE : static_cast<std::uint64_t>(cores) * 1000;
}

constexpr int kConnects = 50;                // to guests that were about to end
constexpr std::uint64_t kEndLimitMs = 5000;  // for a guest that has said that it ends
constexpr std::uint64_t kHelloLimitMs = 10'000;
constexpr std::uint64_t kStopLimitMs = 15'000;  // well above the graces and pursuits of a guest

// Work on a pool thread, then an answer on the lane.
struct Blocking {
  std::function<void()> work;
  std::function<void(const Failure*)> done;
};

}  // namespace

SandboxObject::SandboxObject(std::shared_ptr<const ProviderSettings> settings, SessionPlace place,
                             BootNames boot, sf_lane* lane)
    : settings_(std::move(settings)),
      place_(std::move(place)),
      lane_(lane),
      handle_{{&kSandbox}, this},
      boot_(std::move(boot)),
      start_cancelled_(std::make_shared<CancelFlag>(false)) {}

void SandboxObject::run_blocking(std::function<void()> work,
                                 std::function<void(const Failure*)> done) {
  auto box = std::make_unique<Blocking>(Blocking{std::move(work), std::move(done)});
  const sf_completion completion{
      box.get(), [](void* ctx, const sf_error* error) noexcept {
        const std::unique_ptr<Blocking> own(static_cast<Blocking*>(ctx));
        if (error == nullptr) return own->done(nullptr);
        const Failure failure{
            error->code, "local.blocking", std::string(view(error->message)), {}, 0, false};
        own->done(&failure);
      }};
  const auto work_fn = [](void* ctx) noexcept { static_cast<Blocking*>(ctx)->work(); };
  Failure refused;
  const sf_error_sink sink = message_into(refused);
  const sf_status status = settings_->executor->post_blocking(
      settings_->host, lane_.get(), work_fn, box.get(), completion, nullptr, &sink);
  if (status == SF_OK) {
    static_cast<void>(box.release());
    return;
  }
  refused.code = status;
  post(lane_.get(), [done = std::move(box->done), refused] { done(&refused); });
}

sf_op* SandboxObject::after(std::uint64_t delay_ms, std::function<void()> work) {
  auto box = std::make_unique<std::function<void()>>(std::move(work));
  const sf_completion completion{
      box.get(), [](void* ctx, const sf_error* error) noexcept {
        const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(ctx));
        if (error == nullptr) (*own)();
      }};
  sf_op* op = nullptr;
  if (settings_->executor->timer(settings_->host, lane_.get(), delay_ms, completion, &op,
                                 nullptr) != SF_OK)
    return nullptr;
  static_cast<void>(box.release());
  return op;
}

void SandboxObject::with_link(Guest wanted, LinkFn then, int tries) {
  if (link_ && link_->up()) {
    return post(lane_.get(), [self = shared_from_this(), wanted, tries, then = std::move(then)] {
      if (self->link_ && self->link_->up()) return then(nullptr, self->link_, {});
      self->with_link(wanted, then, tries);  // it was lost meanwhile
    });
  }
  connect(
      wanted, [self = shared_from_this(), wanted, tries, then = std::move(then)](
                  const Failure* failure, const std::shared_ptr<GuestLink>& link, LinkFacts facts) {
        // A guest that is about to end still takes connections, and drops them: the next look
        // tells.
        const bool dropped = failure != nullptr && failure->code == SF_TRANSPORT_LOST;
        // What one look has made, the next one finds.
        const LinkFn next = [before = facts, then](const Failure* why,
                                                   const std::shared_ptr<GuestLink>& found,
                                                   LinkFacts more) {
          then(why, found,
               {before.folder_created || more.folder_created,
                before.guest_started || more.guest_started});
        };
        if (dropped && tries < kConnects) return self->with_link(wanted, next, tries + 1);
        // Whoever drops every connection, or answers none, is no guest that could be asked to end.
        const bool useless = dropped || (failure != nullptr && failure->reason == kSilentReason);
        if (!useless || wanted != Guest::to_end || tries > kConnects)
          return then(failure, link, facts);
        self->kill_silent([self, wanted, next](const Failure* refused) {
          if (refused != nullptr) return next(refused, nullptr, {});
          self->with_link(wanted, next, kConnects + 1);
        });
      });
}

void SandboxObject::connect(Guest wanted, LinkFn then) {
  struct Found {
    GuestConnection connection;
    Booted booted;
    std::optional<Failure> failure;
  };
  auto found = std::make_shared<Found>();
  run_blocking(
      [place = place_, wanted, found, names = boot_, cancelled = start_cancelled_] {
        if (wanted == Guest::running)
          found->failure = boot(place, names, *cancelled, found->booted);
        if (found->failure) return;
        found->failure = connect_guest(place, wanted, found->connection);
        if (found->booted.from != BootedFrom::nothing) found->connection.folder_created = true;
      },
      [self = shared_from_this(), found, then = std::move(then)](const Failure* refused) {
        if (refused != nullptr) return then(refused, nullptr, {});
        if (found->booted.from != BootedFrom::nothing) self->booted_ = std::move(found->booted);
        if (found->failure)
          return then(&*found->failure, nullptr,
                      {found->connection.folder_created, found->connection.guest_started});
        self->adopt(std::move(found->connection), then);
      });
}

void SandboxObject::adopt(GuestConnection connection, LinkFn then) {
  const LinkFacts facts{connection.folder_created, connection.guest_started};
  if (!connection.socket) return then(nullptr, nullptr, facts);
  auto link = std::make_shared<GuestLink>(settings_->host, settings_->executor, lane_,
                                          settings_->guest_silence_ms);
  link->when_silent([self = weak_from_this(), weak = std::weak_ptr(link)] {
    const auto silent = weak.lock();
    if (const auto sandbox = self.lock()) return sandbox->end_silent(silent);
    silent->let_go();
  });
  Failure refused;
  const sf_error_sink sink = message_into(refused);
  const auto ready = [self = shared_from_this(), weak = std::weak_ptr(link), facts,
                      then](const Failure* failure) {
    if (failure != nullptr) return then(failure, nullptr, facts);
    self->link_ = weak.lock();
    then(nullptr, self->link_, facts);
  };
  const int fd = connection.socket.get();
  const auto once = limited(kHelloLimitMs, silent_guest(place_), link, ready);
  refused.code = link->open(fd, once, &sink);
  if (refused.code != SF_OK) return once(&refused);
  connection.socket.release();
}

std::shared_ptr<CancelFlag> SandboxObject::start(const sf_start_request& request,
                                                 const sf_start_events& events) {
  start_cancelled_ = std::make_shared<CancelFlag>(false);
  auto env = std::make_shared<guest::EnvSetRequest>();
  const bool given = (request.flags & SF_START_ENV_GIVEN) != 0 || settings_->env.has_value();
  const HostEnvironment host(settings_->host);
  Environment base = given ? path_only(host) : default_environment(host);
  if (settings_->env)
    for (const auto& [name, value] : *settings_->env)
      base.insert_or_assign(name, value);
  for (std::size_t i = 0; i < request.env_count; ++i) {
    const auto& entry = request.env[i];
    const std::string name(view(entry.name));
    if (entry.value.ptr == nullptr) {
      base.erase(name);
    } else {
      base.insert_or_assign(name, std::string(view(entry.value)));
    }
  }
  env->replace_all = true;
  for (auto& [name, value] : base)
    env->entries.emplace_back(name, value);
  // For a guest that runs already: it keeps what it was given before, but for these.
  auto more = std::make_shared<guest::EnvSetRequest>();
  for (std::size_t i = 0; i < request.env_count; ++i) {
    const auto& entry = request.env[i];
    std::optional<std::string> value;
    if (entry.value.ptr != nullptr) value = std::string(view(entry.value));
    more->entries.emplace_back(std::string(view(entry.name)), std::move(value));
  }

  with_link(Guest::running, [self = shared_from_this(), env, more, given, events](
                                const Failure* failure, const std::shared_ptr<GuestLink>& link,
                                LinkFacts facts) {
    // What is there now must be found again, whatever becomes of this start.
    if (failure == nullptr || facts.folder_created || facts.guest_started)
      events.on_identity(events.ctx, as_str(self->place_.folder()));
    if (failure != nullptr)
      return with_error(*failure,
                        [&](const sf_error* error) { events.done(events.ctx, error, nullptr); });
    const auto failed = [events](const Failure& problem) {
      with_error(problem, [&](const sf_error* error) { events.done(events.ctx, error, nullptr); });
    };
    const auto answered = [self, events, facts, link, failed](const Failure* refused) {
      if (refused != nullptr) return failed(*refused);
      if (facts.guest_started) return self->started(events, facts, {});
      link->request([](guest::GuestClient& client) { return client.env_get(); },
                    std::make_shared<NamesListener>(
                        [self, events, facts](const std::vector<std::string>& names) {
                          self->started(events, facts, names);
                        },
                        failed));
    };
    const auto bring_environment = [self, env, more, given, facts, link,
                                    answered](const Failure* refused) {
      const auto& brought = facts.guest_started || given ? env : more;
      if (refused != nullptr || (brought == more && more->entries.empty()))
        return answered(refused);
      link->request([&](guest::GuestClient& client) { return client.env_set(*brought); },
                    std::make_shared<ReplyListener>(answered));
    };
    // The folder was removed behind the guest's back: what it runs belongs to a machine that is
    // gone.
    const bool outlived = facts.folder_created && !facts.guest_started;
    if (!outlived) return bring_environment(nullptr);
    link->request(
        [](guest::GuestClient& client) { return client.stop_all(guest::StopAllRequest()); },
        std::make_shared<ReplyListener>(bring_environment));
  });
  return start_cancelled_;
}

void SandboxObject::started(const sf_start_events& events, LinkFacts facts,
                            const std::vector<std::string>& names) {
  const std::string id = place_.folder();
  const std::string folder = place_.commands_folder();
  sf_start_result result{};
  result.struct_size = sizeof result;
  const Booted booted = std::exchange(booted_, Booted());
  const bool restored = booted.from != BootedFrom::nothing;
  // A checkpoint that was asked for counts once.
  if (restored) boot_.wanted.reset();
  result.outcome = facts.folder_created || restored ? SF_OUTCOME_CREATED : SF_OUTCOME_CONNECTED;
  result.provenance = booted.from == BootedFrom::seed ? SF_PROVENANCE_SEED
                      : restored                      ? SF_PROVENANCE_CHECKPOINT
                                                      : SF_PROVENANCE_NONE;
  result.sandbox_id = as_str(id);
  result.working_directory = as_str(folder);
  result.template_retry_after_ms = SF_NONE;
  json::Array list;
  for (const auto& name : names)
    list.emplace_back(name);
  json::Array warnings;
  for (const auto& warning : booted.warnings)
    warnings.emplace_back(warning);
  const std::string warning_texts = json::write(json::Value(std::move(warnings)));
  result.warnings = as_str(warning_texts);
  const std::string env_names = json::write(json::Value(std::move(list)));
  result.env_names = as_str(env_names);
  events.done(events.ctx, nullptr, &result);
}

std::function<void(const Failure*)> SandboxObject::limited(
    std::uint64_t limit_ms, Failure late, const std::shared_ptr<GuestLink>& link,
    std::function<void(const Failure*)> done) {
  struct Waiting {
    std::function<void(const Failure*)> done;
    sf_op* limit = nullptr;
  };
  auto waiting = std::make_shared<Waiting>(Waiting{std::move(done), nullptr});
  const auto finish = [waiting](const Failure* failure) {
    if (sf_op* limit = std::exchange(waiting->limit, nullptr)) {
      limit->vtbl->cancel(limit);
      limit->vtbl->release(limit);
    }
    if (const auto tell = std::exchange(waiting->done, nullptr)) tell(failure);
  };
  waiting->limit = after(limit_ms, [link, finish, late = std::move(late)] {
    finish(&late);
    link->close();
  });
  return finish;
}

void SandboxObject::kill_silent(std::function<void(const Failure*)> next) {
  auto result = std::make_shared<std::optional<Failure>>();
  run_blocking([place = place_, result] { *result = kill_silent_guest(place); },
               [result, next = std::move(next)](const Failure* refused) {
                 if (refused == nullptr && *result) refused = &**result;
                 next(refused);
               });
}

// Its tree, too, before anybody is told that the guest is lost: who asks next starts a new one.
void SandboxObject::end_silent(const std::shared_ptr<GuestLink>& link) {
  auto failure = std::make_shared<std::optional<Failure>>();
  run_blocking([place = place_, failure] { *failure = end_silent_guest(place); },
               [host = settings_->host, link, failure](const Failure* refused) {
                 if (refused == nullptr && *failure) refused = &**failure;
                 if (refused != nullptr)
                   warn(host, "a guest that does not answer was not ended: " + refused->message);
                 link->let_go();
               });
}

// Ends the guest and all that it runs; a session without a guest is stopped already. Done when the
// guest has ended: until then it might take the connection of a start that follows.
void SandboxObject::end_guest(std::function<void(const Failure*)> done, bool may_kill) {
  with_link(Guest::to_end,
            [self = shared_from_this(), done = std::move(done), may_kill](
                const Failure* failure, const std::shared_ptr<GuestLink>& link, LinkFacts) {
              if (failure != nullptr || link == nullptr) return done(failure);
              const auto answered = [self, link, done, may_kill](const Failure* refused) {
                self->link_.reset();
                // A lost connection says the same as an answer.
                if (refused == nullptr || refused->code == SF_TRANSPORT_LOST)
                  return self->when_gone(link, done);
                if (refused->reason != kSilentReason || !may_kill) return done(refused);
                self->kill_silent([self, done](const Failure* stays) {
                  if (stays != nullptr) return done(stays);
                  self->end_guest(done, false);
                });
              };
              guest::StopAllRequest request;
              request.exit = true;
              link->request([&](guest::GuestClient& client) { return client.stop_all(request); },
                            std::make_shared<ReplyListener>(self->limited(
                                kStopLimitMs, silent_guest(self->place_), link, answered)));
            });
}

void SandboxObject::when_gone(const std::shared_ptr<GuestLink>& link,
                              std::function<void(const Failure*)> done) {
  const auto finish = limited(
      kEndLimitMs,
      Failure{SF_TIMEOUT, "local.guest_stays", "the session's guest does not end", {}, 0, false},
      link, std::move(done));
  link->when_ended([finish] { finish(nullptr); });
}

void SandboxObject::stop(sf_completion done) {
  end_guest([done](const Failure* failure) { complete(done, failure); });
}

void SandboxObject::destroy(sf_completion done) {
  booted_ = Booted();  // of a start that failed: the next one boots anew
  end_guest([self = shared_from_this(), done](const Failure* failure) {
    if (failure != nullptr) return complete(done, failure);
    auto result = std::make_shared<std::optional<Failure>>();
    self->run_blocking([place = self->place_, result] { *result = remove_guest(place); },
                       [result, done](const Failure* refused) {
                         if (refused == nullptr && *result) refused = &**result;
                         complete(done, refused);
                       });
  });
}

void SandboxObject::info(sf_info_completion done) {
  with_link(Guest::if_running,
            [self = shared_from_this(), done](const Failure* failure,
                                              const std::shared_ptr<GuestLink>& link, LinkFacts) {
              if (failure != nullptr)
                return with_error(
                    *failure, [&](const sf_error* error) { done.done(done.ctx, error, nullptr); });
              json::Object metadata;
              metadata.set("workingDirectory", self->place_.commands_folder());
              metadata.set("platform", "linux");
              metadata.set("isolation", "none");
              metadata.set("boundary", "none: commands run as the host's user");
              const std::string text = json::write(metadata);
              sf_sandbox_info out{};
              out.struct_size = sizeof out;
              out.state = link != nullptr               ? SF_STATE_RUNNING
                          : folder_exists(self->place_) ? SF_STATE_STOPPED
                                                        : SF_STATE_ABSENT;
              out.memory_used_mb = out.disk_mb = out.disk_used_mb = SF_NONE;
              out.memory_mb = memory_mb();
              out.cpu_millis = cpu_millis();
              out.metadata = as_str(text);
              done.done(done.ctx, nullptr, &out);
            });
}

void SandboxObject::instructions(sf_text_completion done) {
  const std::string folder = place_.commands_folder();
  post(lane_.get(), [done, text = "Local command execution. Working directory: \"" + folder +
                                  "\"."] { done.done(done.ctx, nullptr, as_str(text)); });
}

// Without its folder a session must not look like one that was stopped.
std::optional<Failure> SandboxObject::unable() const {
  if (link_ && !folder_exists(place_)) return folder_gone();
  if (!link_ || !link_->up()) return guest_stopped();
  return std::nullopt;
}

void SandboxObject::with_guest(GuestFn then) {
  with_link(Guest::if_running,
            [then = std::move(then)](const Failure* failure, const std::shared_ptr<GuestLink>& link,
                                     LinkFacts) { then(failure, link); });
}

std::function<bool()> SandboxObject::missing_root() const {
  return [place = place_] { return !folder_exists(place); };
}

sf_sandbox* make_sandbox(std::shared_ptr<const ProviderSettings> settings, SessionPlace place,
                         BootNames boot, sf_lane* lane) {
  return std::make_shared<SandboxObject>(std::move(settings), std::move(place), std::move(boot),
                                         lane)
      ->handle();
}

}  // namespace sandforge::local

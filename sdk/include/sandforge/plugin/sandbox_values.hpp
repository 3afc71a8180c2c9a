// What goes into the life cycle of a sandbox and what comes out of it.
#pragma once

#include "object.hpp"

namespace sandforge::plugin {

enum class Outcome : std::uint32_t {
  unknown = SF_OUTCOME_UNKNOWN,
  created = SF_OUTCOME_CREATED,     // a fresh machine, also one restored from a checkpoint
  connected = SF_OUTCOME_CONNECTED  // the same machine as before
};

enum class Provenance : std::uint32_t {
  none = SF_PROVENANCE_NONE,
  exact = SF_PROVENANCE_EXACT,
  family = SF_PROVENANCE_FAMILY,
  base = SF_PROVENANCE_BASE,
  checkpoint = SF_PROVENANCE_CHECKPOINT,
  seed = SF_PROVENANCE_SEED
};

// How a start went.
class Started {
 public:
  Started() {}
  Started(Outcome how, std::optional<std::string> id, std::string folder = {})
      : outcome(how), sandbox_id(std::move(id)), working_directory(std::move(folder)) {}

  Outcome outcome = Outcome::unknown;
  Provenance provenance = Provenance::none;
  std::optional<std::string> sandbox_id;  // the provider's own id; absent: it has none
  std::string working_directory;
  std::optional<std::string> template_pending_id;  // while the exact template is still being built
  std::optional<std::chrono::milliseconds> template_retry_after;
  std::vector<std::string> warnings;  // without credentials
  std::vector<std::string>
      env_names;  // variables that a machine which ran before has; may be empty
};

// A start: what the host wants, and how to tell it the id early. Valid until start has ended.
class Starting {
 public:
  Starting(Lane lane, const sf_start_request& raw, const sf_start_events& events)
      : lane_(std::move(lane)), events_(detail::read_appendable(&events)) {
    const auto r = detail::read_appendable(&raw);
    for (std::size_t i = 0; i < r.env_count; ++i) {
      env_.emplace_back(copy(r.env[i].name), copy_optional(r.env[i].value));
    }
    env_given_ = (r.flags & SF_START_ENV_GIVEN) != 0;
    template_document_ = copy_optional(r.template_document);
    idempotency_key_ = copy(r.idempotency_key);
    timeout_ = std::chrono::milliseconds(static_cast<std::int64_t>(r.timeout_ms));
  }

  const std::vector<EnvEntry>& env() const noexcept { return env_; }
  // env replaces the provider's own default environment.
  bool env_given() const noexcept { return env_given_; }
  const std::optional<std::string>& template_document() const noexcept {
    return template_document_;
  }
  // The same for every try of one start: adopt what an interrupted try left.
  const std::string& idempotency_key() const noexcept { return idempotency_key_; }
  std::chrono::milliseconds timeout() const noexcept { return timeout_; }  // 0: none
  const StopToken& stop() const noexcept { return stop_; }

  // The provider's id, as soon as the machine exists. Only the first call counts.
  void identify(std::string_view sandbox_id) {
    if (identified_.exchange(true)) return;
    if (lane_.is_current()) return events_.on_identity(events_.ctx, to_str(sandbox_id));
    lane_.post([events = events_, id = std::string(sandbox_id)] {
      events.on_identity(events.ctx, to_str(id));
    });
  }

  // For the layer.
  void bind(StopToken stop) { stop_ = std::move(stop); }
  void end(const sf_error* error, const Started* started) const {
    if (error != nullptr) return events_.done(events_.ctx, error, nullptr);
    const std::string warnings = detail::string_array(started->warnings);
    const std::string env_names = detail::string_array(started->env_names);
    const auto& retry = started->template_retry_after;
    const sf_start_result raw{sizeof raw,
                              static_cast<std::uint32_t>(started->outcome),
                              static_cast<std::uint32_t>(started->provenance),
                              maybe_str(started->sandbox_id),
                              to_str(started->working_directory),
                              maybe_str(started->template_pending_id),
                              retry ? static_cast<std::uint64_t>(retry->count()) : SF_NONE,
                              to_str(warnings),
                              to_str(env_names)};
    events_.done(events_.ctx, nullptr, &raw);
  }

 private:
  const Lane lane_;
  const sf_start_events events_;
  StopToken stop_;
  std::vector<EnvEntry> env_;
  bool env_given_ = false;
  std::optional<std::string> template_document_;
  std::string idempotency_key_;
  std::chrono::milliseconds timeout_{0};
  std::atomic<bool> identified_{false};
};

enum class State : std::uint32_t {
  unknown = SF_STATE_UNKNOWN,
  absent = SF_STATE_ABSENT,  // never started, or gone
  running = SF_STATE_RUNNING,
  stopped = SF_STATE_STOPPED
};

// What the provider knows about the sandbox now. Absent: not known.
class SandboxInfo {
 public:
  SandboxInfo() {}
  explicit SandboxInfo(State now) : state(now) {}

  using Number = std::optional<std::uint64_t>;
  State state = State::unknown;
  std::optional<std::string> sandbox_id;
  std::int64_t created_at = 0;  // nanoseconds since the Unix epoch; 0: not known
  std::int64_t timeout_at = 0;
  Number memory_mb;
  Number memory_used_mb;
  Number disk_mb;
  Number disk_used_mb;
  Number cpu_millis;      // thousandths of a core
  json::Object metadata;  // providerResourceId, platformStatus and the provider's own keys

  // For the layer.
  void tell(const sf_info_completion& done) const {
    const std::string keys = metadata.empty() ? "" : json::write(json::Value(metadata));
    const sf_sandbox_info raw{sizeof raw,
                              static_cast<std::uint32_t>(state),
                              0,
                              maybe_str(sandbox_id),
                              created_at,
                              timeout_at,
                              memory_mb.value_or(SF_NONE),
                              memory_used_mb.value_or(SF_NONE),
                              disk_mb.value_or(SF_NONE),
                              disk_used_mb.value_or(SF_NONE),
                              cpu_millis.value_or(SF_NONE),
                              to_str(keys)};
    done.done(done.ctx, nullptr, &raw);
  }
};

}  // namespace sandforge::plugin

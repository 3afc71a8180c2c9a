// What a plugin may ask of its host: log, environment, clock, folders, timers, state, secrets.
// Commands of the host: Spawn::delegate (process.hpp), or HostProcess (host_stream.hpp).
#pragma once

#include <initializer_list>
#include <vector>

#include "async.hpp"

namespace sandforge::plugin {

// A field of a log record. Secret values are masked by the host, also inside the message.
struct LogField {
  LogField(std::string_view field, std::string_view text) : name(field), value(text) {}
  static LogField secret(std::string_view field, std::string_view text) {
    LogField f(field, text);
    f.is_secret = true;
    return f;
  }
  std::string_view name;
  std::string_view value;
  bool is_secret = false;
};

// The structured log of the host. Without the service it goes nowhere. Thread-safe.
class Log {
 public:
  using Fields = std::initializer_list<LogField>;
  static void debug(std::string_view message, Fields fields = {}) {
    write(SF_LOG_DEBUG, message, fields);
  }
  static void info(std::string_view message, Fields fields = {}) {
    write(SF_LOG_INFO, message, fields);
  }
  static void warn(std::string_view message, Fields fields = {}) {
    write(SF_LOG_WARN, message, fields);
  }
  static void error(std::string_view message, Fields fields = {}) {
    write(SF_LOG_ERROR, message, fields);
  }
  // False when the host would drop it: for messages that cost something to build.
  static bool keeps(std::uint32_t level) noexcept {
    const auto& s = detail::services();
    return s.log != nullptr && level >= s.log->level(s.host);
  }

 private:
  static void write(std::uint32_t level, std::string_view message, Fields fields) {
    if (!keeps(level)) return;
    std::vector<sf_log_field> raw;
    raw.reserve(fields.size());
    for (const LogField& f : fields) {
      raw.push_back({sizeof(sf_log_field), to_str(f.name), to_str(f.value),
                     f.is_secret ? SF_FIELD_SECRET : 0, 0});
    }
    const auto& s = detail::services();
    s.log->write(s.host, level, to_str(message), raw.data(), raw.size(), sizeof(sf_log_field));
  }
};

/*
 * The host. Every function may be called on any thread. What has no Async answers at once; a
 * service that the host does not offer throws Code::unsupported.
 */
class Host {
 public:
  Log log() const noexcept { return {}; }

  // An environment variable that the manifest names; absent when it is not set. Code::forbidden
  // when the manifest does not name it.
  std::optional<std::string> env(std::string_view name) const {
    const auto& s = detail::services();
    std::string value;
    const sf_text_sink sink{&value, [](void* ctx, sf_str piece) noexcept {
                              static_cast<std::string*>(ctx)->append(view(piece));
                            }};
    const sf_status status = detail::need(s.env, SF_SERVICE_ENV).get(s.host, to_str(name), &sink);
    if (status == SF_NOT_FOUND) return std::nullopt;
    if (status == SF_OK) return value;
    throw Error(status == SF_FORBIDDEN ? Code::forbidden : Code::internal,
                "the manifest does not name the variable " + std::string(name));
  }

  // Nanoseconds since the Unix epoch.
  std::int64_t now() const {
    const auto& s = detail::services();
    return detail::need(s.clock, SF_SERVICE_CLOCK).now(s.host);
  }
  // Never goes back.
  std::chrono::nanoseconds monotonic() const {
    const auto& s = detail::services();
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(detail::need(s.clock, SF_SERVICE_CLOCK).monotonic(s.host)));
  }

  // A folder of kind SF_PATH_*; absent when the host gives none.
  std::optional<std::string> folder(std::uint32_t kind) const {
    const auto& s = detail::services();
    return copy_optional(detail::need(s.paths, SF_SERVICE_PATHS).get(s.host, kind));
  }

  // Ends after the time, on the lane.
  Async<void> sleep(const Lane& lane, std::chrono::milliseconds time) const {
    const auto& table = detail::need(detail::services().executor, SF_SERVICE_EXECUTOR);
    const auto ms = static_cast<std::uint64_t>(time.count() < 0 ? 0 : time.count());
    return {lane, [&table, lane, ms](auto* pending, sf_op** op, const sf_error_sink* err) {
              return table.timer(detail::services().host, lane.get(), ms, detail::complete(pending),
                                 op, err);
            }};
  }

  // A durable value of this plugin: of the session of scope, or of all when scope is null.
  Async<std::optional<std::string>> state(const Lane& lane, sf_context* scope,
                                          std::string key) const {
    const auto& table = detail::need(detail::services().state, SF_SERVICE_STATE);
    return {lane, [&table, lane, scope, key](auto* pending, sf_op** op, const sf_error_sink* err) {
              const sf_state_value_completion done{
                  pending, [](void* ctx, const sf_error* error, sf_bytes value) noexcept {
                    auto& p = *static_cast<detail::Pending<std::optional<std::string>>*>(ctx);
                    if (error != nullptr) return p.fail(*error);
                    p.succeed_with([&] { return copy_optional(value); });
                  }};
              return table.get(detail::services().host, lane.get(), scope, to_str(key), done, op,
                               err);
            }};
  }

  // Durable once it has ended; an absent value removes the key.
  Async<void> set_state(const Lane& lane, sf_context* scope, std::string key,
                        std::optional<std::string> value) const {
    const auto& table = detail::need(detail::services().state, SF_SERVICE_STATE);
    return {lane, [&table, lane, scope, key = std::move(key), value = std::move(value)](
                      auto* pending, sf_op** op, const sf_error_sink* err) {
              return table.set(detail::services().host, lane.get(), scope, to_str(key),
                               maybe_bytes(value), detail::complete(pending), op, err);
            }};
  }

  // A secret of the configuration. Code::not_found when there is none of that name.
  Async<std::string> secret(const Lane& lane, sf_context* scope, std::string name) const {
    const auto& table = detail::need(detail::services().secrets, SF_SERVICE_SECRETS);
    return {lane, [&table, lane, scope, name](auto* pending, sf_op** op, const sf_error_sink* err) {
              const sf_text_completion done{
                  pending, [](void* ctx, const sf_error* error, sf_str value) noexcept {
                    auto& p = *static_cast<detail::Pending<std::string>*>(ctx);
                    if (error != nullptr) return p.fail(*error);
                    p.succeed_with([&] { return copy(value); });
                  }};
              return table.get(detail::services().host, lane.get(), scope, to_str(name), done, op,
                               err);
            }};
  }
};

}  // namespace sandforge::plugin

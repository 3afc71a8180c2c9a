/*
 * A host for tests of plugins: every service is a fake that the test can look into, and the test
 * turns the loop by hand. Nothing of it is tied to a framework for tests.
 *
 *   testing::Host host;
 *   host.env["TOKEN"] = "x";
 *   host.http.expect("GET", "/v1/boxes").answer(200, "[]");
 *   … host.loop.run_until([&] { return finished; });
 *   host.loop.advance(std::chrono::minutes(5));
 *
 * A test that drives a provider begins with session.hpp.
 */
#pragma once

#include <sandforge/ext/host_clock.h>
#include <sandforge/ext/host_env.h>
#include <sandforge/ext/host_log.h>
#include <sandforge/ext/host_paths.h>
#include <sandforge/ext/host_secrets.h>
#include <sandforge/ext/host_state.h>

#include <set>

#include "executor.hpp"
#include "http.hpp"
#include "process.hpp"

namespace sandforge::testing {

// The value of a secret field reads "***", and so does it wherever it stands in the record.
struct LogField {
  std::string name;
  std::string value;
  bool secret = false;

  bool operator==(const LogField& other) const {
    return name == other.name && value == other.value && secret == other.secret;
  }
};
struct LogRecord {
  std::uint32_t level;  // SF_LOG_*
  std::string message;
  std::vector<LogField> fields;
};

/*
 * The members are filled by the test before the plugin runs, or from tasks of the loop. It must
 * outlive everything of the plugin, and its end waits for blocking work.
 */
class Host : public sf_host {
 public:
  Loop loop;
  Executor executor{loop};
  HttpService http;
  ProcessService process;
  std::map<std::string, std::string> env;
  std::set<std::string> forbidden_env;  // what the manifest would have to name
  std::map<std::string, std::string> secrets;
  std::map<std::string, std::string> state;    // by "SESSION/KEY"; of all sessions: "/KEY"
  std::map<std::uint32_t, std::string> paths;  // by SF_PATH_*
  std::set<std::string> absent;                // ids of services that this host does not have

  Host() {
    static constexpr sf_host_vtbl functions = {
        sizeof(sf_host_vtbl), SF_ABI_MAJOR, SF_ABI_MINOR,
        [](sf_host* h, sf_str id) noexcept -> const void* { return of(h).service(text(id)); }};
    vtbl = &functions;
    fill_work();
    fill_stored();
    fill_plain();
  }
  ~Host() {
    executor.release();
    join();
    loop.drain();
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // The time that the plugin reads. Moved by loop.advance.
  std::int64_t now() const { return loop.now(); }

  std::vector<LogRecord> log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  // Whether a message or a field of the log has this text. What is masked has not.
  bool logged(std::string_view what) const {
    const auto has = [&](const std::string& in) { return in.find(what) != std::string::npos; };
    for (const LogRecord& record : log()) {
      if (has(record.message)) return true;
      for (const LogField& field : record.fields)
        if (has(field.value)) return true;
    }
    return false;
  }

  // Waits for the threads of blocking work and of commands.
  void join() {
    for (;;) {
      std::vector<std::thread> running;
      executor.take_threads(running);
      process.take_threads(running);
      if (running.empty()) return;
      for (auto& thread : running)
        thread.join();
    }
  }

 private:
  static Host& of(sf_host* host) { return *static_cast<Host*>(host); }

  const void* service(const std::string& id) const {
    if (absent.count(id) > 0) return nullptr;
    const auto found = services_.find(id);
    return found == services_.end() ? nullptr : found->second;
  }

  void fill_work() {
    executor_.struct_size = sizeof executor_;
    executor_.lane_create = [](sf_host* h, sf_lane** lane, const sf_error_sink*) noexcept {
      return of(h).executor.lane_create(lane);
    };
    executor_.timer = [](sf_host* h, sf_lane* lane, std::uint64_t ms, sf_completion done,
                         sf_op** op, const sf_error_sink*) noexcept {
      return of(h).executor.timer(Lane::of(lane), ms, done, op);
    };
    executor_.post_blocking = [](sf_host* h, sf_lane* lane, void (*work)(void*) noexcept, void* ctx,
                                 sf_completion done, sf_op** op, const sf_error_sink*) noexcept {
      return of(h).executor.post_blocking(Lane::of(lane), work, ctx, done, op);
    };
    executor_.adopt_descriptor = [](sf_host* h, sf_lane* lane, std::int32_t descriptor,
                                    std::uint64_t window, const sf_stream_events* events,
                                    sf_stream** stream, const sf_error_sink*) noexcept {
      return of(h).executor.adopt(Lane::of(lane), descriptor, window, *events, stream);
    };
    services_[SF_SERVICE_EXECUTOR] = &executor_;
    process.spawn = [](sf_host* h, sf_lane* lane, const sf_command* command,
                       const sf_stream_events* io, const sf_process_events* events,
                       sf_process** out, const sf_error_sink* err) noexcept {
      return of(h).process.start(Lane::of(lane), *command, *io, *events, out, err);
    };
    process.open_group = [](sf_host* h, sf_str group, const sf_error_sink*) noexcept {
      of(h).process.open(text(group));
      return SF_OK;
    };
    process.spawn_in = [](sf_host* h, sf_lane* lane, sf_str group, const sf_command* command,
                          const sf_stream_events* io, const sf_process_events* events,
                          sf_process** out, const sf_error_sink* err) noexcept {
      const std::string name = text(group);
      return of(h).process.start(Lane::of(lane), *command, *io, *events, out, err, &name);
    };
    process.end_group = [](sf_host* h, sf_lane* lane, sf_str group, std::uint64_t,
                           sf_completion done, sf_op** op, const sf_error_sink*) noexcept {
      Op::give(op, nullptr);
      of(h).process.end(Lane::of(lane), text(group), done);
      return SF_OK;
    };
    services_[SF_SERVICE_PROCESS] = static_cast<sf_process_service*>(&process);
    http.client_create = [](sf_host* h, sf_lane* lane, const sf_http_client_options* options,
                            sf_http_client** client, const sf_error_sink*) noexcept {
      *client = of(h).http.create(Lane::of(lane), *options);
      return SF_OK;
    };
    services_[SF_SERVICE_HTTP] = static_cast<sf_http_service*>(&http);
  }

  void fill_stored() {
    state_.struct_size = sizeof state_;
    state_.get = [](sf_host* h, sf_lane* lane, sf_context* scope, sf_str key,
                    sf_state_value_completion done, sf_op** op, const sf_error_sink*) noexcept {
      const std::lock_guard lock(of(h).mutex_);
      const auto found = of(h).state.find(state_key(scope, key));
      const bool known = found != of(h).state.end();
      Op::give(op, nullptr);
      Lane::of(lane).post([done, known, value = known ? found->second : std::string()] {
        done.done(done.ctx, nullptr, known ? bytes(value) : sf_bytes{nullptr, 0});
      });
      return SF_OK;
    };
    state_.set = [](sf_host* h, sf_lane* lane, sf_context* scope, sf_str key, sf_bytes value,
                    sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
      if (value.len > SF_STATE_VALUE_MAX) return refuse(err, SF_INVALID, "the value is too long");
      const std::lock_guard lock(of(h).mutex_);
      if (value.ptr == nullptr) {
        of(h).state.erase(state_key(scope, key));
      } else {
        of(h).state[state_key(scope, key)] = text(value);
      }
      Op::give(op, nullptr);
      Lane::of(lane).complete(done);
      return sf_status{SF_OK};
    };
    services_[SF_SERVICE_STATE] = &state_;
    secrets_.struct_size = sizeof secrets_;
    secrets_.get = [](sf_host* h, sf_lane* lane, sf_context*, sf_str name, sf_text_completion done,
                      sf_op** op, const sf_error_sink*) noexcept {
      const auto found = of(h).secrets.find(text(name));
      const bool known = found != of(h).secrets.end();
      Op::give(op, nullptr);
      Lane::of(lane).post([done, known, value = known ? found->second : std::string()] {
        const Failure failure(SF_NOT_FOUND, "no such secret");
        const sf_error error = failure.view();
        done.done(done.ctx, known ? nullptr : &error, str(value));
      });
      return SF_OK;
    };
    services_[SF_SERVICE_SECRETS] = &secrets_;
  }

  void fill_plain() {
    log_service_.struct_size = sizeof log_service_;
    log_service_.write = [](sf_host* h, std::uint32_t level, sf_str message,
                            const sf_log_field* first, std::size_t count,
                            std::size_t stride) noexcept {
      LogRecord record = masked(level, text(message), first, count, stride);
      const std::lock_guard lock(of(h).mutex_);
      of(h).log_.push_back(std::move(record));
    };
    log_service_.level = [](sf_host*) noexcept -> std::uint32_t { return SF_LOG_DEBUG; };
    services_[SF_SERVICE_LOG] = &log_service_;
    env_service_.struct_size = sizeof env_service_;
    env_service_.get = [](sf_host* h, sf_str name, const sf_text_sink* value) noexcept {
      if (of(h).forbidden_env.count(text(name)) > 0) return SF_FORBIDDEN;
      const auto found = of(h).env.find(text(name));
      if (found == of(h).env.end()) return SF_NOT_FOUND;
      const std::string_view whole = found->second;  // in two pieces, as a host may send it
      value->append(value->ctx, str(whole.substr(0, whole.size() / 2)));
      value->append(value->ctx, str(whole.substr(whole.size() / 2)));
      return SF_OK;
    };
    services_[SF_SERVICE_ENV] = &env_service_;
    clock_.struct_size = sizeof clock_;
    clock_.now = [](sf_host* h) noexcept -> std::int64_t { return of(h).loop.now(); };
    clock_.monotonic = [](sf_host* h) noexcept {
      return static_cast<std::uint64_t>(of(h).loop.since_start().count());
    };
    services_[SF_SERVICE_CLOCK] = &clock_;
    paths_service_.struct_size = sizeof paths_service_;
    paths_service_.get = [](sf_host* h, std::uint32_t kind) noexcept {
      const auto found = of(h).paths.find(kind);
      return found == of(h).paths.end() ? sf_bytes{nullptr, 0} : bytes(found->second);
    };
    services_[SF_SERVICE_PATHS] = &paths_service_;
  }

  static std::string state_key(sf_context* scope, sf_str key) {
    const std::string session =
        scope == nullptr ? "" : text(scope->vtbl->fields(scope)->session_id);
    return session + "/" + text(key);
  }

  static LogRecord masked(std::uint32_t level, std::string message, const sf_log_field* first,
                          std::size_t count, std::size_t stride) {
    LogRecord record{level, std::move(message), {}};
    std::vector<std::string> hidden;
    for (std::size_t i = 0; i < count; ++i) {
      const auto raw = plugin::detail::read_element(first, stride, i);
      const bool secret = (raw.flags & SF_FIELD_SECRET) != 0;
      record.fields.push_back({text(raw.name), secret ? "***" : text(raw.value), secret});
      if (secret && raw.value.len > 0) hidden.push_back(text(raw.value));
    }
    for (const std::string& value : hidden) {
      mask(record.message, value);
      for (LogField& field : record.fields)
        if (!field.secret) mask(field.value, value);
    }
    return record;
  }
  static void mask(std::string& in, const std::string& value) {
    for (auto at = in.find(value); at != std::string::npos; at = in.find(value, at + 3))
      in.replace(at, value.size(), "***");
  }

  std::map<std::string, const void*> services_;
  sf_executor_service executor_{};
  sf_state_service state_{};
  sf_secrets_service secrets_{};
  sf_log_service log_service_{};
  sf_env_service env_service_{};
  sf_clock_service clock_{};
  sf_paths_service paths_service_{};
  mutable std::mutex mutex_;
  std::vector<LogRecord> log_;
};

// What plugins were given and have not released, such as "2 lanes, 1 process"; empty: nothing. Over
// all hosts of the program.
inline std::string left_over() {
  std::string text;
  const auto add = [&](int count, const char* one, const char* many) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + (count == 1 ? one : many);
  };
  add(Lane::live, "lane", "lanes");
  add(Op::live, "operation", "operations");
  add(Stream::live, "stream", "streams");
  add(Process::live, "process", "processes");
  add(HttpService::live_clients, "http client", "http clients");
  return text;
}

}  // namespace sandforge::testing

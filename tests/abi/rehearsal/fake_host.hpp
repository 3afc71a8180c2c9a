// A host for tests of plugins: every service is a fake that the test can look into. Nothing of it
// is tied to a framework; the test turns the loop by hand.
//
//   fake::Host host;
//   host.env["TOKEN"] = "x";
//   host.http.handler = [](const auto& exchange) { exchange->answer(200, "{}"); };
//   … host.loop.run_until([&] { return finished; });
#pragma once

#include <sandforge/ext/host_clock.h>
#include <sandforge/ext/host_env.h>
#include <sandforge/ext/host_executor.h>
#include <sandforge/ext/host_log.h>
#include <sandforge/ext/host_paths.h>
#include <sandforge/ext/host_secrets.h>
#include <sandforge/ext/host_state.h>

#include <set>

#include "fake_http.hpp"
#include "fake_process.hpp"

namespace sandforge::fake {

class Host : public sf_host {
 public:
  struct LogLine {
    std::uint32_t level;
    std::string message;
    std::vector<std::pair<std::string, std::string>> fields;  // secret values read "***"
  };

  Loop loop;
  HttpService http;
  ProcessService process;
  std::map<std::string, std::string> env;
  std::set<std::string> forbidden_env;
  std::map<std::string, std::string> secrets;
  std::map<std::string, std::string> state;
  std::map<std::uint32_t, std::string> paths;
  std::atomic<std::int64_t> now{1'700'000'000'000'000'000};
  std::set<std::string> absent;  // ids of services that this host does not have
  bool hold_blocking = false;    // queue blocking work instead of running it

  Host() {
    static constexpr sf_host_vtbl functions = {
        sizeof(sf_host_vtbl), SF_ABI_MAJOR, SF_ABI_MINOR,
        [](sf_host* h, sf_str id) noexcept -> const void* { return of(h).service(text(id)); }};
    vtbl = &functions;
    fill();
  }
  ~Host() {
    join();
    loop.drain();
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::vector<LogLine> log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  // Blocking work that waits because of hold_blocking, or runs.
  std::size_t blocking_queued() const {
    const std::lock_guard lock(mutex_);
    return queued_.size();
  }
  void run_held() {
    hold_blocking = false;
    std::vector<std::shared_ptr<Job>> jobs;
    {
      const std::lock_guard lock(mutex_);
      jobs.swap(queued_);
    }
    for (const auto& job : jobs)
      start(job);
  }
  void join() {
    for (;;) {
      std::vector<std::thread> running;
      {
        const std::lock_guard lock(mutex_);
        running.swap(threads_);
      }
      process.take_threads(running);
      if (running.empty()) return;
      for (auto& thread : running)
        thread.join();
    }
  }

 private:
  struct Job {
    Lane& lane;
    void (*work)(void*) noexcept;
    void* work_ctx;
    sf_completion done;
    std::atomic<int> phase{0};  // 0 queued, 1 begun, 2 cancelled
  };

  static Host& of(sf_host* host) { return *static_cast<Host*>(host); }

  const void* service(const std::string& id) const {
    if (absent.count(id) > 0) return nullptr;
    const auto found = services_.find(id);
    return found == services_.end() ? nullptr : found->second;
  }

  static void complete(Lane& lane, sf_completion done, Failure failure = {}) {
    lane.post([done, failure = std::move(failure)] {
      const sf_error error = failure.view();
      done.done(done.ctx, failure ? &error : nullptr);
    });
  }

  void start(const std::shared_ptr<Job>& job) {
    int queued = 0;
    if (!job->phase.compare_exchange_strong(queued, 1)) return;
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([job] {
      job->work(job->work_ctx);
      complete(job->lane, job->done);
      job->lane.release();
    });
  }

  static sf_status post_blocking(sf_host* h, sf_lane* lane, void (*work)(void*) noexcept, void* ctx,
                                 sf_completion done, sf_op** op, const sf_error_sink*) noexcept {
    Lane& on = Lane::of(lane);
    on.retain();
    std::shared_ptr<Job> job(new Job{on, work, ctx, done, {0}});
    Op::give(op, [job] {
      int queued = 0;
      if (!job->phase.compare_exchange_strong(queued, 2)) return;
      complete(job->lane, job->done, {SF_CANCELLED, 0, "cancelled", {}, SF_NONE});
      job->lane.release();
    });
    if (of(h).hold_blocking) {
      const std::lock_guard lock(of(h).mutex_);
      of(h).queued_.push_back(job);
    } else {
      of(h).start(job);
    }
    return SF_OK;
  }

  static sf_status timer(sf_host* h, sf_lane* lane, std::uint64_t delay_ms, sf_completion done,
                         sf_op** op, const sf_error_sink*) noexcept {
    Lane& on = Lane::of(lane);
    Loop& loop = of(h).loop;
    on.retain();
    const auto id = loop.at(Loop::Clock::now() + std::chrono::milliseconds(delay_ms), [&on, done] {
      complete(on, done);
      on.release();
    });
    Op::give(op, [&on, &loop, id, done] {
      if (!loop.drop_timer(id)) return;
      complete(on, done, {SF_CANCELLED, 0, "cancelled", {}, SF_NONE});
      on.release();
    });
    return SF_OK;
  }

  static sf_status adopt(sf_host* h, sf_lane* lane, std::int32_t descriptor, std::uint64_t window,
                         const sf_stream_events* events, sf_stream** stream,
                         const sf_error_sink*) noexcept {
    ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
    auto core = std::make_shared<DescriptorStream::Core>(
        Lane::of(lane), *events,
        std::vector<DescriptorStream::Reader>{{descriptor, SF_CHANNEL_DATA}}, descriptor, window);
    auto* handle = new DescriptorStream::Handle;
    DescriptorStream::bind(*handle, core, true);
    *stream = handle;
    const std::lock_guard lock(of(h).mutex_);
    of(h).threads_.emplace_back([core] { core->run(); });
    return SF_OK;
  }

  void fill_executor() {
    executor_.struct_size = sizeof executor_;
    executor_.lane_create = [](sf_host* h, sf_lane** lane, const sf_error_sink*) noexcept {
      *lane = Lane::create(of(h).loop);
      return SF_OK;
    };
    executor_.timer = timer;
    executor_.post_blocking = post_blocking;
    executor_.adopt_descriptor = adopt;
    services_[SF_SERVICE_EXECUTOR] = &executor_;
    process.spawn = [](sf_host* h, sf_lane* lane, const sf_command* command,
                       const sf_stream_events* io, const sf_process_events* events,
                       sf_process** out, const sf_error_sink* err) noexcept {
      return of(h).process.start(Lane::of(lane), *command, *io, *events, out, err);
    };
    services_[SF_SERVICE_PROCESS] = static_cast<sf_process_service*>(&process);
    http.client_create = [](sf_host* h, sf_lane* lane, const sf_http_client_options* options,
                            sf_http_client** client, const sf_error_sink*) noexcept {
      *client = of(h).http.create(Lane::of(lane), *options);
      return SF_OK;
    };
    services_[SF_SERVICE_HTTP] = static_cast<sf_http_service*>(&http);
  }

  void fill_values() {
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
      complete(Lane::of(lane), done);
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
        const Failure failure{SF_NOT_FOUND, 0, "no such secret", {}, SF_NONE};
        const sf_error error = failure.view();
        done.done(done.ctx, known ? nullptr : &error, str(value));
      });
      return SF_OK;
    };
    services_[SF_SERVICE_SECRETS] = &secrets_;
  }

  void fill() {
    fill_executor();
    fill_values();
    log_service_.struct_size = sizeof log_service_;
    log_service_.write = [](sf_host* h, std::uint32_t level, sf_str message,
                            const sf_log_field* first, std::size_t count,
                            std::size_t stride) noexcept {
      LogLine line{level, text(message), {}};
      for (std::size_t i = 0; i < count; ++i) {
        const auto* at = reinterpret_cast<const char*>(first) + i * stride;
        const auto& field = *reinterpret_cast<const sf_log_field*>(at);
        const bool secret = (field.flags & SF_FIELD_SECRET) != 0;
        line.fields.emplace_back(text(field.name), secret ? "***" : text(field.value));
      }
      const std::lock_guard lock(of(h).mutex_);
      of(h).log_.push_back(std::move(line));
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
    clock_.now = [](sf_host* h) noexcept -> std::int64_t { return of(h).now; };
    clock_.monotonic = [](sf_host* h) noexcept { return static_cast<std::uint64_t>(of(h).now); };
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

  std::map<std::string, const void*> services_;
  sf_executor_service executor_{};
  sf_state_service state_{};
  sf_secrets_service secrets_{};
  sf_log_service log_service_{};
  sf_env_service env_service_{};
  sf_clock_service clock_{};
  sf_paths_service paths_service_{};
  mutable std::mutex mutex_;
  std::vector<LogLine> log_;
  std::vector<std::shared_ptr<Job>> queued_;
  std::vector<std::thread> threads_;
};

}  // namespace sandforge::fake

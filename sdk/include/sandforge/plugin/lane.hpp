// The services of the host that this plugin was loaded by, and lanes.
#pragma once

#include <sandforge/ext/host_clock.h>
#include <sandforge/ext/host_env.h>
#include <sandforge/ext/host_executor.h>
#include <sandforge/ext/host_http.h>
#include <sandforge/ext/host_log.h>
#include <sandforge/ext/host_paths.h>
#include <sandforge/ext/host_process.h>
#include <sandforge/ext/host_secrets.h>
#include <sandforge/ext/host_state.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "error.hpp"

namespace sandforge::plugin {
namespace detail {

// Set once by init, before anything else of the plugin runs. Hidden: each plugin has its own.
struct Services {
  sf_host* host = nullptr;
  const sf_log_service* log = nullptr;
  const sf_env_service* env = nullptr;
  const sf_clock_service* clock = nullptr;
  const sf_executor_service* executor = nullptr;
  const sf_process_service* process = nullptr;
  const sf_http_service* http = nullptr;
  const sf_secrets_service* secrets = nullptr;
  const sf_state_service* state = nullptr;
  const sf_paths_service* paths = nullptr;

  void fill(sf_host* from) {
    host = from;
    take(log, SF_SERVICE_LOG);
    take(env, SF_SERVICE_ENV);
    take(clock, SF_SERVICE_CLOCK);
    // The last member of this one may be null, and is asked for where it is used.
    take(executor, SF_SERVICE_EXECUTOR);
    // Groups came later, and are asked for where they are used.
    take(process, SF_SERVICE_PROCESS, offsetof(sf_process_service, open_group));
    take(http, SF_SERVICE_HTTP);
    take(secrets, SF_SERVICE_SECRETS);
    take(state, SF_SERVICE_STATE);
    take(paths, SF_SERVICE_PATHS);
  }

 private:
  // A table that is shorter than that of version 1.0 breaks rule 10: as good as absent.
  template <class Table>
  void take(const Table*& table, const char* id, std::size_t least = sizeof(Table)) {
    table = static_cast<const Table*>(host->vtbl->service(host, to_str(id)));
    if (table != nullptr && table->struct_size < least) table = nullptr;
  }
};

#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
inline Services&
services() {
  static Services one;
  return one;
}

template <class Table>
const Table& need(const Table* table, const char* id) {
  if (table != nullptr) return *table;
  throw Error(Code::unsupported, std::string("the host does not offer ") + id +
                                     ", or the plugin's manifest does not name it");
}

// An exception with nobody to tell: it goes to the log.
inline void report_stray(const std::exception_ptr& exception, std::string_view where) noexcept {
  const sf_log_service* log = services().log;
  if (log == nullptr) return;
  with_error(exception, [&](const sf_error& e) {
    const sf_log_field fields[] = {{sizeof(sf_log_field), to_str("where"), to_str(where), 0, 0},
                                   {sizeof(sf_log_field), to_str("error"), e.message, 0, 0}};
    log->write(services().host, SF_LOG_ERROR, to_str("an exception of the plugin has no caller"),
               fields, 2, sizeof(sf_log_field));
  });
}

}  // namespace detail

// A serial queue of the host, shared. Thread-safe.
class Lane {
 public:
  Lane() noexcept = default;
  // Takes a reference of its own; null makes an empty one.
  explicit Lane(sf_lane* lane) noexcept : lane_(lane) { retain(); }
  Lane(const Lane& other) noexcept : lane_(other.lane_) { retain(); }
  Lane(Lane&& other) noexcept : lane_(std::exchange(other.lane_, nullptr)) {}
  Lane& operator=(Lane other) noexcept {
    std::swap(lane_, other.lane_);
    return *this;
  }
  ~Lane() {
    if (lane_ != nullptr) lane_->vtbl->release(lane_);
  }

  // A new lane of the host's executor.
  static Lane create() {
    const auto& executor = detail::need(detail::services().executor, SF_SERVICE_EXECUTOR);
    detail::ErrorCatcher errors;
    Lane lane;
    errors.check(executor.lane_create(detail::services().host, &lane.lane_, errors.sink()));
    return lane;
  }

  explicit operator bool() const noexcept { return lane_ != nullptr; }
  sf_lane* get() const noexcept { return lane_; }
  // Whether this thread runs a task of the lane; an empty one is current nowhere.
  bool is_current() const noexcept {
    return lane_ != nullptr && lane_->vtbl->is_current(lane_) == 1;
  }

  // Runs fn() on the lane, later. What it throws goes to the log.
  template <class Fn>
  void post(Fn fn) const {
    auto task = std::make_unique<Fn>(std::move(fn));
    lane_->vtbl->post(
        lane_,
        [](void* ctx) noexcept {
          const std::unique_ptr<Fn> run(static_cast<Fn*>(ctx));
          try {
            (*run)();
          } catch (...) {
            detail::report_stray(std::current_exception(), "a task on a lane");
          }
        },
        task.release());
  }

 private:
  void retain() noexcept {
    if (lane_ != nullptr) lane_->vtbl->retain(lane_);
  }
  sf_lane* lane_ = nullptr;
};

}  // namespace sandforge::plugin

// Between this plugin's C++ and the C boundary: text, errors, fences.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sandforge/abi.h"
#include "sandforge/support/json.hpp"

namespace sandforge::guest_link {

inline sf_str as_str(std::string_view s) noexcept {
  return sf_str{s.data(), s.size()};
}
inline sf_bytes as_bytes(std::string_view s) noexcept {
  return sf_bytes{reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}
inline std::string_view view(sf_str s) noexcept {
  return s.ptr ? std::string_view(s.ptr, s.len) : std::string_view();
}
inline std::string_view view(sf_bytes b) noexcept {
  return b.ptr ? std::string_view(reinterpret_cast<const char*>(b.ptr), b.len) : std::string_view();
}

// What went wrong, on its way to the host. reason is stable and finer than the code.
struct Failure {
  sf_status code = SF_INTERNAL;
  std::string reason;
  std::string message;
  std::string path;
  int error_number = 0;
  bool may_have_started = false;
  std::string pointer = {};  // of the option that is wrong
};

// From an errno about a path: NO_SPACE, FORBIDDEN, NOT_FOUND, INVALID or INTERNAL.
Failure system_failure(int error_number, std::string_view what, std::string_view path);

// Calls `use` with the failure as the boundary's struct.
void with_error(const Failure& failure, const std::function<void(const sf_error*)>& use);
// Takes the message of an error that the host reports.
sf_error_sink message_into(Failure& failure) noexcept;
sf_status report(const sf_error_sink* sink, const Failure& failure) noexcept;
void complete(const sf_completion& done, const Failure* failure) noexcept;

// The handle of an operation that cannot be cancelled: it is short, or must run to its end.
sf_op* no_op() noexcept;

// Runs body; whatever it throws becomes SF_INTERNAL.
template <class Body>
sf_status fenced(const sf_error_sink* sink, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& e) {
    return report(sink, Failure{SF_INTERNAL, "plugin.exception", e.what(), {}, 0, false});
  } catch (...) {
    return report(sink,
                  Failure{SF_INTERNAL, "plugin.exception", "unknown exception", {}, 0, false});
  }
}

// Starts an operation that always ends in its done.
template <class Body>
sf_status start_op(sf_op** op, const sf_error_sink* err, Body&& body) noexcept {
  return fenced(err, [&] {
    body();
    if (op != nullptr) *op = no_op();
    return sf_status{SF_OK};
  });
}

// Runs work on the lane, later.
void post(sf_lane* lane, std::function<void()> work);

// A retained lane.
class LaneRef {
 public:
  explicit LaneRef(sf_lane* lane) noexcept : lane_(lane) { lane_->vtbl->retain(lane_); }
  LaneRef(const LaneRef& other) noexcept : LaneRef(other.lane_) {}
  LaneRef& operator=(const LaneRef&) = delete;
  ~LaneRef() { lane_->vtbl->release(lane_); }
  sf_lane* get() const noexcept { return lane_; }
  bool current() const noexcept { return lane_->vtbl->is_current(lane_) != 0; }

 private:
  sf_lane* lane_;
};

}  // namespace sandforge::guest_link

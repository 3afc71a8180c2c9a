// Text, bytes and errors of the boundary as values, for tests.
#pragma once

#include <sandforge/plugin/text.hpp>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sandforge::testing {

// Borrow from the view, which must outlive the use.
inline sf_str str(std::string_view text) noexcept {
  return plugin::to_str(text);
}
inline sf_bytes bytes(std::string_view text) noexcept {
  return plugin::to_bytes(text);
}
// Copies.
inline std::string text(sf_str value) {
  return plugin::copy(value);
}
inline std::string text(sf_bytes value) {
  return plugin::copy(value);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

// An error as a value. False: there is none.
struct Failure {
  sf_status code = SF_OK;
  std::uint32_t flags = 0;  // SF_ERROR_*
  std::string message;
  std::string details;  // JSON object, or empty
  std::uint64_t retry_after_ms = SF_NONE;

  Failure() = default;
  Failure(sf_status status, std::string says, std::string more = {})
      : code(status), message(std::move(says)), details(std::move(more)) {}

  explicit operator bool() const { return code != SF_OK; }
  bool may_have_started() const { return (flags & SF_ERROR_MAY_HAVE_STARTED) != 0; }

  static Failure copy(const sf_error* error) {
    Failure f;
    if (error == nullptr) return f;
    f.code = error->code;
    f.flags = error->flags;
    f.message = text(error->message);
    f.details = text(error->details);
    f.retry_after_ms = error->retry_after_ms;
    return f;
  }
  // Borrows from this object.
  sf_error view() const {
    return {sizeof(sf_error), code, flags, str(message), str(details), retry_after_ms};
  }
};

// Catches the error of a call that returns a status.
inline sf_error_sink sink(Failure& failure) {
  return {&failure, [](void* ctx, const sf_error* error) noexcept {
            *static_cast<Failure*>(ctx) = Failure::copy(error);
          }};
}

// Reports an error of the fake, as a host would.
inline sf_status refuse(const sf_error_sink* err, sf_status code, std::string_view message) {
  if (err != nullptr) {
    const Failure failure(code, std::string(message));
    const sf_error e = failure.view();
    err->report(err->ctx, &e);
  }
  return code;
}

// What a test did not expect.
class Failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sandforge::testing

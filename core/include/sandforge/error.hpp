// Errors: a stable code, a message for a person, structured details.
//
// Inside, and in asynchronous forms, functions give a Result. The blocking forms throw an
// Exception, of a class that tells the kind.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "sandforge/support/json.hpp"

namespace sandforge {

// The codes of sandforge/abi.h, same numbers.
enum class Status : std::int32_t {
  ok = 0,
  invalid = 1,
  not_found = 2,
  gone = 3,
  already_exists = 4,
  conflict = 5,
  unauthenticated = 6,
  forbidden = 7,
  rate_limited = 8,
  no_space = 9,
  unavailable = 10,
  transport_lost = 11,
  unsupported = 12,
  cancelled = 13,
  timeout = 14,
  crashed = 15,
  internal = 16,
};

// "INVALID", "NOT_FOUND", …; a number that is none of them gives "INTERNAL".
std::string_view to_string(Status status) noexcept;

struct Error {
  Error() = default;
  Error(Status c, std::string m, std::string r = {})
      : code(c), message(std::move(m)), reason(std::move(r)) {}

  Status code = Status::internal;
  std::string message;  // one sentence, without credentials
  std::string reason;   // stable and finer than the code, such as "plugin.no_entry"; may be empty
  json::Object details;
  bool may_have_started = false;  // the effect may have taken place
  std::optional<std::chrono::milliseconds> retry_after;
};

// {"code","reason"?,"message","details"?,"commandMayHaveStarted"?,"retryAfterMs"?}
json::Value to_json(const Error& error);

class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

struct InvalidArgumentError : Exception {
  using Exception::Exception;
};  // invalid
struct NotFoundError : Exception {
  using Exception::Exception;
};  // not_found
struct SandboxDestroyedError : Exception {
  using Exception::Exception;
};  // gone
struct UnsupportedFeatureError : Exception {
  using Exception::Exception;
};  // unsupported
struct SandboxTransportError : Exception {
  using Exception::Exception;
};  // transport_lost
struct SandboxAbortError : Exception {
  using Exception::Exception;
};  // cancelled
struct SandboxTimeoutError : Exception {
  using Exception::Exception;
};  // timeout
struct PluginCrashedError : Exception {
  using Exception::Exception;
};  // crashed

// Throws the class that fits error.code.
[[noreturn]] void throw_error(Error error);

// A value or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : data_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : data_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return data_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  T& value() & {
    check();
    return std::get<0>(data_);
  }
  const T& value() const& {
    check();
    return std::get<0>(data_);
  }
  T&& value() && {
    check();
    return std::get<0>(std::move(data_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  // Only when !ok().
  const Error& error() const& { return std::get<1>(data_); }
  Error&& error() && { return std::get<1>(std::move(data_)); }

 private:
  void check() const {
    if (!ok()) throw_error(std::get<1>(data_));
  }
  std::variant<T, Error> data_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return ok(); }
  void value() const {
    if (error_) throw_error(*error_);
  }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace sandforge

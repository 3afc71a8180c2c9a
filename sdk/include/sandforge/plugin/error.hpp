// Errors of a plugin as exceptions, and the fence that keeps every exception inside it.
#pragma once

#include <sandforge/support/json.hpp>
#include <sandforge/support/template_error.hpp>

#include <chrono>
#include <exception>
#include <utility>

#include "text.hpp"

namespace sandforge::plugin {

// SF_* of abi.h; the comments stand there.
enum class Code : sf_status {
  invalid = SF_INVALID,
  not_found = SF_NOT_FOUND,
  gone = SF_GONE,
  already_exists = SF_ALREADY_EXISTS,
  conflict = SF_CONFLICT,
  unauthenticated = SF_UNAUTHENTICATED,
  forbidden = SF_FORBIDDEN,
  rate_limited = SF_RATE_LIMITED,
  no_space = SF_NO_SPACE,
  unavailable = SF_UNAVAILABLE,
  transport_lost = SF_TRANSPORT_LOST,
  unsupported = SF_UNSUPPORTED,
  cancelled = SF_CANCELLED,
  timeout = SF_TIMEOUT,
  crashed = SF_CRASHED,
  internal = SF_INTERNAL
};

/*
 * What an author throws, and what the wrappers of host services throw. The layer reports it to the
 * host with all of its parts, and a TemplateError as Code::invalid. Any other exception is reported
 * as Code::internal.
 *
 *   throw Error(Code::not_found, "no such folder").detail("path", path);
 *
 * The message is one sentence for a person, without credentials.
 */
class Error : public std::exception {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }
  const json::Object& details() const noexcept { return details_; }
  // Nothing proves that the effect did not take place, over all tries.
  bool may_have_started() const noexcept { return may_have_started_; }
  std::optional<std::chrono::milliseconds> retry_after() const noexcept { return retry_after_; }

  // Well-known keys: "path", "errno", "httpStatus", "requestId", "pointer".
  Error& detail(std::string key, json::Value value) & {
    details_.set(std::move(key), std::move(value));
    return *this;
  }
  Error&& detail(std::string key, json::Value value) && {
    return std::move(detail(std::move(key), std::move(value)));
  }
  Error& may_have_started(bool it_may) & {
    may_have_started_ = it_may;
    return *this;
  }
  Error&& may_have_started(bool it_may) && { return std::move(may_have_started(it_may)); }
  Error& retry_after(std::chrono::milliseconds time) & {
    retry_after_ = time;
    return *this;
  }
  Error&& retry_after(std::chrono::milliseconds time) && { return std::move(retry_after(time)); }

  // A copy of an error of the other side. A code that this side does not know reads as internal.
  static Error from(const sf_error& raw) {
    const auto e = detail::read_appendable(&raw, no_error());
    const bool known = e.code >= SF_INVALID && e.code <= SF_INTERNAL;
    Error error(known ? static_cast<Code>(e.code) : Code::internal, copy(e.message));
    if (!view(e.details).empty()) {
      json::ParseResult parsed = json::parse(view(e.details));
      if (parsed && parsed.value.is_object()) {
        error.details_ = std::move(parsed.value.as_object());
      } else {
        error.detail("details", copy(e.details));
      }
    }
    error.may_have_started_ = (e.flags & SF_ERROR_MAY_HAVE_STARTED) != 0;
    if (e.retry_after_ms != SF_NONE) {
      error.retry_after_ = std::chrono::milliseconds(static_cast<std::int64_t>(e.retry_after_ms));
    }
    return error;
  }

 private:
  static sf_error no_error() noexcept {
    sf_error e{};
    e.retry_after_ms = SF_NONE;
    return e;
  }

  Code code_;
  std::string message_;
  json::Object details_;
  bool may_have_started_ = false;
  std::optional<std::chrono::milliseconds> retry_after_;
};

namespace detail {

inline sf_error plain_error(sf_status code, std::string_view message) noexcept {
  return {sizeof(sf_error), code, 0, to_str(message), {nullptr, 0}, SF_NONE};
}

// What is wrong with a template is wrong with what the host was given.
inline Error error_of(const TemplateError& wrong) {
  Error error(Code::invalid, wrong.what());
  error.detail("reason", to_string(wrong.fault()));
  if (!wrong.pointer().empty()) error.detail("pointer", wrong.pointer());
  if (wrong.operation()) error.detail("operation", static_cast<long long>(*wrong.operation()));
  return error;
}

inline sf_error error_of(const Error& error, std::string_view details) noexcept {
  sf_error e = plain_error(static_cast<sf_status>(error.code()), error.message());
  e.details = to_str(details);
  if (error.may_have_started()) e.flags = SF_ERROR_MAY_HAVE_STARTED;
  if (error.retry_after())
    e.retry_after_ms = static_cast<std::uint64_t>(error.retry_after()->count());
  return e;
}

// Calls use with the exception as the boundary's struct. Allocates only for details, and does
// without them when it cannot.
template <class Use>
void with_error(const std::exception_ptr& exception, Use use) noexcept {
  sf_error error = plain_error(SF_INTERNAL, "the plugin threw something that is no exception");
  try {
    std::rethrow_exception(exception);
  } catch (const Error& e) {
    std::string details;
    try {
      if (!e.details().empty()) details = json::write(json::Value(e.details()));
    } catch (...) {
      details.clear();
    }
    error = error_of(e, details);
    use(error);
  } catch (const TemplateError& e) {
    std::exception_ptr converted;
    try {
      converted = std::make_exception_ptr(error_of(e));
    } catch (...) {
      converted = std::current_exception();
    }
    with_error(converted, std::move(use));
  } catch (const std::exception& e) {
    error.message = to_str(std::string_view(e.what()));
    use(error);
  } catch (...) {
    use(error);
  }
}

// What fn throws, or null. The handler is over when it returns, so that whoever gets the exception
// is its only owner, and may end it on another thread.
template <class Fn>
std::exception_ptr thrown_in(Fn fn) noexcept {
  try {
    fn();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

// Runs fn inside the fence: SF_OK, or what it threw, reported.
template <class Fn>
sf_status fence(const sf_error_sink* err, Fn fn) noexcept {
  try {
    fn();
    return SF_OK;
  } catch (...) {
    sf_status status = SF_INTERNAL;
    with_error(std::current_exception(), [&](const sf_error& e) {
      status = e.code;
      if (err != nullptr) err->report(err->ctx, &e);
    });
    return status;
  }
}

// The error of a call to the other side, thrown as an Error.
class ErrorCatcher {
 public:
  ErrorCatcher() noexcept
      : sink_{this, [](void* ctx, const sf_error* error) noexcept {
                auto& me = *static_cast<ErrorCatcher*>(ctx);
                try {
                  me.error_ = std::make_exception_ptr(Error::from(*error));
                } catch (...) {
                  me.error_ = std::current_exception();
                }
              }} {}
  ErrorCatcher(const ErrorCatcher&) = delete;
  ErrorCatcher& operator=(const ErrorCatcher&) = delete;

  const sf_error_sink* sink() const noexcept { return &sink_; }
  // Handed over, not shared: whoever handles it may end it on another thread.
  void check(sf_status status) {
    if (status == SF_OK) return;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    const bool known = status >= SF_INVALID && status <= SF_INTERNAL;
    throw Error(known ? static_cast<Code>(status) : Code::internal, "the host gave no reason");
  }

 private:
  sf_error_sink sink_;
  std::exception_ptr error_;
};

}  // namespace detail
}  // namespace sandforge::plugin

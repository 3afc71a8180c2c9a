#include "sandforge/error.hpp"

#include <array>

namespace sandforge {
namespace {

constexpr std::array<std::string_view, 17> kNames = {
    "OK",          "INVALID",         "NOT_FOUND",   "GONE",         "ALREADY_EXISTS",
    "CONFLICT",    "UNAUTHENTICATED", "FORBIDDEN",   "RATE_LIMITED", "NO_SPACE",
    "UNAVAILABLE", "TRANSPORT_LOST",  "UNSUPPORTED", "CANCELLED",    "TIMEOUT",
    "CRASHED",     "INTERNAL"};

}  // namespace

std::string_view to_string(Status status) noexcept {
  const auto index = static_cast<std::size_t>(status);
  return index < kNames.size() ? kNames[index] : "INTERNAL";
}

json::Value to_json(const Error& error) {
  json::Object out;
  out.set("code", to_string(error.code));
  if (!error.reason.empty()) out.set("reason", error.reason);
  out.set("message", error.message);
  if (!error.details.empty()) out.set("details", error.details);
  if (error.may_have_started) out.set("commandMayHaveStarted", true);
  if (error.retry_after)
    out.set("retryAfterMs", static_cast<long long>(error.retry_after->count()));
  return out;
}

void throw_error(Error error) {
  switch (error.code) {
    case Status::invalid:
      throw InvalidArgumentError(std::move(error));
    case Status::not_found:
      throw NotFoundError(std::move(error));
    case Status::gone:
      throw SandboxDestroyedError(std::move(error));
    case Status::unsupported:
      throw UnsupportedFeatureError(std::move(error));
    case Status::transport_lost:
      throw SandboxTransportError(std::move(error));
    case Status::cancelled:
      throw SandboxAbortError(std::move(error));
    case Status::timeout:
      throw SandboxTimeoutError(std::move(error));
    case Status::crashed:
      throw PluginCrashedError(std::move(error));
    default:
      throw Exception(std::move(error));
  }
}

}  // namespace sandforge

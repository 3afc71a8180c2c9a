// Text, bytes and errors across the boundary.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "plugin/plugin.hpp"
#include "sandforge/abi.h"
#include "sandforge/error.hpp"

namespace sandforge::plugin {

inline constexpr std::size_t kMaxText = 1U << 20;

inline std::string_view view(sf_str text) noexcept {
  return text.ptr == nullptr ? std::string_view() : std::string_view(text.ptr, text.len);
}
inline std::string_view view(sf_bytes bytes) noexcept {
  return bytes.ptr == nullptr
             ? std::string_view()
             : std::string_view(reinterpret_cast<const char*>(bytes.ptr), bytes.len);
}
// Of a std::string, so never with a null ptr.
inline sf_str to_str(const std::string& text) noexcept {
  return {text.data(), text.size()};
}
inline sf_str to_str(const std::optional<std::string>& text) noexcept {
  return text ? to_str(*text) : sf_str{nullptr, 0};
}
inline sf_bytes to_bytes(const std::string& bytes) noexcept {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}
inline sf_bytes to_bytes(const std::optional<std::string>& bytes) noexcept {
  return bytes ? to_bytes(*bytes) : sf_bytes{nullptr, 0};
}

// Text of a plugin, as valid UTF-8 of at most `limit` bytes.
std::string copy_text(sf_str text, std::size_t limit = kMaxText);
// None for a null ptr.
std::optional<std::string> copy_optional(sf_str text, std::size_t limit = kMaxText);
// A JSON document of a plugin. `what` names it in the error.
Result<json::Value> copy_json(const Plugin& plugin, sf_str text, std::string_view what);
// A JSON array of strings; empty text gives none. Anything else in it is a fault and left out.
std::vector<std::string> copy_strings(Plugin& plugin, sf_str text, std::string_view what);

// Unknown numbers read as internal, and are kept in the details, as "status".
Error copy_error(Plugin& plugin, const sf_error* error, std::string_view what);

// "plugin NAME: WHAT", for faults that the caller must hear of.
Error crashed(const Plugin& plugin, std::string_view what, std::string_view reason = "fault");

// An Error in the form that plugins read. Lives as long as this and the error do.
class ErrorView {
 public:
  explicit ErrorView(const Error& error);
  const sf_error* get() const noexcept { return &value_; }
  void report(const sf_error_sink* sink) const noexcept;

 private:
  std::string details_;
  sf_error value_;
};

// Fails a function of the host: reports the error and answers its code.
sf_status refuse(const sf_error_sink* sink, const Error& error) noexcept;

// Collects the error of one call into a plugin, on this thread's stack. The sink's ctx is a number
// that is looked up, so that a sink that is used after the call is a fault and nothing else.
class ErrorFrame {
 public:
  ErrorFrame(Plugin& plugin, const char* what) noexcept;
  ~ErrorFrame();
  ErrorFrame(const ErrorFrame&) = delete;
  ErrorFrame& operator=(const ErrorFrame&) = delete;

  const sf_error_sink* sink() const noexcept { return &sink_; }
  void set(Error error) { error_ = std::move(error); }
  // The error of a call that answered `status`, which is not SF_OK.
  Error take(sf_status status);

 private:
  static void report(void* ctx, const sf_error* error) noexcept;

  Plugin& plugin_;
  const char* what_;
  sf_error_sink sink_;
  ErrorFrame* outer_;
  std::optional<Error> error_;
};

}  // namespace sandforge::plugin

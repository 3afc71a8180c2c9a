#include "plugin/abi_text.hpp"

#include <limits>

#include <fmt/format.h>

#include "sandforge/support/utf8.hpp"

namespace sandforge::plugin {
namespace {

constexpr std::size_t kMaxMessage = 16U << 10;
constexpr unsigned kCounterBits = 54;
constexpr sf_status kLastStatus = SF_INTERNAL;

thread_local ErrorFrame* innermost = nullptr;
thread_local std::uint64_t frames = 0;

Status to_status(sf_status raw) noexcept {
  return raw > SF_OK && raw <= kLastStatus ? static_cast<Status>(raw) : Status::internal;
}

// The boundary has no member for the reason: it travels among the details.
void lift_reason(Error& error) {
  const json::Value* reason = error.details.find("reason");
  if (reason == nullptr || !reason->is_string()) return;
  error.reason = reason->as_string();
  error.details.erase("reason");
}

std::string details_with_reason(const Error& error) {
  if (error.reason.empty())
    return error.details.empty() ? std::string() : json::write(error.details);
  json::Object details = error.details;
  details.set("reason", error.reason);
  return json::write(details);
}

std::optional<std::chrono::milliseconds> to_delay(std::uint64_t ms) {
  if (ms == SF_NONE) return std::nullopt;
  constexpr std::uint64_t longest = 1'000ULL * 60 * 60 * 24 * 365;
  return std::chrono::milliseconds(std::min(ms, longest));
}

}  // namespace

std::string copy_text(sf_str text, std::size_t limit) {
  return to_valid_utf8(view(text).substr(0, limit));
}

std::optional<std::string> copy_optional(sf_str text, std::size_t limit) {
  if (text.ptr == nullptr) return std::nullopt;
  return copy_text(text, limit);
}

Result<json::Value> copy_json(const Plugin& plugin, sf_str text, std::string_view what) {
  auto parsed = json::parse(view(text));
  if (parsed) return std::move(parsed.value);
  Error error =
      crashed(plugin, fmt::format("{} is no JSON document: line {}, column {}: {}", what,
                                  parsed.error.line, parsed.error.column, parsed.error.message));
  return error;
}

std::vector<std::string> copy_strings(Plugin& plugin, sf_str text, std::string_view what) {
  std::vector<std::string> out;
  if (view(text).empty()) return out;
  const auto parsed = json::parse(view(text));
  bool good = parsed.ok() && parsed.value.is_array();
  if (good) {
    for (const json::Value& item : parsed.value.as_array()) {
      good = good && item.is_string();
      if (item.is_string()) out.push_back(item.as_string());
    }
  }
  if (!good) plugin.faults.report(Fault::bad_value, what);
  return out;
}

Error copy_error(Plugin& plugin, const sf_error* error, std::string_view what) {
  if (error == nullptr || !SF_HAS(error, message)) {
    plugin.faults.report(Fault::missing_value, what);
    return crashed(plugin, fmt::format("{} failed without saying why", what));
  }
  Error out(to_status(error->code), copy_text(error->message, kMaxMessage));
  if (out.message.empty()) out.message = fmt::format("{} failed: {}", what, to_string(out.code));
  out.may_have_started = (error->flags & SF_ERROR_MAY_HAVE_STARTED) != 0;
  if (SF_HAS(error, details) && view(error->details).size() > kMaxText) {
    plugin.faults.report(Fault::bad_value, "the details of an error are larger than 1 MiB");
  } else if (SF_HAS(error, details) && !view(error->details).empty()) {
    auto parsed = json::parse(view(error->details));
    if (parsed && parsed.value.is_object()) {
      out.details = std::move(parsed.value.as_object());
      lift_reason(out);
    } else {
      plugin.faults.report(Fault::bad_value, "the details of an error are no JSON object");
    }
  }
  if (SF_HAS(error, retry_after_ms)) out.retry_after = to_delay(error->retry_after_ms);
  if (to_status(error->code) == Status::internal && error->code != SF_INTERNAL) {
    plugin.faults.report(Fault::bad_value, "an unknown status");
    out.details.set("status", error->code);
  }
  return out;
}

Error crashed(const Plugin& plugin, std::string_view what, std::string_view reason) {
  Error error(Status::crashed, fmt::format("plugin {}: {}", plugin.name(), what),
              fmt::format("plugin.{}", reason));
  error.details.set("plugin", plugin.name());
  error.details.set("path", plugin.file.string());
  return error;
}

ErrorView::ErrorView(const Error& error) : details_(details_with_reason(error)), value_{} {
  value_.struct_size = sizeof(value_);
  value_.code = static_cast<sf_status>(error.code);
  value_.flags = error.may_have_started ? SF_ERROR_MAY_HAVE_STARTED : 0;
  value_.message = to_str(error.message);
  value_.details = to_str(details_);
  value_.retry_after_ms =
      error.retry_after ? static_cast<std::uint64_t>(error.retry_after->count()) : SF_NONE;
}

void ErrorView::report(const sf_error_sink* sink) const noexcept {
  if (sink != nullptr && sink->report != nullptr) sink->report(sink->ctx, &value_);
}

sf_status refuse(const sf_error_sink* sink, const Error& error) noexcept {
  ErrorView(error).report(sink);
  return static_cast<sf_status>(error.code);
}

ErrorFrame::ErrorFrame(Plugin& plugin, const char* what) noexcept
    : plugin_(plugin), what_(what), outer_(innermost) {
  const std::uint64_t counter = ++frames & ((std::uint64_t{1} << kCounterBits) - 1);
  const std::uint64_t id = (std::uint64_t{plugin.index} << kCounterBits) | counter;
  sink_.ctx = reinterpret_cast<void*>(static_cast<std::uintptr_t>(id));
  sink_.report = &ErrorFrame::report;
  innermost = this;
}

ErrorFrame::~ErrorFrame() {
  innermost = outer_;
}

void ErrorFrame::report(void* ctx, const sf_error* error) noexcept {
  for (ErrorFrame* frame = innermost; frame != nullptr; frame = frame->outer_) {
    if (frame->sink_.ctx != ctx) continue;
    try {
      frame->error_ = copy_error(frame->plugin_, error, frame->what_);
    } catch (...) {
      frame->plugin_.faults.report(Fault::bad_value, "an error could not be copied");
    }
    return;
  }
  Plugin* plugin = Plugin::at(Tokens::plugin_of(ctx));
  if (plugin != nullptr) plugin->faults.report(Fault::late_callback, "an error sink");
}

Error ErrorFrame::take(sf_status status) {
  Error out = error_
                  ? std::move(*error_)
                  : Error(to_status(status), fmt::format("plugin {}: {} failed: {}", plugin_.name(),
                                                         what_, to_string(to_status(status))));
  if (error_ && out.code != Status::crashed) out.code = to_status(status);
  error_.reset();
  if (to_status(status) == Status::internal && status != SF_INTERNAL) {
    plugin_.faults.report(Fault::bad_value, "an unknown status");
    out.details.set("status", status);
  }
  return out;
}

}  // namespace sandforge::plugin

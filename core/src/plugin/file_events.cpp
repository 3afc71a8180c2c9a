#include "plugin/file_events.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plugin/abi_call.hpp"

namespace sandforge::plugin {
namespace {

constexpr std::uint64_t kMostGranted = std::uint64_t{1} << 62;
constexpr std::size_t kMostMessage = 256 * 1024;

}  // namespace

FileEvents::FileEvents(std::shared_ptr<SandboxCore> core, const char* what, Content content,
                       std::uint64_t window, std::shared_ptr<FileSink> sink)
    : core_(std::move(core)),
      what_(what),
      content_(content),
      sink_(std::move(sink)),
      granted_(std::min(window, kMostGranted)) {}

void FileEvents::data(std::uint32_t flags, sf_bytes bytes) {
  if (account(flags, bytes)) keep(flags, bytes);
}

bool FileEvents::account(std::uint32_t flags, sf_bytes bytes) {
  std::uint64_t over = 0;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    const bool empty = bytes.len == 0 || bytes.ptr == nullptr;
    if (empty && (bytes.len != 0 || content_ != Content::messages || (flags & SF_DATA_END) == 0)) {
      core_->plugin.faults.report(Fault::missing_value, std::string(what_) + ": on_data");
      return false;
    }
    const std::uint64_t left = granted_ - delivered_;
    if (bytes.len <= left) {
      delivered_ += bytes.len;
      return true;
    }
    over = bytes.len - left;
  }
  fail(Fault::over_credit, fmt::format("it delivered {} bytes more than were granted", over));
  return false;
}

void FileEvents::keep(std::uint32_t flags, sf_bytes bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.ptr);
  {
    const std::lock_guard lock(mutex_);
    if (content_ == Content::bytes) {
      bytes_.append(text, bytes.len);
      return wake();
    }
    if (bytes.len > 0) piece_.append(text, bytes.len);
    if (piece_.size() <= kMostMessage) {
      if ((flags & SF_DATA_END) == 0) return;
      messages_.push_back(std::exchange(piece_, {}));
      return wake();
    }
  }
  fail(Fault::bad_value, "a message is too long");
}

void FileEvents::writable() {
  const std::lock_guard lock(mutex_);
  writable_ = true;
  wake();
}

void FileEvents::done(const sf_error* error, const sf_stream_end* end) {
  over_.store(true);
  std::optional<Error> told;
  if (error != nullptr) told = copy_error(core_->plugin, error, what_);
  const std::lock_guard lock(mutex_);
  end_.delivered = delivered_;
  if (end != nullptr && SF_HAS(end, dropped)) {
    end_.dropped = end->dropped;
    // Bytes that were lost on the way must not look like a file that is whole.
    if (end->delivered != delivered_ && !failure_) {
      core_->plugin.faults.report(Fault::contradiction, std::string(what_) + ": counts");
      if (!told) {
        told = crashed(core_->plugin, "it counts other bytes than it delivered", "contradiction");
        told->may_have_started = true;
      }
    }
  } else if (error == nullptr) {
    core_->plugin.faults.report(Fault::missing_value, std::string(what_) + ": done");
  }
  done_.emplace(std::move(told));
  wake();
}

void FileEvents::oops() noexcept {
  try {
    fail(Fault::bad_value, "an event of a file could not be copied: " + describe_exception());
  } catch (...) {
    core_->plugin.faults.report(Fault::bad_value, "an event of a file was lost: no memory");
  }
}

void FileEvents::add_credit(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  granted_ += std::min(bytes, kMostGranted - std::min(granted_ - delivered_, kMostGranted));
}

void FileEvents::fail(Fault fault, const std::string& what) {
  core_->plugin.faults.report(fault, std::string(what_) + ": " + what);
  Error error = crashed(core_->plugin, what, to_string(fault));
  error.may_have_started = true;
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = std::move(error);
  end_.delivered = delivered_;
  wake();
}

void FileEvents::wake() {
  if (std::exchange(draining_, true)) return;
  core_->lane.post([self = shared_from_this()] { self->drain(); });
}

void FileEvents::drain() {
  for (;;) {
    std::unique_lock lock(mutex_);
    const std::string bytes = std::exchange(bytes_, {});
    const auto messages = std::exchange(messages_, {});
    const bool writable = std::exchange(writable_, false);
    auto done = std::exchange(done_, std::nullopt);
    const auto failure = done ? std::nullopt : failure_;
    const StreamEnd end = end_;
    const bool idle = bytes.empty() && messages.empty() && !writable && !done;
    if (idle) draining_ = false;
    lock.unlock();
    // The sink may let go in each of its calls.
    const auto tell = [this](auto&& call) {
      if (const auto sink = sink_; sink && !refused_.load()) call(*sink);
    };
    if (!bytes.empty())
      tell([&](FileSink& s) {
        s.on_data(Bytes(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
      });
    for (const std::string& message : messages)
      tell([&](FileSink& s) { s.on_message(message); });
    if (writable) tell([](FileSink& s) { s.on_writable(); });
    if (failure) {
      if (sf_stream* stream = stream_.load(); stream != nullptr && !over())
        call_value(core_->plugin, "stream.cancel", stream->vtbl->cancel, stream);
      finish(*failure, end);
    } else if (done) {
      finish(std::move(*done), end);
    }
    if (idle) return;
  }
}

void FileEvents::finish(std::optional<Error> error, StreamEnd end) {
  const auto sink = std::exchange(sink_, nullptr);
  if (sink && !refused_.load()) sink->done(std::move(error), end);
}

}  // namespace sandforge::plugin

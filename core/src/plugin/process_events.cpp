#include "plugin/process_events.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plugin/abi_call.hpp"

namespace sandforge::plugin {
namespace {

constexpr std::uint64_t kMaxCredit = std::uint64_t{1} << 62;

}  // namespace

ProcessHandle::~ProcessHandle() {
  call_value(core_->plugin, "process.release", process_->vtbl->release, process_);
}

void ProcessHandle::cancel() noexcept {
  call_value(core_->plugin, "stream.cancel", stream_->vtbl->cancel, stream_);
}

// Finds two callbacks at once, and callbacks from inside the start.
class ProcessEvents::Entry {
 public:
  Entry(ProcessEvents& events, const char* what) noexcept
      : events_(events), first_(!events.in_callback_.exchange(true)) {
    if (!first_) events_.plugin_.faults.report(Fault::overlap, what);
    if (events_.starting_.load() && events_.lane_.is_current())
      events_.plugin_.faults.report(Fault::inside_start, what);
  }
  ~Entry() {
    if (first_) events_.in_callback_.store(false);
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  ProcessEvents& events_;
  const bool first_;
};

ProcessEvents::Inside::Inside(ProcessEvents& events) noexcept
    : events_(events), counted_(events.lane_.is_current()) {
  if (counted_) ++events_.inside_;
}

ProcessEvents::Inside::~Inside() {
  if (counted_) --events_.inside_;
}

ProcessEvents::ProcessEvents(std::shared_ptr<SandboxCore> core, std::uint64_t window,
                             std::shared_ptr<ProcessSink> sink)
    : plugin_(core->plugin),
      lane_(core->lane),
      core_(std::move(core)),
      sink_(std::move(sink)),
      granted_(std::min(window, kMaxCredit)) {}

void ProcessEvents::started(const sf_process_started* started) {
  const Entry entry(*this, "on_started");
  bool twice = false, late = false;
  {
    const std::lock_guard lock(mutex_);
    twice = std::exchange(seen_started_, true);
    late = delivered_ > 0;
  }
  // Never with the lock: the log is somebody's code.
  if (twice) return plugin_.faults.report(Fault::out_of_order, "on_started twice");
  if (late) plugin_.faults.report(Fault::out_of_order, "on_started after output");
  Started event{ProcessId(), 0};
  if (started != nullptr && SF_HAS(started, pid)) {
    event = Started{ProcessId(copy_text(started->id, 4096)), started->pid};
  } else {
    plugin_.faults.report(Fault::missing_value, "on_started without a process");
  }
  push(std::move(event));
}

void ProcessEvents::data(std::uint32_t channel, std::uint32_t flags, sf_bytes bytes) {
  const Entry entry(*this, "on_data");
  if (!account(flags, bytes)) return;
  if (channel > SF_CHANNEL_STDERR) return;  // of a later version: ignored
  const auto where = static_cast<Channel>(channel);
  const Bytes view(reinterpret_cast<const std::byte*>(bytes.ptr), bytes.len);
  if (may_go_direct()) {
    if (sink_) sink_->on_data(where, view);
    return;
  }
  push_data(where, view);
}

bool ProcessEvents::account(std::uint32_t flags, sf_bytes bytes) {
  const bool empty = bytes.len == 0 || bytes.ptr == nullptr;
  std::uint64_t over = 0;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return false;
    const std::uint64_t left = granted_ - delivered_;
    if (!empty && bytes.len <= left) {
      delivered_ += bytes.len;
      return true;
    }
    over = bytes.len - left;
  }
  if (empty) {
    if ((flags & SF_DATA_END) == 0 || bytes.len != 0)
      plugin_.faults.report(Fault::missing_value, "on_data without bytes");
    return false;
  }
  fail(Fault::over_credit, fmt::format("it delivered {} bytes more than were granted", over));
  return false;
}

bool ProcessEvents::may_go_direct() {
  if (starting_.load() || !lane_.is_current() || inside_ > 0) return false;
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !draining_;
}

void ProcessEvents::writable() {
  const Entry entry(*this, "on_writable");
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(writable_waits_, true)) return;
  }
  push(Writable{});
}

void ProcessEvents::exited(const sf_exit* exit) {
  const Entry entry(*this, "on_exit");
  bool twice = false;
  {
    const std::lock_guard lock(mutex_);
    twice = std::exchange(seen_exit_, true);
  }
  if (twice) return plugin_.faults.report(Fault::out_of_order, "on_exit twice");
  if (exit == nullptr || !SF_HAS(exit, signal))
    plugin_.faults.report(Fault::missing_value, "on_exit without an exit");
  push(read_exit(exit));
}

void ProcessEvents::done(const sf_error* error, const sf_stream_end* end) {
  const Entry entry(*this, "done");
  Done event;
  if (error != nullptr) event.error = copy_error(plugin_, error, "the command");
  const bool counts = end != nullptr && SF_HAS(end, dropped);
  if (counts) event.end.dropped = end->dropped;
  bool contradicts = false;
  {
    const std::lock_guard lock(mutex_);
    event.end.delivered = delivered_;
    contradicts = counts && end->delivered != delivered_ && !failed_;
  }
  if (contradicts)
    plugin_.faults.report(Fault::contradiction, "done counts other bytes than were delivered");
  if (!counts && error == nullptr)
    plugin_.faults.report(Fault::missing_value, "done without its counts");
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(event));
  if (!std::exchange(draining_, true)) lane_.post([self = shared_from_this()] { self->drain(); });
}

void ProcessEvents::oops() noexcept {
  try {
    fail(Fault::bad_value, "an event of a process could not be copied: " + describe_exception());
  } catch (...) {
    plugin_.faults.report(Fault::bad_value, "an event of a process was lost: no memory");
  }
}

void ProcessEvents::start_returned(bool accepted) noexcept {
  refused_.store(!accepted);
  starting_.store(false);
}

void ProcessEvents::set_handle(std::weak_ptr<ProcessHandle> handle) {
  handle_ = std::move(handle);
}

void ProcessEvents::add_credit(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  granted_ += std::min(bytes, kMaxCredit - std::min(granted_ - delivered_, kMaxCredit));
}

void ProcessEvents::push(Event event) {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  queue_.push_back(std::move(event));
  if (!std::exchange(draining_, true)) lane_.post([self = shared_from_this()] { self->drain(); });
}

void ProcessEvents::push_data(Channel channel, Bytes bytes) {
  {
    const std::lock_guard lock(mutex_);
    auto* last = queue_.empty() ? nullptr : std::get_if<Data>(&queue_.back());
    // What waits costs its bytes, and not an event for each piece, however small a plugin cuts
    // them.
    if (last != nullptr && last->channel == channel) {
      last->bytes.insert(last->bytes.end(), bytes.begin(), bytes.end());
      return;
    }
  }
  push(Data{channel, std::vector<std::byte>(bytes.begin(), bytes.end())});
}

void ProcessEvents::fail(Fault fault, const std::string& what) {
  plugin_.faults.report(fault, what);
  Error error = crashed(plugin_, what, to_string(fault));
  error.may_have_started = true;
  const std::lock_guard lock(mutex_);
  if (std::exchange(failed_, true)) return;
  queue_.push_back(Failed{std::move(error)});
  if (!std::exchange(draining_, true)) lane_.post([self = shared_from_this()] { self->drain(); });
}

void ProcessEvents::drain() {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (queue_.empty()) {
      draining_ = false;
      return;
    }
    Event event = std::move(queue_.front());
    queue_.pop_front();
    if (std::holds_alternative<Writable>(event)) writable_waits_ = false;
    lock.unlock();
    dispatch(event);
  }
}

void ProcessEvents::dispatch(Event& event) {
  if (refused_.load() || !sink_) return;
  if (auto* started = std::get_if<Started>(&event)) {
    sink_->on_started(std::move(started->id), started->pid);
  } else if (auto* piece = std::get_if<Data>(&event)) {
    sink_->on_data(piece->channel, Bytes(piece->bytes));
  } else if (std::holds_alternative<Writable>(event)) {
    sink_->on_writable();
  } else if (auto* exit = std::get_if<Exit>(&event)) {
    sink_->on_exit(*exit);
  } else if (auto* end = std::get_if<Done>(&event)) {
    finish(std::move(end->error), end->end);
  } else {
    StreamEnd counts;
    {
      const std::lock_guard lock(mutex_);
      counts.delivered = delivered_;
    }
    if (const auto handle = handle_.lock()) handle->cancel();
    finish(std::move(std::get<Failed>(event).error), counts);
  }
}

void ProcessEvents::finish(std::optional<Error> error, StreamEnd end) {
  const auto sink = std::exchange(sink_, nullptr);
  sink->done(std::move(error), end);
  core_ = nullptr;
}

}  // namespace sandforge::plugin

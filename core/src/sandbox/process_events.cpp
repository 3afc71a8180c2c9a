// Output, credit, and the end as the provider tells it.
#include <algorithm>

#include "sandbox/lane_handler.hpp"
#include "sandbox/process_impl.hpp"

namespace sandforge::sandbox {

void ProcessImpl::on_started(ProcessId id, std::int64_t pid) {
  {
    const std::lock_guard lock(mutex_);
    if (!started_ && !id.empty()) id_ = std::move(id);
    pid_ = pid;
  }
  mark_started();
}

void ProcessImpl::on_exit(const Exit& exit) {
  mark_started();
  exit_ = exit;
}

void ProcessImpl::on_data(Channel channel, std::string_view data) {
  mark_started();
  std::string_view taken = data;
  if (plan_.output_limit) taken = data.substr(0, *plan_.output_limit - total_);
  total_ += taken.size();
  if (!taken.empty()) {
    output_.append(channel, taken);
    deliver(channel, taken);
  }
  if (taken.size() < data.size()) {
    output_.add_dropped(channel, data.size() - taken.size());
    if (!over_limit_) {
      over_limit_ = true;
      if (process_) process_->cancel();
      end_within(grace_bound());
    }
  }
  consumed(data.size());
}

void ProcessImpl::deliver(Channel channel, std::string_view data) {
  const bool err = channel == Channel::err;
  const auto call = [&](OutputFn& function, std::optional<Error>& error) {
    if (!function) return;
    const auto called =
        contained(err ? "the stderr callback" : "the stdout callback", [&] { function(data); });
    if (called) return;
    function = nullptr;
    if (!error) error = called.error();
  };
  call(err ? plan_.on_stderr : plan_.on_stdout, callback_error_);
  for (Waiter& waiter : waiters_)
    call(err ? waiter.options.on_stderr : waiter.options.on_stdout, waiter.callback_error);
}

// Credit goes back in pieces of half a window: the producer never runs dry, and a grant is not sent
// for each piece of output.
void ProcessImpl::consumed(std::uint64_t bytes) {
  if (plan_.manual_credit && !over_limit_) return;
  owed_ += bytes;
  if (owed_ < std::max<std::uint64_t>(plan_.command.window / 2, 1)) return;
  if (process_) process_->grant(std::exchange(owed_, 0));
}

void ProcessImpl::on_writable() {
  if (process_) input_.pump(*process_);
}

void ProcessImpl::on_done(std::optional<Error> error, StreamEnd end) {
  if (error && !started_) return not_started(*std::move(error));
  mark_started();
  if (end.dropped != 0) output_.add_dropped(Channel::out, end.dropped);
  Ending ending;
  ending.error = std::move(error);
  conclude(std::move(ending));
}

}  // namespace sandforge::sandbox

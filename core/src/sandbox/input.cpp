#include "sandbox/input.hpp"

#include <utility>

namespace sandforge::sandbox {
namespace {

// Empty writes take room, too.
std::size_t cost(const std::string& data) {
  return data.size() + 64;
}

}  // namespace

void Input::write(ProcessBackend& process, std::string data, Handler<void> done) {
  if (!queue_.empty() && queued_ + cost(data) > kQueueBytes)
    return std::move(done)(Error(Status::no_space, "too much input waits for the process already",
                                 "stdin.queue_full"));
  queued_ += cost(data);
  queue_.push_back({std::move(data), 0, std::move(done)});
  if (queue_.size() == 1) pump(process);
}

void Input::close(ProcessBackend& process, Handler<void> done) {
  if (shut_) return std::move(done)(Result<void>());
  closing_ = true;
  closers_.push_back(std::move(done));
  pump(process);
}

void Input::pump(ProcessBackend& process) {
  while (!queue_.empty()) {
    Write& first = queue_.front();
    const std::string_view rest = std::string_view(first.data).substr(first.taken);
    if (!rest.empty()) {
      auto taken = process.write(std::as_bytes(std::span(rest)));
      if (!taken) {
        fail_writes(taken.error());
        break;
      }
      first.taken += *taken;
      if (first.taken < first.data.size()) return;  // until there is room
    }
    Write done = std::move(first);
    queue_.pop_front();
    queued_ -= cost(done.data);
    std::move(done.done)(Result<void>());
  }
  if (!closing_ || shut_) return;
  shut_ = true;
  const auto result = process.shutdown_write();
  for (auto& done : std::exchange(closers_, {}))
    std::move(done)(result);
}

void Input::fail_writes(const Error& error) {
  queued_ = 0;
  for (auto& write : std::exchange(queue_, {}))
    std::move(write.done)(error);
}

void Input::fail(const Error& error) {
  fail_writes(error);
  for (auto& done : std::exchange(closers_, {}))
    std::move(done)(error);
}

}  // namespace sandforge::sandbox

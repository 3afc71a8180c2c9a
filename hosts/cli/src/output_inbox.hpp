// Output of a process, from the sandbox's lane to the thread that writes it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "sandforge/process.hpp"

namespace sandforge::cli {

struct Chunk {
  int descriptor;
  std::string data;
};

// Between the sandbox's lane, which brings output, and this thread, which writes it.
class OutputInbox {
 public:
  static constexpr std::uint64_t kWindow = 256U << 10;

  void put(int descriptor, std::string_view data) {
    const std::lock_guard lock(mutex_);
    chunks_.push_back({descriptor, std::string(data)});
    changed_.notify_one();
  }
  void started(Result<std::shared_ptr<Process>> process) {
    const std::lock_guard lock(mutex_);
    process_.emplace(std::move(process));
    changed_.notify_one();
  }
  void ended(Result<CommandResult> result) {
    const std::lock_guard lock(mutex_);
    result_.emplace(std::move(result));
    changed_.notify_one();
  }

  // Before anything comes: nothing for so long counts as over.
  void be_patient_for(std::chrono::milliseconds patience) { patience_ = patience; }
  // Nothing more is wanted: what came before is still given.
  void over() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_one();
  }

  // The process, or the error that kept it from starting.
  std::shared_ptr<Process> wait_started() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return process_.has_value(); });
    return process_->value();
  }
  // The next output; none: the end.
  std::optional<Chunk> next() {
    std::unique_lock lock(mutex_);
    const auto any = [&] { return !chunks_.empty() || result_ || over_; };
    if (patience_) {
      gave_up_ = !changed_.wait_for(lock, *patience_, any);
    } else {
      changed_.wait(lock, any);
    }
    if (chunks_.empty()) return std::nullopt;
    auto chunk = std::move(chunks_.front());
    chunks_.pop_front();
    return chunk;
  }
  bool gave_up() const { return gave_up_; }
  // The end, where it has come. Throws the Error of a command that could not start.
  std::optional<CommandResult> result() {
    const std::lock_guard lock(mutex_);
    if (!result_) return std::nullopt;
    return std::move(*result_).value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Chunk> chunks_;  // not more than the window
  std::optional<Result<std::shared_ptr<Process>>> process_;
  std::optional<Result<CommandResult>> result_;
  bool over_ = false;
  std::optional<std::chrono::milliseconds> patience_;
  bool gave_up_ = false;
};

}  // namespace sandforge::cli

// The sink of one try of a command: passes events on until the try is over.
#pragma once

#include "sandbox/process_impl.hpp"

namespace sandforge::sandbox {

class Attempt final : public ProcessSink {
 public:
  explicit Attempt(std::weak_ptr<ProcessImpl> process) : process_(std::move(process)) {}
  void close() noexcept { process_.reset(); }

  void on_started(ProcessId id, std::int64_t pid) override {
    if (const auto p = process_.lock()) p->on_started(std::move(id), pid);
  }
  void on_data(Channel channel, Bytes data) override {
    if (const auto p = process_.lock())
      p->on_data(channel, {reinterpret_cast<const char*>(data.data()), data.size()});
  }
  void on_writable() override {
    if (const auto p = process_.lock()) p->on_writable();
  }
  void on_exit(const Exit& exit) override {
    if (const auto p = process_.lock()) p->on_exit(exit);
  }
  void done(std::optional<Error> error, StreamEnd end) override {
    if (const auto p = process_.lock()) p->on_done(std::move(error), end);
  }

 private:
  std::weak_ptr<ProcessImpl> process_;
};

}  // namespace sandforge::sandbox

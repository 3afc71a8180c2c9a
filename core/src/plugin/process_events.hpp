// What a plugin reports about one process, put in order: on the lane, within the credit, and with
// one end, whatever the plugin does.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plugin/abi_backend.hpp"

namespace sandforge::plugin {

// The plugin's process and its stream; released when both the caller and the events are through.
class ProcessHandle {
 public:
  ProcessHandle(std::shared_ptr<SandboxCore> core, sf_process* process, sf_stream* stream) noexcept
      : core_(std::move(core)), process_(process), stream_(stream) {}
  ~ProcessHandle();
  ProcessHandle(const ProcessHandle&) = delete;
  ProcessHandle& operator=(const ProcessHandle&) = delete;

  SandboxCore& core() const noexcept { return *core_; }
  const std::shared_ptr<SandboxCore>& shared_core() const noexcept { return core_; }
  sf_process* process() const noexcept { return process_; }
  sf_stream* stream() const noexcept { return stream_; }
  void cancel() noexcept;

 private:
  const std::shared_ptr<SandboxCore> core_;
  sf_process* const process_;
  sf_stream* const stream_;
};

// Events take the short way, without a copy, when they come on the lane, nothing is waiting, and
// no call into the plugin about this process is on the stack. All others wait in a queue that the
// lane works off. What can wait is bounded by the credit.
class ProcessEvents : public std::enable_shared_from_this<ProcessEvents> {
 public:
  static constexpr char kKind = 0;

  ProcessEvents(std::shared_ptr<SandboxCore> core, std::uint64_t window,
                std::shared_ptr<ProcessSink> sink);

  // Called by the plugin, from any thread.
  void started(const sf_process_started* started);
  void data(std::uint32_t channel, std::uint32_t flags, sf_bytes bytes);
  void writable();
  void exited(const sf_exit* exit);
  void done(const sf_error* error, const sf_stream_end* end);
  void oops() noexcept;  // an event could not be copied

  // Called by the host.
  void start_returned(bool accepted) noexcept;
  void set_handle(std::weak_ptr<ProcessHandle> handle);
  void add_credit(std::uint64_t bytes) noexcept;
  Plugin& plugin() const noexcept { return plugin_; }

  // While one lives, a call into the plugin is on the stack of the lane.
  class Inside {
   public:
    explicit Inside(ProcessEvents& events) noexcept;
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    ProcessEvents& events_;
    const bool counted_;
  };

 private:
  class Entry;  // a callback of the plugin is running

  struct Started {
    ProcessId id;
    std::int64_t pid;
  };
  struct Data {
    Channel channel;
    std::vector<std::byte> bytes;
  };
  struct Writable {};
  struct Done {
    std::optional<Error> error;
    StreamEnd end;
  };
  struct Failed {
    Error error;
  };
  using Event = std::variant<Started, Data, Writable, Exit, Done, Failed>;

  bool account(std::uint32_t flags, sf_bytes bytes);
  bool may_go_direct();
  void push(Event event);
  void push_data(Channel channel, Bytes bytes);
  void fail(Fault fault, const std::string& what);
  void drain();
  void dispatch(Event& event);  // to the sink, if there is one still
  void finish(std::optional<Error> error, StreamEnd end);

  Plugin& plugin_;
  const Lane lane_;

  // On the lane.
  std::shared_ptr<SandboxCore> core_;
  std::shared_ptr<ProcessSink> sink_;
  std::weak_ptr<ProcessHandle> handle_;
  int inside_ = 0;

  // Anywhere.
  std::atomic<bool> starting_{true};
  std::atomic<bool> refused_{false};
  std::atomic<bool> in_callback_{false};

  std::mutex mutex_;
  std::deque<Event> queue_;
  bool draining_ = false;
  bool failed_ = false;
  bool seen_started_ = false;
  bool seen_exit_ = false;
  bool writable_waits_ = false;
  std::uint64_t granted_;
  std::uint64_t delivered_ = 0;
};

}  // namespace sandforge::plugin

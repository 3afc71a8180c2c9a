// The host's end of a connection: one process of a plugin, from its start to its end.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include <sys/types.h>

#include "plugin/abi_lane.hpp"
#include "runner/callee.hpp"
#include "runner/greeting.hpp"
#include "sandforge/runner.hpp"

namespace sandforge::runner {

// The last lines that a process wrote; the rest is counted and dropped.
class LastLines {
 public:
  void add(std::string_view bytes);
  // At most ten lines, valid UTF-8.
  std::string text() const;

 private:
  static constexpr std::size_t kKept = 8U << 10;
  std::string bytes_;
};

class HostPeer final : public Peer, private Callee, private wire::Handles {
 public:
  struct Launch {
    std::filesystem::path program;
    Hello hello;
    PluginPolicy policy;
    std::chrono::milliseconds ready_limit;
    std::chrono::milliseconds call_limit;
  };

  // Starts the process and waits until it is ready. An attempt that is not usable says why not;
  // then there is no peer. `host_failed`: that is no fault of the plugin, whose code did not run.
  static std::shared_ptr<HostPeer> start(plugin::Plugin& plugin,
                                         const std::shared_ptr<Runtime>& runtime, Launch launch,
                                         LoadAttempt& attempt, bool& host_failed);
  ~HostPeer() override;

  // Ends the process, in peace or by force, and waits for it. Not by what a frame calls directly.
  void stop();
  pid_t pid() const noexcept { return pid_.load(); }

  wire::Handles* handles() noexcept override { return this; }

 private:
  HostPeer(plugin::Plugin& plugin, Runtime& runtime, std::shared_ptr<Connection> connection,
           std::chrono::milliseconds call_limit);

  // The readers' threads: the first one starts the process, and stays until that has ended.
  void run(posix::Fd theirs, const Launch& launch);
  bool spawn(const Launch& launch, posix::Fd theirs);
  void watch_process();
  void end();
  void tell_end(const Error& loss);
  bool read_output(int output);
  bool on_frame(const wire::FrameView& frame);
  bool on_call(const wire::FrameView& frame);
  bool on_fault(const wire::FrameView& frame);
  void post(std::size_t bytes, std::function<void()> work);
  Error end_process(const std::string& why);
  std::string ending(int status, const std::string& why) const;
  void settle(Ready ready);
  void hung() noexcept override;
  void kill_now() noexcept;

  // Calls of the plugin, on our lane.
  bool serve(const wire::Header& header, std::string_view payload);
  bool log(std::string_view payload);

  std::shared_ptr<Peer> peer() noexcept override { return shared_from_this(); }
  sf_lane* lane() noexcept override { return lane_ref_.get(); }
  bool find(sf_provider*&, const sf_provider_vtbl*&, Id) override { return false; }
  bool find(sf_sandbox*&, const sf_sandbox_vtbl*&, Id) override { return false; }
  bool find(sf_process*&, const sf_process_vtbl*&, Id) override { return false; }
  bool find(sf_context*& self, const sf_context_vtbl*& table, Id target) override;
  void* object(const sf_provider*, Id) override { return nullptr; }
  void* object(const sf_sandbox*, Id) override { return nullptr; }
  void* object(const sf_process*, Id) override { return nullptr; }
  void* object(const sf_host*, Id) override { return static_cast<sf_host*>(&plugin().host); }
  const void* table(std::uint8_t struct_number) override;
  Result<void> admit() override;
  void keep(Id call, sf_op* op, const char*) override {
    if (op != nullptr) operations_.emplace(call, op);
  }
  void keep(Id, sf_process*, sf_stream*) override {}
  void keep(Id, sf_stream*) override {}
  void prepare(Remote& remote) override;

  void write(wire::Writer& out, sf_context* context) override;
  sf_context* read_context(wire::Reader& in) override;

  const Lane lane_;
  const plugin::LaneRef lane_ref_;
  std::thread reader_;
  std::promise<void> end_;
  std::shared_future<void> has_ended_{end_.get_future()};
  posix::Fd output_pipe_, process_;
  std::atomic<pid_t> pid_{-1};
  std::mutex pid_mutex_;
  LastLines output_;
  std::string ending_;  // how it ended, in words
  std::promise<Ready> ready_;
  bool settled_ = false;
  bool host_failed_ = true;  // see start(); until it is settled
  std::atomic<bool> hung_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> queued_{0};
  std::array<std::uint64_t, plugin::kFaultKinds> faults_{};  // by kind, of this process

  std::mutex contexts_mutex_;
  std::unordered_map<Id, sf_context*> contexts_;  // held for the plugin
  std::unordered_map<Id, sf_op*> operations_;     // on our lane
};

}  // namespace sandforge::runner

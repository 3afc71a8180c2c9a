// How a sandbox takes a command: runs it by itself, or hands it to the host's process service.
#pragma once

#include <sandforge/ext/processes.h>

#include "launch.hpp"

namespace sandforge::plugin {
namespace detail {

// A call that ends with a process: spawn or attach. Exactly one decision is taken during the call.
class Acceptance {
 public:
  Acceptance(Lane lane, std::uint64_t window, const sf_stream_events* io,
             const sf_process_events* events)
      : lane_(std::move(lane)), window_(window), io_(io), events_(events) {}
  ~Acceptance() {
    if (channel_ != nullptr) channel_->abandon();
  }
  Acceptance(const Acceptance&) = delete;
  Acceptance& operator=(const Acceptance&) = delete;

  /*
   * Takes the command. begin runs on the lane after this call has returned to the host, with the
   * stream of the command; what it throws ends the command with that error.
   */
  void accept(std::function<void(ProcessIo)> begin) {
    must_be_undecided();
    channel_ = new Channel(lane_, *io_, events_, window_);
    begin_ = std::move(begin);
  }

  // For the layer.
  const Lane& lane() const noexcept { return lane_; }
  bool is_delegated() const noexcept { return delegated_ != nullptr; }
  void publish(sf_process** process, std::chrono::milliseconds timeout) {
    if (delegated_ != nullptr) {
      *process = delegated_;
      return;
    }
    if (channel_ == nullptr) {
      throw Error(Code::internal, "spawn neither accepted the command nor passed it on");
    }
    lane_.post([channel = channel_, begin = std::move(begin_), timeout] {
      const ProcessIo io(channel);
      try {
        if (timeout.count() > 0) channel->limit_time(timeout);
        begin(io);
      } catch (...) {
        io.fail(std::current_exception());
      }
    });
    *process = std::exchange(channel_, nullptr)->process();
  }

 protected:
  void must_be_undecided() const {
    if (channel_ == nullptr && delegated_ == nullptr) return;
    throw Error(Code::internal, "a command was accepted or passed on twice");
  }
  const sf_stream_events* io() const noexcept { return io_; }
  const sf_process_events* events() const noexcept { return events_; }
  void delegated(sf_process* process) noexcept { delegated_ = process; }

 private:
  const Lane lane_;
  const std::uint64_t window_;
  const sf_stream_events* io_;
  const sf_process_events* events_;
  std::function<void(ProcessIo)> begin_;
  Channel* channel_ = nullptr;
  sf_process* delegated_ = nullptr;
};

}  // namespace detail

/*
 * A command that the host wants to run, during the call that brings it: decide with accept or
 * delegate, or throw to refuse it. Not to be kept.
 */
class Spawn : public detail::Acceptance {
 public:
  Spawn(Lane on, const sf_command& raw, const sf_stream_events* io, const sf_process_events* events)
      : Acceptance(std::move(on), detail::read_appendable(&raw).window, io, events),
        command_(raw) {}

  // A copy, which may be changed before it is passed on.
  Command& command() noexcept { return command_; }

  /*
   * Lets the host's process service run a command: this one as it was changed, or another. Its
   * events go straight to the host, so no thread is held here and nothing is copied. The service
   * inherits no environment and wants an absolute cwd.
   */
  void delegate() { delegate(command_); }
  void delegate(const Command& command) {
    pass_on(command, [](const sf_process_service& service, auto... rest) {
      return service.spawn(detail::services().host, rest...);
    });
  }
  // In a group, which must be open: HostCommands (host_commands.hpp) does that and more.
  void delegate(const Command& command, std::string_view group) {
    pass_on(command, [group](const sf_process_service& service, sf_lane* on, auto... rest) {
      return service.spawn_in(detail::services().host, on, to_str(group), rest...);
    });
  }

  /*
   * Hands the command to objects of the plugin's own at the boundary, which keep its rules by
   * themselves: take(command, io, events, process, err) as sf_sandbox's spawn.
   */
  template <class Take>
  void hand_over(Take take) {
    must_be_undecided();
    const detail::CommandView raw(command_);
    detail::ErrorCatcher errors;
    sf_process* process = nullptr;
    errors.check(take(*raw.get(), *io(), *events(), &process, errors.sink()));
    delegated(process);
  }

 private:
  template <class Call>
  void pass_on(const Command& command, Call call) {
    must_be_undecided();
    const auto& service = detail::need(detail::services().process, SF_SERVICE_PROCESS);
    const detail::CommandView raw(command);
    detail::ErrorCatcher errors;
    sf_process* process = nullptr;
    errors.check(call(service, lane().get(), raw.get(), io(), events(), &process, errors.sink()));
    delegated(process);
  }

  Command command_;
};

// A process to attach to, by its id and from a cursor in each output.
class Attach : public detail::Acceptance {
 public:
  Attach(Lane on, std::string_view process, sf_cursor from, std::uint64_t window,
         const sf_stream_events* io, const sf_process_events* events)
      : Acceptance(std::move(on), window, io, events), id_(process), from_(from) {}
  const std::string& id() const noexcept { return id_; }
  std::uint64_t out_cursor() const noexcept { return from_.out; }
  std::uint64_t err_cursor() const noexcept { return from_.err; }

 private:
  std::string id_;
  sf_cursor from_;
};

namespace detail {

// Lets decide() take the call and publishes what it decided. Throws what refuses the command.
template <class Call, class Decide>
void take_process(Call& call, sf_process** process, std::chrono::milliseconds timeout,
                  Decide decide) {
  try {
    decide();
  } catch (...) {
    // A delegated process exists already and its events will come: the call cannot fail any more.
    if (!call.is_delegated()) throw;
    report_stray(std::current_exception(), "spawn");
  }
  call.publish(process, timeout);
}

}  // namespace detail
}  // namespace sandforge::plugin

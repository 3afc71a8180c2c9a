// One command from its first try to its end.
//
// Everything on the sandbox's lane, but for the getters. A provider holds an Attempt, never this
// object: so late events of an earlier try, or after the end, reach nobody. While somebody waits
// for the end (or for room) the object keeps itself alive; else it lives as long as a user, or the
// sandbox's list of processes, holds it.
#pragma once

#include <list>
#include <mutex>
#include <stop_token>
#include <vector>

#include "sandbox/deadlines.hpp"
#include "sandbox/ending.hpp"
#include "sandbox/input.hpp"
#include "sandbox/machine.hpp"
#include "sandbox/output.hpp"
#include "sandforge/process.hpp"

namespace sandforge::sandbox {

class Attempt;

class ProcessImpl final : public Process, public std::enable_shared_from_this<ProcessImpl> {
 public:
  // What to run, and what becomes of its output; checked.
  struct Plan {
    Command command;
    OutputFn on_stdout;
    OutputFn on_stderr;
    std::stop_token stop;
    std::uint64_t retained = 0;
    std::optional<std::uint64_t> output_limit;
    Clock::time_point called;  // when the caller asked: the deadline counts from here
    bool manual_credit = false;
    bool listed = false;            // shown to those who list processes
    bool reader = false;            // one more of a process that others started
    bool stdin_if_offered = false;  // nobody asked for the pipe: it may be missing
  };

  ProcessImpl(Lane lane, std::shared_ptr<Deadlines> deadlines, Plan plan);

  // Runs the command and gives its result.
  void execute(const std::shared_ptr<CommandHost>& host, Handler<CommandResult> done);
  // Runs the command and answers once it has started.
  void spawn(const std::shared_ptr<CommandHost>& host, Handler<std::shared_ptr<Process>> done);
  // Takes over a process of an earlier host.
  Result<void> attach(const std::shared_ptr<CommandHost>& host, const Machine& machine,
                      const ProcessInfo& info, OutputCursor from = {});

  void wait(WaitOptions options, Handler<CommandResult> done);
  void kill(Handler<bool> done);
  // Its machine is gone or stopped: it ends by itself soon, or else is given up.
  void machine_ended();
  bool ended() const noexcept { return final_.has_value(); }
  bool listed() const noexcept { return plan_.listed; }
  bool reader() const noexcept { return plan_.reader; }
  std::uint64_t epoch() const noexcept { return machine_.epoch; }
  std::uint64_t memory() const { return output_.kept_bytes(); }
  ProcessInfo info() const;

  ProcessId id() const override;
  std::int64_t pid() const override;
  const std::string& command() const override { return text_; }
  bool running() const override;
  std::optional<int> exit_code() const override;
  std::string out() const override { return output_.bytes(Channel::out); }
  std::string err() const override { return output_.bytes(Channel::err); }
  std::uint64_t stdout_dropped_bytes() const override { return output_.dropped(Channel::out); }
  std::uint64_t stderr_dropped_bytes() const override { return output_.dropped(Channel::err); }
  void async_wait(WaitOptions options, Handler<CommandResult> done) override;
  void async_write(std::string data, Handler<void> done) override;
  void async_close_stdin(Handler<void> done) override;
  void async_kill(Handler<bool> done) override;
  void async_signal(int signal, bool tree, Handler<void> done) override;
  void async_resize(std::uint32_t cols, std::uint32_t rows, Handler<void> done) override;
  void grant(std::uint64_t bytes) override;

 private:
  friend class Attempt;
  using StopCallback = std::stop_callback<std::function<void()>>;
  struct Waiter {
    WaitOptions options;
    Handler<CommandResult> done;
    std::optional<Error> callback_error;
    std::optional<StopCallback> on_stop;
  };

  // Sending: process_send.cpp
  void launch(const std::shared_ptr<CommandHost>& host);
  void fit(const std::shared_ptr<CommandHost>& host, const Features& features);
  void try_start(const std::shared_ptr<CommandHost>& host);
  void send(const std::shared_ptr<CommandHost>& host, const Machine& machine);
  void not_started(Error error);
  bool send_again(const Error& error);
  void end_before_start(Status code);
  void mark_started();

  // Events of the provider: process_events.cpp
  void on_started(ProcessId id, std::int64_t pid);
  void on_data(Channel channel, std::string_view data);
  void on_writable();
  void on_exit(const Exit& exit);
  void on_done(std::optional<Error> error, StreamEnd end);
  void deliver(Channel channel, std::string_view data);
  void consumed(std::uint64_t bytes);

  // Ending: process_end.cpp
  void watch_stop(const std::stop_token& token, std::optional<StopCallback>& callback);
  void cancel();
  void end_within(std::chrono::milliseconds delay);
  void set_watchdog(Clock::time_point when);
  void drop_watchdog();
  void give_up();
  void conclude(Ending ending);
  void finish(Result<CommandResult> result);
  void answer();
  CommandResult with_output(CommandResult result) const;
  void require(std::string_view feature, std::string_view what, Handler<void> done);
  void send_signal(int signal, bool tree, Handler<void> done);
  Error ended_error() const;
  Error no_stdin() const;
  std::string name() const;
  std::chrono::milliseconds grace_bound() const;

  const Lane lane_;
  const std::shared_ptr<Deadlines> deadlines_;
  Plan plan_;
  const std::string text_;  // the command, for reading
  Output output_;
  Input input_;

  std::weak_ptr<CommandHost> host_;
  Machine machine_;
  std::shared_ptr<Attempt> attempt_;
  std::shared_ptr<ProcessBackend> process_;
  std::shared_ptr<ProcessImpl> self_;  // while somebody waits
  std::optional<StopCallback> on_stop_;
  std::optional<Deadlines::Ticket> watchdog_;
  std::optional<Clock::time_point> deadline_;
  Clock::time_point sent_at_;

  Handler<std::shared_ptr<Process>> spawned_;
  std::list<Waiter> waiters_;
  std::optional<Result<CommandResult>> final_;  // without output
  std::optional<Exit> exit_;
  std::optional<Error> callback_error_;

  std::uint64_t total_ = 0;  // bytes of output that were taken
  std::uint64_t owed_ = 0;   // bytes of credit to give back
  int sends_ = 0;
  bool restarted_ = false;  // after a machine that was stopped from outside
  bool started_ = false;
  bool may_have_started_ = false;  // over all tries
  bool cancelled_ = false;
  bool over_limit_ = false;
  bool machine_destroyed_ = false;

  mutable std::mutex mutex_;  // of what follows
  ProcessId id_;
  std::int64_t pid_ = 0;
  bool running_ = false;
  std::optional<int> exit_code_;
};

}  // namespace sandforge::sandbox

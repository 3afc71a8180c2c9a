// A pretend process: the test, or a program given to the FakeWorld, says what it does.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "sandforge/backend.hpp"
#include "sandforge/runtime.hpp"

namespace sandforge::fake {

// Test side: every function from any thread; events go out on the lane, in order, output only as
// far as there is credit.
class Process : public ProcessBackend, public std::enable_shared_from_this<Process> {
 public:
  Process(Lane lane, Command c, ProcessId id, std::int64_t pid, std::shared_ptr<ProcessSink> sink)
      : command(std::move(c)),
        id_(std::move(id)),
        pid_(pid),
        lane_(std::move(lane)),
        first_sink_(sink),
        sink_(std::move(sink)) {}

  const Command command;

  std::string text() const {
    if (command.shell) return *command.shell;
    std::string all;
    for (const auto& word : command.argv)
      all += (all.empty() ? "" : " ") + word;
    return all;
  }
  const ProcessId& id() const { return id_; }
  std::int64_t pid() const { return pid_; }

  void start() {
    on_lane([](Process& p) {
      if (!std::exchange(p.started_, true) && p.sink_) p.sink_->on_started(p.id_, p.pid_);
    });
  }
  void out(std::string data) { output(Channel::out, std::move(data)); }
  void err(std::string data) { output(Channel::err, std::move(data)); }
  void exit(int code) {
    Exit exit;
    exit.outcome = Outcome::exited;
    exit.code = code;
    end(exit);
  }
  void signaled(int signal, bool killed) {
    Exit exit;
    exit.outcome = Outcome::signaled;
    exit.signal = signal;
    exit.killed = killed;
    end(exit);
  }
  // After what is waiting for credit.
  void end(Exit exit) {
    on_lane([exit](Process& p) {
      if (p.exit_) return;
      p.exit_ = exit;
      p.pump();
    });
  }
  // At once; without a start, the command did not run.
  void fail(Error error) {
    on_lane([error = std::move(error)](Process& p) { p.finish(error); });
  }
  void only_exit_event(Exit exit) {
    on_lane([exit](Process& p) {
      if (p.sink_) p.sink_->on_exit(exit);
    });
  }
  // Events against the rules, after the end.
  void late_output(std::string data) {
    on_lane([data = std::move(data), sink = first_sink_](Process&) {
      sink->on_data(Channel::out, std::as_bytes(std::span(data)));
    });
  }
  void writable(std::size_t room) {
    on_lane([room](Process& p) {
      p.room_ = room;
      if (p.sink_) p.sink_->on_writable();
    });
  }

  // What the process read; closed: end of file.
  std::string input() const {
    const std::lock_guard lock(mutex_);
    return input_;
  }
  bool input_closed() const {
    const std::lock_guard lock(mutex_);
    return input_closed_;
  }
  int cancels() const {
    const std::lock_guard lock(mutex_);
    return cancels_;
  }
  std::vector<std::pair<int, bool>> signals() const {
    const std::lock_guard lock(mutex_);
    return signals_;
  }
  std::uint64_t granted() const {
    const std::lock_guard lock(mutex_);
    return granted_;
  }

  // Before the first event, on the lane. Defaults behave like a process.
  bool ignores_cancel = false;
  bool ignores_signals = false;
  bool refuses_signals = false;            // unsupported
  std::function<void(Process&)> on_input;  // on the lane, after each write and the close

  void set_room(std::size_t room) { room_ = room; }

  // Core's side.
  void grant(std::uint64_t bytes) noexcept override {
    on_lane([bytes](Process& p) {
      {
        const std::lock_guard lock(p.mutex_);
        p.granted_ += bytes;
      }
      p.credit_ += bytes;
      p.pump();
    });
  }
  Result<std::size_t> write(Bytes data) override {
    if (exit_) return Error(Status::conflict, "the process has ended");
    const std::size_t n = std::min(data.size(), room_);
    if (room_ != SIZE_MAX) room_ -= n;
    {
      const std::lock_guard lock(mutex_);
      input_.append(reinterpret_cast<const char*>(data.data()), n);
    }
    if (on_input) on_input(*this);
    return n;
  }
  Result<void> shutdown_write() override {
    {
      const std::lock_guard lock(mutex_);
      input_closed_ = true;
    }
    if (on_input) on_input(*this);
    return {};
  }
  void cancel() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      ++cancels_;
    }
    if (ignores_cancel) return;
    Exit exit;
    exit.outcome = Outcome::cancelled;
    exit.signal = 15;
    exit.killed = true;
    cut(exit);
  }
  void signal(int signal, bool tree, Handler<void> done) override {
    {
      const std::lock_guard lock(mutex_);
      signals_.emplace_back(signal, tree);
    }
    Result<void> answer;
    if (refuses_signals) {
      answer = Error(Status::unsupported, "no signals here");
    } else if (exit_) {
      answer = Error(Status::gone, "the process has ended");
    } else if (!ignores_signals) {
      signaled(signal, true);
    }
    on_lane([answer = std::move(answer), done = std::make_shared<Handler<void>>(std::move(done))](
                Process&) { std::move (*done)(answer); });
  }
  void resize(std::uint32_t, std::uint32_t, Handler<void> done) override {
    on_lane([done = std::make_shared<Handler<void>>(std::move(done))](Process&) {
      std::move (*done)(Result<void>());
    });
  }

  // Ends it and drops what waits for credit.
  void cut(Exit exit) {
    on_lane([exit](Process& p) {
      for (const auto& piece : p.waiting_)
        p.end_.dropped += piece.second.size();
      p.waiting_.clear();
      if (!p.exit_) p.exit_ = exit;
      p.pump();
    });
  }

 private:
  void on_lane(std::function<void(Process&)> work) {
    lane_.post([self = shared_from_this(), work = std::move(work)] { work(*self); });
  }
  void output(Channel channel, std::string data) {
    on_lane([channel, data = std::move(data)](Process& p) {
      if (p.exit_) return;
      p.waiting_.emplace_back(channel, data);
      p.pump();
    });
  }
  void pump() {
    while (sink_ && !waiting_.empty() && credit_ > 0) {
      auto& [channel, data] = waiting_.front();
      const std::size_t n = std::min<std::uint64_t>(credit_, data.size());
      const std::string piece = data.substr(0, n);
      credit_ -= n;
      end_.delivered += n;
      const Channel to = channel;
      data.erase(0, n);
      if (data.empty()) waiting_.pop_front();
      if (n > 0) sink_->on_data(to, std::as_bytes(std::span(piece)));
    }
    if (!exit_ || !waiting_.empty() || !sink_) return;
    sink_->on_exit(*exit_);
    finish(std::nullopt);
  }
  void finish(std::optional<Error> error) {
    if (!sink_) return;
    const auto sink = std::exchange(sink_, nullptr);
    sink->done(std::move(error), end_);
  }

  const ProcessId id_;
  const std::int64_t pid_;
  const Lane lane_;
  const std::shared_ptr<ProcessSink> first_sink_;
  // On the lane.
  std::shared_ptr<ProcessSink> sink_;
  bool started_ = false;
  std::optional<Exit> exit_;
  std::deque<std::pair<Channel, std::string>> waiting_;
  std::uint64_t credit_ = command.window;
  StreamEnd end_;
  std::size_t room_ = SIZE_MAX;

  mutable std::mutex mutex_;
  std::string input_;
  bool input_closed_ = false;
  int cancels_ = 0;
  std::uint64_t granted_ = 0;
  std::vector<std::pair<int, bool>> signals_;
};

}  // namespace sandforge::fake

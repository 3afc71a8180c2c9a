#include "sandbox/process_impl.hpp"

#include "sandbox/features.hpp"
#include "sandbox/lane_handler.hpp"
#include "sandforge/support/shell.hpp"

namespace sandforge::sandbox {
namespace {

std::string readable(const Command& command) {
  if (command.shell) return *command.shell;
  std::string text;
  for (const auto& word : command.argv) {
    if (!text.empty()) text += ' ';
    text += shell_quote(word);
  }
  return text;
}

Error conflict(std::string message, std::string reason) {
  return Error(Status::conflict, std::move(message), std::move(reason));
}

}  // namespace

ProcessImpl::ProcessImpl(Lane lane, std::shared_ptr<Deadlines> deadlines, Plan plan)
    : lane_(std::move(lane)),
      deadlines_(std::move(deadlines)),
      plan_(std::move(plan)),
      text_(readable(plan_.command)),
      output_(plan_.retained) {}

// ---- Getters

ProcessId ProcessImpl::id() const {
  const std::lock_guard lock(mutex_);
  return id_;
}

std::int64_t ProcessImpl::pid() const {
  const std::lock_guard lock(mutex_);
  return pid_;
}

bool ProcessImpl::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

std::optional<int> ProcessImpl::exit_code() const {
  const std::lock_guard lock(mutex_);
  return exit_code_;
}

ProcessInfo ProcessImpl::info() const {
  ProcessInfo info;
  info.id = id();
  info.pid = pid();
  info.command = text_;
  info.tag = plan_.command.tag;
  info.running = running();
  info.detached = plan_.command.detach;
  info.exit = exit_;
  return info;
}

// ---- Calls of users

void ProcessImpl::async_wait(WaitOptions options, Handler<CommandResult> done) {
  post(lane_,
       [self = shared_from_this(), options = std::move(options), done = std::move(done)]() mutable {
         self->wait(std::move(options), std::move(done));
       });
}

void ProcessImpl::async_kill(Handler<bool> done) {
  post(lane_, [self = shared_from_this(), done = std::move(done)]() mutable {
    auto& process = *self;
    process.require(feature::kKill, "killing processes",
                    [self = std::move(self), done = std::move(done)](Result<void> r) mutable {
                      if (!r) return std::move(done)(std::move(r).error());
                      self->kill(std::move(done));
                    });
  });
}

void ProcessImpl::async_write(std::string data, Handler<void> done) {
  post(lane_,
       [self = shared_from_this(), data = std::move(data), done = std::move(done)]() mutable {
         if (!self->plan_.command.stdin_pipe && !self->plan_.command.tty)
           return std::move(done)(self->no_stdin());
         if (self->ended() || !self->process_) return std::move(done)(self->ended_error());
         if (self->input_.closed())
           return std::move(done)(conflict("the standard input was closed", "stdin.closed"));
         auto& process = *self->process_;
         auto& input = self->input_;
         // The handler keeps the object while the write waits for room.
         input.write(process, std::move(data),
                     [self = std::move(self), done = std::move(done)](Result<void> r) mutable {
                       std::move(done)(std::move(r));
                     });
       });
}

void ProcessImpl::async_close_stdin(Handler<void> done) {
  post(lane_, [self = shared_from_this(), done = std::move(done)]() mutable {
    if (!self->plan_.command.stdin_pipe && !self->plan_.command.tty)
      return std::move(done)(self->no_stdin());
    if (self->input_.shut()) return std::move(done)(Result<void>());
    if (self->ended() || !self->process_) return std::move(done)(self->ended_error());
    auto& process = *self->process_;
    auto& input = self->input_;
    input.close(process, [self = std::move(self), done = std::move(done)](Result<void> r) mutable {
      std::move(done)(std::move(r));
    });
  });
}

void ProcessImpl::async_signal(int signal, bool tree, Handler<void> done) {
  post(lane_, [self = shared_from_this(), signal, tree, done = std::move(done)]() mutable {
    if (signal < 1 || signal > 64)
      return std::move(done)(Error(Status::invalid, "no such signal", "signal.invalid"));
    auto& process = *self;
    process.require(
        feature::kSignal, "signals",
        [self = std::move(self), signal, tree, done = std::move(done)](Result<void> r) mutable {
          if (!r) return std::move(done)(std::move(r));
          self->send_signal(signal, tree, std::move(done));
        });
  });
}

void ProcessImpl::send_signal(int signal, bool tree, Handler<void> done) {
  if (ended() || !process_) return std::move(done)(ended_error());
  process_->signal(signal, tree,
                   [self = shared_from_this(), done = std::move(done)](Result<void> r) mutable {
                     if (!r && r.error().code == Status::gone) r = self->ended_error();
                     std::move(done)(std::move(r));
                   });
}

// Of a sandbox that is gone nobody is left to tell; its provider answers for itself.
void ProcessImpl::require(std::string_view name, std::string_view what, Handler<void> done) {
  const auto host = host_.lock();
  if (!host) return std::move(done)(Result<void>());
  host->features([host, name, what, done = std::move(done)](Result<Features> features) mutable {
    if (!features) return std::move(done)(std::move(features).error());
    if (auto bad = check_feature(name, what, host->provider(), *features))
      return std::move(done)(*std::move(bad));
    std::move(done)(Result<void>());
  });
}

void ProcessImpl::async_resize(std::uint32_t cols, std::uint32_t rows, Handler<void> done) {
  post(lane_, [self = shared_from_this(), cols, rows, done = std::move(done)]() mutable {
    if (cols == 0 || rows == 0)
      return std::move(done)(
          Error(Status::invalid, "a terminal needs columns and rows", "tty.invalid"));
    if (!self->plan_.command.tty)
      return std::move(done)(conflict("the process has no terminal", "tty.absent"));
    if (self->ended() || !self->process_) return std::move(done)(self->ended_error());
    self->process_->resize(cols, rows, std::move(done));
  });
}

void ProcessImpl::grant(std::uint64_t bytes) {
  post(lane_, [self = shared_from_this(), bytes] {
    if (self->process_) self->process_->grant(bytes);
  });
}

Error ProcessImpl::no_stdin() const {
  return conflict("Process " + name() + " does not have stdin available", "stdin.absent");
}

Error ProcessImpl::ended_error() const {
  const auto code = exit_code();
  if (code)
    return conflict("Process " + name() + " has already exited with code " + std::to_string(*code),
                    "process.ended");
  const bool known = final_ && final_->ok();
  return conflict("Process " + name() + " has already ended: " +
                      std::string(to_string(known ? final_->value().outcome : Outcome::unknown)),
                  "process.ended");
}

std::string ProcessImpl::name() const {
  const std::lock_guard lock(mutex_);
  return pid_ != 0 ? std::to_string(pid_) : id_.str();
}

}  // namespace sandforge::sandbox

#include "faults/stream.hpp"

#include <algorithm>

#include "faults/call.hpp"

namespace sandforge::faults {
namespace {

using Clock = std::chrono::steady_clock;

// The second of two deliveries: nobody listens to it.
class Nobody final : public ProcessSink {
 public:
  void on_started(ProcessId, std::int64_t) override {}
  void on_data(Channel, Bytes) override {}
  void on_writable() override {}
  void on_exit(const Exit&) override {}
  void done(std::optional<Error>, StreamEnd) override {}
};

Error not_there(const char* what) {
  return Error(Status::conflict, std::string(what) + ": the process has not started",
               "fault.not_started");
}

}  // namespace

Stream::Stream(Ground ground, Lane lane, std::shared_ptr<ProcessSink> outer, Launch launch)
    : ground_(std::move(ground)),
      lane_(std::move(lane)),
      outer_(std::move(outer)),
      launch_(std::move(launch)) {}

Stream::~Stream() {
  ground_.script->impl().remove(this);
}

// ---- Launching

Result<void> Stream::run(std::optional<Shot> shot) {
  ground_.script->impl().add(shared_from_this());
  shot_ = std::move(shot);
  if (!shot_) return deliver();
  switch (shot_->kind) {
    case FaultKind::refuse:
      fail_later(error_of(*shot_, Status::transport_lost, false));
      return {};
    case FaultKind::drop:
      go_silent(*shot_);
      return {};
    case FaultKind::half_open: {
      auto delivered = deliver();
      if (delivered) go_silent(*shot_);
      return delivered;
    }
    case FaultKind::delay:
      timer_ = ground_.timer(lane_, shot_->rule.time,
                             [self = shared_from_this()](const Result<void>& result) {
                               self->timer_.reset();
                               if (result) self->deliver_late();
                             });
      return {};
    case FaultKind::crash:
      ground_.script->impl().crash();
      return {};
    case FaultKind::duplicate: {
      const Launch again = launch_;
      auto first = deliver();
      // Its handle is dropped at once: nobody reads what it writes, or whether it could be had.
      if (first) static_cast<void>(again(std::make_shared<Nobody>()));
      return first;
    }
    default:
      return deliver();
  }
}

Result<void> Stream::deliver() {
  output_ = ground_.next(FaultPoint::output);
  end_ = ground_.next(FaultPoint::end);
  // Once only: what it holds must not be held by a process that never ends.
  auto launched = std::exchange(launch_, nullptr)(shared_from_this());
  if (!launched) return std::move(launched).error();
  inner_ = *std::move(launched);
  delivered_ = true;
  return {};
}

void Stream::deliver_late() {
  if (!outer_) return;  // it was cancelled meanwhile
  if (auto delivered = deliver(); !delivered) return fail(std::move(delivered).error());
  if (granted_ != 0) inner_->grant(std::exchange(granted_, 0));
  if (shut_) {
    if (auto closed = inner_->shutdown_write(); !closed) return fail(std::move(closed).error());
  }
  if (std::exchange(write_waits_, false)) outer_->on_writable();
}

// ---- Striking

void Stream::fail(Error error) {
  late_.clear();
  finish(std::move(error), {passed_, 0}, false);
}

void Stream::fail_later(Error error) {
  lane_.post([self = shared_from_this(), error = std::move(error)] { self->fail(error); });
}

// From here on nothing comes back; the provider finds out after the time, if there is one.
void Stream::go_silent(const Shot& shot) {
  silent_ = true;
  if (!shot.rule.time) return;
  const bool dropped = shot.kind == FaultKind::drop;
  Error error = error_of(shot, dropped ? Status::timeout : Status::transport_lost, true);
  timer_ = ground_.timer(lane_, shot.rule.time,
                         [self = shared_from_this(), error](const Result<void>& result) {
                           self->timer_.reset();
                           if (result) self->fail(error);
                         });
}

void Stream::strike() {
  const Shot shot = *std::exchange(output_, std::nullopt);
  ground_.script->impl().note(shot);
  if (shot.kind == FaultKind::cut) return fail(error_of(shot, Status::transport_lost, true));
  if (shot.kind == FaultKind::half_open) return go_silent(shot);
  ground_.script->impl().crash();
}

void Stream::crash() {
  lane_.post([self = shared_from_this()] { self->fail(crash_error(true)); });
}

// ---- Events of the provider

void Stream::on_started(ProcessId id, std::int64_t pid) {
  started_ = true;
  if (silent()) return;
  if (shot_ && shot_->kind == FaultKind::lose)
    return fail(error_of(*shot_, Status::transport_lost, true));
  tell(std::nullopt, [id = std::move(id), pid](ProcessSink& sink) { sink.on_started(id, pid); });
  if (output_ && output_->kind != FaultKind::delay && output_->rule.after == 0) strike();
}

void Stream::on_data(Channel channel, Bytes data) {
  if (silent()) return;
  const bool strikes = output_ && output_->kind != FaultKind::delay;
  const bool now = strikes && data.size() >= output_->rule.after - passed_;
  if (now) data = data.first(static_cast<std::size_t>(output_->rule.after - passed_));
  // Once, however many pieces it keeps back.
  const auto delay = delay_of(output_);
  if (delay && passed_ == 0) ground_.script->impl().note(*output_);
  passed_ += data.size();
  if (data.empty()) {
    // It strikes before the first byte of this piece.
  } else if (!delay && late_.empty()) {
    outer_->on_data(channel, data);
  } else {
    tell(delay, [channel, kept = std::vector<std::byte>(data.begin(), data.end())](
                    ProcessSink& sink) { sink.on_data(channel, kept); });
  }
  if (now && outer_) strike();
}

void Stream::on_writable() {
  if (silent()) return;
  tell(std::nullopt, [](ProcessSink& sink) { sink.on_writable(); });
}

void Stream::on_exit(const Exit& exit) {
  if (silent() || end_is(FaultKind::lose) || end_is(FaultKind::half_open) ||
      end_is(FaultKind::crash))
    return;
  const bool twice = end_is(FaultKind::duplicate);
  tell(delay_of(end_), [exit, twice](ProcessSink& sink) {
    sink.on_exit(exit);
    if (twice) sink.on_exit(exit);
  });
}

void Stream::done(std::optional<Error> error, StreamEnd end) {
  lane_.post([self = shared_from_this()] { self->inner_.reset(); });
  if (silent()) return;
  // Nothing has come back yet: the answer is lost, whatever it was.
  if (shot_ && shot_->kind == FaultKind::lose && !started_)
    return fail(error_of(*shot_, Status::transport_lost, true));
  const bool regular = end_ && started_;
  if (regular) ground_.script->impl().note(*end_);
  if (regular && end_is(FaultKind::crash)) return ground_.script->impl().crash();
  if (regular && end_is(FaultKind::half_open)) return go_silent(*end_);
  if (regular && end_is(FaultKind::lose)) error = error_of(*end_, Status::transport_lost, true);
  const bool twice = regular && end_is(FaultKind::duplicate);
  tell(delay_of(end_), [self = shared_from_this(), error = std::move(error), end,
                        twice](ProcessSink&) { self->finish(error, end, twice); });
}

void Stream::finish(std::optional<Error> error, StreamEnd end, bool twice) {
  const auto outer = std::exchange(outer_, nullptr);
  if (!outer) return;
  launch_ = nullptr;
  if (timer_) std::exchange(timer_, nullptr)->cancel();
  ground_.script->impl().remove(this);
  answer_signals();
  outer->done(error, end);
  if (twice) outer->done(std::move(error), end);
  // Not here: this may be an event of it.
  lane_.post([self = shared_from_this()] { self->inner_.reset(); });
}

std::optional<std::chrono::milliseconds> Stream::delay_of(const std::optional<Shot>& shot) const {
  return shot && shot->kind == FaultKind::delay ? shot->rule.time : std::nullopt;
}

// In order: what follows something late is late, too.
void Stream::tell(std::optional<std::chrono::milliseconds> delay, Event event) {
  if (!delay && late_.empty()) return event(*outer_);
  auto due = Clock::now() + delay.value_or(std::chrono::milliseconds(0));
  if (!late_.empty()) due = std::max(due, late_.back().due);
  late_.push_back({due, std::move(event)});
  if (!late_timer_) tell_due();
}

void Stream::tell_due() {
  while (!late_.empty() && outer_ && late_.front().due <= Clock::now()) {
    const Event event = std::move(late_.front().event);
    late_.pop_front();
    const auto sink = outer_;
    event(*sink);
  }
  if (late_.empty() || !outer_) return;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(late_.front().due - Clock::now());
  late_timer_ = ground_.timer(lane_, std::max(left, std::chrono::milliseconds(0)),
                              [self = shared_from_this()](const Result<void>& result) {
                                self->late_timer_.reset();
                                if (result) self->tell_due();
                              });
}

// ---- The core's side

void Stream::grant(std::uint64_t bytes) {
  if (silent()) return;
  if (inner_) return inner_->grant(bytes);
  granted_ += bytes;
}

Result<std::size_t> Stream::write(Bytes data) {
  if (!outer_) return Error(Status::conflict, "the process has ended", "process.ended");
  if (const auto shot = ground_.next(FaultPoint::input)) {
    switch (shot->kind) {
      case FaultKind::drop:
        return data.size();
      case FaultKind::cut:
        fail_later(error_of(*shot, Status::transport_lost, true));
        return data.size();
      case FaultKind::crash:
        ground_.script->impl().crash();
        return data.size();
      default:
        return error_of(*shot, Status::transport_lost, false);
    }
  }
  if (!silent_ && inner_) return inner_->write(data);
  write_waits_ = true;
  return std::size_t{0};
}

Result<void> Stream::shutdown_write() {
  if (!silent_ && inner_) return inner_->shutdown_write();
  shut_ = true;
  return {};
}

void Stream::cancel() {
  if (!outer_) return;
  if (ground_.next(FaultPoint::cancel)) return;
  if (silent_ && delivered_) return;  // nobody hears it
  if (inner_) return inner_->cancel();
  Error error(Status::cancelled, "the command was cancelled", "fault.cancelled");
  error.may_have_started = silent_;  // dropped, and who asked cannot know that
  fail(std::move(error));
}

void Stream::signal(int signal, bool tree, Handler<void> done) {
  if (silent_ && outer_) {
    unanswered_.push_back(std::make_shared<Handler<void>>(std::move(done)));
    return;
  }
  run_call<void>(
      ground_, lane_, ground_.next(FaultPoint::signal), std::move(done),
      [self = shared_from_this(), signal, tree](Handler<void> next) -> std::shared_ptr<Pending> {
        if (self->inner_) {
          self->inner_->signal(signal, tree, std::move(next));
        } else {
          auto held = std::make_shared<Handler<void>>(std::move(next));
          const bool ended = !self->outer_;
          self->lane_.post([held, ended] {
            std::move (*held)(ended ? Error(Status::gone, "the process has ended", "process.ended")
                                    : not_there("signal"));
          });
        }
        return nullptr;
      });
}

void Stream::resize(std::uint32_t cols, std::uint32_t rows, Handler<void> done) {
  if (inner_ && !silent_) return inner_->resize(cols, rows, std::move(done));
  if (silent_ && outer_) {
    unanswered_.push_back(std::make_shared<Handler<void>>(std::move(done)));
    return;
  }
  auto held = std::make_shared<Handler<void>>(std::move(done));
  lane_.post([held] { std::move (*held)(not_there("resize")); });
}

void Stream::let_go() {
  inner_.reset();
  answer_signals();
  // Nobody waits for the end of a silent connection any more.
  if (silent_ && timer_) std::exchange(timer_, nullptr)->cancel();
}

void Stream::answer_signals() {
  for (const auto& held : std::exchange(unanswered_, {}))
    lane_.post([held] {
      std::move (*held)(Error(Status::transport_lost, "the connection of the process was lost",
                              "fault.half_open"));
    });
}

}  // namespace sandforge::faults

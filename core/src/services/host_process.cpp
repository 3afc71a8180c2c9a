#include "services/host_process.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "plugin/abi_call.hpp"
#include "plugin/abi_text.hpp"
#include "plugin/stream_events.hpp"
#include "sandforge/wire/guest/boundary.hpp"
#include "services/host_call.hpp"

namespace sandforge::services {
namespace {

using plugin::Fault;

constexpr std::uint64_t kMostCredit = std::uint64_t{1} << 62;
constexpr std::uint64_t kFreeFlow = std::uint64_t{1} << 30;  // output that is dropped anyway
constexpr std::size_t kInputBuffer = 64U << 10;

// An answer that is only an end.
class SignalAnswer final : public HelperChannel {
 public:
  explicit SignalAnswer(Handler<void> done) : done_(std::move(done)) {}
  void on_done(std::uint64_t reached) override {
    if (reached == 0) return answer(Error(Status::gone, "the process has ended", "process.ended"));
    answer({});
  }
  void on_error(const guest::ErrorInfo& error) override {
    answer(Error(error.code == guest::ErrorCode::not_found ? Status::gone : Status::internal,
                 error.message, "process.signal"));
  }
  void on_lost(const Error& error) override { answer(error); }

 private:
  void answer(Result<void> result) {
    auto done = std::move(done_);
    std::move(done)(std::move(result));
  }
  Handler<void> done_;
};

}  // namespace

HostProcess::HostProcess(plugin::Plugin& plugin, Lane lane, std::shared_ptr<GuestHelper> helper,
                         guest::SpawnRequest request, const Events& events)
    : plugin_(plugin),
      lane_(std::move(lane)),
      helper_(std::move(helper)),
      events_(events),
      has_input_(request.stdin_mode == guest::StdinMode::pipe || request.tty.has_value()),
      request_(std::move(request)),
      credit_(std::min(request_.window, kMostCredit)) {}

template <class F>
void HostProcess::on_helper(F work) {
  helper_->lane().post(
      [self = shared_from_this(), work = std::move(work)]() mutable { work(*self); });
}

template <class F>
void HostProcess::tell(F event) {
  lane_.post([self = shared_from_this(), event = std::move(event)]() mutable { event(*self); });
}

void HostProcess::start() {
  on_helper([began = std::chrono::steady_clock::now()](HostProcess& self) {
    self.helper_->when_open([keep = self.shared_from_this(), began](const Error* error) {
      const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::steady_clock::now() - began);
      auto& timeout = keep->request_.timeout_ms;
      // The start of the helper is a part of what the timeout covers.
      if (timeout > 0)
        timeout -= std::min<std::uint64_t>(timeout - 1, static_cast<std::uint64_t>(waited.count()));
      keep->run(error);
    });
  });
}

void HostProcess::run(const Error* error) {
  if (ended_) return;
  if (error != nullptr) return finish(*error);
  request_.window = unheld_ ? kFreeFlow : credit_;
  std::string why;
  channel_ = helper_->client().spawn(request_, &why);
  if (!channel_) return finish(Error(Status::invalid, std::move(why), "command.invalid"));
  helper_->listen(*channel_, shared_from_this());
  pump_input();
  helper_->flush();
}

void HostProcess::grant(std::uint64_t bytes) noexcept {
  on_helper([bytes](HostProcess& self) { self.add_credit(bytes); });
}

void HostProcess::add_credit(std::uint64_t bytes) {
  bytes = std::min(bytes, kMostCredit - credit_);
  credit_ += bytes;
  if (ended_ || !channel_ || bytes == 0) return;
  helper_->client().grant(*channel_, bytes);
  helper_->flush();
}

void HostProcess::cancel() noexcept {
  if (cancelled_.exchange(true)) return;
  on_helper([](HostProcess& self) { self.end_tree(); });
}

void HostProcess::end_tree() {
  if (ended_) return;
  if (!channel_) return finish(Error(Status::cancelled, "it was cancelled before it began"));
  helper_->request(
      [this](guest::GuestClient& client) {
        return client.kill(guest::Target(*channel_), request_.grace_ms);
      },
      nullptr);
  drop_output();
}

void HostProcess::released() noexcept {
  on_helper([](HostProcess& self) {
    self.unheld_ = true;
    self.drop_output();
  });
}

void HostProcess::on_host_end() {
  cancelled_.store(true);
  muted_.store(true);
  drop_output();
}

// Nobody will grant: the helper must not wait for credit.
void HostProcess::drop_output() {
  if (ended_ || !channel_) return;
  helper_->client().grant(*channel_, kFreeFlow);
  helper_->flush();
}

void HostProcess::on_output(guest::StreamId stream, std::string_view bytes) {
  const std::uint64_t wanted = muted_.load() ? 0 : std::min<std::uint64_t>(bytes.size(), credit_);
  credit_ -= wanted;
  if (wanted > 0) {
    const auto channel = stream == guest::StreamId::out ? SF_CHANNEL_STDOUT : SF_CHANNEL_STDERR;
    tell([channel, data = std::string(bytes.substr(0, static_cast<std::size_t>(wanted)))](
             HostProcess& self) { self.deliver(channel, data); });
  }
  const std::uint64_t rest = bytes.size() - wanted;
  if (rest == 0) return;
  dropped_ += rest;
  helper_->client().grant(*channel_, rest);
}

void HostProcess::deliver(std::uint32_t channel, const std::string& bytes) {
  if (muted_.load()) {
    undelivered_ += bytes.size();
    return;
  }
  delivered_ += bytes.size();
  const sf_bytes view{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  plugin::call_value(plugin_, "on_data", events_.io.on_data, events_.io.ctx, channel,
                     std::uint32_t{0}, view);
}

void HostProcess::on_started(const guest::Started& started) {
  id_ = started.process;
  if (events_.process.on_started == nullptr) return;
  tell([id = std::to_string(static_cast<std::uint64_t>(started.process)),
        pid = started.pid](HostProcess& self) {
    const sf_process_started value{sizeof(value), plugin::to_str(id), pid};
    const sf_process_started* given = &value;
    plugin::call_value(self.plugin_, "on_started", self.events_.process.on_started,
                       self.events_.process.ctx, given);
  });
}

void HostProcess::on_exited(const guest::Exit& exit) {
  close_input();
  if (events_.process.on_exit == nullptr) return;
  tell([value = guest::to_abi(exit, cancelled_.load())](HostProcess& self) {
    const sf_exit* given = &value;
    plugin::call_value(self.plugin_, "on_exit", self.events_.process.on_exit,
                       self.events_.process.ctx, given);
  });
}

void HostProcess::on_end(const guest::End& end) {
  dropped_ += end.dropped.out + end.dropped.err;
  // Where background children still write, the helper must stay and read.
  if (!end.pipes_held && !end.background)
    helper_->request(
        [this](guest::GuestClient& client) { return client.release(guest::Target(id_)); }, nullptr);
  finish(std::nullopt);
}

void HostProcess::on_error(const guest::ErrorInfo& info) {
  const auto meaning = guest::meaning_of(info.code, {SF_CANCELLED, "process.host_ended"});
  Error error(static_cast<Status>(meaning.status), info.message, meaning.reason);
  if (info.error_number != 0) error.details.set("errno", info.error_number);
  error.may_have_started = guest::may_have_started(info.code);
  finish(std::move(error));
}

void HostProcess::finish(std::optional<Error> error) {
  if (std::exchange(ended_, true)) return;
  close_input();
  tell([error = std::move(error), dropped = dropped_](HostProcess& self) {
    self.done_ = true;
    plugin::call_stream_done(self.plugin_, "process.done", self.events_.io,
                             error ? &*error : nullptr, self.delivered_,
                             dropped + self.undelivered_);
  });
}

sf_status HostProcess::check_write(const char* what, const sf_error_sink* err) {
  if (!lane_.is_current()) {
    plugin_.faults.report(Fault::off_lane, what);
    return plugin::refuse(
        err, Error(Status::invalid, "a [lane] function of a process was called outside its lane"));
  }
  return SF_OK;
}

sf_status HostProcess::write(sf_bytes data, std::size_t* accepted,
                             const sf_error_sink* err) noexcept {
  try {
    if (const auto bad = check_write("process.write", err); bad != SF_OK) return bad;
    if (accepted == nullptr || (data.ptr == nullptr && data.len > 0))
      return plugin::refuse(err,
                            Error(Status::invalid, "write needs bytes and a place for a count"));
    {
      const std::lock_guard lock(input_mutex_);
      if (!has_input_ || input_closed_ || input_shut_)
        return plugin::refuse(
            err, Error(Status::conflict, "the process takes no input", "process.no_stdin"));
      const std::size_t size = std::min(data.len, kInputBuffer - input_.size());
      input_.append(reinterpret_cast<const char*>(data.ptr), size);
      wants_writable_ = size < data.len;
      *accepted = size;
    }
    on_helper([](HostProcess& self) { self.pump_input(); });
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

sf_status HostProcess::shutdown_write(const sf_error_sink* err) noexcept {
  if (const auto bad = check_write("process.shutdown_write", err); bad != SF_OK) return bad;
  {
    const std::lock_guard lock(input_mutex_);
    if (!has_input_ || input_closed_ || std::exchange(input_shut_, true)) return SF_OK;
  }
  on_helper([](HostProcess& self) { self.pump_input(); });
  return SF_OK;
}

void HostProcess::pump_input() {
  if (ended_ || !channel_ || !has_input_) return;
  bool room = false;
  bool stalled = false;
  {
    const std::lock_guard lock(input_mutex_);
    if (input_closed_) return;
    while (!input_.empty()) {
      guest::GuestClient& client = helper_->client();
      const auto taken = client.write_stdin(*channel_, input_);
      input_.erase(0, taken.value_or(0));
      helper_->flush();
      // Without credit of its own it hears of that; without room for what others say of nothing.
      if (!input_.empty() && !client.output().empty()) stalled = !std::exchange(stalled_, true);
      if (stalled || !client.output().empty() || client.stdin_room(*channel_) == 0) break;
    }
    if (input_.empty() && input_shut_) helper_->client().close_stdin(*channel_);
    room = wants_writable_ && input_.size() < kInputBuffer;
    if (room) wants_writable_ = false;
  }
  helper_->flush();
  if (stalled) helper_->wait_for_room(weak_from_this());
  if (!room || events_.io.on_writable == nullptr) return;
  tell([](HostProcess& self) {
    if (self.done_) return;
    plugin::call_value(self.plugin_, "on_writable", self.events_.io.on_writable,
                       self.events_.io.ctx);
  });
}

void HostProcess::on_stdin_credit() {
  stalled_ = false;
  pump_input();
}

// Whoever waits for room learns from its next write that there will be none.
void HostProcess::close_input() {
  bool waits = false;
  {
    const std::lock_guard lock(input_mutex_);
    if (std::exchange(input_closed_, true)) return;
    input_.clear();
    waits = std::exchange(wants_writable_, false);
  }
  if (!waits || ended_ || events_.io.on_writable == nullptr) return;
  tell([](HostProcess& self) {
    plugin::call_value(self.plugin_, "on_writable", self.events_.io.on_writable,
                       self.events_.io.ctx);
  });
}

sf_status HostProcess::signal(std::int32_t number, std::uint32_t scope, sf_completion done,
                              sf_op** op, const sf_error_sink* err) {
  if (const auto bad = check_write("process.signal", err); bad != SF_OK) return bad;
  if (done.done == nullptr || number < 1 || number >= NSIG || scope > SF_SIGNAL_TREE)
    return plugin::refuse(err, Error(Status::invalid, "signal needs a number and a completion"));
  if (done_)
    return plugin::refuse(err, Error(Status::gone, "the process has ended", "process.ended"));
  start_host_call<void>(
      lane_, op,
      [&plugin = plugin_, done](const Result<void>& result) {
        plugin::call_done(plugin, "signal.done", done.done, done.ctx,
                          result.ok() ? nullptr : &result.error());
      },
      [self = shared_from_this(), number, tree = scope == SF_SIGNAL_TREE](Handler<void> handler) {
        self->on_helper([number, tree, handler = std::move(handler)](HostProcess& process) mutable {
          process.send_signal(number, tree, std::move(handler));
        });
      });
  return SF_OK;
}

void HostProcess::send_signal(std::int32_t number, bool tree, Handler<void> done) {
  if (ended_ || !channel_)
    return std::move(done)(
        ended_ ? Error(Status::gone, "the process has ended", "process.ended")
               : Error(Status::conflict, "the process has not started", "process.not_started"));
  helper_->request(
      [&](guest::GuestClient& client) {
        const guest::Target target(*channel_);
        // Of a tree everybody must be reached, also who changes its session meanwhile.
        if (tree && number == SIGKILL) return client.kill(target, 0);
        return client.signal(target, number,
                             tree ? guest::SignalScope::tree : guest::SignalScope::leader);
      },
      std::make_shared<SignalAnswer>(std::move(done)));
}

}  // namespace sandforge::services

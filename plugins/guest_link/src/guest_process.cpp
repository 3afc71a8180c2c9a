#include "sandforge/guest_link/guest_process.hpp"

#include <algorithm>
#include <csignal>

#include "sandforge/wire/guest/boundary.hpp"

namespace sandforge::guest_link {
namespace {

constexpr std::uint64_t kUnheldGrant = 1U << 30;  // output of a process that nobody reads
constexpr std::uint64_t kCreditCap = std::uint64_t{1} << 62;

// A side of a terminal, in characters; the guest knows none that are longer.
std::uint16_t to_side(std::uint32_t characters) noexcept {
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(characters, 0xffff));
}

}  // namespace

Failure from_guest(const guest::ErrorInfo& error) {
  const auto meaning = guest::meaning_of(error.code, {SF_CONFLICT, "guest.stopping"});
  Failure failure;
  failure.code = meaning.status;
  failure.reason = meaning.reason;
  failure.message = error.message;
  failure.error_number = error.error_number;
  failure.may_have_started = guest::may_have_started(error.code);
  return failure;
}

Failure guest_lost(bool may_have_started) {
  return Failure{SF_TRANSPORT_LOST,
                 "guest.guest_lost",
                 "the connection to the session's guest was lost",
                 {},
                 0,
                 may_have_started};
}

Failure folder_gone() {
  return Failure{SF_GONE, "sandbox.gone", "the session's folder no longer exists", {}, 0, false};
}

Failure process_ended() {
  return Failure{SF_GONE, "process.ended", "the process has ended", {}, 0, false};
}

Failure guest_stopped() {
  return Failure{SF_CONFLICT, "guest.stopped", "the session's guest does not run", {}, 0, false};
}

const sf_stream_vtbl GuestProcess::kStream = {
    sizeof(sf_stream_vtbl),
    [](sf_stream* self, uint64_t bytes) noexcept {
      auto& process = of(self);
      process.on_lane([keep = process.shared_from_this(), bytes] { keep->host_grants(bytes); });
    },
    [](sf_stream* self, sf_bytes data, uint32_t, size_t* accepted,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] { return of(self).write(view(data), accepted, err); });
    },
    [](sf_stream* self, const sf_error_sink* err) noexcept {
      return fenced(err, [&] { return of(self).shutdown(err); });
    },
    [](sf_stream* self) noexcept {
      auto& process = of(self);
      process.on_lane([keep = process.shared_from_this()] { keep->cancel(); });
    },
    [](sf_stream*) noexcept {},
};

const sf_process_vtbl GuestProcess::kProcess = {
    sizeof(sf_process_vtbl),
    [](sf_process* self) noexcept { return &of(self).stream_.base; },
    [](sf_process* self, int32_t number, uint32_t scope, sf_completion done, sf_op** op,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] {
        const auto status = of(self).signal(number, scope == SF_SIGNAL_TREE, done, err);
        if (status == SF_OK && op != nullptr) *op = no_op();
        return status;
      });
    },
    [](sf_process* self) noexcept {
      auto& process = of(self);
      process.on_lane([keep = process.shared_from_this()] { keep->drop_handle(); });
    },
};

GuestProcess::GuestProcess(std::shared_ptr<GuestLink> link, const sf_stream_events& io,
                           const sf_process_events& events, std::function<bool()> missing_root)
    : link_(std::move(link)),
      io_(io),
      events_(events),
      missing_root_(std::move(missing_root)),
      process_{{&kProcess}, this},
      stream_{{&kStream}, this} {}

sf_process* GuestProcess::handle() {
  self_ = shared_from_this();
  return &process_.base;
}

void GuestProcess::on_lane(std::function<void()> work) {
  if (link_->lane().current()) {
    work();
  } else {
    post(link_->lane().get(), std::move(work));
  }
}

void GuestProcess::host_grants(std::uint64_t bytes) {
  credit_ = std::min(kCreditCap, credit_ + std::min(bytes, kCreditCap));
  grant(bytes);
}

void GuestProcess::grant(std::uint64_t bytes) {
  if (ended_) return;
  ungranted_ = std::min(kCreditCap, ungranted_ + std::min(bytes, kCreditCap));
  // Grants of one batch of output travel together.
  if (!link_->busy()) return pass_on_credit();
  if (credit_queued_) return;
  credit_queued_ = true;
  link_->after_event([keep = shared_from_this()] { keep->pass_on_credit(); });
}

void GuestProcess::pass_on_credit() {
  credit_queued_ = false;
  if (ended_ || ungranted_ == 0) return;
  link_->client().grant(channel_, ungranted_);
  ungranted_ = 0;
  link_->flush();
}

sf_status GuestProcess::no_input(const sf_error_sink* err) const {
  return report(
      err, Failure{SF_CONFLICT, "process.no_stdin", "the process takes no input", {}, 0, false});
}

sf_status GuestProcess::write(std::string_view bytes, std::size_t* accepted,
                              const sf_error_sink* err) {
  if (ended_ || !input_open_) return no_input(err);
  guest::GuestClient& client = link_->client();
  std::size_t total = 0;
  bool more = true;
  while (more) {
    const auto taken = client.write_stdin(channel_, bytes.substr(total));
    // Before the start nothing is known about its input: room comes with on_stdin_credit.
    if (!taken && id_ && total == 0) return no_input(err);
    total += taken.value_or(0);
    link_->flush();
    more = total < bytes.size() && client.output().empty() && client.stdin_room(channel_) > 0;
  }
  *accepted = total;
  // Without credit of its own it hears of that; without room for what others say of nothing.
  if (total < bytes.size() && !client.output().empty()) link_->wait_for_room(weak_from_this());
  return SF_OK;
}

sf_status GuestProcess::shutdown(const sf_error_sink*) {
  if (ended_ || !input_open_) return SF_OK;
  input_open_ = false;
  link_->client().close_stdin(channel_);
  link_->flush();
  return SF_OK;
}

void GuestProcess::cancel() {
  if (ended_ || cancelled_) return;
  cancelled_ = true;
  const sf_completion nobody{nullptr, [](void*, const sf_error*) noexcept {}};
  const auto channel = channel_;
  link_->request(
      [channel, grace = grace_ms_](guest::GuestClient& client) {
        return client.kill(guest::Target(channel), grace);
      },
      std::make_shared<CompletionListener>(nobody, false));
  // What comes from now on and exceeds the host's credit is dropped and counted: the guest must not
  // wait for credit. The rest is delivered: a command may have something to say about its end.
  grant(kUnheldGrant);
}

sf_status GuestProcess::signal(int number, bool tree, sf_completion done,
                               const sf_error_sink* err) {
  if (ended_ || !link_->up()) return report(err, process_ended());
  const auto channel = channel_;
  auto listener = std::make_shared<CompletionListener>(done, true);
  if (tree && number == SIGKILL) {
    link_->request(
        [channel](guest::GuestClient& client) { return client.kill(guest::Target(channel), 0); },
        std::move(listener));
  } else {
    const auto scope = tree ? guest::SignalScope::tree : guest::SignalScope::leader;
    link_->request(
        [=](guest::GuestClient& client) {
          return client.signal(guest::Target(channel), number, scope);
        },
        std::move(listener));
  }
  return SF_OK;
}

void GuestProcess::drop_handle() {
  unheld_ = true;
  if (!ended_) {
    grant(kUnheldGrant);
  } else if (id_ && !pipes_held_) {
    // Its end was told and its output delivered: nobody will ask for it again. But where its
    // background children still write, the guest must stay and read.
    link_->forget(*id_);
  }
  self_.reset();
}

void GuestProcess::on_started(const guest::Started& started) {
  id_ = started.process;
  if (!SF_HAS_FN(&events_, on_started)) return;
  const std::string id = std::to_string(static_cast<std::uint64_t>(started.process));
  sf_process_started out{};
  out.struct_size = sizeof out;
  out.id = as_str(id);
  out.pid = started.pid;
  events_.on_started(events_.ctx, &out);
}

void GuestProcess::on_output(guest::StreamId stream, std::string_view bytes) {
  const bool ungoverned = cancelled_ || unheld_;
  const auto allowed = unheld_ ? 0 : std::min<std::uint64_t>(bytes.size(), credit_);
  const auto given = ungoverned ? bytes.substr(0, allowed) : bytes;
  credit_ -= std::min<std::uint64_t>(credit_, given.size());
  if (!given.empty()) {
    delivered_ += given.size();
    io_.on_data(io_.ctx, stream == guest::StreamId::out ? SF_CHANNEL_STDOUT : SF_CHANNEL_STDERR, 0,
                as_bytes(given));
  }
  if (given.size() == bytes.size()) return;
  dropped_ += bytes.size() - given.size();
  grant(bytes.size() - given.size());
}

void GuestProcess::on_stdin_credit() {
  // Also who waited for room and has ended meanwhile is called.
  if (!ended_ && SF_HAS_FN(&io_, on_writable)) io_.on_writable(io_.ctx);
}

void GuestProcess::on_exited(const guest::Exit& exit) {
  input_open_ = false;
  if (!SF_HAS_FN(&events_, on_exit)) return;
  const sf_exit out = guest::to_abi(exit, cancelled_);
  events_.on_exit(events_.ctx, &out);
}

void GuestProcess::on_end(const guest::End& end) {
  dropped_ += end.dropped.out + end.dropped.err;
  pipes_held_ = end.pipes_held;
  finish(nullptr);
}

void GuestProcess::on_error(const guest::ErrorInfo& error) {
  Failure failure = from_guest(error);
  if (failure.reason == "command.no_directory" && missing_root_()) failure = folder_gone();
  finish(&failure);
}

void GuestProcess::on_lost(bool may_have_started) {
  const Failure failure = link_->lost(may_have_started);
  finish(&failure);
}

void GuestProcess::finish(const Failure* failure) {
  ended_ = true;
  input_open_ = false;
  sf_stream_end end{};
  end.struct_size = sizeof end;
  end.delivered = delivered_;
  end.dropped = dropped_;
  if (failure == nullptr) return io_.done(io_.ctx, nullptr, &end);
  with_error(*failure, [&](const sf_error* error) { io_.done(io_.ctx, error, &end); });
}

void CompletionListener::on_done(std::uint64_t value) {
  if (value == 0 && ended_is_gone_) {
    const Failure gone = process_ended();
    return complete(done_, &gone);
  }
  complete(done_, nullptr);
}

void CompletionListener::on_error(const guest::ErrorInfo& error) {
  const Failure failure = from_guest(error);
  complete(done_, &failure);
}

void CompletionListener::on_lost(bool may_have_started) {
  const Failure failure = guest_lost(may_have_started);
  complete(done_, &failure);
}

void ReplyListener::on_error(const guest::ErrorInfo& error) {
  const Failure failure = from_guest(error);
  done_(&failure);
}

void ReplyListener::on_lost(bool may_have_started) {
  const Failure failure = guest_lost(may_have_started);
  done_(&failure);
}

sf_status spawn(GuestOwner& sandbox, const sf_command& command, const sf_stream_events& io,
                const sf_process_events& events, sf_process** process, const sf_error_sink* err) {
  if (const auto failure = sandbox.unable()) return report(err, *failure);
  const auto& link = sandbox.guest();
  guest::SpawnRequest request;
  request.request_id = std::string(view(command.request_id));
  for (std::size_t i = 0; i < command.argc; ++i)
    request.argv.emplace_back(view(command.argv[i]));
  request.shell_text = std::string(view(command.shell));
  for (std::size_t i = 0; i < command.env_count; ++i) {
    const auto& entry = command.env[i];
    request.env.emplace_back(
        std::string(view(entry.name)),
        entry.value.ptr == nullptr ? std::nullopt : std::optional(std::string(view(entry.value))));
  }
  request.cwd = std::string(view(command.cwd));
  request.user = std::string(view(command.user));
  request.stdin_mode =
      command.stdin_mode == SF_STDIN_PIPE ? guest::StdinMode::pipe : guest::StdinMode::null;
  if (command.tty != nullptr) {
    guest::Tty tty;
    tty.cols = to_side(command.tty->cols);
    tty.rows = to_side(command.tty->rows);
    tty.term = command.tty->term.len == 0 ? "xterm-256color" : std::string(view(command.tty->term));
    request.tty = tty;
  }
  request.combined = command.output == SF_OUTPUT_COMBINED;
  request.detach = (command.flags & SF_COMMAND_DETACH) != 0;
  request.timeout_ms = command.timeout_ms;
  request.grace_ms = command.grace_ms;
  request.window = command.window;
  request.tag = std::string(view(command.tag));

  auto object = std::make_shared<GuestProcess>(link, io, events, sandbox.missing_root());
  std::string why;
  const auto channel = link->ask().spawn(request, &why);
  if (!channel) return report(err, Failure{SF_INVALID, "command.invalid", why, {}, 0, false});
  object->bind(*channel, command.window, command.grace_ms);
  link->listen(*channel, object);
  *process = object->handle();
  link->flush();
  return SF_OK;
}

const sf_pty_ext* pty_extension() noexcept {
  static const sf_pty_ext ext = {
      sizeof(sf_pty_ext),
      [](sf_process* process, uint32_t cols, uint32_t rows, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          if (!GuestProcess::is(process))
            return report(err, Failure{SF_UNSUPPORTED,
                                       "process.no_terminal",
                                       "the process has no terminal",
                                       {},
                                       0,
                                       false});
          auto& object = GuestProcess::of(process);
          if (!object.ended()) {
            object.link()->client().resize(object.channel(), to_side(cols), to_side(rows));
            object.link()->flush();
          }
          post(object.link()->lane().get(), [done] { complete(done, nullptr); });
          if (op != nullptr) *op = no_op();
          return sf_status{SF_OK};
        });
      },
  };
  return &ext;
}

}  // namespace sandforge::guest_link

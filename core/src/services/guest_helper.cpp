#include "services/guest_helper.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandforge/posix/spawn.hpp"

namespace sandforge::services {
namespace {

constexpr std::size_t kHelperTurn = 1U << 20;  // read before others of the lane have theirs
constexpr std::chrono::milliseconds kAnswerLimit{10'000};
constexpr std::uint64_t kEndGraceMs = 1000;  // below the Runtime's own limit
constexpr int kReapTries = 200;
constexpr std::chrono::milliseconds kReapPause{10};

Error helper_error(Status code, const std::filesystem::path& program, std::string_view what,
                   int number, const char* reason) {
  std::string message = fmt::format("the helper program {} {}", program.native(), what);
  if (number != 0) message += fmt::format(": {}", std::strerror(number));
  Error error(code, std::move(message), reason);
  error.details.set("path", program.native());
  if (number != 0) error.details.set("errno", number);
  return error;
}

Error not_started(const std::filesystem::path& program, const posix::SpawnResult& result) {
  const int number = result.error_number;
  const bool absent = result.stage == posix::SpawnStage::exec &&
                      (number == ENOENT || number == ENOTDIR || number == EACCES ||
                       number == ENOEXEC || number == EISDIR);
  return helper_error(absent ? Status::unsupported : Status::internal, program, "cannot be run",
                      number, absent ? "process.no_helper" : "process.helper_failed");
}

// The answer to the end of everything: also a helper that is gone has ended it.
class GroupEnd final : public HelperChannel {
 public:
  explicit GroupEnd(Handler<void> done) : done_(std::move(done)) {}
  void on_done(std::uint64_t) override { answer({}); }
  void on_error(const guest::ErrorInfo& error) override {
    answer(Error(Status::internal, error.message, "process.group"));
  }
  void on_lost(const Error&) override { answer({}); }
  void answer(Result<void> result) {
    auto done = std::move(done_);
    std::move(done)(std::move(result));
  }

 private:
  Handler<void> done_;
};

// Blocks until the program runs.
HelperProgram launch(const std::filesystem::path& program) {
  HelperProgram out;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    out.error =
        helper_error(Status::internal, program, "has no socket", errno, "process.helper_failed");
    return out;
  }
  out.socket.reset(pair[0]);
  const posix::Fd other(pair[1]);
  const posix::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  posix::SpawnSpec spec;
  // No search in any PATH, and an end of the socket is all that it gets of the host.
  spec.argv = {program.native(), "serve", "--fd", "0", "--root", "/", "--ping-ms", "0"};
  spec.cwd = "/";
  spec.stdin_fd = other.get();
  spec.stdout_fd = null.get();
  spec.stderr_fd = null.get();
  const auto result = posix::spawn(spec);
  out.pid = result.pid;
  if (result.stage != posix::SpawnStage::none) out.error = not_started(program, result);
  return out;
}

guest::ClientOptions without_pings() {
  guest::ClientOptions options;
  options.ping_interval_ms = 0;  // a local socket tells when its other end is gone
  return options;
}

}  // namespace

GuestHelper::GuestHelper(std::shared_ptr<Runtime> runtime, std::filesystem::path program)
    : runtime_(std::move(runtime)),
      program_(std::move(program)),
      lane_(runtime_->make_lane()),
      client_(*this, without_pings()) {}

std::shared_ptr<GuestHelper> GuestHelper::make(std::shared_ptr<Runtime> runtime,
                                               const std::filesystem::path& program) {
  std::shared_ptr<GuestHelper> helper(new GuestHelper(runtime, std::filesystem::absolute(program)));
  runtime->track(helper);
  return helper;
}

void GuestHelper::cancel() noexcept {
  lane_.post([self = shared_from_this()] { self->end_now(); });
}

void GuestHelper::retire() noexcept {
  lane_.post([self = shared_from_this()] {
    self->retired_ = true;
    self->end_if_retired();
  });
}

void GuestHelper::end_all(std::uint64_t grace_ms, Handler<void> done) {
  auto end = std::make_shared<GroupEnd>(std::move(done));
  lane_.post([self = shared_from_this(), grace_ms, end = std::move(end)] {
    if (self->state_ == State::fresh) {
      self->closed_ = true;
      return end->answer({});
    }
    self->when_open([self, grace_ms, end](const Error* error) {
      self->closed_ = true;
      if (error != nullptr) return end->answer({});  // with it went what it ran
      self->request(
          [grace_ms](guest::GuestClient& client) {
            guest::StopAllRequest stop;
            stop.grace_ms = grace_ms;
            stop.exit = true;
            return client.stop_all(stop);
          },
          end);
    });
  });
}

void GuestHelper::when_open(std::function<void(const Error*)> use) {
  if (closed_) {
    const Error error(Status::conflict, "the group of the command was ended",
                      "process.group_ended");
    return use(&error);
  }
  if (answered_ && state_ == State::open && !ending_) return use(nullptr);
  if (ending_ && !failure_)
    failure_ = Error(Status::cancelled, "the host is ending", "process.host_ended");
  if (failure_) return use(&*failure_);
  waiting_.push_back(std::move(use));
  if (state_ == State::fresh) start();
}

void GuestHelper::start() {
  state_ = State::starting;
  auto program = std::make_shared<HelperProgram>();
  runtime_->post_blocking(
      lane_, [program, path = program_] { *program = launch(path); },
      Handler<void>([self = shared_from_this(), program](const Result<void>& result) {
        if (!result.ok()) program->error = result.error();
        self->started(std::move(*program));
      }));
}

void GuestHelper::started(HelperProgram program) {
  pid_ = program.pid;
  if (program.error) {
    failure_ = std::move(program.error);
    return lose({});
  }
  state_ = State::open;
  io_.emplace(lane_.executor(), program.socket.release());
  if (ending_) return lose("the host is ending");
  expect_answer();
  flush();
  wait_readable();
}

void GuestHelper::expect_answer() {
  answer_timer_ = runtime_->timer(
      lane_, kAnswerLimit, Handler<void>([weak = weak_from_this()](const Result<void>& result) {
        const auto self = weak.lock();
        if (!self || !result.ok() || self->answered_) return;
        self->lose("it did not answer in time");
      }));
}

void GuestHelper::answered(const Error* error) {
  if (answer_timer_) std::exchange(answer_timer_, nullptr)->cancel();
  for (auto& use : std::exchange(waiting_, {}))
    use(error);
}

// Asks for the end of everything; the socket's end then ends the rest.
void GuestHelper::end_now() {
  if (std::exchange(ending_, true)) return;
  if (state_ == State::fresh) return lose("the host is ending");
  if (state_ != State::open) return;  // the end of the start goes on from here
  if (!answered_) return lose("the host is ending");
  each([](HelperChannel& to) { to.on_host_end(); });
  request(
      [](guest::GuestClient& client) {
        guest::StopAllRequest stop;
        stop.grace_ms = kEndGraceMs;
        stop.exit = true;
        return client.stop_all(stop);
      },
      nullptr);
}

void GuestHelper::request(const std::function<guest::ChannelId(guest::GuestClient&)>& make,
                          std::shared_ptr<HelperChannel> to) {
  if (state_ != State::open) return;
  const auto channel = make(client_);
  listen(channel, std::move(to));
  flush();
}

void GuestHelper::flush() {
  if (busy_ || !io_ || waiting_write_) return;
  while (!client_.output().empty()) {
    const auto bytes = client_.output();
    const ssize_t n =
        ::send(io_->native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      client_.consume(static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    // A broken connection shows where it is read, after what still lies in it.
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return;
    waiting_write_ = true;
    io_->async_wait(boost::asio::posix::stream_descriptor::wait_write,
                    [self = shared_from_this()](const boost::system::error_code&) {
                      self->waiting_write_ = false;
                      self->flush();
                      self->call_stalled();
                    });
    return;
  }
}

void GuestHelper::call_stalled() {
  if (waiting_write_) return;
  for (const auto& weak : std::exchange(stalled_, {})) {
    if (const auto to = weak.lock()) to->on_stdin_credit();
  }
}

void GuestHelper::wait_readable() {
  io_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                  [self = shared_from_this()](const boost::system::error_code&) {
                    if (self->io_) self->read();
                  });
}

void GuestHelper::read() {
  std::size_t turn = 0;
  while (io_ && turn < kHelperTurn) {
    const auto buffer = client_.receive_buffer();
    const ssize_t n = ::recv(io_->native_handle(), buffer.data, buffer.size, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) return lose(n == 0 ? "it closed the connection" : std::strerror(errno));
    turn += static_cast<std::size_t>(n);
    busy_ = true;
    const bool good = client_.received(static_cast<std::size_t>(n));
    busy_ = false;
    if (!good) return lose(client_.failure());
  }
  flush();
  call_stalled();
  if (!io_) return;
  wait_readable();
  end_if_retired();
}

// The one end of the connection: everybody is told, and the program is waited for.
void GuestHelper::lose(const std::string& why) {
  if (state_ == State::ended) return;
  const auto keep = shared_from_this();
  state_ = State::ended;
  ended_.store(true);
  if (io_) {
    boost::system::error_code ignored;  // it is gone either way
    io_->close(ignored);
    io_.reset();
  }
  if (!failure_) failure_ = end_of(why);
  busy_ = true;
  client_.lost(why);
  busy_ = false;
  drop_all();
  answered(&*failure_);
  reap(0);
}

Error GuestHelper::end_of(const std::string& why) const {
  if (ending_ || retired_)
    return Error(Status::cancelled, "the host is ending", "process.host_ended");
  return answered_ ? helper_error(Status::transport_lost, program_, "was lost: " + why, 0,
                                  "process.helper_lost")
                   : helper_error(Status::internal, program_, "cannot be used: " + why, 0,
                                  "process.helper_failed");
}

// Its socket is closed, so it ends by itself, and with it what it ran.
void GuestHelper::reap(int tries) {
  if (pid_ <= 0) return;
  const pid_t got = ::waitpid(pid_, nullptr, WNOHANG);
  if (got == pid_ || (got < 0 && errno != EINTR)) {
    pid_ = -1;
    return;
  }
  if (tries == kReapTries) ::kill(pid_, SIGKILL);
  runtime_->timer(lane_, kReapPause,
                  Handler<void>([self = shared_from_this(), tries](const Result<void>&) {
                    self->reap(tries + 1);
                  }));
}

void GuestHelper::end_if_retired() {
  if (!retired_ || state_ == State::starting || !nobody_waits() || !waiting_.empty()) return;
  lose("the host is ending");
}

void GuestHelper::on_hello(const guest::HelloReply&) {
  answered_ = true;
  answered(nullptr);
}

void GuestHelper::on_lost(guest::ChannelId channel, bool may_have_started) {
  const auto to = take(channel);
  if (!to) return;
  // The client tells of a broken protocol by itself.
  if (!failure_) failure_ = end_of(client_.failure());
  Error error = *failure_;
  error.may_have_started = may_have_started;
  to->on_lost(error);
}

}  // namespace sandforge::services

#include "exec.hpp"

#include <sandforge/support/encoding.hpp>
#include <sandforge/support/utf8.hpp>

#include <algorithm>
#include <csignal>
#include <random>
#include <sstream>

#include "scripts.hpp"

namespace sandforge::docker {
namespace {

using namespace std::chrono_literals;
using plugin::Code;
using plugin::Exit;
using plugin::Output;
using plugin::StopCallback;
using plugin::StopToken;
using plugin::Void;

constexpr std::size_t kLongestWord = 131'071;               // what Linux takes as one argument
constexpr std::size_t kLongestCommand = 1'900'000;          // of all of them together
constexpr std::size_t kLongestFirst = 64 * 1024;            // held back before the command is known
constexpr milliseconds kFirstLook = 200ms, kLastLook = 2s;  // at an exec whose output is open
constexpr int kMissedLooks = 20;                            // then only its output tells its end
constexpr milliseconds kQuiet = 100ms;                      // after its leader's end
constexpr int kLongestHeld = 20;                            // of these: two seconds
constexpr milliseconds kStartPatience = 10s;                // for the first line of what must end
constexpr milliseconds kEndPatience = 10s;                  // for the end of what was killed
constexpr milliseconds kExitPatience = 10s;  // for the exit code after the output's end
constexpr milliseconds kLongestGrace = std::chrono::hours(24);
constexpr milliseconds kHelperTime = 30s;
constexpr int kKillRounds = 200;
constexpr milliseconds kCreditNap = 20ms;
constexpr int kCreditNaps = 100;  // of these: two seconds

Error too_large() {
  return fault(Code::invalid, "command.too_large",
               "the command is larger than what Linux takes as arguments");
}

bool ends_processes(std::int64_t signal) {
  switch (signal) {
    case SIGCHLD:
    case SIGCONT:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGURG:
    case SIGWINCH:
      return false;
    default:
      return signal > 0 && signal < 32;
  }
}

// Ends when the stop is requested.
Task<void> until(StopToken stop) {
  const auto nothing_else = [](auto) {};
  return plugin::with_stop(std::move(stop), plugin::detail::wait_or_stop(nothing_else));
}
// Ends after the time, or when the stop is requested.
Task<void> until_or_after(StopToken stop, milliseconds time) {
  try {
    co_await plugin::with_stop(stop, plugin::sleep_for(time));
  } catch (const Error& error) {
    if (error.code() != Code::cancelled) throw;
  }
}

bool is_name(std::string_view text) {
  return !text.empty() && !(text.front() >= '0' && text.front() <= '9') &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                  (c >= 'A' && c <= 'Z');
         });
}

std::string joined(const std::string& base, const std::string& path) {
  if (!path.empty() && path.front() == '/') return path;
  return base.empty() || base.back() == '/' ? base + path : base + '/' + path;
}

// What the engine says of an exec that its runtime could not start, or that names nobody.
bool is_refusal(std::string_view said) {
  for (const std::string_view none : {"unable to find user ", "unable to find group "})
    if (said.substr(0, none.size()) == none) return true;
  return said.find("OCI runtime") != std::string_view::npos ||
         said.find("oci runtime") != std::string_view::npos;
}

}  // namespace

std::string make_nonce() {
  std::random_device random;
  std::string bytes;
  for (int i = 0; i < 16; ++i)
    bytes += static_cast<char>(random() & 0xff);
  return hex_encode(bytes);
}

std::string printf_word(std::string_view bytes) {
  static constexpr std::string_view kPlain = "._-/=:@+,";
  std::string out;
  for (const char c : bytes) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       kPlain.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += "\\0";
    for (const int shift : {6, 3, 0})
      out += static_cast<char>('0' + (byte >> shift & 7));
  }
  return out;
}

Task<void> refuse_by_state(Engine& engine, std::string container, HttpAnswer answer,
                           std::string what) {
  const HttpAnswer seen = co_await engine.call("GET", "/containers/" + container + "/json");
  if (seen.status == 404)
    throw fault(Code::gone, "docker.gone", "the container no longer exists")
        .detail("containerId", container);
  engine.throw_if_refused(seen, "look at the container");
  const auto now = wire::read_container(seen.body);
  if (!now) throw engine.no_answer_of_api("look at the container");
  if (!now->running || now->paused)
    throw fault(Code::conflict, "docker.not_running",
                "the container does not run: it is " + (now->paused ? "paused" : now->status));
  engine.throw_if_refused(answer, what);
  throw engine.no_answer_of_api(what);
}

// ---- The request

Exec::Exec(Engine& engine, ExecPlace place, plugin::Command command, plugin::ProcessIo io,
           std::shared_ptr<void> keep)
    : engine_(engine),
      lane_(engine.lane()),
      place_(std::move(place)),
      command_(std::move(command)),
      io_(std::move(io)),
      keep_(std::move(keep)),
      nonce_(make_nonce()) {}

std::string Exec::mark() const {
  return std::string(kMark) + '=' + nonce_;
}

// Bytes that are no text cannot stand in JSON: then all words go the way of printf. So do such
// variables, but in one of their own: arguments are seen by everybody.
wire::ExecRequest Exec::request() const {
  wire::ExecRequest out;
  out.env.push_back(mark());
  out.user = command_.user.empty() ? place_.user : command_.user;
  out.directory = "/";
  out.pipe_stdin = command_.pipe_stdin;
  std::vector<std::string> words = {joined(place_.directory, command_.cwd.value_or(""))};
  std::string encoded;
  std::map<std::string, std::optional<std::string>> env;
  for (const plugin::EnvEntry& entry : command_.env)
    env[entry.name] = entry.value;
  for (const auto& [name, value] : env) {
    const std::string entry = value ? name + '=' + *value : name;
    if (entry.size() > kLongestWord) throw too_large();
    if (is_valid_utf8(entry)) {
      out.env.push_back(entry);
    } else if (is_name(name)) {
      encoded += (encoded.empty() ? "" : " ") + printf_word(entry);
    } else {
      throw fault(Code::invalid, "command.invalid",
                  "a variable whose value is no text needs a name of letters, digits and '_'");
    }
  }
  std::string mode = command_.shell ? "s" : "a";
  if (command_.shell) words.push_back(*command_.shell);
  if (!command_.shell) words.insert(words.end(), command_.argv.begin(), command_.argv.end());
  if (!encoded.empty()) {
    mode += 'e';
    out.env.push_back(std::string(kEncoded) + '=' + encoded);
    if (out.env.back().size() > kLongestWord) throw too_large();
  }
  if (command_.combine_output) mode += 'c';
  if (const auto path = env.find("PATH"); path != env.end() && !path->second) mode += 'p';
  if (!std::all_of(words.begin(), words.end(), [](const auto& w) { return is_valid_utf8(w); })) {
    mode += 'b';
    for (std::string& word : words)
      word = printf_word(word);
  }
  out.command = {"/bin/sh", "-c", std::string(kStartScript), "sh", nonce_, mode};
  std::size_t size = 0;
  for (std::string& word : words) {
    if (word.size() > kLongestWord || (size += word.size()) > kLongestCommand) throw too_large();
    out.command.push_back(std::move(word));
  }
  return out;
}

// ---- The run

Task<Exit> Exec::run() {
  const auto me = shared_from_this();
  // What must be done to end it must not be cancelled by what ends it.
  return plugin::with_stop(StopToken(), drive(me));
}

Task<Exit> Exec::drive(std::shared_ptr<Exec> me) {
  Engine& engine = me->engine_;
  const std::string& container = me->place_.container;
  const HttpAnswer made = co_await engine.call("POST", "/containers/" + container + "/exec",
                                               wire::write_exec(me->request()));
  if (made.status >= 400) co_await refuse_by_state(engine, container, made, "make a command");
  const auto id = wire::read_exec_id(made.body);
  if (!id) throw engine.no_answer_of_api("make a command");
  me->exec_id_ = *id;
  plugin::throw_if_stopped(me->io_.stop_reason());

  plugin::HttpRequest start("POST", "/exec/" + *id + "/start", wire::write_exec_start(false));
  start.timeout = kHelperTime;
  HttpStream stream = co_await engine.open(start, SF_HTTP_UPGRADE);
  if (stream.status() >= 300) {
    const HttpAnswer refused = co_await stream.rest();
    co_await refuse_sent(me, refused);
  }
  me->stream_.emplace(std::move(stream));
  me->io_.on_signal([me](std::int32_t number, plugin::SignalScope scope, plugin::Reply reply) {
    me->answer_signal(number, scope, std::move(reply));
  });
  const StopCallback stopped(me->io_.stop(), [me] { me->begin_end(); });

  std::vector<Task<void>> parts;
  parts.push_back(pump(me));
  if (me->command_.pipe_stdin) parts.push_back(plugin::with_stop(me->over_.token(), feed(me)));
  parts.push_back(plugin::with_stop(me->over_.token(), watch(me)));
  co_await plugin::all(std::move(parts));
  if (me->ending_) co_await until(me->ended_.token());
  me->io_.on_signal(nullptr);
  if (!me->started_) co_await refuse_start(me);
  const Exit exit = co_await exit_of(me);
  co_return exit;
}

Task<void> Exec::pump(std::shared_ptr<Exec> me) {
  try {
    co_await pump_some(me);
  } catch (...) {
    if (!me->pipes_held_) me->lost_ = std::current_exception();
  }
  me->over_.request_stop();
}

Task<void> Exec::pump_some(std::shared_ptr<Exec> me) {
  bool more = true;
  while (more) {
    const std::optional<Output> piece = co_await me->stream_->read_some();
    more = piece.has_value();
    if (more) {
      me->received_ += piece->data.size();
      std::string_view bytes = piece->data;
      while (const auto next = me->frames_.next(bytes))
        me->take_piece(*next);
    } else if (me->started_ && !me->has_line_) {
      me->give_up_line();
    }
    std::string out = std::exchange(me->ready_out_, {}), err = std::exchange(me->ready_err_, {});
    if (!out.empty()) co_await deliver(me, std::move(out), SF_CHANNEL_STDOUT);
    if (!err.empty()) co_await deliver(me, std::move(err), SF_CHANNEL_STDERR);
  }
  if (me->frames_.whole()) co_return;
  throw fault(Code::transport_lost, "docker.stream", "the engine cut the output of the command");
}

void Exec::tell_started() {
  if (std::exchange(started_, true)) return;
  // The container's number of it, which is not this machine's; nine digits are more than Linux has.
  const bool known = !process_.empty() && process_.size() < 10;
  const std::int64_t number = known ? std::stoll(process_) : 0;
  io_.started(exec_id_, number);
  ready_out_ = std::exchange(first_out_, {});
}

// The line does not come any more: all of it is the command's output.
void Exec::give_up_line() {
  tell_started();
  has_line_ = true;
  ready_err_ += std::exchange(first_err_, {});
}

void Exec::take_piece(const wire::FramePiece& piece) {
  if (!refusal_.empty()) return;
  if (piece.stream == wire::FrameStream::err) {
    (has_line_ ? ready_err_ : first_err_) += piece.data;
    if (!has_line_) take_first_line();
    if (refusal_.empty() && first_err_.size() > kLongestFirst) give_up_line();
    return;
  }
  (started_ ? ready_out_ : first_out_) += piece.data;
  // A command whose first line is late: the engine does not keep the order of the two outputs.
  if (first_out_.size() > kLongestFirst) tell_started();
}

// A shell or a loader may have warned before it, which is the command's stderr.
void Exec::take_first_line() {
  for (;;) {
    const auto newline = first_err_.find('\n', looked_at_);
    if (newline == std::string::npos) return;
    const std::string_view all = first_err_;
    if (take_line(all.substr(looked_at_, newline - looked_at_))) {
      if (!has_line_) return;
      std::string err = std::exchange(first_err_, {});
      err.erase(looked_at_, newline + 1 - looked_at_);
      ready_err_ += err;
      return;
    }
    looked_at_ = newline + 1;
  }
}

// Whether the line is the script's.
bool Exec::take_line(std::string_view line) {
  if (line.size() < nonce_.size() + 2 || line.substr(0, nonce_.size()) != nonce_) return false;
  std::istringstream words(std::string(line.substr(nonce_.size() + 1)));
  std::string first;
  words >> first;
  const bool number = !first.empty() && std::all_of(first.begin(), first.end(),
                                                    [](char c) { return c >= '0' && c <= '9'; });
  if (!number) {
    refusal_ = first;
    return !first.empty();
  }
  process_ = first;
  words >> out_pipe_ >> err_pipe_;
  has_line_ = true;
  tell_started();
  return true;
}

// As write_all, but goes on while the command is being ended: what it says then counts.
Task<void> Exec::deliver(std::shared_ptr<Exec> me, std::string data, std::uint32_t channel) {
  std::size_t taken = 0;
  for (;;) {
    taken += me->io_.try_write(std::string_view(data).substr(taken), channel);
    if (taken == data.size()) co_return;
    if (me->io_.stop_reason() != plugin::StopReason::none) {
      // Credit may still come, but nobody says when: what comes after two seconds is dropped.
      if (++me->naps_without_credit_ > kCreditNaps) co_return;
      co_await plugin::sleep_for(kCreditNap);
      continue;
    }
    me->waits_for_credit_ = true;
    const auto credit = [me](auto fn) { me->io_.when_credit(std::move(fn)); };
    co_await plugin::detail::wait_or_stop(credit);
    me->waits_for_credit_ = false;
  }
}

Task<void> Exec::feed(std::shared_ptr<Exec> me) {
  try {
    for (;;) {
      const std::optional<plugin::Piece> piece = co_await plugin::read_some(me->io_);
      if (!piece) break;
      co_await me->stream_->write_all(piece->data);
    }
    me->stream_->shutdown_write();
  } catch (const Error&) {
    // Its output tells how it ended; who reads no more input needs none.
  }
}

// A child that was left behind holds the output open: its command has ended all the same.
Task<void> Exec::watch(std::shared_ptr<Exec> me) {
  try {
    std::uint64_t seen = 0;
    int missed = 0;  // looks in a row that the engine did not answer
    bool leader_ended = false;
    milliseconds pause = kFirstLook;
    for (int held = 0; held < kLongestHeld;) {
      const milliseconds nap = leader_ended ? kQuiet : pause;
      co_await plugin::sleep_for(nap);
      const bool quiet = std::exchange(seen, me->received_) == me->received_;
      if (me->waits_for_credit_) continue;
      if (leader_ended) {
        if (held++ == 0) co_await try_keep_output(me);
        if (quiet) break;
        continue;
      }
      const std::optional<wire::ExecInfo> now = co_await look(me);
      missed = now ? 0 : missed + 1;
      if (missed > kMissedLooks) co_return;
      leader_ended = now && now->ended();
      pause = std::min(pause * 3 / 2, kLastLook);
    }
    me->pipes_held_ = true;
    me->stream_->cancel();
  } catch (const Error&) {
    // The output has ended, or the engine is gone: then it does.
  }
}

// Without it the command ends all the same, and its children lose their output.
Task<void> Exec::try_keep_output(std::shared_ptr<Exec> me) {
  try {
    co_await keep_output(me);
  } catch (const Error& error) {
    if (error.code() == Code::cancelled) throw;
    plugin::Log::warn("the output that a command left open is not kept open",
                      {{"container", me->place_.container}, {"error", error.message()}});
  }
}

// It still runs when the command has ended, and answers nobody.
Task<void> Exec::keep_output(std::shared_ptr<Exec> me) {
  if (me->out_pipe_.empty()) co_return;
  wire::ExecRequest request;
  request.command = {"/bin/sh", "-c", std::string(kKeepScript), "sh", me->out_pipe_, me->err_pipe_};
  request.user = me->command_.user.empty() ? me->place_.user : me->command_.user;
  request.directory = "/";
  request.attach = false;
  const HttpAnswer made = co_await me->engine_.call(
      "POST", "/containers/" + me->place_.container + "/exec", wire::write_exec(request));
  me->engine_.throw_if_refused(made, "keep an output open");
  const auto id = wire::read_exec_id(made.body);
  if (!id) throw me->engine_.no_answer_of_api("keep an output open");
  const HttpAnswer begun =
      co_await me->engine_.call("POST", "/exec/" + *id + "/start", wire::write_exec_start(true));
  me->engine_.throw_if_refused(begun, "keep an output open");
}

// ---- The end of the tree

Task<std::int64_t> Exec::run_helper(Engine& engine, std::string container, std::string user,
                                    std::vector<std::string> words) {
  wire::ExecRequest request;
  request.command = std::move(words);
  request.user = std::move(user);
  request.directory = "/";
  const HttpAnswer made =
      co_await engine.call("POST", "/containers/" + container + "/exec", wire::write_exec(request));
  if (made.status >= 400) co_await refuse_by_state(engine, container, made, "make a helper");
  const auto id = wire::read_exec_id(made.body);
  if (!id) throw engine.no_answer_of_api("make a helper");
  plugin::HttpRequest start("POST", "/exec/" + *id + "/start", wire::write_exec_start(false));
  start.total_timeout = kHelperTime;
  HttpStream stream = co_await engine.open(start, SF_HTTP_UPGRADE);
  if (stream.status() >= 300) {
    const HttpAnswer refused = co_await stream.rest();
    co_await refuse_by_state(engine, container, refused, "start a helper");
  }
  co_await stream.finish();
  milliseconds pause = 5ms;
  for (milliseconds waited = 0ms; waited < kExitPatience; waited += pause) {
    const HttpAnswer answer = co_await engine.call("GET", "/exec/" + *id + "/json");
    const auto now = wire::read_exec(answer.body);
    if (answer.status == 200 && now && now->ended()) co_return *now->exit_code;
    if (answer.status == 404) break;
    co_await plugin::sleep_for(pause);
    pause = std::min(pause * 2, 250ms);
  }
  throw fault(Code::transport_lost, "docker.helper", "the engine does not tell how a helper ended");
}

Task<void> Exec::signal_tree(std::shared_ptr<Exec> me, std::int32_t number, int rounds) {
  me->sent_.push_back(number);
  const std::vector<std::string> words = {"/bin/sh",
                                          "-c",
                                          std::string(kSignalScript),
                                          "sh",
                                          me->process_.empty() ? "none" : me->process_,
                                          me->mark(),
                                          std::to_string(number),
                                          std::to_string(rounds)};
  const std::string user = me->command_.user.empty() ? me->place_.user : me->command_.user;
  const std::int64_t code = co_await run_helper(me->engine_, me->place_.container, user, words);
  if (code == 0) co_return;
  throw fault(Code::unavailable, "docker.kill", "not every process of the command could be ended");
}

// On the lane, by a stop of the command: once.
void Exec::begin_end() {
  if (std::exchange(ending_, true)) return;
  const auto me = shared_from_this();
  plugin::Coroutine::launch<void>(
      lane_, StopToken(), [me] { return end_tree(me); },
      [me](const std::exception_ptr& error, Void*) {
        if (error) {
          me->unconfirmed_ = true;
          plugin::detail::report_stray(error, "the end of a command");
          me->stream_->cancel();
        }
        me->ended_.request_stop();
      });
}

Task<void> Exec::end_tree(std::shared_ptr<Exec> me) {
  for (milliseconds waited = 0ms; !me->started_ && waited < kStartPatience; waited += 10ms) {
    if (me->over_.stop_requested()) co_return;
    co_await plugin::sleep_for(10ms);
  }
  const milliseconds grace = std::min(me->command_.grace, kLongestGrace);
  if (grace.count() > 0) {
    try {
      co_await signal_tree(me, SIGTERM, 1);
    } catch (const Error& error) {
      // The kill says whether anything is left.
      plugin::Log::warn("not every process of a command was asked to end",
                        {{"container", me->place_.container}, {"error", error.message()}});
    }
    co_await until_or_after(me->over_.token(), grace);
  }
  co_await signal_tree(me, SIGKILL, kKillRounds);
  co_await until_or_after(me->over_.token(), kEndPatience);
  if (me->over_.stop_requested()) co_return;
  throw fault(Code::unavailable, "docker.kill", "the engine does not tell the end of the command");
}

void Exec::answer_signal(std::int32_t number, plugin::SignalScope scope, plugin::Reply reply) {
  const auto me = shared_from_this();
  const auto shared = std::make_shared<plugin::Reply>(std::move(reply));
  if (!started_ || over_.stop_requested())
    return shared->fail(fault(Code::gone, "process.ended", "the process has ended"));
  plugin::Coroutine::launch<void>(
      lane_, StopToken(), [me, number, scope] { return signal(me, number, scope); },
      [shared](const std::exception_ptr& error, Void*) {
        if (error) return shared->fail(error);
        shared->ok();
      });
}

Task<void> Exec::signal(std::shared_ptr<Exec> me, std::int32_t number, plugin::SignalScope scope) {
  if (scope == plugin::SignalScope::tree) {
    const int rounds = number == SIGKILL ? kKillRounds : 1;
    co_await signal_tree(me, number, rounds);
    co_return;
  }
  me->sent_.push_back(number);
  const std::vector<std::string> words = {"/bin/sh",
                                          "-c",
                                          std::string(kSignalLeaderScript),
                                          "sh",
                                          me->process_,
                                          me->mark(),
                                          std::to_string(number)};
  const std::string user = me->command_.user.empty() ? me->place_.user : me->command_.user;
  const std::int64_t code = co_await run_helper(me->engine_, me->place_.container, user, words);
  if (code != 0) throw fault(Code::gone, "process.ended", "the process has ended");
}

// ---- How it ended

Exit Exec::exit_from(std::int64_t code) const {
  const std::int64_t number = code - 128;
  if (!ends_processes(number)) return Exit::exited(static_cast<std::int32_t>(code));
  Exit exit = Exit::signaled(static_cast<std::int32_t>(number));
  exit.killed = machine_ends_ || std::find(sent_.begin(), sent_.end(), exit.signal) != sent_.end();
  return exit;
}

Task<Exit> Exec::exit_of(std::shared_ptr<Exec> me) {
  const bool cut = me->lost_ && !me->unconfirmed_;
  std::optional<std::int64_t> code;
  milliseconds pause = 5ms;
  for (milliseconds waited = 0ms; waited < kExitPatience; waited += pause) {
    const std::optional<wire::ExecInfo> now = co_await look(me);
    if (now && now->ended()) code = now->exit_code;
    if (!now || code || cut) break;
    co_await plugin::sleep_for(pause);
    pause = std::min(pause * 2, 250ms);
  }
  if (code && !cut) {
    Exit exit = me->exit_from(*code);
    exit.pipes_held = me->pipes_held_;
    co_return exit;
  }
  const Exit none = co_await missing_exit(me, code);
  co_return none;
}

// What the engine knows of the exec; absent: nothing, or it does not answer.
Task<std::optional<wire::ExecInfo>> Exec::look(std::shared_ptr<Exec> me) {
  try {
    const HttpAnswer answer = co_await me->engine_.call("GET", "/exec/" + me->exec_id_ + "/json");
    if (answer.status == 200) co_return wire::read_exec(answer.body);
  } catch (const Error& error) {
    if (error.code() == Code::cancelled) throw;
    plugin::Log::warn("the engine does not tell how a command ended",
                      {{"container", me->place_.container}, {"error", error.message()}});
  }
  co_return std::nullopt;
}

// The engine does not say, because the machine went or because it forgot; or its output is cut,
// and `code` alone is no whole answer unless the machine's end is what cut it.
Task<Exit> Exec::missing_exit(std::shared_ptr<Exec> me, std::optional<std::int64_t> code) {
  std::optional<wire::ContainerInfo> now;
  bool gone = false;
  try {
    const HttpAnswer answer =
        co_await me->engine_.call("GET", "/containers/" + me->place_.container + "/json");
    gone = answer.status == 404;
    if (answer.status == 200) now = wire::read_container(answer.body);
  } catch (const Error&) {
    // Told below: nothing is known of it.
  }
  if (gone)
    throw fault(Code::gone, "docker.gone", "the container was removed while the command ran")
        .may_have_started(true);
  const bool ended = now && !now->running;
  if (ended && code) co_return me->exit_from(*code);
  if (ended && me->machine_ends_) {
    Exit exit = Exit::signaled(SIGKILL);
    exit.killed = true;
    co_return exit;
  }
  if (ended)
    throw fault(Code::transport_lost, "docker.stream",
                "the container ended while the command ran: how the command ended is not known")
        .may_have_started(true);
  if (me->unconfirmed_)
    throw fault(Code::unavailable, "docker.kill",
                "the command could not be ended: it may still run")
        .may_have_started(true);
  throw fault(Code::transport_lost, "docker.stream",
              code ? "the connection to the engine was lost: the command has ended with " +
                         std::to_string(*code) + ", and a part of its output is missing"
                   : "the connection to the engine was lost: the command may still run")
      .may_have_started(true);
}

// The output has ended and the script never said that it becomes the command.
Task<void> Exec::refuse_start(std::shared_ptr<Exec> me) {
  const std::string directory = joined(me->place_.directory, me->command_.cwd.value_or(""));
  const std::string program =
      me->command_.argv.empty() ? "/bin/sh" : to_valid_utf8(me->command_.argv.front());
  if (me->refusal_ == "directory")
    throw fault(Code::invalid, "command.no_directory",
                "the working directory does not exist, is none, or may not be entered: " +
                    to_valid_utf8(directory))
        .detail("path", to_valid_utf8(directory));
  if (me->refusal_ == "missing")
    throw fault(Code::not_found, "command.not_found", "there is no program " + program);
  if (me->refusal_ == "denied")
    throw fault(Code::invalid, "command.not_executable", program + " cannot be executed");
  if (me->lost_) {
    try {
      std::rethrow_exception(me->lost_);
    } catch (const Error& error) {
      Error lost = error;
      throw lost.may_have_started(true);
    }
  }
  std::string said = escape_controls(to_valid_utf8(me->first_out_ + me->first_err_));
  while (!said.empty() &&
         said.substr(said.size() - std::min<std::size_t>(4, said.size())) == "\\r\\n")
    said.resize(said.size() - 4);
  // Warnings alone are no word of the engine.
  if (me->first_out_.empty() && !is_refusal(said)) {
    co_await missing_exit(me, std::nullopt);
    throw fault(Code::transport_lost, "docker.stream",
                "the container was ended before the command said that it begins")
        .may_have_started(true);
  }
  HttpAnswer answer;
  answer.status = 400;
  answer.body = said;
  co_await refuse_sent(me, answer);
}

// The request to start it was sent: only the engine's own word says that nothing has begun.
Task<void> Exec::refuse_sent(std::shared_ptr<Exec> me, HttpAnswer answer) {
  const bool refused = is_refusal(answer.body);
  if (refused && answer.body.find("argument list too long") != std::string::npos) throw too_large();
  std::optional<Error> why;
  try {
    // Not running any more: then that is the reason.
    co_await refuse_by_state(me->engine_, me->place_.container, answer, "start the command");
  } catch (const Error& error) {
    why = error;
  }
  throw why->may_have_started(!refused);
}

}  // namespace sandforge::docker

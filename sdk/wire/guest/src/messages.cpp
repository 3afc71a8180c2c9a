#include "sandforge/wire/guest/messages.hpp"

#include "bytes.hpp"
#include "sandforge/wire/guest/frame.hpp"

namespace sandforge::wire::guest {
namespace {

constexpr std::size_t kIdLimit = 128;
constexpr std::size_t kTagLimit = 1024;
constexpr std::size_t kPathLimit = 4096;
constexpr std::size_t kListLimit = 65536;
constexpr std::size_t kArgumentLimit = 262144;
constexpr std::uint8_t kNoValue = 0, kHasValue = 1;

void put(Writer& w, const Cursor& c) {
  w.number(c.out).number(c.err);
}
void get(Reader& r, Cursor& c) {
  r.number(c.out).number(c.err);
}

void put(Writer& w, const Target& t) {
  w.flag(t.by_channel).number(t.id);
}
void get(Reader& r, Target& t) {
  r.flag(t.by_channel).number(t.id);
}

void put(Writer& w, ProcessId id) {
  w.number(static_cast<std::uint64_t>(id));
}
void get(Reader& r, ProcessId& id) {
  std::uint64_t raw = 0;
  r.number(raw);
  id = ProcessId{raw};
}

void put(Writer& w, const std::vector<EnvEntry>& entries) {
  w.number(static_cast<std::uint32_t>(entries.size()));
  for (const EnvEntry& e : entries) {
    w.number(e.value ? kHasValue : kNoValue).text(e.name);
    if (e.value) w.text(*e.value);
  }
}
void get(Reader& r, std::vector<EnvEntry>& entries) {
  entries.clear();
  for (std::size_t n = r.count(5, kListLimit); n > 0 && r.ok(); --n) {
    EnvEntry e;
    bool has = false;
    r.flag(has).text(e.name, kMaxMessage);
    if (has) r.text(e.value.emplace(), kMaxMessage);
    entries.push_back(std::move(e));
  }
}

void put(Writer& w, const Exit& e) {
  w.flag(e.code.has_value()).number(e.code ? *e.code : e.signal.value_or(0));
  w.flag(e.timed_out).flag(e.killed).flag(e.out_of_memory).number(e.duration_ns);
}
void get(Reader& r, Exit& e) {
  bool is_code = false;
  std::int32_t value = 0;
  r.flag(is_code).number(value);
  r.flag(e.timed_out).flag(e.killed).flag(e.out_of_memory).number(e.duration_ns);
  e.code.reset();
  e.signal.reset();
  if (is_code) {
    if (value < 0 || value > 255) r.fail();
    e.code = value;
  } else {
    if (value < 1 || value > 127) r.fail();
    e.signal = value;
  }
}

void put(Writer& w, const ProcessInfo& p) {
  put(w, p.process);
  w.text(p.request_id).text(p.tag).text(p.command).number(p.pid);
  w.number(static_cast<std::uint8_t>(p.state)).flag(p.detached).flag(p.background);
  w.flag(p.exit.has_value());
  if (p.exit) put(w, *p.exit);
  w.number(p.started_unix_ms);
  put(w, p.log_begin);
  put(w, p.log_end);
}
void get(Reader& r, ProcessInfo& p) {
  get(r, p.process);
  r.text(p.request_id, kIdLimit).text(p.tag, kTagLimit).text(p.command, kPathLimit);
  r.number(p.pid).choice(p.state, ProcessState::ended).flag(p.detached).flag(p.background);
  bool has = false;
  r.flag(has);
  if (has) get(r, p.exit.emplace());
  r.number(p.started_unix_ms);
  get(r, p.log_begin);
  get(r, p.log_end);
}

bool has_nul(std::string_view s) {
  return s.find('\0') != std::string_view::npos;
}

}  // namespace

void Hello::encode(std::string& out) const {
  Writer(out).number(kMagic).number(version).text(client);
}
bool Hello::decode(std::string_view in) {
  Reader r(in);
  std::uint32_t magic = 0;
  r.number(magic).number(version).text(client, kIdLimit);
  return r.done() && magic == kMagic;
}

void HelloReply::encode(std::string& out) const {
  Writer(out).number(kMagic).number(version).number(features).number(pid).text(instance);
}
bool HelloReply::decode(std::string_view in) {
  Reader r(in);
  std::uint32_t magic = 0;
  r.number(magic).number(version).number(features).number(pid).text(instance, 64);
  return r.done() && magic == kMagic;
}

void SpawnRequest::encode(std::string& out) const {
  Writer w(out);
  w.text(request_id).number(static_cast<std::uint32_t>(argv.size()));
  for (const std::string& arg : argv)
    w.text(arg);
  w.text(shell_text).flag(stored_environment);
  put(w, env);
  w.text(cwd).text(user).number(static_cast<std::uint8_t>(stdin_mode));
  w.flag(tty.has_value());
  if (tty) w.number(tty->cols).number(tty->rows).text(tty->term);
  w.flag(combined).flag(detach).number(timeout_ms).number(grace_ms).number(window).text(tag);
}
bool SpawnRequest::decode(std::string_view in) {
  Reader r(in);
  r.text(request_id, kIdLimit);
  argv.clear();
  for (std::size_t n = r.count(4, kArgumentLimit); n > 0 && r.ok(); --n)
    r.text(argv.emplace_back(), kMaxMessage);
  r.text(shell_text, kMaxMessage).flag(stored_environment);
  get(r, env);
  r.text(cwd, kMaxMessage).text(user, kMaxMessage).choice(stdin_mode, StdinMode::pipe);
  bool has = false;
  r.flag(has);
  tty.reset();
  if (has) {
    tty.emplace();
    r.number(tty->cols).number(tty->rows).text(tty->term, kIdLimit);
  }
  r.flag(combined).flag(detach).number(timeout_ms).number(grace_ms).number(window);
  r.text(tag, kTagLimit);
  return r.done();
}

std::string SpawnRequest::check() const {
  if (request_id.empty() || request_id.size() > kIdLimit)
    return "the request id must have 1 to 128 bytes";
  if (argv.empty() && shell_text.empty()) return "the command is empty";
  if (!argv.empty() && !shell_text.empty()) return "argv and shell text exclude each other";
  if (!argv.empty() && argv.front().empty()) return "the name of the program is empty";
  for (const std::string& arg : argv)
    if (has_nul(arg)) return "an argument contains a NUL byte";
  if (argv.size() > kArgumentLimit) return "there are too many arguments";
  if (has_nul(shell_text)) return "the command contains a NUL byte";
  for (const EnvEntry& e : env) {
    if (e.name.empty()) return "an environment variable has no name";
    if (e.name.find('=') != std::string::npos || has_nul(e.name))
      return "the name of an environment variable contains '=' or a NUL byte";
    if (e.value && has_nul(*e.value))
      return "the value of the environment variable " + e.name + " contains a NUL byte";
  }
  if (env.size() > kListLimit) return "there are too many environment variables";
  if (has_nul(cwd) || cwd.size() > kPathLimit)
    return "the working directory contains a NUL byte or is too long";
  if (has_nul(user) || user.size() > kIdLimit) return "the user contains a NUL byte or is too long";
  if (tag.size() > kTagLimit) return "the tag has more than 1024 bytes";
  if (tty && (tty->term.size() > kIdLimit || has_nul(tty->term)))
    return "the terminal type contains a NUL byte or is too long";
  std::size_t size = 1024 + shell_text.size() + cwd.size() + user.size() + tag.size();
  for (const std::string& arg : argv)
    size += 4 + arg.size();
  for (const EnvEntry& e : env)
    size += 9 + e.name.size() + (e.value ? e.value->size() : 0);
  if (size > kMaxMessage) return "arguments and environment are too large";
  return {};
}

void AttachRequest::encode(std::string& out) const {
  Writer w(out);
  put(w, process);
  w.text(request_id);
  put(w, from);
  w.number(window).flag(hold_back).flag(take_stdin);
}
bool AttachRequest::decode(std::string_view in) {
  Reader r(in);
  get(r, process);
  r.text(request_id, kIdLimit);
  get(r, from);
  r.number(window).flag(hold_back).flag(take_stdin);
  return r.done();
}

void SignalRequest::encode(std::string& out) const {
  Writer w(out);
  put(w, target);
  w.number(signal).number(static_cast<std::uint8_t>(scope));
}
bool SignalRequest::decode(std::string_view in) {
  Reader r(in);
  get(r, target);
  r.number(signal).choice(scope, SignalScope::tree);
  return r.done();
}

void KillRequest::encode(std::string& out) const {
  Writer w(out);
  put(w, target);
  w.number(grace_ms);
}
bool KillRequest::decode(std::string_view in) {
  Reader r(in);
  get(r, target);
  r.number(grace_ms);
  return r.done();
}

void StopAllRequest::encode(std::string& out) const {
  Writer(out).number(grace_ms).flag(exit);
}
bool StopAllRequest::decode(std::string_view in) {
  Reader r(in);
  r.number(grace_ms).flag(exit);
  return r.done();
}

void EnvSetRequest::encode(std::string& out) const {
  Writer w(out);
  w.flag(replace_all);
  put(w, entries);
}
bool EnvSetRequest::decode(std::string_view in) {
  Reader r(in);
  r.flag(replace_all);
  get(r, entries);
  return r.done();
}

void EnvReply::encode(std::string& out) const {
  Writer w(out);
  put(w, entries);
}
bool EnvReply::decode(std::string_view in) {
  Reader r(in);
  get(r, entries);
  for (const EnvEntry& e : entries)
    if (!e.value) return false;
  return r.done();
}

void Started::encode(std::string& out) const {
  Writer w(out);
  put(w, process);
  w.number(pid).flag(existing);
}
bool Started::decode(std::string_view in) {
  Reader r(in);
  get(r, process);
  r.number(pid).flag(existing);
  return r.done();
}

void Exit::encode(std::string& out) const {
  Writer w(out);
  put(w, *this);
}
bool Exit::decode(std::string_view in) {
  Reader r(in);
  get(r, *this);
  return r.done();
}

void End::encode(std::string& out) const {
  Writer w(out);
  put(w, total);
  put(w, dropped);
  w.flag(pipes_held).flag(background);
}
bool End::decode(std::string_view in) {
  Reader r(in);
  get(r, total);
  get(r, dropped);
  r.flag(pipes_held).flag(background);
  return r.done();
}

void ErrorInfo::encode(std::string& out) const {
  Writer(out).number(static_cast<std::uint16_t>(code)).number(error_number).text(message);
}
bool ErrorInfo::decode(std::string_view in) {
  Reader r(in);
  r.choice(code, ErrorCode::not_empty).number(error_number).text(message, 2 * kPathLimit);
  return r.done() && static_cast<std::uint16_t>(code) != 0;
}

void ProcessInfo::encode(std::string& out) const {
  Writer w(out);
  put(w, *this);
}

void ListReply::encode(std::string& out) const {
  Writer w(out);
  w.number(static_cast<std::uint32_t>(processes.size()));
  for (const ProcessInfo& p : processes)
    put(w, p);
}
bool ListReply::decode(std::string_view in) {
  Reader r(in);
  processes.clear();
  for (std::size_t n = r.count(60, kListLimit); n > 0 && r.ok(); --n)
    get(r, processes.emplace_back());
  return r.done();
}

void InfoReply::encode(std::string& out) const {
  Writer(out).number(uptime_ms).number(running).number(known).number(connections);
  Writer(out).number(log_bytes).number(spawned);
}
bool InfoReply::decode(std::string_view in) {
  Reader r(in);
  r.number(uptime_ms).number(running).number(known).number(connections);
  r.number(log_bytes).number(spawned);
  return r.done();
}

}  // namespace sandforge::wire::guest

#include "sandforge/wire/guest/client.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "bytes.hpp"
#include "client_state.hpp"

namespace sandforge::wire::guest {

bool GuestClient::State::frame(const FrameView& f) {
  const auto type = static_cast<FrameType>(f.header.type);
  if (!ready && type != FrameType::hello_reply) return fail("the guest did not greet");
  FrameView message = f;
  if (type != FrameType::output && type != FrameType::file_bytes) {
    switch (assembler.add(f, message)) {
      case Assembler::Result::partial:
        return true;
      case Assembler::Result::malformed:
        return fail("the guest sent a malformed frame");
      case Assembler::Result::complete:
        break;
    }
  }
  if (message.header.channel == 0) return connection_frame(message);

  const ChannelId id{message.header.channel};
  const auto found = channels.find(raw(id));
  if (found == channels.end()) return fail("the guest used a channel that is not open");
  Channel& channel = found->second;
  if (channel.left) {
    // The guest's last word on it, whichever crossed our leave.
    if (type == FrameType::done) {
      channels.erase(found);
      --left_channels;
    }
    return true;
  }
  if (type == FrameType::error) return error_frame(id, message);
  if (channel.file()) return file_frame(id, channel, message);
  return channel.process() ? process_frame(id, channel, message)
                           : reply_frame(id, channel, message);
}

bool GuestClient::State::connection_frame(const FrameView& f) {
  switch (static_cast<FrameType>(f.header.type)) {
    case FrameType::hello_reply: {
      HelloReply hello;
      if (ready) return fail("the guest greeted twice");
      if (!decode(f, hello)) return false;
      if (hello.version != kVersion) return fail("the guest speaks another version");
      ready = true;
      events.on_hello(hello);
      return !failed;
    }
    case FrameType::guest_ping:
      return send(FrameType::pong, 0, f.header.value, {});
    case FrameType::guest_pong:
      return true;
    default:
      return fail("the guest sent an unknown frame");
  }
}

void GuestClient::State::leave(ChannelId id, Channel& channel) {
  channel.left = true;
  ++left_channels;
  send(FrameType::leave, raw(id), 0, {});
}

bool GuestClient::State::error_frame(ChannelId id, const FrameView& f) {
  ErrorInfo error;
  if (!decode(f, error)) return false;
  channels.erase(raw(id));
  events.on_error(id, error);
  return !failed;
}

bool GuestClient::State::output_frame(ChannelId id, Channel& channel, const FrameView& f) {
  const std::uint8_t which = f.header.flags;
  const std::uint64_t size = f.payload.size();
  if (which > 1 || size == 0) return fail("the guest sent malformed output");
  std::uint64_t& expected = channel.offset[which];
  const std::uint64_t offset = f.header.value;
  if (offset < expected || offset > kNever - size) return fail("the guest sent output twice");
  if (size > channel.credit) return fail("the guest sent output beyond its credit");
  channel.credit -= size;
  const std::uint64_t gap_from = std::exchange(expected, offset + size);
  if (offset > gap_from) {
    events.on_gap(id, StreamId{which}, gap_from, offset - gap_from);
    if (failed || !find(id)) return !failed;
  }
  events.on_output(id, StreamId{which}, offset, f.payload);
  return !failed;
}

bool GuestClient::State::process_frame(ChannelId id, Channel& channel, const FrameView& f) {
  const auto type = static_cast<FrameType>(f.header.type);
  if (channel.started == (type == FrameType::started))
    return fail("the guest sent frames of a process out of order");
  switch (type) {
    case FrameType::started: {
      Started started;
      if (!decode(f, started)) return false;
      channel.started = true;
      // Standard input belongs to the channel that made the process, until another takes it.
      if (started.existing && channel.request == FrameType::spawn) channel.stdin_open = false;
      events.on_started(id, started);
      return !failed;
    }
    case FrameType::output:
      return output_frame(id, channel, f);
    case FrameType::stdin_credit:
      if (f.header.value > kStdinCreditLimit - channel.stdin_credit)
        return fail("the guest granted too much input");
      channel.stdin_credit += f.header.value;
      if (channel.stdin_open) events.on_stdin_credit(id);
      return !failed;
    case FrameType::stdin_closed:
      if (f.header.value > 4095) return fail("the guest sent an impossible error number");
      if (std::exchange(channel.stdin_open, false))
        events.on_stdin_closed(id, static_cast<int>(f.header.value));
      return !failed;
    case FrameType::exited: {
      Exit exit;
      if (std::exchange(channel.exited, true)) return fail("the guest sent a second exit");
      if (!decode(f, exit)) return false;
      events.on_exited(id, exit);
      return !failed;
    }
    case FrameType::end: {
      End end;
      if (!channel.exited) return fail("the guest sent an end before the exit");
      if (!decode(f, end)) return false;
      channels.erase(raw(id));
      events.on_end(id, end);
      return !failed;
    }
    default:
      return fail("the guest sent an unknown frame");
  }
}

bool GuestClient::State::reply_frame(ChannelId id, Channel& channel, const FrameView& f) {
  const FrameType request = channel.request;
  channels.erase(raw(id));
  switch (static_cast<FrameType>(f.header.type)) {
    case FrameType::list_reply: {
      ListReply reply;
      if (request != FrameType::list) break;
      if (!decode(f, reply)) return false;
      events.on_list(id, reply);
      return !failed;
    }
    case FrameType::info_reply: {
      InfoReply reply;
      if (request != FrameType::info) break;
      if (!decode(f, reply)) return false;
      events.on_info(id, reply);
      return !failed;
    }
    case FrameType::env_reply: {
      EnvReply reply;
      if (request != FrameType::env_get) break;
      if (!decode(f, reply)) return false;
      events.on_environment(id, reply);
      return !failed;
    }
    case FrameType::done:
      if (request == FrameType::list || request == FrameType::info || request == FrameType::env_get)
        break;
      events.on_done(id, f.header.value);
      return !failed;
    default:
      break;
  }
  return fail("the guest answered another question");
}

GuestClient::GuestClient(ClientEvents& events, ClientOptions options)
    : state_(std::make_unique<State>(events, std::move(options))) {
  Hello hello;
  hello.version = kVersion;
  hello.client = state_->options.client.substr(0, 128);
  state_->send(FrameType::hello, 0, 0, payload_of(hello));
}

GuestClient::~GuestClient() = default;

GuestClient::Buffer GuestClient::receive_buffer() {
  State& s = *state_;
  if (s.in_begin == s.in_end) s.in_begin = s.in_end = 0;
  if (s.in.size() - s.in_end < kMaxPayload) {
    std::memmove(s.in.data(), s.in.data() + s.in_begin, s.in_end - s.in_begin);
    s.in_end -= std::exchange(s.in_begin, 0);
  }
  return {s.in.data() + s.in_end, s.in.size() - s.in_end};
}

bool GuestClient::received(std::size_t size) {
  State& s = *state_;
  if (s.failed) return false;
  s.in_end += std::min(size, s.in.size() - s.in_end);
  if (size > 0) s.heard = true;
  while (!s.failed) {
    FrameView frame;
    switch (parse_frame({s.in.data() + s.in_begin, s.in_end - s.in_begin}, frame)) {
      case ParseResult::incomplete:
        return true;
      case ParseResult::malformed:
        return s.fail("the guest sent a malformed frame");
      case ParseResult::frame:
        break;
    }
    s.in_begin += kHeaderSize + frame.payload.size();
    if (!s.frame(frame)) return false;
  }
  return false;
}

bool GuestClient::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const Buffer buffer = receive_buffer();
    const std::size_t part = std::min(buffer.size, bytes.size());
    std::memcpy(buffer.data, bytes.data(), part);
    bytes.remove_prefix(part);
    if (!received(part)) return false;
  }
  return !failed();
}

void GuestClient::lost(std::string_view reason) {
  state_->fail(reason);
}

std::string_view GuestClient::output() const noexcept {
  return std::string_view(state_->out).substr(state_->out_begin);
}

void GuestClient::consume(std::size_t size) {
  State& s = *state_;
  size = std::min(size, s.out.size() - s.out_begin);
  s.out_begin += size;
  s.out_consumed += size;
  if (s.out_begin == s.out.size()) {
    s.out.clear();
    s.out_begin = 0;
    if (s.out.capacity() > 4 * s.options.output_limit) s.out.shrink_to_fit();
  } else if (s.out_begin > s.out.size() / 2) {
    s.out.erase(0, s.out_begin);
    s.out_begin = 0;
  }
}

std::optional<ChannelId> GuestClient::spawn(const SpawnRequest& request, std::string* why) {
  std::string wrong = state_->failed ? state_->failure : request.check();
  if (!wrong.empty()) {
    if (why) *why = std::move(wrong);
    return std::nullopt;
  }
  const ChannelId id = state_->open(FrameType::spawn, payload_of(request));
  Channel& channel = state_->channels.at(raw(id));
  channel.credit = request.window;
  channel.stdin_open = request.stdin_mode == StdinMode::pipe || request.tty.has_value();
  return id;
}

ChannelId GuestClient::attach(const AttachRequest& request) {
  const ChannelId id = state_->open(FrameType::attach, payload_of(request));
  if (Channel* channel = state_->find(id)) {
    channel->credit = request.window;
    channel->offset[0] = request.from.out;
    channel->offset[1] = request.from.err;
    channel->stdin_open = request.take_stdin;
  }
  return id;
}

ChannelId GuestClient::signal(Target target, int signal, SignalScope scope) {
  SignalRequest request;
  request.target = target;
  request.signal = signal;
  request.scope = scope;
  return state_->open(FrameType::signal, payload_of(request));
}

ChannelId GuestClient::kill(Target target, std::uint64_t grace_ms) {
  KillRequest request;
  request.target = target;
  request.grace_ms = grace_ms;
  return state_->open(FrameType::kill, payload_of(request));
}

ChannelId GuestClient::release(Target target) {
  KillRequest request;
  request.target = target;
  return state_->open(FrameType::release, payload_of(request));
}

ChannelId GuestClient::list() {
  return state_->open(FrameType::list, {});
}
ChannelId GuestClient::info() {
  return state_->open(FrameType::info, {});
}
ChannelId GuestClient::env_get() {
  return state_->open(FrameType::env_get, {});
}

ChannelId GuestClient::env_set(const EnvSetRequest& request) {
  return state_->open(FrameType::env_set, payload_of(request));
}

ChannelId GuestClient::stop_all(const StopAllRequest& request) {
  return state_->open(FrameType::stop_all, payload_of(request));
}

std::optional<std::size_t> GuestClient::write_stdin(ChannelId channel, std::string_view bytes) {
  Channel* c = state_->find(channel);
  if (!c || !c->process() || !c->stdin_open || c->exited) return std::nullopt;
  const std::size_t size = std::min(bytes.size(), stdin_room(channel));
  c->stdin_credit -= size;
  return state_->send_pieces(channel, FrameType::stdin_data, bytes.substr(0, size));
}

std::size_t GuestClient::stdin_room(ChannelId channel) const noexcept {
  const Channel* c = std::as_const(*state_).find(channel);
  if (!c || !c->process() || !c->stdin_open || c->exited) return 0;
  return state_->room(c->stdin_credit);
}

void GuestClient::close_stdin(ChannelId channel) {
  Channel* c = state_->find(channel);
  if (!c || !c->process() || !std::exchange(c->stdin_open, false)) return;
  state_->send(FrameType::stdin_close, raw(channel), 0, {});
}

std::size_t GuestClient::State::room(std::uint64_t credit) const noexcept {
  const std::size_t waiting = out.size() - out_begin;
  const std::size_t limit = options.output_limit;
  return waiting >= limit
             ? 0
             : static_cast<std::size_t>(std::min<std::uint64_t>(credit, limit - waiting));
}

std::size_t GuestClient::State::send_pieces(ChannelId id, FrameType type, std::string_view bytes) {
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::size_t part = std::min(rest.size(), kMaxPayload);
    send(type, raw(id), 0, rest.substr(0, part));
    rest.remove_prefix(part);
  }
  return bytes.size();
}

void GuestClient::grant(ChannelId channel, std::uint64_t bytes) {
  Channel* c = state_->find(channel);
  if (!c || (!c->process() && !c->file()) || bytes == 0) return;
  bytes = std::min(bytes, kNever - c->credit);
  c->credit += bytes;
  state_->send(FrameType::credit, raw(channel), bytes, {});
}

void GuestClient::acknowledge(ChannelId channel, Cursor stored) {
  Channel* c = state_->find(channel);
  if (!c || !c->process()) return;
  std::string payload;
  Writer(payload).number(stored.out).number(stored.err);
  state_->send(FrameType::ack, raw(channel), 0, payload);
}

void GuestClient::resize(ChannelId channel, std::uint16_t cols, std::uint16_t rows) {
  Channel* c = state_->find(channel);
  if (!c || !c->process()) return;
  std::string payload;
  Writer(payload).number(cols).number(rows);
  state_->send(FrameType::resize, raw(channel), 0, payload);
}

void GuestClient::leave(ChannelId channel) {
  Channel* c = state_->find(channel);
  if (!c || (!c->process() && !c->file())) return;
  state_->leave(channel, *c);
}

bool GuestClient::ready() const noexcept {
  return state_->ready;
}
bool GuestClient::failed() const noexcept {
  return state_->failed;
}
const std::string& GuestClient::failure() const noexcept {
  return state_->failure;
}
bool GuestClient::open(ChannelId channel) const noexcept {
  return std::as_const(*state_).find(channel) != nullptr;
}
std::size_t GuestClient::open_channels() const noexcept {
  return state_->channels.size() - state_->left_channels;
}

std::uint64_t GuestClient::tick(std::uint64_t now_ms) {
  State& s = *state_;
  if (s.failed || s.options.ping_interval_ms == 0) return kNever;
  if (std::exchange(s.heard, false)) {
    s.heard_at = now_ms;
    s.ping_at.reset();
  }
  if (s.ping_at) {
    if (now_ms - *s.ping_at < s.options.ping_timeout_ms)
      return *s.ping_at + s.options.ping_timeout_ms;
    s.fail("the guest stayed silent");
    return kNever;
  }
  if (now_ms - s.heard_at < s.options.ping_interval_ms)
    return s.heard_at + s.options.ping_interval_ms;
  s.send(FrameType::ping, 0, ++s.ping_token, {});
  s.ping_at = now_ms;
  return now_ms + s.options.ping_timeout_ms;
}

}  // namespace sandforge::wire::guest

// A WebSocket's messages on the stream of a request.
#include <algorithm>
#include <utility>

#include "http/exchange.hpp"

namespace sandforge::http {
namespace {

// Unsent; then pings get no answers, and no message without a byte is taken.
constexpr std::size_t kMaxUnsent = 512U << 10;

Opcode kind_of(std::uint32_t flags) noexcept {
  return (flags & SF_DATA_TEXT) != 0 ? Opcode::text : Opcode::binary;
}

}  // namespace

// *accepted: what there is room for, then what was taken.
Result<void> Exchange::write_message(std::string_view data, std::uint32_t flags,
                                     std::size_t* accepted) {
  Messages& my = messages_;
  const bool begins = my.open == Opcode::continuation;
  const bool named = (flags & (SF_DATA_TEXT | SF_DATA_BINARY)) != 0;
  const Opcode kind = begins || named ? kind_of(flags) : my.open;
  if ((flags & SF_DATA_TEXT) != 0 && (flags & SF_DATA_BINARY) != 0)
    return Error(Status::invalid, "a message is a text or binary, not both", "http.message");
  if (!begins && kind != my.open)
    return Error(Status::invalid, "a message stays what it began as", "http.message");
  const auto piece = data.substr(0, *accepted);
  const bool last = (flags & SF_DATA_END) != 0 && piece.size() == data.size();
  if (piece.empty() && !last) return {};
  // What has begun can always be ended: it had a byte, for which there was room.
  if (piece.empty() && begins && unsent() >= kMaxUnsent) {
    wants_writable_ = true;
    return Error(Status::rate_limited, "too much of what was written has not gone out",
                 "http.message");
  }
  Utf8Check check = begins ? Utf8Check() : my.check;
  if (kind == Opcode::text && (!check.take(piece) || (last && !check.whole())))
    return Error(Status::invalid, "a text message is UTF-8", "http.message");
  write_frame(out_, begins ? kind : Opcode::continuation, last, piece);
  my.check = check;
  my.open = last ? Opcode::continuation : kind;
  return {};
}

bool Exchange::digest_messages() {
  while (!connection_->input().empty()) {
    const auto input = connection_->input();
    const auto step = messages_.in.next(input, wanted(input.size()));
    if (step.state == FrameReader::State::room) return false;
    if (step.state == FrameReader::State::more && step.used == 0) return true;
    if (!on_frame(step)) return false;
  }
  return true;
}

bool Exchange::on_frame(const FrameReader::Step& step) {
  switch (step.state) {
    case FrameReader::State::data: {
      const std::uint32_t kind = step.text ? SF_DATA_TEXT : SF_DATA_BINARY;
      deliver(step.payload, kind | (step.last ? SF_DATA_END : 0));
      break;
    }
    case FrameReader::State::ping:
      if (!messages_.close_sent && !send_failed_ && unsent() < kMaxUnsent) {
        write_frame(out_, Opcode::pong, true, step.payload);
        send_later();
      }
      break;
    case FrameReader::State::close:
      on_close(step);
      return false;
    case FrameReader::State::wrong:
      return breaks_off(step);
    default:
      break;
  }
  connection_->used(step.used);
  return true;
}

void Exchange::send_close(std::uint16_t code) {
  if (std::exchange(messages_.close_sent, true)) return;
  input_shut_ = true;
  messages_.closing_since = Clock::now();
  write_close(out_, code);
  arm();
}

// The other end's; it says nothing more.
void Exchange::on_close(const FrameReader::Step& step) {
  messages_.close_came = true;
  messages_.close_code = step.code;
  messages_.close_reason = step.payload;
  connection_->used(connection_->input().size());
  send_close(step.code);
  // Reading is over: what is left is to wait for room.
  if (send_failed_) return finish(std::nullopt);
  send();
  arm();
}

// Against the protocol. The other end is told, if it takes it at once.
bool Exchange::breaks_off(const FrameReader::Step& step) {
  send_close(step.code);
  send();
  finish(Error(Status::transport_lost,
               "the WebSocket of " + client_->dial().address.name() + " was ended: " + step.why,
               "http.protocol"));
  return false;
}

void Exchange::ping() {
  messages_.pinged = true;
  messages_.heard_at = Clock::now();
  if (send_failed_) return;
  write_frame(out_, Opcode::ping, true, {});
  send();
}

// Bytes of messages that are here and will not be delivered.
std::uint64_t Exchange::drain_messages() {
  std::uint64_t count = 0;
  while (!connection_->input().empty()) {
    const auto input = connection_->input();
    const auto step = messages_.in.next(input, input.size());
    if (step.used == 0 || step.state == FrameReader::State::wrong) break;
    if (step.state == FrameReader::State::data) count += step.payload.size();
    connection_->used(step.used);
  }
  return count;
}

}  // namespace sandforge::http

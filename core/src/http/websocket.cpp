#include "http/websocket.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "http/text.hpp"
#include "sandforge/support/encoding.hpp"

namespace sandforge::http {
namespace {

constexpr std::size_t kMaxControl = 125;

template <std::size_t Size>
std::array<unsigned char, Size> random_bytes() {
  std::array<unsigned char, Size> out{};
  if (::RAND_bytes(out.data(), static_cast<int>(Size)) != 1)
    throw std::runtime_error("the system gives no random numbers");
  return out;
}

std::string_view view(const unsigned char* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

std::string accept_of(std::string_view key) {
  std::string text(key);
  text.append("258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  ::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha1(), nullptr);
  return base64_encode(view(digest.data(), size));
}

FrameReader::Step refuse(const char* why, CloseCode code = CloseCode::protocol) {
  FrameReader::Step out;
  out.state = FrameReader::State::wrong;
  out.code = static_cast<std::uint16_t>(code);
  out.why = why;
  return out;
}

std::uint64_t number(std::string_view bytes) noexcept {
  std::uint64_t out = 0;
  for (const char c : bytes)
    out = out << 8 | static_cast<unsigned char>(c);
  return out;
}

void append_number(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
    out += static_cast<char>(value >> shift & 0xFF);
}

// Those that may be sent.
bool is_close_code(std::uint64_t code) noexcept {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
         (code >= 3000 && code <= 4999);
}

}  // namespace

std::string new_websocket_key() {
  const auto bytes = random_bytes<16>();
  return base64_encode(view(bytes.data(), bytes.size()));
}

std::string check_handshake(const AnswerHead& head, std::string_view key,
                            std::string_view subprotocols) {
  if (!lists(head.header("Upgrade"), "websocket") || !lists(head.header("Connection"), "upgrade"))
    return "it changes to another protocol than WebSocket";
  if (head.header("Sec-WebSocket-Accept") != accept_of(key))
    return "its handshake is the answer to another one";
  if (!head.header("Sec-WebSocket-Extensions").empty())
    return "it uses an extension that was not offered";
  const auto chosen = head.header("Sec-WebSocket-Protocol");
  if (!chosen.empty() && (subprotocols.empty() || !lists(subprotocols, chosen)))
    return "it chose a subprotocol that was not offered";
  return {};
}

void write_frame(std::string& out, Opcode opcode, bool last, std::string_view payload) {
  out += static_cast<char>((last ? 0x80U : 0U) | static_cast<unsigned>(opcode));
  if (payload.size() < 126) {
    out += static_cast<char>(0x80U | payload.size());
  } else if (payload.size() < 65536) {
    out += static_cast<char>(0x80U | 126U);
    append_number(out, payload.size(), 2);
  } else {
    out += static_cast<char>(0x80U | 127U);
    append_number(out, payload.size(), 8);
  }
  const auto mask = random_bytes<4>();
  out.append(view(mask.data(), mask.size()));
  const std::size_t begin = out.size();
  out.append(payload);
  for (std::size_t i = 0; i < payload.size(); ++i)
    out[begin + i] = static_cast<char>(static_cast<unsigned char>(payload[i]) ^ mask[i % 4]);
}

void write_close(std::string& out, std::uint16_t code) {
  std::string payload;
  if (code != 0) append_number(payload, code, 2);
  write_frame(out, Opcode::close, true, payload);
}

FrameReader::Step FrameReader::next(std::string_view in, std::size_t room) {
  return in_frame_ ? piece(in, room) : begin_frame(in);
}

FrameReader::Step FrameReader::begin_frame(std::string_view in) {
  if (in.size() < 2) return {};
  const auto first = static_cast<unsigned char>(in[0]);
  const auto second = static_cast<unsigned char>(in[1]);
  const auto opcode = static_cast<Opcode>(first & 0x0F);
  const bool last = (first & 0x80) != 0;
  if ((first & 0x70) != 0) return refuse("a frame uses an extension");
  if ((second & 0x80) != 0) return refuse("a frame is masked");
  const std::size_t small = second & 0x7F;
  const std::size_t head = small < 126 ? 2 : small == 126 ? 4 : 10;
  if (opcode >= Opcode::close) {
    if (!last || small > kMaxControl) return refuse("a control frame is in pieces, or too long");
    return control(opcode, in, head, small);
  }
  if (opcode > Opcode::binary) return refuse("a frame is of an unknown kind");
  if ((opcode == Opcode::continuation) != in_message_)
    return refuse(in_message_ ? "a message begins inside another one" : "a message has no begin");
  if (in.size() < head) return {};
  left_ = head == 2 ? small : number(in.substr(2, head - 2));
  if (left_ >> 63 != 0) return refuse("a frame has an impossible length");
  if (!in_message_) {
    text_ = opcode == Opcode::text;
    check_ = {};
  }
  in_frame_ = in_message_ = true;
  last_frame_ = last;
  Step out;
  out.used = head;
  if (left_ > 0) return out;
  out = piece({}, 0);
  out.used = head;
  return out;
}

FrameReader::Step FrameReader::control(Opcode opcode, std::string_view in, std::size_t head,
                                       std::size_t size) {
  if (opcode > Opcode::pong) return refuse("a frame is of an unknown kind");
  if (in.size() < head + size) return {};
  Step out;
  const auto payload = in.substr(head, size);
  if (opcode == Opcode::close) {
    out = close(payload);
  } else {
    out.state = opcode == Opcode::ping ? State::ping : State::pong;
    out.payload = payload;
  }
  out.used = head + size;
  return out;
}

FrameReader::Step FrameReader::close(std::string_view payload) {
  Step out;
  out.state = State::close;
  if (payload.empty()) return out;
  if (payload.size() == 1 || !is_close_code(number(payload.substr(0, 2))))
    return refuse("it closes with a code that there is not");
  out.code = static_cast<std::uint16_t>(number(payload.substr(0, 2)));
  out.payload = payload.substr(2);
  Utf8Check check;
  if (!check.take(out.payload) || !check.whole())
    return refuse("the reason of its close is not UTF-8", CloseCode::text);
  return out;
}

// Of a message, whose frame has begun.
FrameReader::Step FrameReader::piece(std::string_view in, std::size_t room) {
  Step out;
  if (left_ > 0 && in.empty()) return out;
  if (left_ > 0 && room == 0) {
    out.state = State::room;
    return out;
  }
  const std::size_t most = std::min(in.size(), room);
  out.payload = in.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(most, left_)));
  out.used = out.payload.size();
  out.text = text_;
  left_ -= out.used;
  if (left_ == 0) {
    in_frame_ = false;
    out.last = last_frame_;
    in_message_ = !last_frame_;
  }
  if (text_ && (!check_.take(out.payload) || (out.last && !check_.whole())))
    return refuse("a text is not UTF-8", CloseCode::text);
  out.state = out.used > 0 || out.last ? State::data : State::more;
  return out;
}

}  // namespace sandforge::http

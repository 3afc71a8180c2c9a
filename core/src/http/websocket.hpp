// WebSocket (RFC 6455) as a client speaks it: the handshake's words, and messages in frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/answer_parser.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge::http {

std::string new_websocket_key();
// Empty: the answer, a 101, accepts this key and one of these subprotocols. Else what is wrong.
std::string check_handshake(const AnswerHead& head, std::string_view key,
                            std::string_view subprotocols);

enum class Opcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

// Codes of a close, as far as they are said here.
enum class CloseCode : std::uint16_t { none = 0, normal = 1000, protocol = 1002, text = 1007 };

// Appends one frame, masked.
void write_frame(std::string& out, Opcode opcode, bool last, std::string_view payload);
void write_close(std::string& out, std::uint16_t code);

// Frames of a server, out of the bytes of a connection. It holds no bytes: what it does not use it
// must be given again, with more.
class FrameReader {
 public:
  enum class State : std::uint8_t {
    more,  // needs more bytes
    room,  // there is a message, and no room for it
    data,  // a piece of a message; empty only when it is the last one
    ping,
    pong,
    close,
    wrong,  // against the protocol: why, and the code for a close
  };
  struct Step {
    State state = State::more;
    std::size_t used = 0;      // bytes of the input
    std::string_view payload;  // in the input; of a close: the reason
    bool text = false;         // of a message
    bool last = false;
    std::uint16_t code = 0;  // of a close, 0: none was given; of `wrong`: to close with
    const char* why = "";
  };
  Step next(std::string_view in, std::size_t room);
  // Nothing of a message or a frame is missing.
  bool between() const noexcept { return !in_frame_ && !in_message_; }

 private:
  Step begin_frame(std::string_view in);
  Step control(Opcode opcode, std::string_view in, std::size_t head, std::size_t size);
  static Step close(std::string_view payload);
  Step piece(std::string_view in, std::size_t room);

  Utf8Check check_;
  std::uint64_t left_ = 0;  // of the frame's payload
  bool in_frame_ = false;
  bool last_frame_ = false;
  bool in_message_ = false;
  bool text_ = false;
};

}  // namespace sandforge::http

// A WebSocket server that does frame for frame what a test says.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <openssl/evp.h>

#include "http_fixture.hpp"
#include "sandforge/support/encoding.hpp"

namespace sandforge::test {

inline std::string header_of(const std::string& head, const std::string& name) {
  const auto at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

inline std::string accept_key(const std::string& head) {
  const std::string text =
      header_of(head, "Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr);
  return base64_encode({reinterpret_cast<const char*>(digest), size});
}

inline std::string switching(const std::string& head, const std::string& more = {}) {
  return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, "
         "Upgrade\r\nSec-WebSocket-Accept: " +
         accept_key(head) + "\r\n" + more + "\r\n";
}

// A frame of a server. `first`: the opcode, and 0x80 for the last one of a message.
inline std::string frame(unsigned first, std::string_view payload) {
  std::string out(1, static_cast<char>(first));
  if (payload.size() < 126) {
    out += static_cast<char>(payload.size());
  } else {
    const int bytes = payload.size() < 65536 ? 2 : 8;
    out += static_cast<char>(bytes == 2 ? 126 : 127);
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
      out += static_cast<char>(payload.size() >> shift & 0xFF);
  }
  return out.append(payload);
}

// A frame of a client, unmasked: its first byte, and the payload. {0, …}: it was not masked, or the
// connection has ended.
inline std::pair<unsigned, std::string> read_frame(Peer& peer) {
  const std::string head = peer.read(2);
  if (head.size() != 2) return {0, head};
  std::size_t size = static_cast<unsigned char>(head[1]) & 0x7FU;
  if ((static_cast<unsigned char>(head[1]) & 0x80U) == 0) return {0, "not masked"};
  if (size >= 126) {
    const std::string more = peer.read(size == 126 ? 2 : 8);
    size = 0;
    for (const char c : more)
      size = size << 8 | static_cast<unsigned char>(c);
  }
  const std::string mask = peer.read(4);
  std::string payload = peer.read(size);
  for (std::size_t i = 0; i < payload.size(); ++i)
    payload[i] = static_cast<char>(payload[i] ^ mask[i % 4]);
  return {static_cast<unsigned char>(head[0]), payload};
}

using Frame = std::pair<unsigned, std::string>;

}  // namespace sandforge::test

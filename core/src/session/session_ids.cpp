#include "sandforge/session.hpp"
#include "sandforge/support/utf8.hpp"
#include "session/claim_owner.hpp"

namespace sandforge {

Result<void> check_session_id(const SessionId& id) {
  const auto refuse = [](std::string message) {
    return Error(Status::invalid, std::move(message), "session.bad_id");
  };
  const auto& text = id.str();
  if (text.empty()) return refuse("a session id must not be empty");
  if (text.size() > 256) return refuse("a session id has at most 256 bytes");
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return refuse("a session id must not contain control characters");
  if (!is_valid_utf8(text)) return refuse("a session id must be valid UTF-8");
  return {};
}

SessionId make_session_id() {
  return SessionId("s-" + random_hex(8));
}

}  // namespace sandforge

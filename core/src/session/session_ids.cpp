#include "sandforge/posix/system.hpp"
#include "sandforge/session.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge {

Result<void> check_session_id(const SessionId& id) {
  const auto refuse = [](std::string message) {
    return Error(Status::invalid, std::move(message), "session.bad_id");
  };
  const auto& text = id.str();
  if (text.empty()) return refuse("a session id must not be empty");
  if (text.size() > 255) return refuse("a session id has at most 255 bytes");
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return refuse("a session id must not contain control characters");
  if (!is_valid_utf8(text)) return refuse("a session id must be valid UTF-8");
  // U+0080 to U+009F, which terminals obey as they do the others.
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    if (text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0)
      return refuse("a session id must not contain control characters");
  return {};
}

Error session_not_found(const SessionId& id) {
  return Error(Status::not_found, "there is no session '" + id.str() + "'", "session.not_found");
}

Error session_exists(const SessionId& id) {
  return Error(Status::already_exists, "the session '" + id.str() + "' exists already",
               "session.exists");
}

SessionId make_session_id() {
  return SessionId("s-" + posix::random_hex(8));
}

}  // namespace sandforge

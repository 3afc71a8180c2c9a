#include "sandforge/wire/docker/json_stream.hpp"

#include <utility>

namespace sandforge::wire::docker {

// True when it ends an object.
bool JsonStream::take(char c) {
  if (std::exchange(escaped_, false)) return false;
  if (in_string_) {
    escaped_ = c == '\\';
    in_string_ = c != '"';
    return false;
  }
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if (c != '}' && c != ']') return false;
  return --depth_ == 0;
}

std::optional<json::Object> JsonStream::next(std::string_view& bytes) {
  std::size_t used = 0;
  const auto fail = [&](std::string why) {
    error_ = std::move(why);
    text_.clear();
  };
  while (error_.empty() && used < bytes.size()) {
    const char c = bytes[used++];
    const bool between = text_.empty() && (c == ' ' || c == '\t' || c == '\r' || c == '\n');
    if (between) continue;
    if (text_.empty() && c != '{') {
      fail("something that is no object");
      break;
    }
    if (text_.size() == limit_) {
      fail("an object of more than " + std::to_string(limit_) + " bytes");
      break;
    }
    text_ += c;
    if (!take(c)) continue;
    json::Limits limits;
    limits.bytes = limit_;
    limits.string_bytes = limit_;
    json::ParseResult parsed = json::parse(text_, limits);
    text_.clear();
    if (!parsed) {
      fail(parsed.error.message);
      break;
    }
    bytes.remove_prefix(used);
    return std::move(parsed.value.as_object());
  }
  bytes = {};
  return std::nullopt;
}

}  // namespace sandforge::wire::docker

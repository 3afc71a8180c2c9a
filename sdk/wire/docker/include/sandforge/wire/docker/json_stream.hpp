// JSON objects one after the other, as the progress of a pull or a build comes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "sandforge/support/json.hpp"

namespace sandforge::wire::docker {

/*
 * Objects may be cut anywhere and need nothing between them. At most one object is kept, of at most
 * `limit` bytes. After the first mistake nothing more is read: error() says what it was.
 */
class JsonStream {
 public:
  explicit JsonStream(std::size_t limit = 1U << 20) : limit_(limit) {}

  // The next object at the front of bytes, which are used up to behind it. Nothing: all of them
  // are.
  std::optional<json::Object> next(std::string_view& bytes);
  const std::string& error() const noexcept { return error_; }
  // Whether the stream may end here.
  bool whole() const noexcept { return error_.empty() && text_.empty(); }

 private:
  bool take(char c);

  const std::size_t limit_;
  std::string text_;  // of the object that is being read
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  std::string error_;
};

}  // namespace sandforge::wire::docker

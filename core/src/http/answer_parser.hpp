// Heads and bodies of answers, out of the bytes of a connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandforge::http {

struct AnswerHead {
  unsigned status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  bool keep_alive = false;
  bool framed = false;  // a length or chunks tell where the body ends
  // The first of that name, whatever its case; empty: there is none.
  std::string_view header(std::string_view name) const noexcept;
};

// One answer. It holds no bytes: what it does not use it must be given again, with more.
class AnswerParser {
 public:
  static constexpr std::size_t kMaxHead = 64U << 10;
  static constexpr std::size_t kMaxHeaders = 256;

  enum class State : std::uint8_t {
    more,      // needs more bytes
    head,      // the head is complete, `head` is filled; may be followed by a body
    room,      // there is more of the body than room for it
    complete,  // head and body
    wrong,     // this is no answer; why() says in which way
  };
  struct Step {
    State state = State::more;
    std::size_t used = 0;  // bytes of the input
    std::size_t body = 0;  // bytes that were put into `out`
  };

  // `to_head`: the request was HEAD, so that no body follows whatever the head says.
  explicit AnswerParser(bool to_head);
  ~AnswerParser();
  AnswerParser(const AnswerParser&) = delete;
  AnswerParser& operator=(const AnswerParser&) = delete;

  // `in` is not empty, and it is not done(). Stops after the head.
  Step feed(std::string_view in, std::uint8_t* out, std::size_t room);
  // The connection has ended: complete or wrong.
  State finish();

  bool done() const noexcept;
  const AnswerHead& head() const noexcept;
  const std::string& why() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sandforge::http

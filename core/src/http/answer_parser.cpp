#include "http/answer_parser.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "http/text.hpp"

namespace sandforge::http {

namespace beast = boost::beast::http;

namespace {

std::string_view text(boost::beast::string_view from) {
  return {from.data(), from.size()};
}

}  // namespace

std::string_view AnswerHead::header(std::string_view name) const noexcept {
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) return value;
  }
  return {};
}

struct AnswerParser::Impl {
  explicit Impl(bool to_head) {
    parser.header_limit(kMaxHead);
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
    parser.skip(to_head);
  }

  State fail(std::string reason) {
    why = std::move(reason);
    return State::wrong;
  }

  // What the parser lets through although two readers may see two different bodies in it.
  State take_head() {
    const auto& message = parser.get();
    head.status = message.result_int();
    head.keep_alive = parser.keep_alive();
    std::size_t lengths = 0;
    std::size_t codings = 0;
    for (const auto& field : message) {
      if (head.headers.size() == kMaxHeaders) return fail("it has too many headers");
      head.headers.emplace_back(text(field.name_string()), text(field.value()));
      const auto& [name, value] = head.headers.back();
      if (same_name(name, "Content-Length")) {
        ++lengths;
        if (value.find_first_not_of("0123456789") != std::string::npos) lengths = 2;
      } else if (same_name(name, "Transfer-Encoding")) {
        ++codings;
        if (!same_name(value, "chunked") || message.version() < 11) codings = 2;
      }
    }
    if (lengths > 1 || codings > 1 || lengths + codings > 1)
      return fail("it does not say clearly where its body ends");
    head.framed = lengths + codings > 0;
    return State::head;
  }

  beast::response_parser<beast::buffer_body> parser;
  AnswerHead head;
  bool has_head = false;
  std::string why;
};

AnswerParser::AnswerParser(bool to_head) : impl_(std::make_unique<Impl>(to_head)) {}
AnswerParser::~AnswerParser() = default;

AnswerParser::Step AnswerParser::feed(std::string_view in, std::uint8_t* out, std::size_t room) {
  auto& parser = impl_->parser;
  Step step;
  if (impl_->has_head) {
    parser.get().body().data = out;
    parser.get().body().size = room;
  }
  boost::beast::error_code wrong;
  parser.eager(impl_->has_head);
  step.used = parser.put(boost::asio::const_buffer(in.data(), in.size()), wrong);
  if (impl_->has_head) step.body = room - parser.get().body().size;
  if (wrong == beast::error::need_buffer) {
    step.state = State::room;
  } else if (wrong && wrong != beast::error::need_more) {
    step.state = impl_->fail(wrong.message());
  } else if (!impl_->has_head && parser.is_header_done()) {
    impl_->has_head = true;
    step.state = impl_->take_head();
  } else if (impl_->has_head && parser.is_done()) {
    step.state = State::complete;
  }
  return step;
}

AnswerParser::State AnswerParser::finish() {
  boost::beast::error_code wrong;
  if (done()) return State::complete;
  if (impl_->parser.got_some()) impl_->parser.put_eof(wrong);
  if (!wrong && impl_->has_head) return State::complete;
  return impl_->fail(impl_->has_head ? "it ended in the middle of its body"
                                     : "it ended before its head did");
}

bool AnswerParser::done() const noexcept {
  return impl_->has_head && impl_->parser.is_done();
}
const AnswerHead& AnswerParser::head() const noexcept {
  return impl_->head;
}
const std::string& AnswerParser::why() const noexcept {
  return impl_->why;
}

}  // namespace sandforge::http

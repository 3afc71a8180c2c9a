// The reader: RapidJSON 1.1.0 finds the tokens, everything else is decided here. It never converts
// a number (its conversions crash on some inputs), never recurses (iterative parsing), and its
// asserts throw.
#include <locale.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include "sandforge/support/json.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge::json {
namespace {
struct AssertionFailed : std::exception {};
}  // namespace
}  // namespace sandforge::json

// Its own namespace: another copy in the same program may have been built with other settings.
#define RAPIDJSON_NAMESPACE sandforge_rapidjson
#define RAPIDJSON_NAMESPACE_BEGIN namespace sandforge_rapidjson {
#define RAPIDJSON_NAMESPACE_END }
#define RAPIDJSON_ASSERT(x) ((x) ? void() : throw sandforge::json::AssertionFailed())
// Its stack adds an offset to a null pointer before it grows for the first time. That is harmless,
// but clang's sanitizer stops at it.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/reader.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

namespace sandforge::json {
namespace {

namespace rj = sandforge_rapidjson;

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  // RapidJSON counts in 32 bits
constexpr std::size_t kMaxDepth = 512;  // values are copied and destroyed recursively
constexpr unsigned kFlags =
    rj::kParseIterativeFlag | rj::kParseValidateEncodingFlag | rj::kParseNumbersAsStringsFlag;

// The text as RapidJSON's stream. A NUL ends it, which is why the text must hold none.
class TextStream {
 public:
  using Ch = char;
  TextStream(std::string_view text, std::size_t start) : text_(text), at_(start) {}
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char Take() {
    const char c = Peek();
    ++at_;
    return c;
  }
  std::size_t Tell() const { return std::min(at_, text_.size()); }
  // The writing half of the concept, for in-situ parsing only.
  char* PutBegin() { throw AssertionFailed(); }
  void Put(char) { throw AssertionFailed(); }
  void Flush() { throw AssertionFailed(); }
  std::size_t PutEnd(char*) { throw AssertionFailed(); }

 private:
  std::string_view text_;
  std::size_t at_;
};

// Whether a number that from_chars calls out of range is too big, and not too small: the power of
// ten of its first digit tells.
bool is_huge(std::string_view number) {
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  std::int64_t exponent = 0;
  std::string_view text = number.substr(std::min(e + 1, number.size()));
  if (text.substr(0, 1) == "+") text.remove_prefix(1);
  const auto error = std::from_chars(text.data(), text.data() + text.size(), exponent).ec;
  if (error == std::errc::result_out_of_range) return text[0] != '-';
  return point - first + exponent > 0;
}

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 200000
// libc++ has no from_chars of its own for this before version 20.
std::from_chars_result number_from_chars(const char* first, const char* last, double& d) {
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string text(first, last);
  char* end = nullptr;
  errno = 0;
  d = ::strtod_l(text.c_str(), &end, plain);
  const bool out_of_range = errno == ERANGE && (d == 0 || !std::isfinite(d));
  return {first + (end - text.c_str()),
          out_of_range ? std::errc::result_out_of_range : std::errc()};
}
#else
std::from_chars_result number_from_chars(const char* first, const char* last, double& d) {
  return std::from_chars(first, last, d);
}
#endif

std::optional<double> read_double(std::string_view text) {
  double d = 0;
  const auto [end, error] = number_from_chars(text.data(), text.data() + text.size(), d);
  if (error == std::errc::result_out_of_range) {
    if (is_huge(text)) return {};
    return text[0] == '-' ? -0.0 : 0.0;
  }
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(d)) return {};
  return d;
}

// Builds the value from RapidJSON's events. An event that returns false ends the parse with the
// error that `fail` recorded.
class Builder : public rj::BaseReaderHandler<rj::UTF8<>, Builder> {
 public:
  Builder(const Limits& limits, std::string_view text, const TextStream& stream)
      : limits_(limits),
        max_depth_(std::min(limits.depth, kMaxDepth)),
        text_(text),
        stream_(stream) {}

  bool Default() { throw AssertionFailed(); }  // converted numbers
  bool Null() { return add(Value()); }
  bool Bool(bool b) { return add(Value(b)); }

  bool RawNumber(const char* data, rj::SizeType size, bool) {
    const std::string_view text(data, size);
    if (text.find_first_of(".eE") != std::string_view::npos || text == "-0") {
      const auto number = read_double(text);
      return number ? add(Value(*number)) : fail("the number is out of range");
    }
    std::int64_t integer = 0;
    const auto [end, error] = std::from_chars(data, data + size, integer);
    if (error != std::errc() || end != data + size) {
      return fail("the integer does not fit in 64 bits");
    }
    return add(Value(static_cast<long long>(integer)));
  }

  bool String(const char* data, rj::SizeType size, bool) {
    const std::string_view text(data, size);
    return check_string(text) && add(Value(text));
  }

  bool StartArray() { return open(false); }
  bool StartObject() { return open(true); }

  bool Key(const char* data, rj::SizeType size, bool) {
    const std::string_view text(data, size);
    if (!check_string(text)) return false;
    Frame& frame = stack_.back();
    frame.key_offsets.push_back(token_start());
    frame.members.emplace_back(std::string(text), Value());
    last_end_ = stream_.Tell();
    return true;
  }

  bool EndArray(rj::SizeType) {
    Value value(std::move(stack_.back().items));
    stack_.pop_back();
    return place(std::move(value));
  }

  bool EndObject(rj::SizeType) {
    if (!check_keys(stack_.back())) return false;
    Value value(Object::adopt(std::move(stack_.back().members)));
    stack_.pop_back();
    return place(std::move(value));
  }

  Value take() { return std::move(root_); }
  const std::string& message() const { return message_; }
  std::size_t error_offset() const { return error_offset_; }

 private:
  struct Frame {
    bool is_object = false;
    Array items;
    std::vector<Member> members;
    std::vector<std::size_t> key_offsets;
  };

  bool fail(std::string message, std::optional<std::size_t> offset = {}) {
    message_ = std::move(message);
    error_offset_ = offset ? *offset : token_start();
    return false;
  }

  // RapidJSON tells where a token ends. It starts at the first byte after the last event that is
  // neither blank nor punctuation.
  std::size_t token_start() const {
    return std::min(text_.find_first_not_of(" \t\r\n,:[]{}", last_end_), stream_.Tell());
  }

  bool check_string(std::string_view text) {
    if (text.size() > limits_.string_bytes) return fail("the string is too long");
    // RapidJSON lets an escaped low surrogate pass.
    if (!is_valid_utf8(text)) return fail("the string holds a lone surrogate");
    return true;
  }

  bool check_keys(const Frame& frame) {
    std::vector<std::size_t> order(frame.members.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    const auto key = [&](std::size_t i) -> const std::string& { return frame.members[i].first; };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int c = key(a).compare(key(b));
      return c != 0 ? c < 0 : a < b;
    });
    const auto twin = std::adjacent_find(
        order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) == key(b); });
    if (twin == order.end()) return true;
    std::string shown = write(Value(key(*twin).substr(0, 64)));
    return fail("the key " + shown + " appears twice", frame.key_offsets[*(twin + 1)]);
  }

  bool count() { return ++nodes_ <= limits_.nodes || fail("the document has too many values"); }

  bool open(bool is_object) {
    if (stack_.size() >= max_depth_) {
      return fail("the document is nested too deeply", stream_.Tell());
    }
    if (!count()) return false;
    last_end_ = stream_.Tell();
    stack_.emplace_back().is_object = is_object;
    return true;
  }

  bool add(Value value) { return count() && place(std::move(value)); }

  bool place(Value value) {
    last_end_ = stream_.Tell();
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (stack_.back().is_object) {
      stack_.back().members.back().second = std::move(value);
    } else {
      stack_.back().items.push_back(std::move(value));
    }
    return true;
  }

  const Limits& limits_;
  std::size_t max_depth_;
  std::string_view text_;
  const TextStream& stream_;
  std::vector<Frame> stack_;
  Value root_;
  std::size_t nodes_ = 0;
  std::size_t last_end_ = 0;
  std::string message_;
  std::size_t error_offset_ = 0;
};

const char* describe(rj::ParseErrorCode code) {
  switch (code) {
    case rj::kParseErrorDocumentEmpty:
      return "the document is empty";
    case rj::kParseErrorDocumentRootNotSingular:
      return "there is more text after the value";
    case rj::kParseErrorObjectMissName:
      return "expected a key in quotes";
    case rj::kParseErrorObjectMissColon:
      return "expected ':' after the key";
    case rj::kParseErrorObjectMissCommaOrCurlyBracket:
      return "expected ',' or '}' after the member";
    case rj::kParseErrorArrayMissCommaOrSquareBracket:
      return "expected ',' or ']' after the element";
    case rj::kParseErrorStringUnicodeEscapeInvalidHex:
      return "expected four hexadecimal digits after \\u";
    case rj::kParseErrorStringUnicodeSurrogateInvalid:
      return "the string holds a lone surrogate";
    case rj::kParseErrorStringEscapeInvalid:
      return "a control character or an unknown escape in the string";
    case rj::kParseErrorStringMissQuotationMark:
      return "the string has no closing quote";
    case rj::kParseErrorStringInvalidEncoding:
      return "the string is not valid UTF-8";
    case rj::kParseErrorNumberTooBig:
      return "the number is out of range";
    case rj::kParseErrorNumberMissFraction:
      return "expected a digit after the decimal point";
    case rj::kParseErrorNumberMissExponent:
      return "expected a digit in the exponent";
    default:
      return "expected a value";
  }
}

ParseResult refuse(std::string_view text, std::string message, std::size_t offset) {
  ParseResult result;
  result.error.message = std::move(message);
  result.error.offset = offset;
  const std::string_view before = text.substr(0, offset);
  result.error.line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  result.error.column = offset - line_start + 1;
  return result;
}

}  // namespace

ParseResult parse(std::string_view text, const Limits& limits) {
  if (text.size() > std::min(limits.bytes, kMaxBytes)) {
    return refuse(text, "the document is too large", 0);
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return refuse(text, "the document holds a NUL byte", nul);
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const std::size_t start = text.substr(0, 3) == kByteOrderMark ? 3 : 0;

  TextStream stream(text, start);
  Builder builder(limits, text, stream);
  rj::Reader reader;
  try {
    const rj::ParseResult parsed = reader.Parse<kFlags>(stream, builder);
    if (parsed.Code() == rj::kParseErrorTermination) {
      return refuse(text, builder.message(), builder.error_offset());
    }
    if (parsed.IsError()) {
      return refuse(text, describe(parsed.Code()), std::min(parsed.Offset(), text.size()));
    }
  } catch (const AssertionFailed&) {
    return refuse(text, "the reader failed an assertion", stream.Tell());
  }
  ParseResult result;
  result.value = builder.take();
  return result;
}

}  // namespace sandforge::json

// JSON values, a strict reader and a writer.
//
// The reader is the only one in the tree that faces untrusted JSON. It refuses what commonly goes
// wrong: duplicate keys, lone surrogates, invalid UTF-8, NUL outside an escape, trailing data,
// numbers that are not finite, integers outside int64, and documents that exceed the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sandforge::json {

class Value;
using Array = std::vector<Value>;
using Member = std::pair<std::string, Value>;

enum class Kind : std::uint8_t { null, boolean, integer, number, string, array, object };

// Members keep their source order; keys are unique. Look-up is linear for small objects.
class Object {
 public:
  Object();
  Object(const Object&);
  Object(Object&&) noexcept;
  Object& operator=(const Object&);
  Object& operator=(Object&&) noexcept;
  ~Object();
  // Takes members whose keys the caller knows to be unique, without looking. For readers: `set` in
  // a loop is quadratic.
  static Object adopt(std::vector<Member> members) noexcept;

  std::size_t size() const noexcept;
  bool empty() const noexcept;
  const Value* find(std::string_view key) const noexcept;  // null when absent
  Value* find(std::string_view key) noexcept;
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  Value& set(std::string key, Value value);  // replaces in place, or appends
  bool erase(std::string_view key) noexcept;
  Value& operator[](std::string_view key);  // inserts null when absent

  std::vector<Member>::const_iterator begin() const noexcept;
  std::vector<Member>::const_iterator end() const noexcept;
  std::vector<Member>::iterator begin() noexcept;
  std::vector<Member>::iterator end() noexcept;

 private:
  std::vector<Member> members_;
};

// A JSON value. Integers are int64; every other number is a finite double.
class Value {
 public:
  Value() noexcept : data_(nullptr) {}
  Value(std::nullptr_t) noexcept : data_(nullptr) {}
  Value(bool b) noexcept : data_(b) {}
  Value(int i) noexcept : data_(static_cast<std::int64_t>(i)) {}
  Value(unsigned i) noexcept : data_(static_cast<std::int64_t>(i)) {}
  Value(long i) noexcept : data_(static_cast<std::int64_t>(i)) {}
  Value(long long i) noexcept : data_(static_cast<std::int64_t>(i)) {}
  // Values above INT64_MAX are kept as the nearest double.
  Value(unsigned long i) noexcept : Value(static_cast<unsigned long long>(i)) {}
  Value(unsigned long long i) noexcept;
  Value(double d) noexcept : data_(d) {}
  Value(const char* s) : data_(std::string(s)) {}
  Value(std::string_view s) : data_(std::string(s)) {}
  Value(std::string s) noexcept : data_(std::move(s)) {}
  Value(Array a) noexcept : data_(std::move(a)) {}
  Value(Object o) noexcept : data_(std::move(o)) {}

  Kind kind() const noexcept { return static_cast<Kind>(data_.index()); }
  bool is_null() const noexcept { return kind() == Kind::null; }
  bool is_bool() const noexcept { return kind() == Kind::boolean; }
  bool is_integer() const noexcept { return kind() == Kind::integer; }
  bool is_number() const noexcept { return is_integer() || kind() == Kind::number; }
  bool is_string() const noexcept { return kind() == Kind::string; }
  bool is_array() const noexcept { return kind() == Kind::array; }
  bool is_object() const noexcept { return kind() == Kind::object; }

  // Unchecked kinds throw std::bad_variant_access.
  bool as_bool() const { return std::get<bool>(data_); }
  std::int64_t as_integer() const { return std::get<std::int64_t>(data_); }
  double as_number() const;  // integer or number
  const std::string& as_string() const { return std::get<std::string>(data_); }
  const Array& as_array() const { return std::get<Array>(data_); }
  Array& as_array() { return std::get<Array>(data_); }
  const Object& as_object() const { return std::get<Object>(data_); }
  Object& as_object() { return std::get<Object>(data_); }

  // Member of an object; null when this is no object or the member is absent.
  const Value* find(std::string_view key) const noexcept;
  // Value at a JSON Pointer (RFC 6901); null when absent or the pointer is malformed.
  const Value* at_pointer(std::string_view pointer) const noexcept;

  // Same kind and content; an integer equals a double of the same value; member order is ignored.
  friend bool operator==(const Value& a, const Value& b) noexcept;
  friend bool operator!=(const Value& a, const Value& b) noexcept { return !(a == b); }

 private:
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> data_;
};

// What a document may ask of this process.
struct Limits {
  std::size_t bytes = 1U << 20;         // of the text; above 1 GiB counts as 1 GiB
  std::size_t depth = 64;               // containers within each other; above 512 counts as 512
  std::size_t nodes = 100'000;          // values of every kind; keys are not counted
  std::size_t string_bytes = 1U << 20;  // of one string or key, unescaped
};

// Why a document was refused. `offset` is in bytes from its start; line and column count from 1,
// columns in bytes.
struct ParseError {
  std::string message;
  std::size_t offset = 0;
  std::size_t line = 0;
  std::size_t column = 0;
};

// Either a value or an error: `ok()` tells which.
struct ParseResult {
  Value value;
  ParseError error;
  bool ok() const noexcept { return error.message.empty(); }
  explicit operator bool() const noexcept { return ok(); }
};

// Reads one document. A byte order mark at the start is skipped. `1e400` is refused, `1e-400` is 0;
// `-0` is the double -0.0. An exponent above 308 is refused even where the value would be finite.
// Throws std::bad_alloc only. Any thread.
ParseResult parse(std::string_view text, const Limits& limits = {});

// Compact text. Doubles are written shortest so that they read back equal. Strings that are not
// UTF-8 are written with U+FFFD in place of each bad byte sequence. Doubles keep a `.0` or an
// exponent, so that they read back as doubles; one that is not finite is written as null.
std::string write(const Value& value);
// Indented by two spaces, a newline at the end.
std::string write_pretty(const Value& value);
// Compact, object members sorted by bytes, integral doubles within int64 as integers: equal values
// give equal text. For hashes.
std::string write_canonical(const Value& value);

// "a/b~c" as one token of a JSON Pointer.
std::string escape_pointer(std::string_view token);

// RFC 7386. A patch that is no object replaces the target.
void merge_patch(Value& target, const Value& patch);

}  // namespace sandforge::json

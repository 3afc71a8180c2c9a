// Assertions of a case: CHECK goes on, REQUIRE ends the case. What fails is kept with the values.
//
// Internal to the suite: only its procedures include this.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sandforge/sandbox.hpp"

namespace sandforge::conformance {

// What the checks of this process have found. Any thread.
class Findings {
 public:
  void add(const std::string& what);
  bool empty() const;
  std::string text() const;  // the first few, and how many there are more

  void push_note(std::string note);
  void pop_note();

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> list_;
  std::size_t more_ = 0;
  std::vector<std::string> notes_;
};
Findings& findings();

// Ends the case: it has failed, and that is recorded.
struct Abandoned {};
// Ends the case: it could not be decided.
struct Undecided {
  std::string why;
};
// Ends the case, and every other one of the plugin: there is no provider to judge.
struct Unopened {
  std::string why;
};
// Ends the case: what it needs is declared absent.
struct Absent {
  std::string feature;
};
[[noreturn]] inline void unverified(std::string why) {
  throw Undecided{std::move(why)};
}

std::string show_text(std::string_view text);  // quoted, escaped, cut

template <class T>
std::string show(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return show_text(value);
  } else if constexpr (std::is_same_v<T, Outcome> || std::is_same_v<T, StartOutcome> ||
                       std::is_same_v<T, SandboxStatus> || std::is_same_v<T, Status>) {
    return std::string(to_string(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else {
    return "…";
  }
}
template <class T>
std::string show(const std::optional<T>& value) {
  return value ? show(*value) : std::string("nothing");
}
template <class Rep, class Period>
std::string show(const std::chrono::duration<Rep, Period>& value) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(value).count()) +
         " ms";
}

struct Judged {
  bool good;
  std::string_view sign = {};  // of a comparison that does not hold; empty: there was none
  std::string left = {}, right = {};
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
template <class T>
class Left {
 public:
  explicit Left(const T& value) : value_(value) {}
  template <class R>
  Judged operator==(const R& right) const {
    return judge(value_ == right, "==", right);
  }
  template <class R>
  Judged operator!=(const R& right) const {
    return judge(value_ != right, "!=", right);
  }
  template <class R>
  Judged operator<(const R& right) const {
    return judge(value_ < right, "<", right);
  }
  template <class R>
  Judged operator<=(const R& right) const {
    return judge(value_ <= right, "<=", right);
  }
  template <class R>
  Judged operator>(const R& right) const {
    return judge(value_ > right, ">", right);
  }
  template <class R>
  Judged operator>=(const R& right) const {
    return judge(value_ >= right, ">=", right);
  }
  operator Judged() const { return {static_cast<bool>(value_)}; }

 private:
  template <class R>
  Judged judge(bool good, const char* sign, const R& right) const {
    return {good, sign, show(value_), show(right)};
  }
  const T& value_;
};
#pragma GCC diagnostic pop

struct Decompose {
  template <class T>
  Left<T> operator<<(const T& value) const {
    return Left<T>(value);
  }
};

// What does not hold, as a sentence: "result.exit_code is 1, and must be 0".
std::string words_for(const Judged& judged, std::string_view expression, bool expected);
bool record(const Judged& judged, const char* expression, bool expected);

class Note {
 public:
  explicit Note(std::string text) { findings().push_note(std::move(text)); }
  ~Note() { findings().pop_note(); }
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;
};

template <class Wanted, class Call>
void check_throws(const char* expression, Call&& call) {
  try {
    call();
  } catch (const Wanted&) {
    return;
  } catch (const std::exception& other) {
    findings().add("another error than the one that " + std::string(expression) +
                   " must end with: " + other.what());
    return;
  }
  findings().add("there was no error, and " + std::string(expression) + " must end with one");
}

template <class Call>
void check_nothrow(const char* expression, Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    findings().add(std::string(expression) + " must succeed, and failed: " + error.what());
  }
}

// The error that a call throws; ends the case when it throws nothing.
template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.error();
  }
  findings().add("there was no error, and there must be one");
  throw Abandoned{};
}

}  // namespace sandforge::conformance

#define SANDFORGE_CONCAT2(a, b) a##b
#define SANDFORGE_CONCAT(a, b) SANDFORGE_CONCAT2(a, b)
#define CHECK(...)                                                                       \
  ::sandforge::conformance::record(::sandforge::conformance::Decompose() << __VA_ARGS__, \
                                   #__VA_ARGS__, true)
#define CHECK_FALSE(...)                                                                 \
  ::sandforge::conformance::record(::sandforge::conformance::Decompose() << __VA_ARGS__, \
                                   #__VA_ARGS__, false)
#define REQUIRE(...)                                                   \
  if (!CHECK(__VA_ARGS__)) throw ::sandforge::conformance::Abandoned { \
    }
#define REQUIRE_FALSE(...)                                                   \
  if (!CHECK_FALSE(__VA_ARGS__)) throw ::sandforge::conformance::Abandoned { \
    }
#define CHECK_THROWS_AS(expression, type) \
  ::sandforge::conformance::check_throws<type>(#expression, [&] { (void)(expression); })
#define CHECK_NOTHROW(expression) \
  ::sandforge::conformance::check_nothrow(#expression, [&] { (void)(expression); })
#define CAPTURE(value)                                   \
  const ::sandforge::conformance::Note SANDFORGE_CONCAT( \
      note_, __LINE__)(#value " = " + ::sandforge::conformance::show(value))

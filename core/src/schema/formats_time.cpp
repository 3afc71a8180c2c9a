#include <array>

#include "formats.hpp"

namespace sandforge::schema_detail {
namespace {

// A cursor over fixed-width fields; once a read fails, every later one does.
class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : text_(text) {}

  int number(std::size_t digits) noexcept {
    if (text_.size() < digits) return fail();
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (!is_digit(text_[i])) return fail();
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(digits);
    return value;
  }

  void expect(char c) noexcept {
    if (!accept(c)) fail();
  }

  bool accept(char c) noexcept {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  // One or more digits; false when there is none.
  bool digits() noexcept {
    std::size_t n = 0;
    while (n < text_.size() && is_digit(text_[n]))
      ++n;
    text_.remove_prefix(n);
    return n != 0;
  }

  int fail() noexcept {
    ok_ = false;
    return 0;
  }
  bool ok() const noexcept { return ok_; }
  bool done() const noexcept { return ok_ && text_.empty(); }

 private:
  std::string_view text_;
  bool ok_ = true;
};

bool leap_year(int year) noexcept {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

void read_date(Reader& in) noexcept {
  constexpr std::array<int, 12> days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int year = in.number(4);
  in.expect('-');
  const int month = in.number(2);
  in.expect('-');
  const int day = in.number(2);
  if (!in.ok()) return;
  if (month < 1 || month > 12) {
    in.fail();
    return;
  }
  int last = days[static_cast<std::size_t>(month - 1)];
  if (month == 2 && leap_year(year)) last = 29;
  if (day < 1 || day > last) in.fail();
}

void read_time(Reader& in) noexcept {
  const int hour = in.number(2);
  in.expect(':');
  const int minute = in.number(2);
  in.expect(':');
  const int second = in.number(2);
  if (in.accept('.') && !in.digits()) in.fail();
  int offset = 0;
  if (!in.accept('Z') && !in.accept('z')) {
    const bool west = in.accept('-');
    if (!west) in.expect('+');
    const int offset_hour = in.number(2);
    in.expect(':');
    const int offset_minute = in.number(2);
    if (offset_hour > 23 || offset_minute > 59) in.fail();
    offset = (offset_hour * 60 + offset_minute) * (west ? -1 : 1);
  }
  if (!in.ok()) return;
  if (hour > 23 || minute > 59 || second > 60) in.fail();
  constexpr int day = 24 * 60;
  const int utc = ((hour * 60 + minute - offset) % day + day) % day;
  if (second == 60 && utc != day - 1) in.fail();
}

// Reads units in the given order, without gaps between those that are present ("PT1H5S" is not
// allowed by RFC 3339). Returns how many there were.
int read_units(Reader& in, std::string_view units) noexcept {
  int count = 0;
  std::size_t next = 0;
  while (true) {
    Reader attempt = in;
    if (!attempt.digits()) return count;
    std::size_t i = next;
    while (i < units.size() && !attempt.accept(units[i]))
      ++i;
    const bool skipped = count != 0 && i != next;
    if (i == units.size() || skipped) {
      in.fail();
      return count;
    }
    in = attempt;
    next = i + 1;
    ++count;
  }
}

}  // namespace

bool is_date(std::string_view text) noexcept {
  Reader in(text);
  read_date(in);
  return in.done();
}

bool is_time(std::string_view text) noexcept {
  Reader in(text);
  read_time(in);
  return in.done();
}

bool is_date_time(std::string_view text) noexcept {
  Reader in(text);
  read_date(in);
  if (!in.accept('T')) in.expect('t');
  read_time(in);
  return in.done();
}

bool is_duration(std::string_view text) noexcept {
  Reader in(text);
  in.expect('P');
  if (!in.ok()) return false;
  Reader weeks = in;
  if (weeks.digits() && weeks.accept('W')) return weeks.done();
  int parts = read_units(in, "YMD");
  if (in.ok() && in.accept('T')) {
    const int times = read_units(in, "HMS");
    if (times == 0) in.fail();
    parts += times;
  }
  return in.done() && parts != 0;
}

}  // namespace sandforge::schema_detail

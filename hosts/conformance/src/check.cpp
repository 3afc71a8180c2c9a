#include "check.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace sandforge::conformance {

Findings& findings() {
  static Findings all;
  return all;
}

void Findings::add(const std::string& what) {
  constexpr std::size_t kShown = 8;
  const std::lock_guard lock(mutex_);
  if (list_.size() >= kShown) {
    ++more_;
    return;
  }
  std::string line = what;
  for (const auto& note : notes_)
    line += "\n    with " + note;
  list_.push_back(std::move(line));
}

bool Findings::empty() const {
  const std::lock_guard lock(mutex_);
  return list_.empty();
}

std::string Findings::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& line : list_)
    out += (out.empty() ? "" : "\n") + line;
  if (more_ > 0) out += "\nand " + std::to_string(more_) + " more";
  return out;
}

void Findings::push_note(std::string note) {
  const std::lock_guard lock(mutex_);
  notes_.push_back(std::move(note));
}

void Findings::pop_note() {
  const std::lock_guard lock(mutex_);
  notes_.pop_back();
}

std::string show_text(std::string_view text) {
  constexpr std::size_t kShown = 200;
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) {
      out += c;
    } else {
      std::array<char, 5> hex{};
      std::snprintf(hex.data(), hex.size(), "\\x%02x",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += hex.data();
    }
  }
  out += '"';
  if (text.size() > kShown) out += " (" + std::to_string(text.size()) + " bytes)";
  return out;
}

bool record(const Judged& judged, const char* expression, bool expected) {
  if (judged.good == expected) return true;
  std::string line = expected ? "expected: " : "expected not: ";
  line += expression;
  if (!judged.values.empty()) line += "\n    is: " + judged.values;
  findings().add(line);
  return false;
}

}  // namespace sandforge::conformance

#include "terminal.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "sandforge/support/utf8.hpp"

namespace sandforge::cli {
namespace {

constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kReset = "\x1b[0m";

bool wants_colour(int descriptor) {
  const char* none = std::getenv("NO_COLOR");
  if (none != nullptr && *none != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string_view(term) == "dumb") return false;
  return ::isatty(descriptor) == 1;
}

// Control characters of foreign text must not reach a terminal.
std::string harmless(std::string_view text) {
  std::string out = to_valid_utf8(text);
  for (auto& c : out)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) c = '?';
  return out;
}

std::string indent(const std::string& text) {
  std::string out;
  std::size_t start = 0;
  while (start < text.size()) {
    const auto end = std::min(text.find('\n', start), text.size());
    out += "\n  " + text.substr(start, end - start);
    start = end + 1;
  }
  return out;
}

}  // namespace

Terminal::Terminal(bool json)
    : json_(json),
      err_tty_(::isatty(2) == 1),
      colour_out_(!json && wants_colour(1)),
      colour_err_(wants_colour(2)) {}

bool Terminal::print(std::string_view text) const {
  return write_all(1, text);
}

bool Terminal::print_json(const json::Value& value) const {
  return write_all(1, json::write_pretty(value));
}

bool Terminal::print_table(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows) const {
  std::vector<std::size_t> width;
  for (const auto& title : header)
    width.push_back(title.size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      width[i] = std::max(width[i], row[i].size());
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      out += harmless(cells[i]);
      if (i + 1 < cells.size()) out += std::string(width[i] - cells[i].size() + 2, ' ');
    }
    return out;
  };
  std::string text = bold(line(header)) + "\n";
  for (const auto& row : rows)
    text += line(row) + "\n";
  return print(text);
}

void Terminal::say(std::string_view colour, std::string_view text) const {
  std::string line = "sandforge: " + harmless(text);
  if (colour_err_ && !colour.empty()) line = std::string(colour) + line + std::string(kReset);
  write_all(2, line + "\n");
}

void Terminal::note(std::string_view text) const {
  say("", text);
}

void Terminal::warn(std::string_view text) const {
  say(kYellow, "warning: " + std::string(text));
}

void Terminal::progress(std::string_view text) const {
  say(kDim, text);
}

void Terminal::error(const Error& error) const {
  if (json_) {
    json::Object out;
    out.set("error", to_json(error));
    print_json(out);
    return;
  }
  say(kRed, describe_error(error));
}

std::string Terminal::bold(std::string_view text) const {
  if (!colour_out_) return std::string(text);
  return "\x1b[1m" + std::string(text) + std::string(kReset);
}

std::string describe_error(const Error& error) {
  std::string out = error.message;
  const auto* stderr_text = error.details.find("stderr");
  if (stderr_text == nullptr)
    if (const auto* cause = error.details.find("cause"); cause != nullptr)
      stderr_text = cause->at_pointer("/details/stderr");
  if (stderr_text != nullptr && stderr_text->is_string()) out += indent(stderr_text->as_string());
  if (const auto* hint = error.details.find("hint"); hint != nullptr && hint->is_string())
    out += "\n  hint: " + hint->as_string();
  return out;
}

std::string age(std::int64_t then_ns, std::int64_t now_ns) {
  const auto seconds = std::max<std::int64_t>(0, (now_ns - then_ns) / 1'000'000'000);
  if (seconds < 120) return std::to_string(seconds) + "s ago";
  if (seconds < 7200) return std::to_string(seconds / 60) + "m ago";
  if (seconds < 172'800) return std::to_string(seconds / 3600) + "h ago";
  return std::to_string(seconds / 86'400) + "d ago";
}

bool write_all(int descriptor, std::string_view data) {
  while (!data.empty()) {
    const auto wrote = ::write(descriptor, data.data(), data.size());
    if (wrote >= 0) {
      data.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Somebody else made the descriptor non-blocking; we wait like everybody.
      pollfd waiting{descriptor, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace sandforge::cli

#include "output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "exit_codes.hpp"

namespace sandforge::cli {
namespace {

bool write_all(int fd, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

void print(const std::string& text) {
  if (!write_all(STDOUT_FILENO, text)) std::_Exit(errno == EPIPE ? kBrokenPipe : kFailed);
}

void print_json(const json::Value& value) {
  print(json::write_pretty(value));
}

void complain(const char* kind, const std::string& text) {
  const bool colour = ::isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  std::string line = "sandforge: ";
  line += colour ? "\033[1;31m" + std::string(kind) + ":\033[0m " : std::string(kind) + ": ";
  line += text;
  if (line.back() != '\n') line += '\n';
  write_all(STDERR_FILENO, line);
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line +=
          i + 1 == row.size() ? row[i] : row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    out += line + '\n';
  }
  return out;
}

std::string format_time(std::int64_t unix_ns) {
  const std::time_t seconds = unix_ns / 1'000'000'000;
  std::tm parts{};
  if (unix_ns == 0 || ::gmtime_r(&seconds, &parts) == nullptr) return "-";
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts)};
}

}  // namespace sandforge::cli

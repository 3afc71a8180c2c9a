#include "terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "exit_codes.hpp"
#include "harmless.hpp"

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

std::string indent(const std::string& text, const std::string& by = "  ") {
  std::string out;
  std::size_t start = 0;
  while (start < text.size()) {
    const auto end = std::min(text.find('\n', start), text.size());
    out += "\n" + by + text.substr(start, end - start);
    start = end + 1;
  }
  return out;
}

std::string text_of(const json::Object& details, const char* name) {
  const auto* value = details.find(name);
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

// What a command wrote, or git.
std::string output_of(const json::Object& details) {
  if (details.find("stdout") == nullptr) return indent(text_of(details, "stderr"));
  std::string out = "\n  command: " + text_of(details, "command");
  for (const char* name : {"stdout", "stderr"})
    if (const auto text = text_of(details, name); !text.empty())
      out += "\n  " + std::string(name) + ", the last of it:" + indent(text, "    ");
  return out;
}

std::string where_providers_come_from(const Error& error) {
  std::string known;
  if (const auto* names = error.details.find("known"); names != nullptr && names->is_array())
    for (const auto& name : names->as_array())
      known += (known.empty() ? "" : ", ") + name.as_string();
  const auto* doctor = error.details.find("doctor");
  return "found: " + (known.empty() ? "none" : known) +
         "; more by --plugin-path, or by plugins.paths in the configuration: see " +
         (doctor != nullptr ? doctor->as_string() : "sandforge plugins doctor");
}

// Plugins that were found and may not be used: one of them may be the one that is missed.
std::string refused_plugins(const Error& error) {
  const auto* refused = error.details.find("refused");
  if (refused == nullptr || !refused->is_array()) return {};
  constexpr std::size_t shown = 5;
  std::string out;
  const auto& list = refused->as_array();
  for (std::size_t i = 0; i < std::min(shown, list.size()); ++i)
    out += "\n  refused: " + list[i].find("path")->as_string() + ": " +
           list[i].find("message")->as_string();
  if (list.size() > shown) out += "\n  refused: " + std::to_string(list.size() - shown) + " more";
  return out;
}

}  // namespace

Terminal::Terminal(bool json)
    : json_(json),
      err_tty_(::isatty(2) == 1),
      colour_out_(!json && wants_colour(1)),
      colour_err_(wants_colour(2)) {}

bool Terminal::print(std::string_view text) const {
  return output_.write_all(1, text);
}

bool Terminal::print_text(std::string_view text) const {
  return print(harmless_text(text));
}

bool Terminal::print_json(const json::Value& value) const {
  return output_.write_all(1, json::write_pretty(value));
}

int Terminal::exit_code_after(bool written) const {
  if (written) return kOk;
  const int why = errno;
  if (why == EPIPE) return kBrokenPipe;
  if (why == ECANCELED) return kFailure;  // who wants the end knows
  say(kRed, output_error(why).message);   // also for JSON, which has nowhere to go
  return kFailure;
}

bool Terminal::print_table(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows) const {
  std::vector<std::vector<std::string>> cells = {header};
  for (const auto& row : rows) {
    cells.emplace_back();
    for (const auto& cell : row)
      cells.back().push_back(harmless_line(cell));
  }
  std::vector<std::size_t> width(header.size());
  for (const auto& row : cells)
    for (std::size_t i = 0; i < row.size(); ++i)
      width[i] = std::max(width[i], width_of(row[i]));
  const auto line = [&](const std::vector<std::string>& row) {
    std::string out;
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out += std::string(width[i] - width_of(row[i]) + 2, ' ');
    }
    return out;
  };
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i)
    text += (i == 0 ? bold(line(cells[i])) : line(cells[i])) + "\n";
  return print(text);
}

void Terminal::say(std::string_view colour, std::string_view text) const {
  std::string line = "sandforge: " + harmless_text(text);
  if (colour_err_ && !colour.empty()) line = std::string(colour) + line + std::string(kReset);
  output_.write_all(2, line + "\n");
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
  if (error.details.find("stderr") != nullptr) {
    out += output_of(error.details);
  } else if (const auto* cause = error.details.find("cause"); cause != nullptr) {
    const auto* details = cause->at_pointer("/details");
    if (details != nullptr && details->is_object()) out += output_of(details->as_object());
  }
  if (const auto* hint = error.details.find("hint"); hint != nullptr && hint->is_string())
    out += "\n  hint: " + hint->as_string();
  if (error.reason == "provider.unknown")
    out += refused_plugins(error) + "\n  hint: " + where_providers_come_from(error);
  return out;
}

Error output_error(int error_number) {
  return Error(error_number == ENOSPC ? Status::no_space : Status::unavailable,
               std::string("the output cannot be written: ") + std::strerror(error_number),
               "cli.output_failed");
}

std::string age(std::int64_t then_ns, std::int64_t now_ns) {
  const auto seconds = std::max<std::int64_t>(0, (now_ns - then_ns) / 1'000'000'000);
  if (seconds < 120) return std::to_string(seconds) + "s ago";
  if (seconds < 7200) return std::to_string(seconds / 60) + "m ago";
  if (seconds < 172'800) return std::to_string(seconds / 3600) + "h ago";
  return std::to_string(seconds / 86'400) + "d ago";
}

}  // namespace sandforge::cli

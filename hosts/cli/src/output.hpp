// Text and JSON for people and scripts.
#pragma once

#include <string>
#include <vector>

#include "sandforge/support/json.hpp"

namespace sandforge::cli {

// Whole text to standard output; a reader that is gone ends the program with kBrokenPipe.
void print(const std::string& text);
void print_json(const json::Value& value);
// One line to standard error, with "sandforge: " in front; colour only on a terminal.
void complain(const char* kind, const std::string& text);

// Columns padded to the widest cell; the first row is the heading.
std::string table(const std::vector<std::vector<std::string>>& rows);
// "2026-01-31 12:00:00", UTC.
std::string format_time(std::int64_t unix_ns);

}  // namespace sandforge::cli

// Quoting for POSIX shells (XCU section 2.2).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sandforge {

// `word` so that a shell reads it as one word of exactly these bytes, whatever the locale. ASCII
// letters, digits and `._-/=:@` pass bare; everything else, the empty word too, is single-quoted.
// Throws std::invalid_argument on a NUL byte, which no shell word can hold. Any thread.
std::string shell_quote(std::string_view word);

// A command line of shell text and arguments. `command` is never quoted: it is shell text. Each
// argument is quoted and follows after one space. Throws as shell_quote.
std::string command_line(std::string_view command, const std::vector<std::string>& args);

}  // namespace sandforge

#include "argument_mistakes.hpp"

#include <algorithm>
#include <filesystem>

#include "sandforge/support/suggest.hpp"

namespace sandforge::cli {
namespace {

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const auto nearest = nearest_name(word, known);
  return nearest ? ", did you mean " + *nearest + "?" : std::string();
}

}  // namespace

std::string unexpected_word(const std::string& word, const KnownWords& known) {
  if (word.size() > 1 && word.front() == '-') {
    const auto name = word.substr(0, word.find('='));
    if (std::find(known.options.begin(), known.options.end(), name) != known.options.end())
      return "the option " + name + " is not expected here; see --help of the subcommand";
    // One letter is near to every other.
    return "unknown option " + name +
           (name.size() > 2 ? did_you_mean(name, known.options) : std::string());
  }
  if (!known.subcommands.empty())
    return "unknown subcommand '" + word + "'" + did_you_mean(word, known.subcommands);
  return "the word '" + word + "' is not expected here; " +
         (known.command ? "a command to run follows after --" : "see --help of the subcommand");
}

std::string bad_repository(const std::string& text, const std::string& why) {
  std::error_code ignored;
  if (text.empty() || !std::filesystem::is_directory(text, ignored)) return why;
  auto path = std::filesystem::absolute(text).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // of ".", which ends with a separator
  return why + ", did you mean " + path.native() + "?";
}

}  // namespace sandforge::cli

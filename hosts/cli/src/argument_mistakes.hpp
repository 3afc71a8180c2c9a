// What is said about a word of the command line that nobody knows.
#pragma once

#include <string>
#include <vector>

namespace sandforge::cli {

struct KnownWords {
  std::vector<std::string> options;      // with their dashes
  std::vector<std::string> subcommands;  // that could stand here
  bool command = false;                  // the subcommand runs what follows after "--"
};

// One sentence, with the known word that was most likely meant.
std::string unexpected_word(const std::string& word, const KnownWords& known);

// Of a clone URL that the set-up does not take: why, and the absolute path where it names a folder.
std::string bad_repository(const std::string& text, const std::string& why);

}  // namespace sandforge::cli

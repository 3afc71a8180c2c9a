// Rules for every text file: marks of unfinished work, paths that exist on one machine only.
#include <regex>
#include <string>

#include "lint/lint.hpp"

namespace sandforge::lint {

void check_text(const Source& source, const Tree& tree, Findings& findings) {
  // /home/user is the documented home of a sandbox, /home/x a name in examples: no person's.
  static const std::regex home(R"(/(home|Users)/(?!(user|x)\b)[a-z][a-z0-9_-]*)");
  static const std::regex unfinished(R"(\b(TODO|FIXME|XXX)\b)");

  int number = 0;
  std::size_t start = 0;
  while (start < source.text.size()) {
    const std::size_t end = std::min(source.text.find('\n', start), source.text.size());
    const std::string line = source.text.substr(start, end - start);
    start = end + 1;
    ++number;
    if (std::regex_search(line, unfinished)) {
      findings.add("unfinished", number, "a mark of unfinished work: finish it, or file it");
    }
    const bool here = tree.root.size() > 4 && line.find(tree.root) != std::string::npos;
    if (here || (line.size() < 2000 && std::regex_search(line, home))) {
      findings.add("machine-path", number, "a path that exists on one machine only");
    }
  }
}

}  // namespace sandforge::lint

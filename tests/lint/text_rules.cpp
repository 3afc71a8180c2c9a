// Rules for every text file: marks of unfinished work, paths that exist on one machine only, pages
// without a title.
#include <regex>
#include <string>
#include <string_view>

#include "lint/lint.hpp"

namespace sandforge::lint {

void check_text(const Source& source, const Tree& tree, Findings& findings) {
  // /home/user is the documented home of a sandbox, /home/app and /home/x are names in examples.
  static const std::regex home(R"(/(home|Users)/(?!(user|app|x)\b)[a-z][a-z0-9_-]*)");
  static const std::regex unfinished(R"(\b(TODO|FIXME|XXX)\b)");

  const auto ends_in = [&](std::string_view end) {
    return source.path.size() > end.size() &&
           source.path.compare(source.path.size() - end.size(), end.size(), end) == 0;
  };
  if (ends_in(".md") && source.text.rfind("# ", 0) != 0)
    findings.add("page-title", 1, "a page begins with its title; a formatter of code spoils pages");

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

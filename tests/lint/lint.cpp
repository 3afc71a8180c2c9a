#include "lint/lint.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace sandforge::lint {
namespace {

bool is_code(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  return extension == ".c" || extension == ".cpp" || extension == ".h" || extension == ".hpp";
}

}  // namespace

Source make_source(std::string path, std::string text) {
  Source source{std::move(path), std::move(text), {}};
  if (is_code(source.path)) {
    source.tokens = tokenize(source.text);
  }
  return source;
}

std::vector<Finding> check(const Source& source, const Tree& tree) {
  Findings findings(source);
  check_coroutines(source, findings);
  check_aggregates(source, tree, findings);
  check_calls(source, findings);
  check_includes(source, tree, findings);
  check_text(source, tree, findings);
  std::vector<Finding> list = findings.take();
  std::stable_sort(list.begin(), list.end(),
                   [](const Finding& a, const Finding& b) { return a.line < b.line; });
  return list;
}

AllowList::AllowList(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t hash = line.find('#');
    std::istringstream words(line.substr(0, hash));
    Entry entry;
    if (!(words >> entry.rule)) {
      continue;
    }
    std::string more;
    const bool reasoned =
        hash != std::string::npos && line.find_first_not_of(" \t", hash + 1) != std::string::npos;
    if (!(words >> entry.path) || (words >> more) || !reasoned) {
      throw std::runtime_error("allow list: not of the form 'RULE PATH # reason': " + line);
    }
    entries_.push_back(std::move(entry));
  }
}

bool AllowList::covers(const Finding& finding) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const bool folder = entry.path.back() == '/';
    return entry.rule == finding.rule &&
           (folder ? finding.path.rfind(entry.path, 0) == 0 : finding.path == entry.path);
  });
}

}  // namespace sandforge::lint

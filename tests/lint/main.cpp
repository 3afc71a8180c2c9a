// sandforge_lint ROOT: checks every text file below ROOT, prints what it finds as
// "path:line: message [rule]", and exits with 1 when it found something, 2 when it could not look.
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "lint/lint.hpp"

namespace fs = std::filesystem;
using namespace sandforge::lint;

namespace {

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    throw std::runtime_error("cannot read " + path.string());
  }
  return text.str();
}

bool is_text(const fs::path& path) {
  static const std::set<std::string> extensions = {".c",   ".cpp",  ".h",    ".hpp", ".cmake",
                                                   ".txt", ".json", ".yaml", ".yml", ".md",
                                                   ".sh",  ".in",   ".awk",  ".map", ".rs"};
  return extensions.count(path.extension().string()) != 0 || path.filename() == "run";
}

bool is_left_out(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == ".git" || name == ".cache" || name == "corpus" || name.rfind("build", 0) == 0;
}

std::set<std::string> list(const fs::path& root) {
  std::set<std::string> paths;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator();
       ++at) {
    if (at->is_directory() && is_left_out(at->path())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file() && is_text(at->path())) {
      paths.insert(at->path().lexically_relative(root).generic_string());
    }
  }
  return paths;
}

int run(const fs::path& root) {
  const AllowList allowed(read(root / "tests/lint/allow.txt"));
  Tree tree{list(root), root.string(), {}};
  std::vector<Source> sources;
  for (const std::string& path : tree.paths) {
    sources.push_back(make_source(path, read(root / path)));
    if (sources.back().is_below("sdk/include/") || sources.back().is_below("plugins/")) {
      tree.aggregates.merge(aggregates_of(sources.back()));
    }
  }
  int found = 0;
  for (const Source& source : sources) {
    for (const Finding& finding : check(source, tree)) {
      if (!allowed.covers(finding)) {
        std::cout << finding.path << ':' << finding.line << ": " << finding.message << " ["
                  << finding.rule << "]\n";
        ++found;
      }
    }
  }
  std::cout << tree.paths.size() << " files, " << found << " findings\n";
  if (tree.paths.empty()) {
    std::cerr << root << ": no file to check\n";
    return 2;
  }
  return found == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: sandforge_lint ROOT\n";
    return 2;
  }
  try {
    return run(fs::canonical(argv[1]));
  } catch (const std::exception& error) {
    std::cerr << "sandforge_lint: " << error.what() << '\n';
    return 2;
  }
}

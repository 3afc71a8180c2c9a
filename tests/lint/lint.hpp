// The rules that neither compiler nor clang-tidy checks. Each rule is a name, a place where it
// holds, and a message; allow.txt lists the places that are meant to break one, with the reason.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lint/lexer.hpp"

namespace sandforge::lint {

struct Finding {
  std::string rule;
  std::string path;  // relative to the root of the tree
  int line;
  std::string message;
};

// One file of the tree. Tokens are there for C and C++ only.
struct Source {
  std::string path;  // relative to the root, with forward slashes
  std::string text;
  std::vector<Token> tokens;

  bool is_below(std::string_view folder) const { return path.rfind(folder, 0) == 0; }
};

// Every path of the tree, to tell which file an #include means, where the tree lies, and the
// classes without constructors that authors of plugins see.
struct Tree {
  std::set<std::string> paths;
  std::string root;
  std::set<std::string> aggregates;
};

class Findings {
 public:
  explicit Findings(const Source& source) : source_(source) {}
  void add(std::string rule, int line, std::string message) {
    list_.push_back({std::move(rule), source_.path, line, std::move(message)});
  }
  std::vector<Finding> take() { return std::move(list_); }

 private:
  const Source& source_;
  std::vector<Finding> list_;
};

// The groups of rules, one file each.
void check_coroutines(const Source& source, Findings& findings);
void check_aggregates(const Source& source, const Tree& tree, Findings& findings);
void check_calls(const Source& source, Findings& findings);
void check_includes(const Source& source, const Tree& tree, Findings& findings);
void check_text(const Source& source, const Tree& tree, Findings& findings);

// Names of the classes of a file that have data, and neither constructors nor hidden parts.
std::set<std::string> aggregates_of(const Source& source);

Source make_source(std::string path, std::string text);
std::vector<Finding> check(const Source& source, const Tree& tree);

// Lines of "RULE PATH # reason"; a path that ends in a slash means all below it. Throws
// std::runtime_error for a line without a reason.
class AllowList {
 public:
  explicit AllowList(std::string_view text);
  bool covers(const Finding& finding) const;

 private:
  struct Entry {
    std::string rule;
    std::string path;
  };
  std::vector<Entry> entries_;
};

}  // namespace sandforge::lint

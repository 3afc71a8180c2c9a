// YAML text to JSON values, typed by the YAML 1.2 core rules, with source positions.
//
// Strict on purpose: what YAML readers are known to guess differently about is an error here
// (leading zeros, duplicate keys, merge keys, unknown tags, several documents, .inf). `no`, `on`
// and `1_000` are strings. Source: YAML 1.2.2, chapter 10.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/schema.hpp"
#include "sandforge/support/json.hpp"

namespace sandforge {

// A place in a text; both count from 1, columns in bytes.
struct SourcePosition {
  std::size_t line = 0;
  std::size_t column = 0;
  explicit operator bool() const noexcept { return line != 0; }
};

// Where the values of a document and the keys of its members were written.
class SourceMap {
 public:
  SourceMap();

  // The position of the value; of its nearest ancestor when the pointer is not in the document or
  // comes from an alias.
  SourcePosition value(std::string_view pointer) const;
  // The position of the key of a member; of the value where there is no key.
  SourcePosition key(std::string_view pointer) const;

  // How many values without members or items stand on this line.
  std::size_t values_on_line(std::size_t line) const;

  // For readers. Nodes are numbered; 0 is the root. Items of arrays have empty names.
  std::uint32_t add(std::uint32_t parent, std::string name, SourcePosition key);
  void set_value(std::uint32_t node, SourcePosition at);

 private:
  struct Node {
    std::string name;
    SourcePosition key;
    SourcePosition value;
    std::vector<std::uint32_t> children;
  };
  const Node* child(const Node& node, std::string_view token) const;
  std::vector<const Node*> path(std::string_view pointer) const;

  std::vector<Node> nodes_;
};

struct YamlLimits {
  std::size_t bytes = 1U << 20;
  std::size_t depth = 64;
  std::size_t nodes = 100'000;  // aliases count as what they expand to
};

struct YamlError {
  std::string message;
  SourcePosition at;
};

// Either a value or an error. An empty document is an empty object.
struct YamlResult {
  json::Value value;
  SourceMap source;
  YamlError error;
  bool ok() const noexcept { return error.message.empty(); }
  explicit operator bool() const noexcept { return ok(); }
};

// Never throws for bad input. Threads: any.
YamlResult parse_yaml(std::string_view text, const YamlLimits& limits = {});

// "file:line:col: message", then the line of the source and a caret beneath the column:
//   config.yaml:3:12: expected integer, got string
//     cpuCount: "two"
//               ^
// Long lines are cut around the caret. Ends with a newline. A position of zero gives
// "file: message" alone. With `redact` the rest of the line from the column on is not shown.
std::string format_diagnostic(std::string_view file, std::string_view text, SourcePosition at,
                              std::string_view message, bool redact = false);

// An issue of a document that was read from YAML: unknown keys point at the key, the rest at the
// value.
std::string format_diagnostic(std::string_view file, std::string_view text, const SourceMap& source,
                              const Issue& issue, bool redact = false);

}  // namespace sandforge

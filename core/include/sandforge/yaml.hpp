// YAML text to JSON values, typed by the YAML 1.2 core rules, with source positions.
//
// Strict on purpose: what YAML readers are known to guess differently about is an error here
// (leading zeros, duplicate keys, merge keys, unknown tags, several documents, .inf). `no`, `on`
// and `1_000` are strings. Source: reference/libraries.md section 4.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
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
  void add_value(std::string pointer, SourcePosition at) { values_[std::move(pointer)] = at; }
  void add_key(std::string pointer, SourcePosition at) { keys_[std::move(pointer)] = at; }

  // The position of the value; of its nearest ancestor when the pointer is not in the document.
  SourcePosition value(std::string_view pointer) const;
  // The position of the key of a member; of the value where there is no key.
  SourcePosition key(std::string_view pointer) const;

 private:
  std::unordered_map<std::string, SourcePosition> values_;
  std::unordered_map<std::string, SourcePosition> keys_;
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
// Long lines are shortened around the caret. Ends with a newline. A position of zero gives
// "file: message" alone. `redact` hides the source line's content after the first colon.
std::string format_diagnostic(std::string_view file, std::string_view text, SourcePosition at,
                              std::string_view message, bool redact = false);

// An issue of a document that was read from YAML: unknown keys point at the key, the rest at the
// value. Source lines of secrets are not shown when `redact` is set.
std::string format_diagnostic(std::string_view file, std::string_view text, const SourceMap& source,
                              const Issue& issue, bool redact = false);

}  // namespace sandforge

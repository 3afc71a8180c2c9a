// JSON Schemas of settings and options: the check at load, and the validation of documents.
//
// Schemas come from plugins and are untrusted. compile_schema() accepts draft-07 only, and of it an
// allow-list of keywords: what the validator would ignore, and what could make it hang or crash, is
// an error at load, with a JSON Pointer into the schema. Once compiled, a schema is immutable.
// Source: draft-07 of JSON Schema; schemas/settings-meta.schema.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/support/json.hpp"

namespace sandforge {

// One mistake in a schema or in a document.
struct Issue {
  std::string pointer;  // RFC 6901, into the schema or the document; an unknown key is named itself
  std::string keyword;  // the schema keyword that refused it, such as "maximum"; may be empty
  std::string message;  // what is wrong, for a person; never the value of a secret
  std::string allowed;  // what would be right, such as "integer from 1 to 65535"; may be empty
  std::string suggestion;  // such as: did you mean "cpuCount"?; may be empty

  friend bool operator==(const Issue&, const Issue&) = default;
};

// "/port: 70000 is greater than the maximum 65535 (allowed: integer from 1 to 65535)". The root
// reads as "(root)".
std::string format_issue(const Issue& issue);
// One format_issue per line, each ended by a newline.
std::string format_issues(const std::vector<Issue>& issues);

// Which keywords a schema may use.
enum class SchemaProfile : std::uint8_t {
  // A closed object of primitive members, nothing required: what a user tunes per project.
  settings,
  // A closed object that may nest: what a host writes in its configuration.
  options,
  // Draft-07 without patternProperties, content*, anchors and remote references: our own documents.
  full,
};

// A schema that passed the check, ready to validate.
//
// Threads: every function is const and may be called from any thread at once.
class CompiledSchema {
 public:
  struct Impl;  // defined in src/schema
  explicit CompiledSchema(std::unique_ptr<const Impl> impl) noexcept;
  ~CompiledSchema();
  CompiledSchema(const CompiledSchema&) = delete;
  CompiledSchema& operator=(const CompiledSchema&) = delete;

  // Whether the document is valid. Takes no lock; the cheap form for hot paths.
  bool accepts(const json::Value& document) const;

  // Every mistake of the document in its own order, at most 100; empty when it is valid.
  std::vector<Issue> validate(const json::Value& document) const;

  // Fills in defaults, in place: only members of objects that exist or that come from a default
  // themselves; never inside anyOf, oneOf (unless its discriminator chose a branch), not, if or
  // contains; never secrets; a present null stays.
  // False: the document nests too deep, or its defaults ask for more than 64 levels, 100,000 values
  // or 1 MiB; it is then filled in part.
  [[nodiscard]] bool apply_defaults(json::Value& document) const;

  // Whether the value at this pointer of a document is a secret: x-secret, writeOnly or password.
  bool is_secret(std::string_view pointer) const;

  // Names of the members that the root declares, in the order of the schema.
  std::vector<std::string> declared_keys() const;

  // The schema as it was given.
  const json::Value& document() const noexcept;
  SchemaProfile profile() const noexcept;

  const Impl& impl() const noexcept { return *impl_; }

 private:
  std::unique_ptr<const Impl> impl_;
};

using CompiledSchemaPtr = std::shared_ptr<const CompiledSchema>;

// Either a schema, or the reasons why it was refused (all of them, at most 100).
struct CompileResult {
  CompiledSchemaPtr schema;
  std::vector<Issue> issues;
  explicit operator bool() const noexcept { return schema != nullptr; }
};

// Checks and compiles a schema. Never throws for bad input, reads no file, reaches no network.
// Limits: 1 MiB of text, 64 levels, 100,000 values.
CompileResult compile_schema(const json::Value& schema, SchemaProfile profile);

// The same from text; JSON errors come back as an issue at the root with line and column.
CompileResult compile_schema_text(std::string_view text, SchemaProfile profile);

// Keeps compiled schemas by profile and the SHA-256 of their text, members in order; the least
// recently used goes when it is full. Refused schemas are not kept.
//
// Threads: any. Two threads that ask for one new schema at once may both compile it.
class SchemaCache {
 public:
  explicit SchemaCache(std::size_t capacity = 64);
  ~SchemaCache();
  SchemaCache(const SchemaCache&) = delete;
  SchemaCache& operator=(const SchemaCache&) = delete;

  CompileResult get(const json::Value& schema, SchemaProfile profile);
  std::size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sandforge

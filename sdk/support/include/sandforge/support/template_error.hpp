// Why a template, or what it is made of, was refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sandforge {

enum class TemplateFault : std::uint8_t {
  empty,           // a text or a list that must hold something
  too_long,        // a text
  too_many,        // operations, or entries of a list or map
  too_large,       // the whole definition
  not_text,        // no UTF-8, or with a NUL byte
  bad_value,       // of the wrong kind, or out of its range
  bad_name,        // of a variable, a secret or an owner
  bad_path,        // a folder or an output
  unknown,         // a member, method or option that does not exist
  not_a_template,  // no JSON, or another version
  exclusive,       // fields that contradict each other
  bad_url,         // of a repository
  bad_ref,
  bad_command,     // of a set-up
  same_directory,  // two repositories would lie in one
  missing_secret,  // a step wants a secret that is not given
};
// "template.too_long"
std::string_view to_string(TemplateFault fault) noexcept;

/*
 * The message is for a person and repeats no value. The layer for plugins reports it to the host as
 * invalid, with the details "reason", "pointer" and "operation".
 */
class TemplateError : public std::invalid_argument {
 public:
  TemplateError(TemplateFault fault, const std::string& message, std::string pointer = {},
                std::optional<std::size_t> operation = std::nullopt)
      : std::invalid_argument(message),
        fault_(fault),
        pointer_(std::move(pointer)),
        operation_(operation) {}

  TemplateFault fault() const noexcept { return fault_; }
  // JSON Pointer to what is wrong: of a template within its text, else within what was given.
  const std::string& pointer() const noexcept { return pointer_; }
  // Its position among the operations of the text, from 0.
  std::optional<std::size_t> operation() const noexcept { return operation_; }

 private:
  TemplateFault fault_;
  std::string pointer_;
  std::optional<std::size_t> operation_;
};

}  // namespace sandforge

// The limits of a template, and how what breaks them is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/support/json.hpp"
#include "sandforge/support/template.hpp"

namespace sandforge::templates {

constexpr std::size_t kMaxOperations = 256;
constexpr std::size_t kMaxEntries = 512;
constexpr std::size_t kMaxUnits = 32'768;
constexpr std::size_t kMaxFamilyUnits = 200;
constexpr std::size_t kMaxBytes = 262'144;
constexpr std::int64_t kMaxNumber = (std::int64_t{1} << 53) - 1;

// Where something stands: within an operation of the text, or at its top.
class Place {
 public:
  explicit Place(std::string pointer) : pointer_(std::move(pointer)) {}
  static Place of_operation(std::size_t position) {
    Place place("/operations/" + std::to_string(position));
    place.operation_ = position;
    return place;
  }
  Place operator/(std::string_view token) const {
    Place below = *this;
    below.pointer_ += "/" + json::escape_pointer(token);
    return below;
  }
  Place operator/(std::size_t index) const { return *this / std::to_string(index); }
  [[noreturn]] void refuse(TemplateFault fault, const std::string& message) const;

 private:
  std::string pointer_;
  std::optional<std::size_t> operation_;
};

// `what` begins the message: "a command".
void check_text(const std::string& text, const Place& place, const std::string& what,
                std::size_t units = kMaxUnits);
void check_texts(const std::vector<std::string>& texts, const Place& place,
                 const std::string& what);
void check_envs(const std::map<std::string, std::string>& values, const Place& place);
void check_number(std::int64_t number, const Place& place, const std::string& what);
// `at`: of the operation, whose args are below it.
void check_operation(const TemplateOperation& operation, const Place& at);

// An object without members that are not in the list.
void check_members(const json::Value& value, const Place& at,
                   const std::vector<std::string_view>& known);
// The operation that {"args", "method"} says, checked; what is no operation of its own goes into
// base or resources.
std::optional<TemplateOperation> read_operation(const json::Value& value, const Place& at,
                                                std::optional<std::string>& base,
                                                TemplateResources& resources);

// Letters, digits and '_', and no digit first.
bool is_variable_name(std::string_view name) noexcept;

// {"args": […], "method": "…"}, canonical.
std::string operation_json(const TemplateOperation& operation);
std::string method_json(const char* method, json::Value argument);

}  // namespace sandforge::templates

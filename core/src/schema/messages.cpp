#include "messages.hpp"

#include <algorithm>
#include <array>

#include "quote.hpp"

namespace sandforge::schema_detail {
namespace {

class FaultWriter {
 public:
  FaultWriter(const Node& node, const json::Value& value, const std::string& pointer, bool secret,
              std::vector<Issue>& out)
      : node_(node),
        leaf_(node.leaf),
        value_(value),
        pointer_(pointer),
        secret_(secret),
        out_(out) {}

  void write(std::uint32_t faults) {
    if ((faults & fault_never) != 0) add("false", "nothing is allowed here");
    if ((faults & fault_type) != 0) {
      type();
      return;  // bounds of another type say nothing
    }
    if ((faults & fault_const) != 0)
      out_.push_back(not_listed({*leaf_.constant}, value_, pointer_, "const", secret_));
    if ((faults & fault_enum) != 0)
      out_.push_back(not_listed(leaf_.enumeration, value_, pointer_, "enum", secret_));
    numbers(faults);
    strings(faults);
    arrays(faults);
    objects(faults);
  }

 private:
  void add(const char* keyword, std::string message, std::string suggestion = {}) {
    out_.push_back({pointer_, keyword, std::move(message), {}, std::move(suggestion)});
  }
  void add_with_allowed(const char* keyword, std::string message) {
    out_.push_back({pointer_, keyword, std::move(message), describe_allowed(node_), {}});
  }

  std::string shown() const { return secret_ ? "the value" : show(value_); }

  void type() {
    const std::string expected = type_names(leaf_.types);
    std::string allowed = describe_allowed(node_);
    if (allowed == expected) allowed.clear();
    out_.push_back({pointer_, "type", "expected " + expected + ", got " + type_of(value_),
                    std::move(allowed), type_hint()});
  }

  // The slips that YAML invites: `on` is a string, an unquoted 8080 is a number.
  std::string type_hint() const {
    if (value_.is_string()) return string_hint(value_.as_string());
    const bool scalar = value_.is_number() || value_.is_bool();
    if (!scalar || (leaf_.types & type_string) == 0) return {};
    return secret_ ? "put it in quotes" : "put it in quotes: \"" + show(value_) + "\"";
  }

  std::string string_hint(const std::string& text) const {
    static constexpr std::array<const char*, 6> yes{"yes", "Yes", "YES", "on", "On", "ON"};
    static constexpr std::array<const char*, 6> no{"no", "No", "NO", "off", "Off", "OFF"};
    if ((leaf_.types & type_boolean) != 0) {
      const auto is = [&](const char* word) { return text == word; };
      if (secret_) return "write true or false";
      if (std::any_of(yes.begin(), yes.end(), is)) return "write true";
      if (std::any_of(no.begin(), no.end(), is)) return "write false";
      if (text == "true" || text == "false") return "remove the quotes";
      return {};
    }
    const bool wants_number = (leaf_.types & (type_integer | type_number)) != 0;
    if (wants_number && json::parse(text).value.is_number()) return "remove the quotes";
    if (text.empty() && (leaf_.types & type_null) != 0) return "write null";
    return {};
  }

  void numbers(std::uint32_t faults) {
    if ((faults & fault_minimum) != 0) {
      add_with_allowed("minimum", shown() + " is less than the minimum " + show(*leaf_.minimum));
    }
    if ((faults & fault_maximum) != 0) {
      add_with_allowed("maximum", shown() + " is greater than the maximum " + show(*leaf_.maximum));
    }
    if ((faults & fault_exclusive_minimum) != 0) {
      add_with_allowed("exclusiveMinimum",
                       shown() + " is not greater than " + show(*leaf_.exclusive_minimum));
    }
    if ((faults & fault_exclusive_maximum) != 0) {
      add_with_allowed("exclusiveMaximum",
                       shown() + " is not less than " + show(*leaf_.exclusive_maximum));
    }
    if ((faults & fault_multiple_of) != 0) {
      add("multipleOf",
          shown() + " is not a multiple of " + show(*node_.source->find("multipleOf")));
    }
  }

  void strings(std::uint32_t faults) {
    if ((faults & fault_min_length) != 0) length("minLength", "at least ", *leaf_.min_length);
    if ((faults & fault_max_length) != 0) length("maxLength", "at most ", *leaf_.max_length);
    if ((faults & fault_format) != 0) {
      add("format", shown() + " is not " + format_description(leaf_.format));
    }
    if ((faults & fault_pattern) == 0) return;
    const std::string reason =
        node_.pattern_message.empty()
            ? " does not match the pattern " + quote(leaf_.pattern->expression())
            : ": " + node_.pattern_message;
    add("pattern", shown() + reason);
  }

  void length(const char* keyword, const char* relation, std::uint64_t limit) {
    if (secret_) {
      add(keyword, std::string("needs ") + relation + std::to_string(limit) + " characters");
      return;
    }
    const std::string has = std::to_string(count_characters(value_.as_string()));
    add(keyword,
        "has " + has + " characters, " + relation + std::to_string(limit) + " are allowed");
  }

  void counted(const char* keyword, std::size_t has, const char* unit, const char* relation,
               std::uint64_t limit) {
    add(keyword, "has " + std::to_string(has) + " " + unit + ", " + relation +
                     std::to_string(limit) + " are allowed");
  }

  void arrays(std::uint32_t faults) {
    if ((faults & (fault_min_items | fault_max_items | fault_unique_items)) == 0) return;
    const std::size_t size = value_.as_array().size();
    if ((faults & fault_min_items) != 0)
      counted("minItems", size, "items", "at least ", *leaf_.min_items);
    if ((faults & fault_max_items) != 0)
      counted("maxItems", size, "items", "at most ", *leaf_.max_items);
    if ((faults & fault_unique_items) != 0) add("uniqueItems", "holds a value twice");
  }

  void objects(std::uint32_t faults) {
    if ((faults & fault_min_properties) != 0) {
      counted("minProperties", value_.as_object().size(), "members", "at least ",
              *leaf_.min_properties);
    }
    if ((faults & fault_max_properties) != 0) {
      counted("maxProperties", value_.as_object().size(), "members", "at most ",
              *leaf_.max_properties);
    }
    if ((faults & fault_required) == 0) return;
    for (const std::string& name : leaf_.required) {
      if (value_.as_object().contains(name)) continue;
      const Node* member = node_.property(name);
      out_.push_back({pointer_,
                      "required",
                      quote(name) + " is missing",
                      member == nullptr ? "" : describe_allowed(*member),
                      {}});
    }
  }

  const Node& node_;
  const Leaf& leaf_;
  const json::Value& value_;
  const std::string& pointer_;
  bool secret_;
  std::vector<Issue>& out_;
};

}  // namespace

Issue not_listed(const std::vector<json::Value>& list, const json::Value& value,
                 const std::string& pointer, const char* keyword, bool secret) {
  Issue issue{pointer, keyword, {}, list_values(list), {}};
  issue.message = (secret ? std::string("the value") : show(value)) + " is not allowed";
  if (!value.is_string() || secret) return issue;
  std::vector<std::string> names;
  for (const json::Value& entry : list) {
    if (entry.is_string()) names.push_back(entry.as_string());
  }
  issue.suggestion = suggest_name(value.as_string(), names);
  return issue;
}

void describe_faults(const Node& node, const json::Value& value, std::uint32_t faults,
                     const std::string& pointer, bool secret, std::vector<Issue>& out) {
  FaultWriter(node, value, pointer, secret, out).write(faults);
}

}  // namespace sandforge::schema_detail

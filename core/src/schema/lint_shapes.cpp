#include <algorithm>
#include <array>

#include "leaf.hpp"
#include "lint.hpp"
#include "quote.hpp"

namespace sandforge::schema_detail {
namespace {

constexpr std::array<std::string_view, 3> widgets{"textarea", "select", "radio"};

class ShapeCheck {
 public:
  ShapeCheck(const Keyword& keyword, const json::Value& value, const std::string& pointer,
             SchemaProfile profile, IssueList& issues)
      : keyword_(keyword), value_(value), pointer_(pointer), profile_(profile), issues_(issues) {}

  bool run() {
    switch (keyword_.shape) {
      case Shape::anything:
        return true;
      case Shape::boolean:
        return expect(value_.is_bool(), "a boolean");
      case Shape::text:
        return expect(value_.is_string(), "a string");
      case Shape::number:
        return number();
      case Shape::positive_number:
        return positive();
      case Shape::count:
        return count();
      case Shape::type_names:
        return types();
      case Shape::value_list:
        return values();
      case Shape::name_list:
        return names();
      case Shape::examples:
        return expect(value_.is_array(), "an array");
      case Shape::draft_uri:
        return draft();
      case Shape::absolute_id:
        return identifier();
      case Shape::pattern:
        return pattern();
      case Shape::format:
        return format();
      case Shape::reference:
        return reference();
      case Shape::widget:
        return widget();
      case Shape::schema:
        return schema();
      case Shape::closed_or_schema:
        return closed();
      case Shape::schema_or_list:
        return items();
      case Shape::schema_list:
        return schema_list();
      case Shape::schema_map:
      case Shape::dependency_map:
        return expect(value_.is_object(), "an object");
    }
    return false;
  }

 private:
  bool fail(std::string message, std::string suggestion = {}) {
    issues_.add(pointer_, keyword_.name, std::move(message), std::move(suggestion));
    return false;
  }

  bool expect(bool ok, std::string_view what) {
    if (ok) return true;
    return fail("must be " + std::string(what) + ", not " + type_of(value_));
  }

  bool number() {
    const bool old_form = value_.is_bool() && keyword_.name.substr(0, 9) == "exclusive";
    if (old_form) return fail("must be a number, not boolean", "the boolean form is from draft 4");
    return expect(value_.is_number(), "a number");
  }

  bool positive() {
    if (!expect(value_.is_number(), "a number")) return false;
    if (compare_numbers(value_, 0) > 0) return true;
    return fail("must be greater than 0");
  }

  bool count() {
    if (!value_.is_number()) return expect(false, "a whole number");
    const bool ok = is_integral(value_) && compare_numbers(value_, 0) >= 0 &&
                    compare_numbers(value_, json::Value(std::int64_t{1} << 53)) <= 0;
    return ok || fail("must be a whole number from 0");
  }

  bool type_name(const json::Value& name, std::uint8_t& seen) {
    if (!name.is_string()) return fail("must name types with strings");
    const std::uint8_t bit = type_bit(name.as_string());
    if (bit == 0) {
      static const std::vector<std::string> known{"string", "integer", "number", "boolean",
                                                  "array",  "object",  "null"};
      return fail("unknown type " + quote(name.as_string()), suggest_name(name.as_string(), known));
    }
    if ((seen & bit) != 0) return fail("names the type " + quote(name.as_string()) + " twice");
    seen = static_cast<std::uint8_t>(seen | bit);
    return true;
  }

  bool types() {
    std::uint8_t seen = 0;
    if (value_.is_array()) {
      if (value_.as_array().empty()) return fail("must name at least one type");
      for (const json::Value& name : value_.as_array()) {
        if (!type_name(name, seen)) return false;
      }
    } else if (!value_.is_string()) {
      return expect(false, "a string");
    } else if (!type_name(value_, seen)) {
      return false;
    }
    return profile_ == SchemaProfile::full || profile_types(seen);
  }

  bool profile_types(std::uint8_t seen) {
    if (profile_ == SchemaProfile::settings) {
      return value_.is_string() || fail("must be one type: settings are never null");
    }
    const auto others = static_cast<unsigned>(seen & ~type_null);
    const bool single = others != 0 && (others & (others - 1)) == 0;
    return single || fail("must be one type, or one type and \"null\"");
  }

  bool values() {
    if (!expect(value_.is_array(), "an array")) return false;
    const json::Array& items = value_.as_array();
    if (items.empty()) return fail("must not be empty");
    Leaf unique;
    unique.unique_items = true;
    if (check_leaf(unique, value_) != 0) return fail("must not list a value twice");
    return true;
  }

  bool names() {
    if (!expect(value_.is_array(), "an array of strings")) return false;
    for (const json::Value& name : value_.as_array()) {
      if (!name.is_string())
        return fail(std::string("must hold strings only, not ") + type_of(name));
    }
    Leaf unique;
    unique.unique_items = true;
    if (check_leaf(unique, value_) != 0) return fail("must not list a name twice");
    return true;
  }

  bool draft() {
    if (!expect(value_.is_string(), "a string")) return false;
    const std::string& uri = value_.as_string();
    if (uri == "http://json-schema.org/draft-07/schema#" ||
        uri == "http://json-schema.org/draft-07/schema") {
      return true;
    }
    return fail("only draft-07 is supported, not " + quote(uri),
                "leave it out or use \"http://json-schema.org/draft-07/schema#\"");
  }

  bool identifier() {
    if (!expect(value_.is_string(), "a string")) return false;
    const std::string& id = value_.as_string();
    return (is_uri(id) && id.find('#') == std::string::npos) ||
           fail("must be an absolute URI without a fragment");
  }

  bool pattern() {
    if (!expect(value_.is_string(), "a string")) return false;
    std::string error;
    if (Pattern::compile(value_.as_string(), error)) return true;
    return fail("the regular expression " + error);
  }

  bool format() {
    if (!expect(value_.is_string(), "a string")) return false;
    if (format_by_name(value_.as_string()) != Format::none) return true;
    std::vector<std::string> known;
    for (const std::string_view name : format_names())
      known.emplace_back(name);
    return fail("unknown format " + quote(value_.as_string()),
                suggest_name(value_.as_string(), known));
  }

  bool reference() {
    if (!expect(value_.is_string(), "a string")) return false;
    const std::string& text = value_.as_string();
    std::string target;
    if (!reference_pointer(text, target)) {
      return fail("the reference " + quote(text) + " is not local",
                  "only #/definitions/NAME and #/$defs/NAME can be referenced");
    }
    if (profile_ == SchemaProfile::full) return true;
    const auto slash = target.find('/', 1);
    const std::string_view top = std::string_view(target).substr(0, slash);
    const bool named = slash != std::string::npos && (top == "/definitions" || top == "/$defs") &&
                       target.find('/', slash + 1) == std::string::npos;
    return named || fail("the reference " + quote(text) + " is not to a definition",
                         "only #/definitions/NAME and #/$defs/NAME can be referenced");
  }

  bool widget() {
    if (!expect(value_.is_string(), "a string")) return false;
    const bool known =
        std::find(widgets.begin(), widgets.end(), value_.as_string()) != widgets.end();
    return known || fail("must be one of textarea, select, radio");
  }

  bool schema() {
    if (value_.is_object()) return true;
    if (profile_ == SchemaProfile::full && value_.is_bool()) return true;
    return fail(std::string("must be a schema, an object, not ") + type_of(value_));
  }

  bool closed() {
    if (profile_ == SchemaProfile::full) return schema();
    if (value_.is_bool() && !value_.as_bool()) return true;
    if (profile_ == SchemaProfile::options && value_.is_object()) return true;
    if (value_.is_string())
      return fail("must be false, not the string " + quote(value_.as_string()));
    return fail(profile_ == SchemaProfile::settings ? "must be false" : "must be false or a schema",
                "unknown keys would not be found otherwise");
  }

  bool items() {
    if (value_.is_array() && profile_ != SchemaProfile::full) {
      return fail("must be one schema: tuples are not supported");
    }
    return value_.is_array() || schema();
  }

  bool schema_list() {
    if (!expect(value_.is_array(), "an array of schemas")) return false;
    return !value_.as_array().empty() || fail("must not be empty");
  }

  const Keyword& keyword_;
  const json::Value& value_;
  const std::string& pointer_;
  SchemaProfile profile_;
  IssueList& issues_;
};

}  // namespace

bool check_shape(const Keyword& keyword, const json::Value& value, const std::string& pointer,
                 SchemaProfile profile, IssueList& issues) {
  return ShapeCheck(keyword, value, pointer, profile, issues).run();
}

}  // namespace sandforge::schema_detail

#include "lint.hpp"

#include <algorithm>

#include "formats.hpp"
#include "quote.hpp"

namespace sandforge::schema_detail {
namespace {

class Linter {
 public:
  explicit Linter(SchemaProfile profile) : profile_(profile) {}

  std::vector<Issue> run(const json::Value& schema) {
    if (!schema.is_object() && !(full() && schema.is_bool())) {
      issues_.add("", "", std::string("a schema must be an object, not ") + type_of(schema));
      return issues_.take();
    }
    subschema(schema, "", place_root, false);
    check_references();
    return issues_.take();
  }

 private:
  struct Reference {
    std::string from;
    std::string target;
    std::string text;
  };

  bool full() const noexcept { return profile_ == SchemaProfile::full; }

  void subschema(const json::Value& schema, const std::string& pointer, Place place,
                 bool conditional) {
    if (issues_.full()) return;
    positions_.insert(pointer);
    if (!schema.is_object()) return;  // a boolean schema, which its keyword allowed
    const json::Object& object = schema.as_object();
    if (const json::Value* ref = object.find("$ref")) {
      reference(object, *ref, pointer);
      return;
    }
    if (!full() && place != place_partial) demand_type(object, pointer, place);
    if (!full()) check_neighbours(object, pointer, issues_);
    const std::uint8_t types = types_of(object);
    for (const json::Member& member : object) {
      keyword(member, pointer, place, types, conditional);
    }
    if (!full()) lone_branches(object, pointer);
  }

  static std::uint8_t types_of(const json::Object& object) {
    const json::Value* type = object.find("type");
    if (type == nullptr) return 0;
    if (type->is_string()) return type_bit(type->as_string());
    std::uint8_t types = 0;
    if (!type->is_array()) return 0;
    for (const json::Value& name : type->as_array()) {
      if (name.is_string()) types = static_cast<std::uint8_t>(types | type_bit(name.as_string()));
    }
    return types;
  }

  void demand_type(const json::Object& object, const std::string& pointer, Place place) {
    const json::Value* type = object.find("type");
    if (type == nullptr) {
      issues_.add(pointer, "type", "\"type\" is missing", "every field names its type");
      return;
    }
    const std::uint8_t types = types_of(object);
    if (place == place_root && types != type_object) {
      issues_.add(child(pointer, "type"), "type", "the type of the root must be \"object\"");
      return;
    }
    const bool nested = place == place_field && profile_ == SchemaProfile::settings;
    if (nested && (types & (type_object | type_array | type_null)) != 0) {
      issues_.add(
          child(pointer, "type"), "type",
          "a setting must be a string, integer, number or boolean, not " + type_names(types));
      return;
    }
    if ((types & type_object) != 0 && !object.contains("additionalProperties")) {
      const std::string hint = profile_ == SchemaProfile::settings
                                   ? "add \"additionalProperties\": false"
                                   : "add \"additionalProperties\": false, or a schema for a map";
      issues_.add(pointer, "additionalProperties", "\"additionalProperties\" is missing", hint);
    }
  }

  // Draft-07 ignores whatever stands beside a reference, which surprises authors.
  void reference(const json::Object& object, const json::Value& ref, const std::string& pointer) {
    const Keyword& keyword = *find_keyword("$ref");
    for (const json::Member& member : object) {
      const std::string& name = member.first;
      if (name == "$ref") continue;
      const bool container = name == "definitions" || name == "$defs";
      if (container && full()) {
        keyword_children(*find_keyword(name), member.second, child(pointer, name), place_root,
                         false);
      } else if (!full() || (name != "$comment" && name != "$schema")) {
        issues_.add(child(pointer, name), name, quote(name) + " beside \"$ref\" has no effect",
                    "move it into the definition");
      }
    }
    if ((keyword.profiles & profile_bit(profile_)) == 0) {
      issues_.add(child(pointer, "$ref"), "$ref",
                  "references are not allowed in a settings schema");
      return;
    }
    if (!check_shape(keyword, ref, child(pointer, "$ref"), profile_, issues_)) return;
    std::string target;
    reference_pointer(ref.as_string(), target);
    references_.push_back({child(pointer, "$ref"), std::move(target), ref.as_string()});
  }

  void keyword(const json::Member& member, const std::string& pointer, Place place,
               std::uint8_t types, bool conditional) {
    const std::string at = child(pointer, member.first);
    const Keyword* keyword = find_keyword(member.first);
    const bool extension = member.first.substr(0, 2) == "x-";
    if (keyword == nullptr) {
      if (!(full() && extension)) unknown(member.first, at, place);
      return;
    }
    if ((keyword->profiles & profile_bit(profile_)) == 0) {
      unsupported(member.first, at);
      return;
    }
    if (misplaced(*keyword, at, place, types)) return;
    if (member.first == "if" && !full() && conditional) {
      issues_.add(at, "if", "\"if\" inside \"if\", \"then\" or \"else\" is not supported");
      return;
    }
    if (!check_shape(*keyword, member.second, at, profile_, issues_)) return;
    keyword_children(*keyword, member.second, at, place, conditional);
  }

  void unknown(const std::string& name, const std::string& at, Place place) {
    const std::string_view advice = advice_for(name);
    if (!advice.empty()) {
      issues_.add(at, name, quote(name) + " is not supported", std::string(advice));
      return;
    }
    issues_.add(at, name, "unknown keyword " + quote(name),
                suggest_name(name, keyword_names(profile_, place)));
  }

  void unsupported(const std::string& name, const std::string& at) {
    const std::string where = profile_ == SchemaProfile::settings  ? "a settings schema"
                              : profile_ == SchemaProfile::options ? "an options schema"
                                                                   : "a schema";
    std::string hint(advice_for(name));
    if (name == "required") hint = "every project starts with empty settings: give a default";
    issues_.add(at, name, quote(name) + " is not allowed in " + where, hint);
  }

  bool misplaced(const Keyword& keyword, const std::string& at, Place place, std::uint8_t types) {
    const std::string name(keyword.name);
    const bool root_only = name == "$schema" || name == "$id";
    if (full() ? (root_only && place != place_root) : (keyword.places & place) == 0) {
      issues_.add(at, name, quote(name) + " is not allowed here",
                  place == place_root ? "it belongs into a property" : "it belongs at the root");
      return true;
    }
    if (!full() && keyword.types != 0 && types != 0 && (keyword.types & types) == 0) {
      issues_.add(at, name, quote(name) + " does not apply to the type " + type_names(types));
      return true;
    }
    return false;
  }

  void keyword_children(const Keyword& keyword, const json::Value& value, const std::string& at,
                        Place place, bool conditional) {
    const std::string_view name = keyword.name;
    switch (keyword.shape) {
      case Shape::schema_map:
        map(value, at,
            name == "properties" && place == place_partial ? place_partial : place_field);
        return;
      case Shape::schema_or_list:
      case Shape::closed_or_schema:
        if (value.is_array()) {
          list(value, at, place_field, conditional);
        } else {
          subschema(value, at, place == place_partial ? place_partial : place_field, false);
        }
        return;
      case Shape::schema_list:
        list(value, at, place_partial, conditional);
        return;
      case Shape::schema:
        subschema(value, at, place_partial,
                  conditional || name == "if" || name == "then" || name == "else");
        return;
      case Shape::dependency_map:
        dependencies(value, at);
        return;
      default:
        return;
    }
  }

  void map(const json::Value& value, const std::string& at, Place place) {
    static const Keyword& one = *find_keyword("propertyNames");
    for (const json::Member& member : value.as_object()) {
      const std::string here = child(at, member.first);
      if (!name_allowed(member.first, here)) continue;
      if (!full() && !member.second.is_object() && find_keyword(member.first) != nullptr) {
        issues_.add(here, member.first,
                    std::string("must be a schema, an object, not ") + type_of(member.second),
                    quote(member.first) + " belongs beside \"properties\", not inside");
        continue;
      }
      if (!check_shape(one, member.second, here, profile_, issues_)) continue;
      subschema(member.second, here, place, false);
    }
  }

  bool name_allowed(const std::string& name, const std::string& at) {
    if (name.find('\0') == std::string::npos) return true;
    issues_.add(at, "properties", "a name must not contain NUL");
    return false;
  }

  void list(const json::Value& value, const std::string& at, Place place, bool conditional) {
    static const Keyword& one = *find_keyword("propertyNames");
    std::size_t index = 0;
    for (const json::Value& item : value.as_array()) {
      const std::string here = at + '/' + std::to_string(index++);
      if (check_shape(one, item, here, profile_, issues_))
        subschema(item, here, place, conditional);
    }
  }

  void dependencies(const json::Value& value, const std::string& at) {
    static const Keyword& one = *find_keyword("propertyNames");
    static const Keyword& names = *find_keyword("required");
    for (const json::Member& member : value.as_object()) {
      const std::string here = child(at, member.first);
      if (!name_allowed(member.first, here)) continue;
      if (member.second.is_array()) {
        check_shape(names, member.second, here, profile_, issues_);
      } else if (check_shape(one, member.second, here, profile_, issues_)) {
        subschema(member.second, here, place_partial, false);
      }
    }
  }

  void lone_branches(const json::Object& object, const std::string& pointer) {
    if (object.contains("if")) return;
    for (const char* name : {"then", "else"}) {
      if (!object.contains(name)) continue;
      issues_.add(child(pointer, name), name, quote(name) + " has no effect without \"if\"");
    }
  }

  void check_references() {
    for (const Reference& reference : references_) {
      if (positions_.count(reference.target) != 0) continue;
      std::vector<std::string> known;
      for (const std::string& position : positions_) {
        if (position.rfind("/definitions/", 0) == 0 || position.rfind("/$defs/", 0) == 0) {
          known.push_back('#' + position);
        }
      }
      issues_.add(reference.from, "$ref",
                  "the reference " + quote(reference.text) + " leads nowhere",
                  suggest_name(reference.text, known));
    }
  }

  SchemaProfile profile_;
  IssueList issues_;
  std::unordered_set<std::string> positions_;
  std::vector<Reference> references_;
};

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void measure_string(const std::string& text, Measure& out) {
  out.bytes += text.size() + 2;
  out.longest_string = std::max(out.longest_string, text.size());
}

void measure_into(const json::Value& value, std::size_t depth, Measure& out) {
  out.depth = std::max(out.depth, depth);
  ++out.nodes;
  out.bytes += 2;
  if (depth > max_depth || out.nodes > max_nodes) return;
  if (value.is_string()) {
    measure_string(value.as_string(), out);
  } else if (value.is_array()) {
    for (const json::Value& item : value.as_array())
      measure_into(item, depth + 1, out);
  } else if (value.is_object()) {
    for (const json::Member& member : value.as_object()) {
      measure_string(member.first, out);
      measure_into(member.second, depth + 1, out);
    }
  }
}

}  // namespace

std::vector<Issue> lint_schema(const json::Value& schema, SchemaProfile profile) {
  return Linter(profile).run(schema);
}

void IssueList::add(std::string pointer, std::string_view keyword, std::string message,
                    std::string suggestion, std::string allowed) {
  if (full()) return;
  issues_.push_back({std::move(pointer), std::string(keyword), std::move(message),
                     std::move(allowed), std::move(suggestion)});
}

std::string child(const std::string& pointer, std::string_view token) {
  return pointer + '/' + json::escape_pointer(token);
}

bool reference_pointer(std::string_view reference, std::string& pointer) {
  pointer.clear();
  if (reference.empty() || reference.front() != '#') return false;
  reference.remove_prefix(1);
  if (!reference.empty() && reference.front() != '/') return false;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    if (reference[i] != '%') {
      pointer += reference[i];
      continue;
    }
    if (i + 2 >= reference.size()) return false;
    const int high = hex_digit(reference[i + 1]);
    const int low = hex_digit(reference[i + 2]);
    if (high < 0 || low < 0) return false;
    pointer += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return is_json_pointer(pointer);
}

Measure measure(const json::Value& value) {
  Measure out;
  measure_into(value, 1, out);
  return out;
}

}  // namespace sandforge::schema_detail

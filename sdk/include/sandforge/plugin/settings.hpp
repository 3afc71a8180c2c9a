// Settings and options: typed reading of JSON documents, and a builder for the settings schema.
#pragma once

#include <vector>

#include "error.hpp"

namespace sandforge::plugin {

/*
 * A JSON object with typed access by key. Settings hold the stored values with the schema's
 * defaults filled in; options are valid by the manifest's schema. An absent or null member is
 * absent; a member of another type throws Code::invalid with its JSON pointer.
 */
class Document {
 public:
  Document() = default;
  explicit Document(json::Object object) : object_(std::move(object)) {}

  // Empty text is an empty object. Code::invalid when it is no JSON object.
  static Document parse(std::string_view text) {
    if (text.empty() || text == "{}") return Document();
    json::ParseResult parsed = json::parse(text);
    if (!parsed) throw Error(Code::invalid, "no valid JSON: " + parsed.error.message);
    if (!parsed.value.is_object()) throw Error(Code::invalid, "a JSON object was expected");
    return Document(std::move(parsed.value.as_object()));
  }

  const json::Object& object() const noexcept { return object_; }
  bool has(std::string_view key) const noexcept { return find(key) != nullptr; }

  std::optional<std::string> string(std::string_view key) const {
    const json::Value* v = find(key);
    if (v == nullptr) return std::nullopt;
    if (!v->is_string()) wrong(key, "a string");
    return v->as_string();
  }
  std::optional<std::int64_t> integer(std::string_view key) const {
    const json::Value* v = find(key);
    if (v == nullptr) return std::nullopt;
    if (v->is_integer()) return v->as_integer();
    // JSON Schema calls 2.0 an integer.
    if (!v->is_number() || v->as_number() < -9e15 || v->as_number() > 9e15)
      wrong(key, "an integer");
    const auto whole = static_cast<std::int64_t>(v->as_number());
    if (static_cast<double>(whole) < v->as_number() ||
        static_cast<double>(whole) > v->as_number()) {
      wrong(key, "an integer");
    }
    return whole;
  }
  std::optional<double> number(std::string_view key) const {
    const json::Value* v = find(key);
    if (v == nullptr) return std::nullopt;
    if (!v->is_number()) wrong(key, "a number");
    return v->as_number();
  }
  std::optional<bool> boolean(std::string_view key) const {
    const json::Value* v = find(key);
    if (v == nullptr) return std::nullopt;
    if (!v->is_bool()) wrong(key, "true or false");
    return v->as_bool();
  }
  // A nested object; empty when absent.
  Document document(std::string_view key) const {
    const json::Value* v = find(key);
    if (v == nullptr) return Document();
    if (!v->is_object()) wrong(key, "an object");
    return Document(v->as_object());
  }

 private:
  const json::Value* find(std::string_view key) const noexcept {
    const json::Value* v = object_.find(key);
    return v == nullptr || v->is_null() ? nullptr : v;
  }
  [[noreturn]] static void wrong(std::string_view key, const char* wanted) {
    throw Error(Code::invalid, "\"" + std::string(key) + "\" must be " + wanted)
        .detail("pointer", "/" + json::escape_pointer(key));
  }

  json::Object object_;
};

using Settings = Document;
using Options = Document;

/*
 * The schema of the settings that a user can tune per project: JSON Schema draft-07, an object of
 * primitive members that is closed and requires nothing. Its defaults are the effective ones.
 *
 *   SettingsSchema schema;
 *   schema.integer("cpuCount").title("CPUs").bounds(1, 8).fallback(2);
 *   schema.string("region").one_of({"us", "eu"}).fallback("us");
 */
class SettingsSchema {
 public:
  class Member {
   public:
    explicit Member(json::Object& schema) : schema_(schema) {}
    Member& title(std::string text) { return set("title", std::move(text)); }
    Member& description(std::string text) { return set("description", std::move(text)); }
    Member& fallback(json::Value value) { return set("default", std::move(value)); }
    Member& bounds(json::Value least, json::Value most) {
      return set("minimum", std::move(least)).set("maximum", std::move(most));
    }
    Member& lengths(std::int64_t least, std::int64_t most) {
      return set("minLength", least).set("maxLength", most);
    }
    Member& pattern(std::string regex) { return set("pattern", std::move(regex)); }
    Member& one_of(std::vector<std::string> values) {
      json::Array list;
      for (std::string& v : values)
        list.emplace_back(std::move(v));
      return set("enum", std::move(list));
    }
    // Any other keyword of the subset, such as format or an x- extension.
    Member& set(std::string keyword, json::Value value) {
      schema_.set(std::move(keyword), std::move(value));
      return *this;
    }

   private:
    json::Object& schema_;
  };

  SettingsSchema() {
    root_.set("$schema", "http://json-schema.org/draft-07/schema#");
    root_.set("type", "object");
    root_.set("properties", json::Object());
    root_.set("additionalProperties", false);
  }
  // A schema that stands in the source as text, taken as it is.
  static SettingsSchema from_text(std::string_view text) {
    SettingsSchema schema;
    schema.root_ = Document::parse(text).object();
    return schema;
  }

  // The reference is valid until the next member is added.
  Member string(std::string_view name) { return member(name, "string"); }
  Member integer(std::string_view name) { return member(name, "integer"); }
  Member number(std::string_view name) { return member(name, "number"); }
  Member boolean(std::string_view name) { return member(name, "boolean"); }

  std::string text() const { return json::write(json::Value(root_)); }

 private:
  Member member(std::string_view name, const char* type) {
    json::Object& properties = root_["properties"].as_object();
    json::Value& schema = properties.set(std::string(name), json::Object());
    schema.as_object().set("type", type);
    return Member(schema.as_object());
  }

  json::Object root_;
};

}  // namespace sandforge::plugin

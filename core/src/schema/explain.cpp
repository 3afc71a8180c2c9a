#include "explain.hpp"

#include <algorithm>

#include "alternatives.hpp"
#include "leaf.hpp"
#include "lint.hpp"
#include "messages.hpp"
#include "quote.hpp"

namespace sandforge::schema_detail {
namespace {

constexpr std::size_t max_steps = 1'000'000;

class Explainer {
 public:
  std::vector<Issue> run(const Node& root, const json::Value& document) {
    walk(root, document, "", false);
    return std::move(issues_);
  }

 private:
  bool exhausted() const { return issues_.size() >= max_issues || steps_ >= max_steps; }

  bool matches(const Node& node, const json::Value& value) {
    const bool outer = silent_;
    silent_ = true;
    const bool ok = walk(node, value, {}, false);
    silent_ = outer;
    return ok;
  }

  // True when the value is right. Silent walks stop at the first mistake.
  bool walk(const Node& reference, const json::Value& value, const std::string& pointer,
            bool secret) {
    ++steps_;
    if (exhausted()) return false;
    const Node& node = resolve(reference);
    secret = secret || node.secret;
    bool ok = leaf(node, value, pointer, secret);
    if (value.is_object() && go_on(ok)) ok = object(node, value.as_object(), pointer, secret) && ok;
    if (value.is_array() && go_on(ok)) ok = array(node, value.as_array(), pointer, secret) && ok;
    if (go_on(ok)) ok = combinators(node, value, pointer, secret) && ok;
    return ok;
  }

  bool go_on(bool ok) const { return ok || !silent_; }

  void add(Issue issue) {
    if (!silent_ && issues_.size() < max_issues) issues_.push_back(std::move(issue));
  }

  bool leaf(const Node& node, const json::Value& value, const std::string& pointer, bool secret) {
    if (!node.checks_leaf) return true;
    const std::uint32_t faults = check_leaf(node.leaf, value);
    if (faults == 0) return true;
    if (!silent_) {
      std::vector<Issue> found;
      describe_faults(node, value, faults, pointer, secret, found);
      for (Issue& issue : found)
        add(std::move(issue));
    }
    return false;
  }

  bool object(const Node& node, const json::Object& object, const std::string& pointer,
              bool secret) {
    bool ok = true;
    for (const json::Member& member : object) {
      const std::string at = silent_ ? std::string() : child(pointer, member.first);
      ok = member_ok(node, member, at, secret) && ok;
      if (!go_on(ok) || exhausted()) return ok;
    }
    for (const Dependency& dependency : node.dependencies) {
      if (!object.contains(dependency.name)) continue;
      ok = dependency_ok(dependency, object, pointer, secret) && ok;
    }
    return ok;
  }

  bool member_ok(const Node& node, const json::Member& member, const std::string& at, bool secret) {
    bool ok = name_ok(node, member.first, at);
    if (const Node* declared = node.property(member.first)) {
      return walk(*declared, member.second, at, secret) && ok;
    }
    const Node* rest = node.additional_properties;
    if (rest == nullptr) return ok;
    const Node& additional = resolve(*rest);
    if (!additional.leaf.never) return walk(additional, member.second, at, secret) && ok;
    if (!silent_) {
      std::vector<std::string> known;
      for (const Property& property : node.properties)
        known.push_back(property.name);
      add({at, "additionalProperties", "unknown key " + quote(member.first), list_names(known),
           suggest_name(member.first, known)});
    }
    return false;
  }

  bool name_ok(const Node& node, const std::string& name, const std::string& at) {
    if (node.property_names == nullptr) return true;
    const json::Value value(name);
    if (matches(*node.property_names, value)) return true;
    if (silent_) return false;
    Explainer inner;
    const auto reasons = inner.run(*node.property_names, value);
    const std::string reason = reasons.empty() ? quote(name) : reasons.front().message;
    add({at,
         "propertyNames",
         "this name is not allowed: " + reason,
         reasons.empty() ? "" : reasons.front().allowed,
         {}});
    return false;
  }

  bool dependency_ok(const Dependency& dependency, const json::Object& object,
                     const std::string& pointer, bool secret) {
    if (dependency.node != nullptr) {
      const json::Value value(object);
      return walk(*dependency.node, value, pointer, secret);
    }
    bool ok = true;
    for (const std::string& name : dependency.required) {
      if (object.contains(name)) continue;
      ok = false;
      add({pointer,
           "dependencies",
           quote(name) + " is missing, " + quote(dependency.name) + " needs it",
           {},
           {}});
    }
    return ok;
  }

  bool array(const Node& node, const json::Array& items, const std::string& pointer, bool secret) {
    bool ok = true;
    for (std::size_t i = 0; i < items.size() && go_on(ok) && !exhausted(); ++i) {
      const Node* expected = node.items;
      if (node.is_tuple) expected = i < node.tuple.size() ? node.tuple[i] : node.additional_items;
      if (expected == nullptr) continue;
      const std::string at = silent_ ? std::string() : pointer + '/' + std::to_string(i);
      ok = walk(*expected, items[i], at, secret) && ok;
    }
    if (node.contains == nullptr || !go_on(ok)) return ok;
    const bool found = std::any_of(items.begin(), items.end(), [&](const json::Value& item) {
      return matches(*node.contains, item);
    });
    if (!found)
      add({pointer, "contains", "no item is as it must be", describe_allowed(*node.contains), {}});
    return found && ok;
  }

  bool combinators(const Node& node, const json::Value& value, const std::string& pointer,
                   bool secret) {
    bool ok = true;
    for (const Node* part : node.all_of)
      ok = walk(*part, value, pointer, secret) && ok;
    if (!node.any_of.empty()) ok = any_of(node, value, pointer, secret) && ok;
    if (!node.one_of.empty()) ok = one_of(node, value, pointer, secret) && ok;
    if (node.negated != nullptr && matches(*node.negated, value)) {
      add({pointer, "not", "this value is excluded", {}, {}});
      ok = false;
    }
    if (node.if_ == nullptr) return ok;
    const Node* branch = matches(*node.if_, value) ? node.then_ : node.else_;
    return (branch == nullptr || walk(*branch, value, pointer, secret)) && ok;
  }

  bool any_of(const Node& node, const json::Value& value, const std::string& pointer, bool secret) {
    const bool found = std::any_of(node.any_of.begin(), node.any_of.end(),
                                   [&](const Node* part) { return matches(*part, value); });
    if (!found && !silent_) no_alternative("anyOf", node.any_of, value, pointer, secret);
    return found;
  }

  bool one_of(const Node& node, const json::Value& value, const std::string& pointer, bool secret) {
    const auto count = std::count_if(node.one_of.begin(), node.one_of.end(),
                                     [&](const Node* part) { return matches(*part, value); });
    if (count == 1 || silent_) return count == 1;
    if (count == 0) {
      no_alternative("oneOf", node.one_of, value, pointer, secret);
    } else {
      add({pointer,
           "oneOf",
           "fits " + std::to_string(count) + " alternatives, must fit exactly one",
           {},
           {}});
    }
    return false;
  }

  // Reports the alternative that was probably meant, or all of them in short.
  void no_alternative(const char* keyword, const std::vector<const Node*>& parts,
                      const json::Value& value, const std::string& pointer, bool secret) {
    const Choice choice = choose_alternative(parts, value);
    if (choice.branch != nullptr) {
      walk(*choice.branch, value, pointer, secret);
      return;
    }
    if (!choice.tag.empty()) {
      const json::Value* tag = value.find(choice.tag);
      if (tag == nullptr) {
        add({pointer,
             "required",
             quote(choice.tag) + " is missing",
             list_values(choice.values),
             {}});
      } else {
        add(not_listed(choice.values, *tag, child(pointer, choice.tag), keyword, secret));
      }
      return;
    }
    if (!choice.values.empty()) {
      add(not_listed(choice.values, value, pointer, keyword, secret));
      return;
    }
    std::vector<std::string> allowed;
    allowed.reserve(parts.size());
    for (const Node* part : parts)
      allowed.push_back(describe_allowed(*part));
    add({pointer,
         keyword,
         "fits none of the alternatives, got " + std::string(type_of(value)),
         join_alternatives(allowed),
         {}});
  }

  std::vector<Issue> issues_;
  std::size_t steps_ = 0;
  bool silent_ = false;
};

}  // namespace

std::vector<Issue> explain(const Node& root, const json::Value& document) {
  return Explainer().run(root, document);
}

}  // namespace sandforge::schema_detail

#include "alternatives.hpp"
#include "impl.hpp"
#include "lint.hpp"

namespace sandforge {
namespace {

namespace sd = schema_detail;

// Defaults can ask for more defaults: a schema that refers to itself would never be done. What is
// filled in is bounded in depth, in values and in bytes, whatever the document was.
class DefaultFiller {
 public:
  // False: a bound was reached, and the value is filled in part.
  bool fill(const sd::Node& reference, json::Value& value, std::size_t depth) {
    if (depth > sd::max_depth) return false;
    const sd::Node& node = sd::resolve(reference);
    if (value.is_object() && !members(node, value.as_object(), depth)) return false;
    if (value.is_array() && !items(node, value.as_array(), depth)) return false;
    for (const sd::Node* part : node.all_of) {
      if (!fill(*part, value, depth)) return false;
    }
    const sd::Node* branch = sd::selected_by_tag(node.one_of, value);
    return branch == nullptr || fill(*branch, value, depth);
  }

 private:
  bool members(const sd::Node& node, json::Object& object, std::size_t depth) {
    for (const sd::Property& property : node.properties) {
      const sd::Node& target = sd::resolve(*property.node);
      json::Value* present = object.find(property.name);
      if (present == nullptr && target.default_value && !target.secret) {
        if (!account(*target.default_value)) return false;
        present = &object.set(property.name, *target.default_value);
      }
      if (present != nullptr && !fill(target, *present, depth + 1)) return false;
    }
    const sd::Node* rest = node.additional_properties;
    if (rest == nullptr || sd::resolve(*rest).leaf.never) return true;
    for (json::Member& member : object) {
      const bool declared = node.property(member.first) != nullptr;
      if (!declared && !fill(*rest, member.second, depth + 1)) return false;
    }
    return true;
  }

  bool items(const sd::Node& node, json::Array& array, std::size_t depth) {
    if (node.items == nullptr) return true;
    for (json::Value& item : array) {
      if (!fill(*node.items, item, depth + 1)) return false;
    }
    return true;
  }

  bool account(const json::Value& added) {
    const sd::Measure size = sd::measure(added);
    nodes_ += size.nodes;
    bytes_ += size.bytes;
    return nodes_ <= sd::max_nodes && bytes_ <= sd::max_schema_bytes;
  }

  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

bool CompiledSchema::apply_defaults(json::Value& document) const {
  const std::size_t depth = sd::measure(document).depth;
  if (depth > sd::max_depth) return false;
  return DefaultFiller().fill(*impl_->program.root, document, 1);
}

}  // namespace sandforge

#include "alternatives.hpp"
#include "impl.hpp"
#include "lint.hpp"

namespace sandforge {
namespace {

namespace sd = schema_detail;

class DefaultFiller {
 public:
  void fill(const sd::Node& reference, json::Value& value) {
    const sd::Node& node = sd::resolve(reference);
    if (value.is_object()) members(node, value.as_object());
    if (value.is_array()) items(node, value.as_array());
    for (const sd::Node* part : node.all_of)
      fill(*part, value);
    const sd::Node* branch = sd::selected_by_tag(node.one_of, value);
    if (branch != nullptr) fill(*branch, value);
  }

 private:
  void members(const sd::Node& node, json::Object& object) {
    for (const sd::Property& property : node.properties) {
      const sd::Node& target = sd::resolve(*property.node);
      json::Value* present = object.find(property.name);
      if (present == nullptr && target.default_value && !target.secret) {
        present = &object.set(property.name, *target.default_value);
      }
      if (present != nullptr) fill(target, *present);
    }
    const sd::Node* rest = node.additional_properties;
    if (rest == nullptr || sd::resolve(*rest).leaf.never) return;
    for (json::Member& member : object) {
      if (node.property(member.first) == nullptr) fill(*rest, member.second);
    }
  }

  void items(const sd::Node& node, json::Array& array) {
    if (node.items == nullptr) return;
    for (json::Value& item : array)
      fill(*node.items, item);
  }
};

}  // namespace

void CompiledSchema::apply_defaults(json::Value& document) const {
  const std::size_t depth = sd::measure(document).depth;
  if (depth > sd::max_depth) return;  // validate() refuses it
  DefaultFiller().fill(*impl_->program.root, document);
}

}  // namespace sandforge

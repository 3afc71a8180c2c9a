#include "engine.hpp"

#ifndef VALIJSON_USE_EXCEPTIONS
#define VALIJSON_USE_EXCEPTIONS 1
#endif
#include <valijson/constraint_builder.hpp>
#include <valijson/constraints/concrete_constraints.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "leaf.hpp"
#include "value_adapter.hpp"

namespace sandforge::schema_detail {
namespace {

// All assertions on single values of one subschema, as one constraint.
class LeafConstraint final : public valijson::constraints::PolyConstraint {
 public:
  explicit LeafConstraint(const Node& node) : node_(&node) {}

  bool validate(const valijson::adapters::Adapter& target, const std::vector<std::string>&,
                valijson::ValidationResults*) const override {
    if (const auto* adapter = dynamic_cast<const ValueAdapter*>(&target)) {
      adapter->charge();
      const json::Value& value = adapter->value();
      if (check_leaf(node_->leaf, value) != 0) return false;
      return !node_->flat || !value.is_object() || members_fit(value.as_object());
    }
    // valijson hands over the names of members as strings of its own kind.
    return check_leaf(node_->leaf, std::string_view(target.asString())) == 0;
  }

 private:
  valijson::constraints::Constraint* cloneInto(void* memory) const override {
    return new (memory) LeafConstraint(*this);
  }
  std::size_t sizeOf() const override { return sizeof(LeafConstraint); }

  bool members_fit(const json::Object& object) const {
    for (const json::Member& member : object) {
      const Node* declared = node_->property(member.first);
      if (declared == nullptr) return false;
      if (check_leaf(resolve(*declared).leaf, member.second) != 0) return false;
    }
    return true;
  }

  const Node* node_;
};

class LeafBuilder final : public valijson::ConstraintBuilder {
 public:
  explicit LeafBuilder(const Program& program) : program_(program) {}
  valijson::constraints::Constraint* make(const valijson::adapters::Adapter& index) const override {
    return new LeafConstraint(program_.nodes.at(static_cast<std::size_t>(index.getInteger())));
  }

 private:
  const Program& program_;
};

}  // namespace

struct Engine::Impl {
  valijson::Schema schema;
};

Engine::Engine(const Program& program) : impl_(std::make_unique<Impl>()) {
  const json::Value rewritten = rewrite_for_engine(program);
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  auto builder = std::make_unique<LeafBuilder>(program);
  parser.addConstraintBuilder(leaf_keyword, builder.get());
  static_cast<void>(builder.release());  // the parser owns it
  parser.populateSchema(ValueAdapter(rewritten), impl_->schema);
}

Engine::~Engine() = default;

Verdict Engine::check(const json::Value& document) const {
  Run run;
  valijson::Validator validator;
  try {
    const bool valid = validator.validate(impl_->schema, ValueAdapter(document, &run), nullptr);
    return valid ? Verdict::valid : Verdict::invalid;
  } catch (const TooMuchWork&) {
    return Verdict::too_much_work;
  }
}

}  // namespace sandforge::schema_detail

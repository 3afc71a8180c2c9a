#include <algorithm>
#include <set>

#include "explain.hpp"
#include "impl.hpp"
#include "lint.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge {
namespace {

namespace sd = schema_detail;

// The product bounds the stack of a validation: levels of the value times schemas for one value.
constexpr std::size_t max_recursion = 1024;

const char* excess(const sd::Program& program, const sd::Measure& size) {
  if (size.depth > sd::max_depth) return "nests deeper than 64 levels";
  if (size.nodes > sd::max_nodes) return "has more than 100000 values";
  if (size.depth * program.chain > max_recursion) return "nests too deep for this schema";
  return nullptr;
}

// Looks everywhere where a schema may speak of a value: also under if, then, dependencies and in
// each alternative, whichever applies in the end.
class SecretSearch {
 public:
  bool find(const sd::Node& reference, std::string_view pointer) {
    const sd::Node& node = sd::resolve(reference);
    if (node.secret) return true;
    if (pointer.empty() || pointer.front() != '/') return false;
    if (!seen_.emplace(node.index, pointer.size()).second) return false;
    const std::string_view token = pointer.substr(1, pointer.find('/', 1) - 1);
    const std::string_view rest = pointer.substr(token.size() + 1);
    for (const sd::Node* member : sd::member_nodes(node, token)) {
      if (find(*member, rest)) return true;
    }
    for (const sd::Node* part : sd::in_place_children(node)) {
      if (find(*part, pointer)) return true;
    }
    return false;
  }

 private:
  std::set<std::pair<std::size_t, std::size_t>> seen_;
};

}  // namespace

CompiledSchema::CompiledSchema(std::unique_ptr<const Impl> impl) noexcept
    : impl_(std::move(impl)) {}
CompiledSchema::~CompiledSchema() = default;

bool CompiledSchema::accepts(const json::Value& document) const {
  if (excess(impl_->program, sd::measure(document)) != nullptr) return false;
  return impl_->engine->check(document) == sd::Verdict::valid;
}

std::vector<Issue> CompiledSchema::validate(const json::Value& document) const {
  const auto refuse = [](const char* message) {
    return std::vector<Issue>{Issue{"", "", message, {}, {}}};
  };
  if (const char* reason = excess(impl_->program, sd::measure(document))) return refuse(reason);
  switch (impl_->engine->check(document)) {
    case sd::Verdict::valid:
      return {};
    case sd::Verdict::too_much_work:
      return refuse("needs too many checks");
    case sd::Verdict::invalid:
      break;
  }
  std::vector<Issue> issues = sd::explain(*impl_->program.root, document);
  if (issues.empty()) return refuse("does not fit the schema");
  return issues;
}

bool CompiledSchema::is_secret(std::string_view pointer) const {
  return SecretSearch().find(*impl_->program.root, pointer);
}

std::vector<std::string> CompiledSchema::declared_keys() const {
  std::vector<std::string> keys;
  for (const sd::Property& property : sd::resolve(*impl_->program.root).properties) {
    keys.push_back(property.name);
  }
  return keys;
}

const json::Value& CompiledSchema::document() const noexcept {
  return impl_->program.source;
}
SchemaProfile CompiledSchema::profile() const noexcept {
  return impl_->program.profile;
}

std::string format_issue(const Issue& issue) {
  std::string out = issue.pointer.empty() ? "(root)" : issue.pointer;
  out += ": " + issue.message;
  if (!issue.allowed.empty()) out += " (allowed: " + issue.allowed + ")";
  if (!issue.suggestion.empty()) out += "; " + issue.suggestion;
  return escape_controls(out);
}

std::string format_issues(const std::vector<Issue>& issues) {
  std::string out;
  for (const Issue& issue : issues)
    out += format_issue(issue) + '\n';
  return out;
}

}  // namespace sandforge

// Bounds on what references can make of a schema: no cycle that consumes no value, no explosion of
// checks for one value, no recursion that is too deep for the stack.
#include <algorithm>

#include "lint.hpp"
#include "model.hpp"

namespace sandforge::schema_detail {
namespace {

constexpr std::uint64_t max_checks_per_value = 10'000;
constexpr std::size_t max_chain = 32;
constexpr std::size_t max_parse_depth = 128;
constexpr std::size_t max_subschemas = 20'000;

struct Frame {
  const Node* node;
  std::vector<const Node*> children;
  std::size_t next = 0;
};

class InPlaceWalk {
 public:
  InPlaceWalk(Program& program, std::vector<Issue>& issues)
      : program_(program), issues_(issues), state_(program.nodes.size()) {}

  bool run() {
    for (const Node& node : program_.nodes) {
      if (state_[node.index].done) continue;
      if (!from(node)) return false;
    }
    for (Node& node : program_.nodes) {
      node.secret = state_[node.index].secret;
      program_.chain = std::max(program_.chain, state_[node.index].chain);
    }
    return true;
  }

 private:
  struct State {
    bool open = false;
    bool done = false;
    bool secret = false;
    std::uint64_t checks = 1;
    std::size_t chain = 1;
  };

  bool from(const Node& start) {
    std::vector<Frame> stack;
    stack.push_back({&start, in_place_children(start)});
    state_[start.index].open = true;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.children.size()) {
        if (!close(frame)) return false;
        stack.pop_back();
        continue;
      }
      const Node* next = frame.children[frame.next++];
      State& state = state_[next->index];
      if (state.done) continue;
      if (state.open) {
        return fail(*frame.node, "refers to itself without looking into the value");
      }
      state.open = true;
      stack.push_back({next, in_place_children(*next)});
    }
    return true;
  }

  bool close(const Frame& frame) {
    State& state = state_[frame.node->index];
    state.secret = frame.node->secret;
    for (const Node* node : frame.children) {
      const State& below = state_[node->index];
      state.secret = state.secret || below.secret;
      state.checks += below.checks;
      state.chain = std::max(state.chain, below.chain + 1);
    }
    state.done = true;
    state.open = false;
    if (state.checks > max_checks_per_value) {
      return fail(*frame.node, "expands to more than 10000 checks of one value");
    }
    if (state.chain > max_chain) {
      return fail(*frame.node, "nests more than 32 schemas for one value");
    }
    return true;
  }

  bool fail(const Node& node, const char* message) {
    const bool reference = node.ref != nullptr;
    issues_.push_back({reference ? child(node.pointer, "$ref") : node.pointer,
                       reference ? "$ref" : "",
                       std::string("the schema ") + message,
                       {},
                       {}});
    return false;
  }

  Program& program_;
  std::vector<Issue>& issues_;
  std::vector<State> state_;
};

// The recursion of valijson's parser: depth first in the order of all_children, each node once.
std::size_t parse_depth(const Program& program) {
  std::vector<bool> seen(program.nodes.size());
  std::vector<Frame> stack;
  std::size_t deepest = 0;
  const auto open = [&](const Node* node) {
    seen[node->index] = true;
    stack.push_back({node, all_children(*node)});
    deepest = std::max(deepest, stack.size());
  };
  open(program.root);
  while (!stack.empty() && deepest <= max_parse_depth) {
    Frame& frame = stack.back();
    if (frame.next == frame.children.size()) {
      stack.pop_back();
      continue;
    }
    const Node* next = frame.children[frame.next++];
    if (!seen[next->index]) open(next);
  }
  return deepest;
}

bool is_leaf_only(const Node& reference) {
  const Node& node = resolve(reference);
  return node.ref == nullptr && all_children(node).empty();
}

void mark_flat(Program& program) {
  for (Node& node : program.nodes) {
    const Node* rest = node.additional_properties;
    if (rest == nullptr || !resolve(*rest).leaf.never || node.property_names != nullptr) continue;
    node.flat = std::all_of(node.properties.begin(), node.properties.end(),
                            [](const Property& member) { return is_leaf_only(*member.node); });
  }
}

}  // namespace

void check_graph(Program& program, std::vector<Issue>& issues) {
  if (program.nodes.size() > max_subschemas) {
    issues.push_back({"", "", "the schema has more than 20000 subschemas", {}, {}});
    return;
  }
  if (!InPlaceWalk(program, issues).run()) return;
  mark_flat(program);
  if (parse_depth(program) > max_parse_depth) {
    issues.push_back(
        {"", "$ref", "the schema nests more than 128 deep through references", {}, {}});
  }
}

}  // namespace sandforge::schema_detail

#include "redact_matcher.hpp"

#include <algorithm>

namespace sandforge::redaction {

Matcher::Matcher(const std::vector<std::string>& patterns) : nodes_(1) {
  for (const std::string& pattern : patterns)
    insert(pattern);
  link();
}

Matcher::State Matcher::find_child(State state, unsigned char byte) const noexcept {
  if (state == kStart) return first_[byte];
  State child = nodes_[state].child;
  while (child != 0 && nodes_[child].byte != byte)
    child = nodes_[child].sibling;
  return child;
}

void Matcher::insert(const std::string& pattern) {
  State at = kStart;
  for (const char c : pattern) {
    const auto byte = static_cast<unsigned char>(c);
    State child = find_child(at, byte);
    if (child == 0) {
      child = static_cast<State>(nodes_.size());
      Node node;
      node.sibling = nodes_[at].child;
      node.depth = nodes_[at].depth + 1;
      node.byte = byte;
      nodes_.push_back(node);
      nodes_[at].child = child;
      if (at == kStart) first_[byte] = child;
    }
    at = child;
  }
  nodes_[at].match = nodes_[at].depth;
}

// Breadth first: the node that a state falls back to is nearer to the root.
void Matcher::link() {
  std::vector<State> order = {kStart};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const State parent = order[i];
    for (State child = nodes_[parent].child; child != 0; child = nodes_[child].sibling) {
      order.push_back(child);
      if (parent == kStart) continue;
      nodes_[child].fail = next(nodes_[parent].fail, nodes_[child].byte);
      const State fail = nodes_[child].fail;
      nodes_[child].match = std::max(nodes_[child].match, nodes_[fail].match);
    }
  }
}

Matcher::State Matcher::next(State state, unsigned char byte) const noexcept {
  for (;;) {
    const State child = find_child(state, byte);
    if (child != 0 || state == kStart) return child;
    state = nodes_[state].fail;
  }
}

}  // namespace sandforge::redaction

#include <algorithm>
#include <charconv>

#include "sandforge/yaml.hpp"

namespace sandforge {
namespace {

std::string unescape(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    out += escape ? (token[++i] == '0' ? '~' : '/') : token[i];
  }
  return out;
}

}  // namespace

SourceMap::SourceMap() : nodes_(1) {}

std::uint32_t SourceMap::add(std::uint32_t parent, std::string name, SourcePosition key) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({std::move(name), key, key, {}});
  nodes_[parent].children.push_back(index);
  return index;
}

void SourceMap::set_value(std::uint32_t node, SourcePosition at) {
  nodes_[node].value = at;
}

const SourceMap::Node* SourceMap::child(const Node& node, std::string_view token) const {
  const std::string name = unescape(token);
  for (const std::uint32_t index : node.children) {
    if (nodes_[index].name == name && (!name.empty() || nodes_[index].key)) return &nodes_[index];
  }
  std::size_t item = 0;
  const auto parsed = std::from_chars(token.data(), token.data() + token.size(), item);
  if (token.empty() || parsed.ptr != token.data() + token.size()) return nullptr;
  if (item >= node.children.size()) return nullptr;
  const Node& candidate = nodes_[node.children[item]];
  return candidate.key ? nullptr : &candidate;
}

std::vector<const SourceMap::Node*> SourceMap::path(std::string_view pointer) const {
  std::vector<const Node*> out{&nodes_.front()};
  while (!pointer.empty() && pointer.front() == '/') {
    pointer.remove_prefix(1);
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    const Node* next = child(*out.back(), token);
    if (next == nullptr) break;
    out.push_back(next);
  }
  return out;
}

SourcePosition SourceMap::value(std::string_view pointer) const {
  return path(pointer).back()->value;
}

SourcePosition SourceMap::key(std::string_view pointer) const {
  const Node& node = *path(pointer).back();
  return node.key ? node.key : node.value;
}

std::size_t SourceMap::values_on_line(std::size_t line) const {
  const auto counts = [line](const Node& node) {
    return node.children.empty() && node.value.line == line;
  };
  return static_cast<std::size_t>(std::count_if(nodes_.begin(), nodes_.end(), counts));
}

}  // namespace sandforge

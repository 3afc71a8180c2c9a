#include "builder.hpp"

#include <algorithm>

#include "scalar.hpp"

namespace sandforge::yaml_detail {

void Builder::refuse(std::string message, SourcePosition at) {
  throw Refused{std::move(message), at};
}

bool Builder::expects_key() const {
  return !frames_.empty() && frames_.back().map && !frames_.back().has_key;
}

void Builder::count(std::size_t nodes, SourcePosition at) {
  nodes_ += nodes;
  if (nodes_ <= limits_.nodes) return;
  refuse("the document has more than " + std::to_string(limits_.nodes) +
             " values, aliases counted as what they stand for",
         at);
}

void Builder::take_key(Place at, const std::string& tag, const std::string& value) {
  Frame& frame = frames_.back();
  const Tag kind = tag_of(tag);
  if (kind == Tag::plain && value == "<<") {
    refuse("merge keys are not supported; put \"<<\" in quotes if it is a name", at.position);
  }
  if (kind != Tag::plain && kind != Tag::quoted && kind != Tag::text) {
    refuse("a key must be a plain name, without the tag " + tag_name(tag), at.position);
  }
  if (!frame.keys.insert(value).second) {
    refuse("the key \"" + value.substr(0, 60) + "\" is given twice", at.position);
  }
  frame.key = value;
  frame.key_place = at;
  frame.key_quoted = kind != Tag::plain;
  frame.has_key = true;
}

// Names the value in the source map; the result is its node there.
std::uint32_t Builder::start_value(Place at) {
  count(1, at.position);
  if (frames_.empty()) {
    has_root_ = true;
    source_.set_value(0, at.position);
    return 0;
  }
  Frame& frame = frames_.back();
  const std::uint32_t node = frame.map
                                 ? source_.add(frame.source, frame.key, frame.key_place.position)
                                 : source_.add(frame.source, {}, {});
  source_.set_value(node, at.position);
  return node;
}

void Builder::deliver(json::Value value, std::size_t height) {
  if (frames_.empty()) {
    root_ = std::move(value);
    return;
  }
  Frame& frame = frames_.back();
  frame.height = std::max(frame.height, height + 1);
  if (!frame.map) {
    frame.items.push_back(std::move(value));
    return;
  }
  frame.members.emplace_back(std::move(frame.key), std::move(value));
  frame.key.clear();
  frame.has_key = false;
}

bool Builder::written_as_null(std::size_t offset) const {
  if (offset >= text_.size()) return false;
  const char c = text_[offset];
  return c == '~' || c == 'n' || c == 'N';
}

// The parser takes a bare last line for a key without a value: most often a file cut short.
void Builder::demand_colon(const Frame& frame) const {
  if (!frame.map || !frame.block || frame.key_quoted) return;
  const std::size_t start = frame.key_place.offset;
  if (text_.substr(start, frame.key.size()) != frame.key) return;
  const std::size_t before =
      start == 0 ? std::string_view::npos : text_.find_last_not_of(" \t", start - 1);
  if (before != std::string_view::npos && text_[before] == '?') return;
  const std::size_t after = text_.find_first_not_of(" \t", start + frame.key.size());
  if (after != std::string_view::npos && text_[after] == ':') return;
  refuse("a colon is missing after the key \"" + frame.key.substr(0, 60) + "\"",
         frame.key_place.position);
}

void Builder::null(Place at, std::size_t anchor) {
  if (expects_key()) refuse("a key must not be empty or null", at.position);
  if (!written_as_null(at.offset) && !frames_.empty() && frames_.back().map) {
    demand_colon(frames_.back());
    at = frames_.back().key_place;  // an empty value is marked where the next token stands
  }
  start_value(at);
  if (anchor != 0) anchors_[anchor] = {nullptr, 1, 1, true};
  deliver(nullptr, 1);
}

void Builder::scalar(Place at, const std::string& tag, std::size_t anchor,
                     const std::string& value) {
  const Tag kind = tag_of(tag);
  if (kind == Tag::unknown) refuse("the tag " + tag_name(tag) + " is not supported", at.position);
  const bool key = expects_key();
  if (key) take_key(at, tag, value);
  if (key && anchor == 0) return;
  Scalar resolved = resolve_scalar(value, kind);
  if (!resolved.error.empty()) refuse(std::move(resolved.error), at.position);
  if (anchor != 0) anchors_[anchor] = {resolved.value, 1, 1, true};
  if (key) return;
  start_value(at);
  deliver(std::move(resolved.value), 1);
}

void Builder::alias(Place at, std::size_t anchor) {
  if (expects_key()) refuse("an alias cannot be a key", at.position);
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end() || !found->second.complete) {
    refuse("an alias must not stand inside of what it refers to", at.position);
  }
  const Anchored& target = found->second;
  if (frames_.size() + target.height > limits_.depth) {
    refuse("the document nests deeper than " + std::to_string(limits_.depth) + " levels",
           at.position);
  }
  start_value(at);
  count(target.nodes - 1, at.position);
  deliver(target.value, target.height);
}

void Builder::open(Place at, const std::string& tag, std::size_t anchor, bool map, bool block) {
  if (expects_key()) refuse("a key must be a name, not a list or a map", at.position);
  const Tag kind = tag_of(tag);
  const Tag own = map ? Tag::map : Tag::sequence;
  if (kind == Tag::unknown) refuse("the tag " + tag_name(tag) + " is not supported", at.position);
  if (kind != Tag::plain && kind != Tag::quoted && kind != own) {
    refuse("the value does not fit the tag " + tag_name(tag), at.position);
  }
  if (frames_.size() + 1 > limits_.depth) {
    refuse("the document nests deeper than " + std::to_string(limits_.depth) + " levels",
           at.position);
  }
  Frame frame;
  frame.map = map;
  frame.block = block;
  frame.start = at.position;
  frame.anchor = anchor;
  frame.nodes_before = nodes_;
  frame.source = start_value(at);
  if (anchor != 0) anchors_[anchor] = {};
  frames_.push_back(std::move(frame));
}

void Builder::open_sequence(Place at, const std::string& tag, std::size_t anchor) {
  open(at, tag, anchor, false, false);
}

void Builder::open_map(Place at, const std::string& tag, std::size_t anchor, bool block) {
  open(at, tag, anchor, true, block);
}

void Builder::close() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  json::Value value = frame.map ? json::Value(json::Object::adopt(std::move(frame.members)))
                                : json::Value(std::move(frame.items));
  if (frame.anchor != 0) {
    const std::size_t nodes = nodes_ - frame.nodes_before;
    anchored_nodes_ += nodes;
    if (anchored_nodes_ > limits_.nodes) {
      refuse("anchors stand for more than " + std::to_string(limits_.nodes) + " values",
             frame.start);
    }
    anchors_[frame.anchor] = {value, nodes, frame.height, true};
  }
  deliver(std::move(value), frame.height);
}

json::Value Builder::take() {
  const bool empty = !has_root_ || root_.is_null();
  return empty ? json::Value(json::Object()) : std::move(root_);
}

}  // namespace sandforge::yaml_detail

// Turns the events of a YAML parser into a JSON value and a source map.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/yaml.hpp"

namespace sandforge::yaml_detail {

// Thrown from events, caught in parse_yaml: the parser has no other way to stop.
struct Refused {
  std::string message;
  SourcePosition at;
};

struct Place {
  SourcePosition position;
  std::size_t offset = 0;  // into the text
};

class Builder {
 public:
  Builder(std::string_view text, const YamlLimits& limits, SourceMap& source)
      : text_(text), limits_(limits), source_(source) {}

  // Anchors are numbers, 0 is none. Tags are as in scalar.hpp.
  void null(Place at, std::size_t anchor);
  void scalar(Place at, const std::string& tag, std::size_t anchor, const std::string& value);
  void alias(Place at, std::size_t anchor);
  void open_sequence(Place at, const std::string& tag, std::size_t anchor);
  void open_map(Place at, const std::string& tag, std::size_t anchor, bool block);
  void close();

  // The document; an empty object when there was none.
  json::Value take();

 private:
  struct Frame {
    bool map = false;
    bool block = false;
    bool has_key = false;
    std::string key;
    Place key_place;
    bool key_quoted = false;
    SourcePosition start;
    std::uint32_t source = 0;
    std::size_t anchor = 0;
    std::size_t nodes_before = 0;
    std::size_t height = 1;  // levels below, this one included
    std::vector<json::Member> members;
    json::Array items;
    std::set<std::string, std::less<>> keys;
  };
  struct Anchored {
    json::Value value;
    std::size_t nodes = 0;
    std::size_t height = 0;
    bool complete = false;
  };

  [[noreturn]] static void refuse(std::string message, SourcePosition at);
  bool expects_key() const;
  void take_key(Place at, const std::string& tag, const std::string& value);
  std::uint32_t start_value(Place at);
  void count(std::size_t nodes, SourcePosition at);
  void deliver(json::Value value, std::size_t height);
  void open(Place at, const std::string& tag, std::size_t anchor, bool map, bool block);
  void demand_colon(const Frame& frame) const;
  bool written_as_null(std::size_t offset) const;

  std::string_view text_;
  const YamlLimits& limits_;
  SourceMap& source_;
  std::vector<Frame> frames_;
  std::map<std::size_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  std::size_t anchored_nodes_ = 0;  // each is a copy
  bool has_root_ = false;
  json::Value root_;
};

}  // namespace sandforge::yaml_detail

// Finds many byte patterns at once (Aho-Corasick). Not installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sandforge::redaction {

// Immutable after construction, so threads may share it. Linear in the text, whatever text and
// patterns are; about 24 bytes of memory per byte of pattern.
class Matcher {
 public:
  using State = std::uint32_t;
  static constexpr State kStart = 0;

  explicit Matcher(const std::vector<std::string>& patterns);

  bool empty() const noexcept { return nodes_.size() == 1; }
  State next(State state, unsigned char byte) const noexcept;
  // How many of the last bytes can still be the start of a match.
  std::size_t depth(State state) const noexcept { return nodes_[state].depth; }
  // Length of the longest pattern that ends here, 0 for none.
  std::size_t match(State state) const noexcept { return nodes_[state].match; }

 private:
  struct Node {
    State child = 0;  // 0 is none: the root is nobody's child
    State sibling = 0;
    State fail = 0;
    std::uint32_t depth = 0;
    std::uint32_t match = 0;
    unsigned char byte = 0;
  };

  State find_child(State state, unsigned char byte) const noexcept;
  void insert(const std::string& pattern);
  void link();

  std::vector<Node> nodes_;
  std::array<State, 256> first_{};  // children of the root, where most bytes of a text end up
};

}  // namespace sandforge::redaction

// Text and bytes of the boundary, and structs that another version filled.
#include <sandforge/plugin/text.hpp>

#include <catch2/catch.hpp>

using namespace sandforge::plugin;

TEST_CASE("absent text differs from empty text") {
  CHECK(maybe_str(std::nullopt).ptr == nullptr);
  CHECK(maybe_str(std::string()).ptr != nullptr);
  CHECK_FALSE(copy_optional(sf_bytes{nullptr, 0}));
  CHECK(copy_optional(to_str("x")) == "x");
  CHECK(view(sf_str{nullptr, 0}).empty());
}

TEST_CASE("a struct of another version is read over defaults") {
  struct Old {
    std::size_t struct_size;
    std::uint64_t first;
  };
  struct New {
    std::size_t struct_size;
    std::uint64_t first;
    std::uint64_t second;
  };
  const Old old{sizeof old, 5};
  const New read = detail::read_appendable(reinterpret_cast<const New*>(&old), New{0, 1, 7});
  CHECK(read.first == 5);
  CHECK(read.second == 7);
  const New longer[2] = {{sizeof(New), 1, 2}, {sizeof(New), 3, 4}};
  const Old second =
      detail::read_element(reinterpret_cast<const Old*>(longer), sizeof(New), 1, Old{});
  CHECK(second.first == 3);
}

TEST_CASE("text is borrowed, copied, and may hold any byte") {
  const std::string bytes("a\0\xff", 3);
  CHECK(to_str(bytes).ptr == bytes.data());
  CHECK(view(to_bytes(bytes)) == bytes);
  CHECK(copy(maybe_bytes(bytes)) == bytes);
  CHECK(copy(sf_bytes{nullptr, 0}).empty());
  CHECK(copy_optional(maybe_bytes(std::string())) == "");
}

TEST_CASE("an absent struct reads as the defaults, and a longer one without what is not known") {
  struct Pair {
    std::size_t struct_size;
    std::uint64_t value;
  };
  struct Longer {
    Pair first;
    std::uint64_t more;
  };
  const Pair* none = nullptr;
  CHECK(detail::read_appendable(none, Pair{0, 9}).value == 9);
  Longer longer{{sizeof(Longer), 4}, 5};
  CHECK(detail::read_appendable(&longer.first).value == 4);
  CHECK(longer.more == 5);
}

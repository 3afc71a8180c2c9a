#include "sandforge/handler.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

using namespace sandforge;

TEST_CASE("a handler takes what can be moved only, and is moved") {
  auto owned = std::make_unique<int>(7);
  int seen = 0;
  Handler<int> handler = [owned = std::move(owned), &seen](Result<int> r) {
    seen = *owned + r.value();
  };
  Handler<int> moved = std::move(handler);
  Handler<int> assigned;
  CHECK_FALSE(assigned);
  assigned = std::move(moved);
  CHECK(assigned);
  std::move(assigned)(Result<int>(1));
  CHECK(seen == 8);
}

TEST_CASE("a handler that is not called frees what it holds") {
  auto held = std::make_shared<int>(1);
  Handler<void> handler = [held](Result<void>) {};
  CHECK(held.use_count() == 2);
  handler = nullptr;
  CHECK(held.use_count() == 1);
  CHECK_FALSE(handler);
}

TEST_CASE("the blocking form gives the value, or throws the error") {
  CHECK(await_result<std::string>(
            [](Handler<std::string> done) { std::move(done)(std::string("value")); }) == "value");
  CHECK_THROWS_AS(await_result<void>([](Handler<void> done) {
                    std::move(done)(Error(Status::unsupported, "no"));
                  }),
                  UnsupportedFeatureError);
}

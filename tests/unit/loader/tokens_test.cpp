#include "plugin/tokens.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

using sandforge::plugin::Tokens;

namespace {

const char kOne = 0;
const char kOther = 0;

}  // namespace

TEST_CASE("tokens: found while in use, absent afterwards, also when the slot is used again") {
  Tokens tokens(5);
  const auto object = std::make_shared<int>(42);
  void* first = tokens.add(object, &kOne);
  CHECK(first != nullptr);
  CHECK(Tokens::plugin_of(first) == 5);
  std::shared_ptr<void> found;
  CHECK(tokens.find(first, &kOne, false, found) == Tokens::Lookup::found);
  CHECK(found == object);
  CHECK(tokens.find(first, &kOther, true, found) == Tokens::Lookup::wrong_kind);
  CHECK(tokens.in_use() == 1);
  CHECK(tokens.find(first, &kOne, true, found) == Tokens::Lookup::found);
  CHECK(tokens.in_use() == 0);
  void* second = tokens.add(object, &kOne);
  CHECK(second != first);
  CHECK(tokens.find(first, &kOne, false, found) == Tokens::Lookup::absent);
  CHECK_FALSE(tokens.drop(first));
  CHECK(tokens.drop(second));
  CHECK_FALSE(tokens.drop(second));
  found = nullptr;
  CHECK(object.use_count() == 1);
}

TEST_CASE("tokens: values that were never given") {
  Tokens tokens(1);
  std::shared_ptr<void> found;
  int local = 0;
  for (void* ctx : {static_cast<void*>(nullptr), static_cast<void*>(&local),
                    reinterpret_cast<void*>(~std::uintptr_t{0})})
    CHECK(tokens.find(ctx, &kOne, false, found) == Tokens::Lookup::absent);
  CHECK(found == nullptr);
}

TEST_CASE("tokens: of all threads that end one token, one succeeds") {
  Tokens tokens(1);
  constexpr int kRounds = 2000;
  std::vector<void*> given;
  for (int i = 0; i < kRounds; ++i)
    given.push_back(tokens.add(std::make_shared<int>(i), &kOne));
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (void* ctx : given) {
        std::shared_ptr<void> object;
        if (tokens.find(ctx, &kOne, true, object) == Tokens::Lookup::found) ++ended;
      }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(ended == kRounds);
  CHECK(tokens.in_use() == 0);
}

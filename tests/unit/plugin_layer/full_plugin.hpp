// A plugin with every capability, in either style, held by a host. The plugin is compiled once, in
// full_plugin.cpp: the tests see its tables alone, as a host does, and stay quick to compile.
#pragma once

#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>

namespace sandforge::test {

enum class Style { blocking, coroutine };
const sf_plugin* full_plugin(Style style);

// What was called of it, with its arguments.
void called(const std::string& what);
std::string take_calls();

// The answer of a list: count and every element as text.
class Listed {
 public:
  int done = 0;
  std::size_t count = 0;
  testing::Failure failure;
  std::string text;

  template <class T>
  void take(const sf_error* error, const T* first, std::size_t n, std::size_t stride,
            std::string (*show)(const T&)) {
    ++done;
    failure = testing::Failure::copy(error);
    count = n;
    for (std::size_t i = 0; i < n; ++i) {
      const auto* at = reinterpret_cast<const char*>(first) + i * stride;
      text += (i > 0 ? " | " : "") + show(*reinterpret_cast<const T*>(at));
    }
  }
};

inline std::string number(std::uint64_t n) {
  return n == SF_NONE ? "-" : std::to_string(n);
}
// A sandbox and a provider with everything.
class Full {
 public:
  testing::Host host;
  std::optional<testing::Driver> driver;
  testing::Failure failure;
  sf_sandbox* box = nullptr;
  sf_provider* provider = nullptr;

  explicit Full(Style style, const std::string& settings = "{}") {
    take_calls();
    host.loop.set_time(testing::Time::real);
    driver.emplace(host, full_plugin(style));
    REQUIRE(driver->open("full", "{}", failure) == SF_OK);
    REQUIRE(driver->create(nullptr, settings, failure) == SF_OK);
    box = driver->sandbox;
    provider = driver->provider;
  }
  ~Full() {
    driver.reset();
    host.join();
    host.loop.drain();
    CHECK(testing::Lane::live == 0);
    CHECK(testing::Op::live == 0);
  }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;

  template <class Table>
  const Table& of_sandbox(const char* id) {
    const auto* table = static_cast<const Table*>(box->vtbl->extension(box, testing::str(id)));
    REQUIRE(table != nullptr);
    return *table;
  }
  template <class Table>
  const Table& of_provider(const char* id) {
    const auto* table =
        static_cast<const Table*>(provider->vtbl->extension(provider, testing::str(id)));
    REQUIRE(table != nullptr);
    return *table;
  }
  // start(answer) on the lane, then until it has ended.
  template <class Answer, class Start>
  Answer ask(Start start) {
    Answer answer;
    driver->call([&] { CHECK(start(answer) == SF_OK); });
    REQUIRE(driver->wait([&] { return answer.done > 0; }));
    host.loop.drain();
    CHECK(answer.done == 1);
    return answer;
  }
  template <class Start>
  testing::Result plain(Start start) {
    return ask<testing::Result>([&](testing::Result& r) { return start(testing::completion(r)); });
  }
  // A stream: what it delivered, after it was given its input, if any.
  template <class Start>
  std::string stream(Start start, const std::string& input = {}) {
    testing::Consumer consumer(3);
    driver->call([&] {
      const sf_stream_events events = consumer.events();
      CHECK(start(&events, &consumer.stream) == SF_OK);
      std::size_t accepted = 0;
      CHECK(consumer.stream->vtbl->write(consumer.stream, testing::bytes(input), 0, &accepted,
                                         nullptr) == SF_OK);
      CHECK(accepted == input.size());
      CHECK(consumer.stream->vtbl->shutdown_write(consumer.stream, nullptr) == SF_OK);
    });
    REQUIRE(driver->wait([&] { return consumer.done > 0; }));
    consumer.stream->vtbl->release(std::exchange(consumer.stream, nullptr));
    CHECK(consumer.rules_kept());
    CHECK_FALSE(consumer.failure);
    return consumer.out;
  }
};

}  // namespace sandforge::test

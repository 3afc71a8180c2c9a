// What a function throws, for tests of the layer.
#pragma once

#include <sandforge/plugin/error.hpp>

#include <catch2/catch.hpp>
#include <functional>

namespace sandforge::test {

inline plugin::Code code_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const plugin::Error& e) {
    return e.code();
  }
  FAIL("nothing was thrown");
  return plugin::Code::internal;
}

// The number of the code and the message.
inline std::string thrown_by(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const plugin::Error& e) {
    return std::to_string(static_cast<int>(e.code())) + " " + e.message();
  }
  return "nothing was thrown";
}

}  // namespace sandforge::test

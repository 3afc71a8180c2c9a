// The Error of a call that must fail.
#pragma once

#include <utility>

#include <catch2/catch.hpp>

#include "sandforge/error.hpp"

namespace sandforge::test {

// Fails the test case when the call throws nothing.
template <class Call>
Error error_of(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Exception& failure) {
    return failure.error();
  }
  FAIL("no error was thrown");
  return {};
}

}  // namespace sandforge::test

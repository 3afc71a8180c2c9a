// Errors that cross the boundary, and the fence.
#include <sandforge/plugin/error.hpp>

#include <catch2/catch.hpp>
#include <functional>
#include <stdexcept>

#include "thrown.hpp"

using namespace sandforge::plugin;
using sandforge::test::code_of;
using sandforge::test::thrown_by;

TEST_CASE("an error keeps its parts over the boundary and back") {
  const Error sent = Error(Code::rate_limited, "slow down")
                         .detail("httpStatus", 429)
                         .may_have_started(true)
                         .retry_after(std::chrono::milliseconds(5));
  std::optional<Error> back;
  detail::with_error(std::make_exception_ptr(sent),
                     [&](const sf_error& e) { back = Error::from(e); });
  REQUIRE(back);
  CHECK(back->code() == Code::rate_limited);
  CHECK(back->message() == "slow down");
  CHECK(back->details().find("httpStatus")->as_integer() == 429);
  CHECK(back->may_have_started());
  CHECK(back->retry_after() == std::chrono::milliseconds(5));
}

TEST_CASE("codes, details and exceptions that are not known read as internal") {
  sf_error raw{};
  raw.struct_size = sizeof raw;
  raw.code = 999;
  raw.message = to_str("from the future");
  raw.details = to_str("no json");
  raw.retry_after_ms = SF_NONE;
  const Error read = Error::from(raw);
  CHECK(read.code() == Code::internal);
  CHECK(read.details().find("details")->as_string() == "no json");
  CHECK_FALSE(read.retry_after());
  CHECK(detail::fence(nullptr, [] { throw 5; }) == SF_INTERNAL);
  CHECK(detail::fence(nullptr, [] { throw Error(Code::gone, "x"); }) == SF_GONE);
  CHECK(detail::fence(nullptr, [] {}) == SF_OK);
  detail::ErrorCatcher silent;
  CHECK(code_of([&] { silent.check(SF_CONFLICT); }) == Code::conflict);
  CHECK(code_of([&] { silent.check(-3); }) == Code::internal);
}

TEST_CASE("every code is the number of the boundary, there and back") {
  for (sf_status number = SF_INVALID; number <= SF_INTERNAL; ++number) {
    const auto code = static_cast<Code>(number);
    const sf_status told = detail::fence(nullptr, [&] { throw Error(code, "why"); });
    CHECK(told == number);
    CHECK(Error::from(detail::plain_error(number, "why")).code() == code);
    detail::ErrorCatcher silent;
    CHECK(code_of([&] { silent.check(number); }) == code);
  }
  CHECK(Error::from(detail::plain_error(SF_OK, "no error")).code() == Code::internal);
}

TEST_CASE("the fence reports what was thrown, with the text of foreign exceptions") {
  detail::ErrorCatcher errors;
  const auto thrown = [&](const std::function<void()>& fn) {
    const sf_status status = detail::fence(errors.sink(), fn);
    return thrown_by([&] { errors.check(status); });
  };
  CHECK(thrown([] { throw Error(Code::gone, "no machine"); }) == "3 no machine");
  CHECK(thrown([] { throw std::runtime_error("foreign"); }) == "16 foreign");
  CHECK(thrown([] { throw 5; }) == "16 the plugin threw something that is no exception");
  CHECK(thrown([] {}) == "nothing was thrown");
}

TEST_CASE("an error is an exception like others, and says little until it is told more") {
  Error error(Code::no_space, "disk full");
  error.detail("path", "/d").detail("errno", 28).retry_after(std::chrono::milliseconds(0));
  const std::exception& base = error;
  CHECK(std::string(base.what()) == "disk full");
  CHECK(error.details().size() == 2);
  CHECK(error.retry_after() == std::chrono::milliseconds(0));
  CHECK_FALSE(error.may_have_started());
  const Error bare(Code::no_space, "disk full");
  CHECK(bare.details().empty());
  CHECK_FALSE(bare.retry_after());
}

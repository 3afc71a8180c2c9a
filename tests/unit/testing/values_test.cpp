// Values of the boundary, as tests hold them.
#include <sandforge/testing/values.hpp>

#include <catch2/catch.hpp>

using namespace sandforge::testing;

TEST_CASE("a failure keeps every part of an error, and gives it back") {
  CHECK_FALSE(Failure());
  CHECK_FALSE(Failure::copy(nullptr));
  const std::string message = "full";
  const sf_error raw{sizeof raw,   SF_NO_SPACE, SF_ERROR_MAY_HAVE_STARTED,
                     str(message), str("{}"),   7};
  const Failure failure = Failure::copy(&raw);
  CHECK(failure);
  CHECK(failure.code == SF_NO_SPACE);
  CHECK(failure.may_have_started());
  CHECK(failure.retry_after_ms == 7);
  const sf_error again = failure.view();
  CHECK(text(again.message) == "full");
  CHECK(text(again.details) == "{}");
  CHECK(text(sf_bytes{nullptr, 0}).empty());
}

TEST_CASE("a refusal reports its error where somebody listens") {
  Failure failure;
  const sf_error_sink err = sink(failure);
  CHECK(refuse(&err, SF_CONFLICT, "not now") == SF_CONFLICT);
  CHECK(failure.message == "not now");
  CHECK(refuse(nullptr, SF_INVALID, "to nobody") == SF_INVALID);
}

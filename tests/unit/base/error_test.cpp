#include "sandforge/error.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "sandforge/abi.h"

using namespace sandforge;

namespace {

template <class Class>
bool throws_as(Status code) {
  try {
    throw_error(Error(code, "message", "some.reason"));
  } catch (const Exception& e) {
    return dynamic_cast<const Class*>(&e) != nullptr && e.error().code == code &&
           e.error().reason == "some.reason" && std::string(e.what()) == "message";
  }
}

}  // namespace

TEST_CASE("every code has the number of the boundary and a name of its own") {
  const std::pair<Status, std::int32_t> codes[] = {
      {Status::ok, SF_OK},
      {Status::invalid, SF_INVALID},
      {Status::not_found, SF_NOT_FOUND},
      {Status::gone, SF_GONE},
      {Status::already_exists, SF_ALREADY_EXISTS},
      {Status::conflict, SF_CONFLICT},
      {Status::unauthenticated, SF_UNAUTHENTICATED},
      {Status::forbidden, SF_FORBIDDEN},
      {Status::rate_limited, SF_RATE_LIMITED},
      {Status::no_space, SF_NO_SPACE},
      {Status::unavailable, SF_UNAVAILABLE},
      {Status::transport_lost, SF_TRANSPORT_LOST},
      {Status::unsupported, SF_UNSUPPORTED},
      {Status::cancelled, SF_CANCELLED},
      {Status::timeout, SF_TIMEOUT},
      {Status::crashed, SF_CRASHED},
      {Status::internal, SF_INTERNAL},
  };
  std::set<std::string_view> names;
  for (const auto& [code, number] : codes) {
    CAPTURE(number);
    CHECK(static_cast<std::int32_t>(code) == number);
    CHECK(names.insert(to_string(code)).second);
    if (code == Status::ok) continue;
    CHECK(throws_as<Exception>(code));
  }
  CHECK(to_string(static_cast<Status>(17)) == "INTERNAL");
  CHECK(to_string(static_cast<Status>(-1)) == "INTERNAL");
}

TEST_CASE("the class of an exception tells the kind") {
  CHECK(throws_as<InvalidArgumentError>(Status::invalid));
  CHECK(throws_as<NotFoundError>(Status::not_found));
  CHECK(throws_as<SandboxDestroyedError>(Status::gone));
  CHECK(throws_as<UnsupportedFeatureError>(Status::unsupported));
  CHECK(throws_as<SandboxTransportError>(Status::transport_lost));
  CHECK(throws_as<SandboxAbortError>(Status::cancelled));
  CHECK(throws_as<SandboxTimeoutError>(Status::timeout));
  CHECK(throws_as<PluginCrashedError>(Status::crashed));
  CHECK_FALSE(throws_as<NotFoundError>(Status::gone));
}

TEST_CASE("an error as JSON has what is set") {
  Error error(Status::conflict, "busy");
  CHECK(json::write(to_json(error)) == R"({"code":"CONFLICT","message":"busy"})");
  error.reason = "session.claimed";
  error.details.set("owner", "x");
  error.may_have_started = true;
  error.retry_after = std::chrono::milliseconds(1500);
  CHECK(json::write(to_json(error)) ==
        R"({"code":"CONFLICT","reason":"session.claimed","message":"busy",)"
        R"("details":{"owner":"x"},"commandMayHaveStarted":true,"retryAfterMs":1500})");
}

TEST_CASE("a result is a value or an error") {
  Result<std::string> good(std::string("value"));
  CHECK(good.ok());
  CHECK(*good == "value");
  CHECK(good->size() == 5);
  CHECK(*std::move(good) == "value");
  const Result<std::string> bad(Error(Status::gone, "no more"));
  CHECK_FALSE(bad);
  CHECK(bad.error().message == "no more");
  CHECK_THROWS_AS(bad.value(), SandboxDestroyedError);
  CHECK_NOTHROW(Result<void>().value());
  CHECK_THROWS_AS(Result<void>(Error(Status::timeout, "late")).value(), SandboxTimeoutError);
}

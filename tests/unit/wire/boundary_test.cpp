#include "sandforge/wire/guest/boundary.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

using namespace sandforge::wire::guest;

TEST_CASE("boundary: how a process ended is told in the terms of the header") {
  Exit exit;
  exit.code = 3;
  CHECK(to_abi(exit, false).outcome == SF_EXIT_EXITED);
  CHECK(to_abi(exit, false).code == 3);
  CHECK(to_abi(exit, false).flags == 0);

  exit = Exit();
  exit.signal = 9;
  CHECK(to_abi(exit, false).outcome == SF_EXIT_SIGNALED);
  CHECK(to_abi(exit, false).signal == 9);
  exit.killed = true;
  CHECK(to_abi(exit, false).outcome == SF_EXIT_SIGNALED);
  CHECK(to_abi(exit, false).flags == SF_EXIT_KILLED);
  CHECK(to_abi(exit, true).outcome == SF_EXIT_CANCELLED);
  exit.timed_out = true;
  CHECK(to_abi(exit, true).outcome == SF_EXIT_TIMED_OUT);
  exit.out_of_memory = true;
  CHECK(to_abi(exit, true).outcome == SF_EXIT_OUT_OF_MEMORY);
}

TEST_CASE("boundary: a command that ended by itself is not cancelled") {
  Exit exit;
  exit.code = 0;
  CHECK(to_abi(exit, true).outcome == SF_EXIT_EXITED);
}

TEST_CASE("boundary: each error of a guest has a meaning of its own") {
  const ErrorMeaning stopping{SF_CANCELLED, "the.stop"};
  std::set<std::string> reasons;
  int codes = 0;
  for (const ErrorCode code :
       {ErrorCode::invalid, ErrorCode::not_found, ErrorCode::not_permitted,
        ErrorCode::not_executable, ErrorCode::no_command, ErrorCode::no_directory,
        ErrorCode::too_large, ErrorCode::limit, ErrorCode::conflict, ErrorCode::unsupported,
        ErrorCode::stopping, ErrorCode::internal}) {
    ++codes;
    const ErrorMeaning meaning = meaning_of(code, stopping);
    CHECK(meaning.status != SF_OK);
    reasons.insert(meaning.reason);
    CHECK(may_have_started(code) == (code == ErrorCode::conflict));
  }
  CHECK(reasons.size() == static_cast<std::size_t>(codes));
  CHECK(reasons.count("the.stop") == 1);
  CHECK(meaning_of(static_cast<ErrorCode>(255), stopping).status == SF_INTERNAL);
}

// What runs in a session can stop its guest or put itself in the guest's place. The host must be
// able to end the session nevertheless.
#include <sys/stat.h>

#include <csignal>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

// A host that comes later, and knows no more than the session's id.
std::shared_ptr<Sandbox> later_host(LocalFixture& fixture) {
  SandboxConfig config;
  config.id = "s";
  return Sandbox::create(fixture.runtime(), fixture.provider(), std::move(config)).value();
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "a guest that was stopped by a signal is ended with the session") {
  const auto first = started();
  const auto guests = processes();
  REQUIRE(guests.size() == 1);
  REQUIRE(::kill(guests.front(), SIGSTOP) == 0);
  CHECK_NOTHROW(later_host(*this)->destroy());
  CHECK(nothing_runs());
}

TEST_CASE_METHOD(LocalFixture, "a guest whose socket was removed is ended with the session") {
  const auto first = started();
  sh(*first, "setsid sleep 1000 >/dev/null 2>&1 & rm ../.sandforge/s/guest");
  CHECK_NOTHROW(later_host(*this)->destroy());
  CHECK(nothing_runs());
}

TEST_CASE_METHOD(LocalFixture, "folders that commands put beside the guest go with the session") {
  const auto first = started();
  sh(*first, "mkdir -p ../.sandforge/s/a/b; ln -s / ../.sandforge/s/a/link");
  CHECK_NOTHROW(first->destroy());
  CHECK_FALSE(fs::exists(root() / ".sandforge"));
}

TEST_CASE_METHOD(LocalFixture, "a pipe in place of the guest's instance keeps no start waiting") {
  const auto first = started();
  first->stop();
  REQUIRE(fs::create_directories(root() / ".sandforge" / "t"));
  REQUIRE(::chmod((root() / ".sandforge" / "t").c_str(), 0700) == 0);
  REQUIRE(::mkfifo((root() / ".sandforge" / "t" / "guest.instance").c_str(), 0600) == 0);
  const auto second = started("t");
  CHECK(sh(*second, "echo up").out == "up\n");
}

#include "interrupts.hpp"

#include <catch2/catch.hpp>
#include <csignal>

using sandforge::cli::Interrupts;

namespace {

void (*handler_of(int signal))(int) {
  struct sigaction present {};
  REQUIRE(::sigaction(signal, nullptr, &present) == 0);
  return present.sa_handler;
}

void nobody(int) {}

}  // namespace

TEST_CASE("Interrupts leave the signals as they found them") {
  struct sigaction ignored {
  }, ours{}, hangup{}, terminate{};
  ignored.sa_handler = SIG_IGN;
  ours.sa_handler = nobody;
  REQUIRE(::sigaction(SIGHUP, &ignored, &hangup) == 0);
  REQUIRE(::sigaction(SIGTERM, &ours, &terminate) == 0);
  {
    const Interrupts interrupts;
    CHECK(handler_of(SIGHUP) == SIG_IGN);  // nohup
    CHECK(handler_of(SIGTERM) != nobody);
    CHECK(interrupts.caught() == 0);
  }
  CHECK(handler_of(SIGHUP) == SIG_IGN);
  CHECK(handler_of(SIGTERM) == nobody);
  ::sigaction(SIGHUP, &hangup, nullptr);
  ::sigaction(SIGTERM, &terminate, nullptr);
}

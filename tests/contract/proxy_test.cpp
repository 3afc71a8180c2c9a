// The local provider with a bad connection to its guest: a fault proxy stands where the guest's
// socket was.
#include <fcntl.h>
#include <unistd.h>

#include "contract/local_fixture.hpp"
#include "fault_proxy.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

struct ProxiedLocal : LocalFixture {
  // A session whose guest runs behind the proxy, and a sandbox that meets it only there.
  std::shared_ptr<Sandbox> behind(const std::string& rules) {
    first_ = started();
    fs::rename(socket(), real());
    proxy::FaultProxy::Options options;
    // Too long for an address as it is: through the folder.
    folder_ = ::open(socket().parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(folder_ >= 0);
    const std::string below = "/proc/self/fd/" + std::to_string(folder_) + "/";
    options.listen.path = below + "guest";
    options.to.path = below + "real";
    options.plan = proxy::parse_proxy_plan("rules", "rules: [" + rules + "]").value();
    proxy = proxy::FaultProxy::open(std::move(options)).value();
    SandboxConfig config;
    config.id = "s";
    return make(open(), std::move(config));
  }
  ~ProxiedLocal() {
    direct();
    if (folder_ >= 0) ::close(folder_);
  }

  // The guest is to be had without the proxy again.
  void direct() {
    if (!proxy) return;
    proxy.reset();
    std::error_code ended;  // with its guest, the socket may be gone
    fs::rename(real(), socket(), ended);
  }
  // Nothing that was sent is under way any more once the guest has run this.
  std::string counter() { return sh(*first_, "cat counter 2>/dev/null").out; }

  fs::path socket() const { return root() / ".sandforge" / "s" / "guest"; }
  fs::path real() const { return root() / ".sandforge" / "s" / "real"; }

  std::unique_ptr<proxy::FaultProxy> proxy;

 private:
  std::shared_ptr<Sandbox> first_;
  int folder_ = -1;
};

}  // namespace

TEST_CASE_METHOD(ProxiedLocal, "B10 a socket that is cut while a command runs", "[cases.B10]") {
  const auto sandbox = behind("{nth: 1, do: cut, pattern: 'cut-here'}");
  const auto result = sandbox->execute_command("printf 'up cut-%s' here; sleep 60");
  CHECK(result.outcome == Outcome::transport_lost);
  CHECK_FALSE(result.exit_code);
  CHECK(result.command_may_have_started);
  CHECK(proxy->struck(0) == 1);
}

TEST_CASE_METHOD(ProxiedLocal, "B11 a socket that is cut before the answer of a command",
                 "[cases.B11]") {
  const auto sandbox = behind("{nth: 1, do: cut, pattern: 'all done'}");
  const auto result = sh(*sandbox, "echo x >> counter; printf 'all %s' done");
  CHECK(result.outcome == Outcome::transport_lost);
  CHECK(result.command_may_have_started);
  CHECK(proxy->struck(0) == 1);
  direct();
  CHECK(counter() == "x\n");
}

TEST_CASE_METHOD(ProxiedLocal, "B11 a request that is cut in its middle is not sent again",
                 "[cases.B11]") {
  const auto sandbox = behind("{nth: 1, do: cut, direction: up, pattern: counter}");
  const auto result = sh(*sandbox, "echo x >> counter");
  CHECK(result.outcome == Outcome::transport_lost);
  CHECK(result.command_may_have_started);
  CHECK(proxy->struck(0) == 1);
  direct();
  CHECK(counter().empty());  // and a part of it is no command
}

TEST_CASE_METHOD(ProxiedLocal, "B12 a socket that is reset before the guest is reached",
                 "[cases.B12]") {
  const auto sandbox = behind("{nth: 1, do: refuse}");
  const auto result = sh(*sandbox, "echo x >> counter");
  CHECK(result.exit_code == 0);
  CHECK(proxy->struck(0) == 1);
  CHECK(proxy->connections() > 1);
  CHECK(counter() == "x\n");
}

TEST_CASE_METHOD(ProxiedLocal, "B13 a socket from which nothing comes any more", "[cases.B13]") {
  const auto sandbox = behind("{nth: 1, do: black_hole, direction: down, pattern: 'up-now'}");
  ExecOptions options;
  options.timeout = 1s;
  options.grace = 0ms;
  const auto result =
      sandbox->execute_command("printf 'up-%s' now; sleep 0.1; echo more; sleep 60", {}, options);
  CHECK(result.outcome == Outcome::timed_out);
  CHECK(result.command_may_have_started);
  CHECK(proxy->struck(0) == 1);
  CHECK(result.out.find("more") == std::string::npos);
}

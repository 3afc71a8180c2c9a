// A provider that carries the output and input of processes of the host through coroutines, instead
// of passing the commands on: every byte goes over a HostProcess and an Io.
#include <sandforge/plugin/plugin.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>

using namespace sandforge::plugin;
namespace testing = sandforge::testing;

namespace {

Task<void> pump_out(HostProcess& child, ProcessIo io) {
  for (;;) {
    const std::optional<Output> piece = co_await child.read_some();
    if (!piece) break;
    co_await write_all(io, piece->data, piece->channel);
  }
  io.close_input();  // nobody is left to read it
}

Task<void> pump_in(HostProcess& child, ProcessIo io) {
  for (;;) {
    const std::optional<Piece> piece = co_await read_some(io);
    if (!piece) break;
    try {
      co_await child.write_all(piece->data);
    } catch (const Error& e) {
      if (e.code() != Code::conflict) throw;
      co_return;  // the process has closed its input
    }
  }
  if (!child.ended()) child.shutdown_write();
}

class PumpSandbox : public CoSandbox {
 public:
  Task<Started> start(Starting&) override { co_return Started(Outcome::created, "pump", "/"); }
  Task<void> stop(StopToken) override { co_return; }
  Task<void> destroy(StopToken) override { co_return; }
  Task<Exit> run(Command command, ProcessIo io) override {
    command.cwd = command.cwd.value_or("/");
    command.timeout = std::chrono::milliseconds(0);  // the layer stops this coroutine instead
    command.window = HostStream::default_window;
    HostProcess child = HostProcess::spawn(lane(), command);
    io.started(std::to_string(++commands_));
    if (command.pipe_stdin) {
      co_await all(pump_out(child, io), pump_in(child, io));
    } else {
      co_await pump_out(child, io);
    }
    const Exit exit = co_await child.finish();
    co_return exit;
  }

 private:
  int commands_ = 0;
};

class PumpFactory : public CoFactorySandbox {
 public:
  static constexpr const char* provider = "pump";
  std::vector<std::string> features() const override {
    return {"spawn.stdin", "spawn.kill", "stderr.separate", "env.per_command"};
  }
  std::unique_ptr<SandboxBase> create(Context, Settings) override {
    return std::make_unique<PumpSandbox>();
  }
};

class Stage {
 public:
  testing::Host host;
  testing::Driver driver{host, detail::plugin_of<PumpFactory>()};

  Stage() {
    host.loop.set_time(testing::Time::real);
    host.process.real = true;
    testing::Failure failure;
    REQUIRE(driver.open("pump", "{}", failure) == SF_OK);
    REQUIRE(driver.create(nullptr, "{}", failure) == SF_OK);
  }
  std::unique_ptr<testing::Running> spawn(const std::string& shell, std::uint64_t window = 1 << 16,
                                          std::uint32_t stdin_mode = SF_STDIN_EOF) {
    testing::CommandLine line;
    line.shell = shell;
    line.env = {{"PATH", "/usr/bin:/bin"}};
    line.window = window;
    line.stdin_mode = stdin_mode;
    auto running = std::make_unique<testing::Running>(window);
    testing::Failure failure;
    REQUIRE(driver.spawn(line, *running, failure) == SF_OK);
    return running;
  }
  void end(testing::Running& running) {
    REQUIRE(driver.wait([&] { return running.done > 0; }));
    CHECK(running.rules_kept());
    CHECK_FALSE(running.disorder);
    running.release();
  }
  // As a host does: what was not taken is written when there is room.
  void feed(testing::Running& running, std::string_view text) {
    while (!text.empty()) {
      const int before = running.writable;
      std::size_t accepted = 0;
      driver.call([&] {
        CHECK(running.stream->vtbl->write(running.stream, testing::bytes(text), 0, &accepted,
                                          nullptr) == SF_OK);
      });
      text.remove_prefix(accepted);
      if (!text.empty()) REQUIRE(driver.wait([&] { return running.writable > before; }));
    }
    driver.call(
        [&] { CHECK(running.stream->vtbl->shutdown_write(running.stream, nullptr) == SF_OK); });
  }
};

}  // namespace

TEST_CASE("processes of the host, carried by coroutines, with bytes, exits, input and stops") {
  {
    Stage stage;
    const auto both = stage.spawn("echo out; echo err >&2; exit 5");
    stage.end(*both);
    CHECK(both->out == "out\n");
    CHECK(both->err == "err\n");
    CHECK(both->exit.code == 5);

    const auto much = stage.spawn("head -c 1000000 /dev/zero", 5000);
    stage.end(*much);
    CHECK(much->out == std::string(1000000, '\0'));

    const auto echo = stage.spawn("cat", 5000, SF_STDIN_PIPE);
    const std::string text(300000, 'i');
    stage.feed(*echo, text);
    stage.end(*echo);
    CHECK(echo->out == text);

    // It ends while its input is still open.
    const auto quick = stage.spawn("exit 3", 100, SF_STDIN_PIPE);
    stage.end(*quick);
    CHECK(quick->exit.code == 3);

    const auto killed = stage.spawn("echo up; read never", 100, SF_STDIN_PIPE);
    REQUIRE(stage.driver.wait([&] { return killed->out == "up\n"; }));
    killed->stream->vtbl->cancel(killed->stream);
    stage.end(*killed);
    CHECK(killed->exit.outcome == SF_EXIT_CANCELLED);
  }
  CHECK(testing::Lane::live == 0);
  CHECK(testing::Process::live == 0);
  CHECK(testing::Op::live == 0);
}

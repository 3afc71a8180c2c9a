// The blocking style, and the services of the host as values: on pool threads, never on the lane.
#include <sandforge/plugin/plugin.hpp>

#include <catch2/catch.hpp>

#include "abi/rehearsal/driver.hpp"

namespace fake = sandforge::fake;
using namespace sandforge::plugin;

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// What a test lets its sandbox do. Everything runs on pool threads.
class Play {
 public:
  std::function<void(Sandbox&, Starting&)> start = [](Sandbox&, Starting&) {};
  std::function<void(Sandbox&, StopToken)> stop = [](Sandbox&, StopToken) {};
  std::function<Exit(Sandbox&, ProcessIo)> run;
  std::function<void(Sandbox&, Spawn&)> spawn;
  std::atomic<bool> began{false};
  Context context;
};
Play* play = nullptr;

class Player : public Sandbox {
 public:
  Started start(Starting& starting) override {
    play->start(*this, starting);
    return Started(Outcome::created, "id");
  }
  void stop(StopToken stop) override { play->stop(*this, std::move(stop)); }
  void destroy(StopToken) override {}
  Exit run(Command command, ProcessIo io) override {
    return play->run ? play->run(*this, io) : Sandbox::run(std::move(command), io);
  }
  void spawn(Spawn& spawn) override {
    if (play->spawn) return play->spawn(*this, spawn);
    Sandbox::spawn(spawn);
  }
};

class PlayerFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "player";
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    play->context = std::move(context);
    return std::make_unique<Player>();
  }
};

class Stage {
 public:
  Play it;
  fake::Host host;
  fake::Context context;
  std::optional<fake::Driver> driver;
  fake::Failure failure;

  Stage() {
    play = &it;
    driver.emplace(host, detail::plugin_of<PlayerFactory>());
    REQUIRE(driver->open("player", "{}", failure) == SF_OK);
    REQUIRE(driver->create(&context, "{}", failure) == SF_OK);
  }
  ~Stage() {
    it.context = Context();
    driver.reset();
    host.join();
    host.loop.drain();
    CHECK(fake::Lane::live == 0);
    CHECK(fake::Op::live == 0);
    CHECK(fake::Process::live == 0);
    CHECK(context.refs == 1);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Output may come on a pool thread: what the consumer keeps is looked at only after done.
  std::unique_ptr<fake::Running> spawn(fake::CommandLine line, bool grant_back = true) {
    auto running = std::make_unique<fake::Running>(line.window);
    running->grant_back = grant_back;
    REQUIRE(driver->spawn(line, *running, failure) == SF_OK);
    return running;
  }
  void end(fake::Running& running) {
    REQUIRE(driver->wait([&] { return running.done > 0; }));
    CHECK(running.rules_kept());
    CHECK_FALSE(running.disorder);
    if (running.process != nullptr) running.release();
  }
};

std::string code_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return std::to_string(static_cast<int>(e.code())) + " " + e.message();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("services of the host from a pool thread, and refused on the lane") {
  Stage stage;
  stage.context.clone_url = "u";
  stage.context.token = "t";
  stage.context.head = "abc";
  stage.host.env["NAME"] = "value";
  stage.host.forbidden_env = {"OTHER"};
  stage.host.secrets["key"] = "hush";
  stage.host.paths[SF_PATH_CACHE] = "/cache";
  std::string seen;
  stage.it.start = [&](Sandbox& box, Starting& starting) {
    const Host host = box.host();
    starting.identify("early");
    starting.identify("second");
    host.set_state(box.lane(), play->context.get(), "k", "v").get();
    seen += host.state(box.lane(), play->context.get(), "k").get().value_or("-");
    host.set_state(box.lane(), play->context.get(), "k", std::nullopt).get();
    seen += host.state(box.lane(), play->context.get(), "k").get().value_or("-");
    seen += host.secret(box.lane(), nullptr, "key").get();
    seen += code_of([&] { host.secret(box.lane(), nullptr, "none").get(); });
    seen += play->context.repository_access().get().token;
    seen += play->context.resolve_head("u", "t").get().value_or("-");
    seen += code_of([&] { play->context.repository_access(5).get(); });
    host.sleep(box.lane(), milliseconds(1)).get(starting.stop());
    Host().log().warn("careful", {{"a", "b"}, LogField::secret("c", "d")});
  };
  const auto started = stage.driver->start();
  CHECK_FALSE(started.failure);
  CHECK(started.identity == "early");
  CHECK(started.identities == 1);
  CHECK(seen == "v-hush2 no such secrettabc2 no repository");
  REQUIRE(stage.host.log().size() == 1);
  CHECK(stage.host.log()[0].fields[1].second == "***");

  const Host host;
  CHECK(host.env("NAME") == "value");
  CHECK_FALSE(host.env("UNSET"));
  CHECK(code_of([&] { host.env("OTHER"); }) == "7 the manifest does not name the variable OTHER");
  CHECK(host.now() == stage.host.now);
  CHECK(host.monotonic().count() == stage.host.now);
  CHECK(host.folder(SF_PATH_CACHE) == "/cache");
  const Lane own = Lane::create();
  std::string refused;
  own.post([&] { refused = code_of([&] { host.sleep(own, milliseconds(1)).get(); }); });
  own.post([] { throw Error(Code::internal, "into the log"); });
  REQUIRE(stage.driver->wait([&] { return stage.host.log().size() == 2; }));
  CHECK(refused == "16 a blocking call on a lane: use a coroutine, or a pool thread");
}

TEST_CASE("a context of nothing has nothing, and its calls are typed errors") {
  const Context none;
  CHECK_FALSE(none.session_id());
  CHECK_FALSE(none.has_repository());
  CHECK(none.repo_count() == 0);
  fake::Loop loop;
  fake::Lane* raw = fake::Lane::create(loop);
  {
    const Context empty(nullptr, Lane(raw));
    CHECK(code_of([&] { empty.repository_access().get(); }) == "2 the call has no session");
    CHECK(code_of([&] { empty.resolve_head("u", "t").get(); }) == "2 the call has no session");
  }
  raw->release();
}

TEST_CASE("a blocking command writes under credit, reads its input, and ends once") {
  Stage stage;
  std::atomic<std::size_t> taken{0};
  std::atomic<bool> went_on{false};
  stage.it.run = [&](Sandbox&, ProcessIo io) {
    io.started("p", 5);
    io.out("0123456789");
    io.out("0123456789");
    taken = io.try_write("0123456789", SF_CHANNEL_STDOUT);
    io.out("56789");
    went_on = true;
    std::string input;
    while (const std::optional<Piece> piece = io.read())
      input += piece->data;
    io.err(input);
    return Exit::exited(static_cast<std::int32_t>(input.size()));
  };
  fake::CommandLine line;
  line.window = 25;
  line.stdin_mode = SF_STDIN_PIPE;
  const auto running = stage.spawn(line, false);
  REQUIRE(stage.driver->wait([&] { return taken > 0; }));
  CHECK(taken == 5);
  CHECK_FALSE(went_on);
  running->grant(1000);
  stage.driver->call([&] {
    std::size_t accepted = 0;
    sf_stream* io = running->stream;
    CHECK(io->vtbl->write(io, fake::bytes("abc"), 0, &accepted, nullptr) == SF_OK);
    CHECK(io->vtbl->shutdown_write(io, nullptr) == SF_OK);
    CHECK(io->vtbl->write(io, fake::bytes("x"), 0, &accepted, nullptr) == SF_CONFLICT);
  });
  stage.end(*running);
  CHECK(running->out.size() == 30);
  CHECK(running->err == "abc");
  CHECK(running->pid == 5);
  CHECK(running->exit.code == 3);
}

TEST_CASE("input beyond the limit is taken in parts, as the command reads") {
  Stage stage;
  std::atomic<bool> may_read{false};
  stage.it.run = [&](Sandbox&, ProcessIo io) {
    io.started("p");
    play->began = true;
    while (!may_read)
      std::this_thread::yield();
    std::size_t all = 0;
    while (const std::optional<Piece> piece = io.read())
      all += piece->data.size();
    return Exit::exited(static_cast<std::int32_t>(all / 1024));
  };
  fake::CommandLine line;
  line.stdin_mode = SF_STDIN_PIPE;
  const auto running = stage.spawn(line);
  REQUIRE(stage.driver->wait([&] { return stage.it.began.load(); }));
  const std::string text(100 * 1024, 'i');
  std::size_t accepted = 0;
  const auto write = [&](std::size_t from) {
    stage.driver->call([&] {
      sf_stream* io = running->stream;
      CHECK(io->vtbl->write(io, fake::bytes(std::string_view(text).substr(from)), 0, &accepted,
                            nullptr) == SF_OK);
    });
  };
  write(0);
  CHECK(accepted == 64 * 1024);
  may_read = true;
  REQUIRE(stage.driver->wait([&] { return running->writable > 0; }));
  write(accepted);
  CHECK(accepted == 36 * 1024);
  stage.driver->call([&] { running->stream->vtbl->shutdown_write(running->stream, nullptr); });
  stage.end(*running);
  CHECK(running->exit.code == 100);
}

TEST_CASE("a command that waits for input of a dropped handle reads the end of it") {
  Stage stage;
  stage.it.run = [](Sandbox&, ProcessIo io) {
    io.started("p");
    play->began = true;
    return Exit::exited(io.read() ? 1 : 0);
  };
  fake::CommandLine line;
  line.stdin_mode = SF_STDIN_PIPE;
  const auto running = stage.spawn(line);
  REQUIRE(stage.driver->wait([&] { return stage.it.began.load(); }));
  running->release();
  stage.end(*running);
  CHECK(running->exit.code == 0);
}

TEST_CASE("stops of blocking calls: cancel, time limit, a call that waits, queued work") {
  Stage stage;
  stage.it.run = [](Sandbox& box, ProcessIo io) {
    io.started("p");
    play->began = true;
    box.host().sleep(box.lane(), hours(1)).get(io.stop());
    return Exit::exited(0);
  };
  const auto cancelled = stage.spawn({});
  REQUIRE(stage.driver->wait([&] { return stage.it.began.load(); }));
  cancelled->stream->vtbl->cancel(cancelled->stream);
  stage.end(*cancelled);
  CHECK(cancelled->exit.outcome == SF_EXIT_CANCELLED);

  fake::CommandLine line;
  line.timeout_ms = 1;
  const auto late = stage.spawn(line);
  stage.end(*late);
  CHECK(late->exit.outcome == SF_EXIT_TIMED_OUT);

  std::atomic<bool> ran{false};
  stage.it.stop = [&](Sandbox&, StopToken) { ran = true; };
  stage.host.hold_blocking = true;
  fake::Result result;
  sf_op* op = nullptr;
  stage.driver->call([&] {
    sf_sandbox* box = stage.driver->sandbox;
    CHECK(box->vtbl->stop(box, fake::completion(result), &op, nullptr) == SF_OK);
  });
  op->vtbl->cancel(op);
  op->vtbl->release(op);
  REQUIRE(stage.driver->wait([&] { return result.done > 0; }));
  CHECK(result.failure.code == SF_CANCELLED);
  stage.host.run_held();
  CHECK_FALSE(ran);
}

TEST_CASE("a command is refused, dropped, or passed on") {
  Stage stage;
  fake::CommandLine line;
  fake::Running none(line.window);
  stage.it.spawn = [](Sandbox&, Spawn&) {};
  CHECK(stage.driver->spawn(line, none, stage.failure) == SF_INTERNAL);
  stage.it.spawn = [](Sandbox&, Spawn&) { throw Error(Code::gone, "no machine"); };
  CHECK(stage.driver->spawn(line, none, stage.failure) == SF_GONE);
  CHECK(stage.failure.message == "no machine");
  stage.it.spawn = [](Sandbox&, Spawn& spawn) {
    spawn.accept([](const ProcessIo&) {});
    spawn.accept([](const ProcessIo&) {});
  };
  CHECK(stage.driver->spawn(line, none, stage.failure) == SF_INTERNAL);
  CHECK(none.done == 0);

  stage.it.spawn = [](Sandbox&, Spawn& spawn) { spawn.accept([](const ProcessIo&) {}); };
  const auto dropped = stage.spawn(line);
  stage.end(*dropped);
  CHECK(dropped->failure.message == "the plugin dropped a stream without an end");

  stage.it.spawn = nullptr;
  const auto unsupported = stage.spawn(line);
  stage.end(*unsupported);
  CHECK(unsupported->failure.code == SF_UNSUPPORTED);

  stage.it.spawn = [](Sandbox&, Spawn& spawn) {
    spawn.command().cwd = "/";
    spawn.delegate();
  };
  line.shell = "echo passed on";
  const auto delegated = stage.spawn(line);
  stage.end(*delegated);
  CHECK(delegated->out == "passed on\n");
}

TEST_CASE("a reply that nobody gives is given by itself, and a second one is none") {
  Stage stage;
  stage.it.spawn = [](Sandbox&, Spawn& spawn) {
    spawn.accept([](const ProcessIo& io) {
      io.on_signal([io](std::int32_t number, SignalScope, Reply reply) {
        if (number == 1) return;
        reply.ok();
        reply.fail(Error(Code::internal, "too late"));
        io.finish(Exit::exited(0));
      });
      io.started("p");
    });
  };
  const auto running = stage.spawn({});
  REQUIRE(stage.driver->wait([&] { return running->started > 0; }));
  fake::Result first;
  fake::Result second;
  stage.driver->call([&] {
    sf_process* p = running->process;
    CHECK(p->vtbl->signal(p, 1, 0, fake::completion(first), nullptr, nullptr) == SF_OK);
    CHECK(p->vtbl->signal(p, 2, 0, fake::completion(second), nullptr, nullptr) == SF_OK);
    CHECK(first.done + second.done == 0);
  });
  REQUIRE(stage.driver->wait([&] { return first.done + second.done == 2; }));
  CHECK(first.failure.message == "the plugin gave no answer");
  CHECK_FALSE(second.failure);
  stage.end(*running);
}

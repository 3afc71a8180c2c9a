// Coroutines over the services of a host: each resumes on its lane, ends when it is stopped,
// whatever it waits for, and leaves nothing behind.
#include <sandforge/plugin/host_stream.hpp>

#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "abi/rehearsal/driver.hpp"
#include "unit/plugin_layer/coroutine_fixture.hpp"

using namespace sandforge::plugin;
using sandforge::test::Bench;
using sandforge::test::Counted;
namespace fake = sandforge::fake;

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

void nothing_is_left() {
  CHECK(Counted::live == 0);
  CHECK(fake::Op::live == 0);
  CHECK(fake::Process::live == 0);
  CHECK(fake::Lane::live == 0);
}

Command shell(const std::string& text, bool with_input = false) {
  Command command;
  command.shell = text;
  command.env.emplace_back("PATH", "/usr/bin:/bin");
  command.cwd = "/";
  command.pipe_stdin = with_input;
  return command;
}

// Where a coroutine went on, and whether that was its lane.
class Trail {
 public:
  explicit Trail(Lane lane) : lane_(std::move(lane)) {}
  void at(const std::string& place) { places_ += (places_.empty() ? "" : " ") + mark(place); }
  const std::string& places() const { return places_; }

 private:
  std::string mark(const std::string& place) const {
    return lane_.is_current() ? place : "!" + place;
  }
  const Lane lane_;
  std::string places_;
};

// A callback of somebody else's thread, which knows nothing of lanes.
Async<int> on_a_foreign_thread(const Lane& lane, std::vector<std::thread>& threads) {
  return {lane, [&threads](auto* pending, sf_op** op, const sf_error_sink*) {
            *op = nullptr;
            threads.emplace_back([pending] { pending->succeed(42); });
            return SF_OK;
          }};
}

Task<void> values(Bench& bench, const Context& context, Trail& trail) {
  const Counted counted;
  const Host host;
  co_await sleep_for(milliseconds(1));
  trail.at("sleep_for");
  co_await host.set_state(bench.lane(), nullptr, "key", "value");
  trail.at("set_state");
  const std::optional<std::string> value = co_await host.state(bench.lane(), nullptr, "key");
  trail.at("state=" + value.value_or("none"));
  const std::string secret = co_await host.secret(bench.lane(), nullptr, "name");
  trail.at("secret=" + secret);
  const RepositoryAccess access = co_await context.repository_access(0);
  trail.at("access=" + access.token);
  const std::optional<std::string> head = co_await context.resolve_head("url", "token");
  trail.at("head=" + head.value_or("none"));
}

Task<void> work(Bench& bench, std::vector<std::thread>& threads, Trail& trail) {
  const auto lane = co_await current_lane();
  trail.at(lane.get() == bench.lane().get() ? "current_lane" : "another lane");
  const auto on_lane = [lane] { return lane.is_current(); };
  const bool blocking = co_await run_blocking(on_lane);
  trail.at(blocking ? "blocked the lane" : "run_blocking");
  try {
    co_await run_blocking([] { throw Error(Code::no_space, "disk"); });
  } catch (const Error& e) {
    trail.at(e.message());
  }
  const int foreign = co_await on_a_foreign_thread(lane, threads);
  trail.at("foreign=" + std::to_string(foreign));
}

Task<void> process(Trail& trail) {
  const Lane lane = co_await current_lane();
  HostProcess child = HostProcess::spawn(lane, shell("cat; echo end >&2; exit 3", true));
  co_await child.write_all("hello");
  trail.at("write_all");
  const std::optional<Output> echoed = co_await child.read_some();
  trail.at("read_some=" + (echoed ? echoed->data : "none"));
  child.shutdown_write();
  const std::optional<Output> error = co_await child.read_some();
  trail.at("channel=" + std::to_string(error ? error->channel : 99));
  const std::optional<Output> end = co_await child.read_some();
  trail.at(end ? "more" : "end");
  const Exit exit = co_await child.finish();
  trail.at("exit=" + std::to_string(exit.code));
}

}  // namespace

TEST_CASE("whatever a coroutine waited for, it goes on on its lane") {
  {
    Bench bench;
    bench.host.secrets["name"] = "hush";
    fake::Context raw;
    raw.clone_url = "https://example.test/r.git";
    raw.token = "t";
    raw.head = "abc";
    Trail trail(bench.lane());
    {
      const Context context(&raw, bench.lane());
      const auto ended = bench.run<void>([&] { return values(bench, context, trail); });
      CHECK(ended.done == 1);
      CHECK(ended.on_lane);
      CHECK_FALSE(ended.code);
    }
    CHECK(trail.places() == "sleep_for set_state state=value secret=hush access=t head=abc");

    Trail working(bench.lane());
    std::vector<std::thread> threads;
    CHECK_FALSE(bench.run<void>([&] { return work(bench, threads, working); }).code);
    for (auto& thread : threads)
      thread.join();
    CHECK(working.places() == "current_lane run_blocking disk foreign=42");

    Trail running(bench.lane());
    CHECK_FALSE(bench.run<void>([&] { return process(running); }).code);
    CHECK(running.places() == "write_all read_some=hello channel=2 end exit=3");
    CHECK(raw.refs == 1);
  }
  nothing_is_left();
}

namespace {

Task<std::size_t> slow_reader(Bench& bench, std::uint64_t window, std::size_t& most) {
  Command command = shell("head -c 300000 /dev/zero");
  command.window = window;
  HostProcess child = HostProcess::spawn(bench.lane(), command);
  std::size_t all = 0;
  for (;;) {
    co_await sleep_for(milliseconds(0));
    const std::optional<Output> piece = co_await child.read_some();
    if (!piece) co_return all;
    most = std::max(most, piece->data.size());
    all += piece->data.size();
  }
}

Task<std::string> half_of_a_socket(int descriptor) {
  const Lane lane = co_await current_lane();
  HostStream stream = HostStream::adopt_descriptor(lane, descriptor);
  co_await stream.write_all("ping");
  const std::optional<Output> answer = co_await stream.read_some();
  stream.shutdown_write();
  co_await stream.finish();
  co_return answer ? answer->data : "none";
}

Task<std::int32_t> signalled() {
  const Lane lane = co_await current_lane();
  HostProcess child = HostProcess::spawn(lane, shell("echo up; read never", true));
  const std::optional<Output> up = co_await child.read_some();
  if (!up) co_return -1;
  co_await child.signal(9);
  const Exit exit = co_await child.finish();
  co_return exit.signal;
}

Task<Exit> not_there() {
  const Lane lane = co_await current_lane();
  Command command;
  command.argv = {"/no/such/program"};
  HostProcess child = HostProcess::spawn(lane, command);
  const Exit exit = co_await child.finish();
  co_return exit;
}

Task<std::string> write_after_the_end() {
  const Lane lane = co_await current_lane();
  HostProcess child = HostProcess::spawn(lane, shell("exit 0", true));
  const Exit exit = co_await child.finish();
  std::string answer = std::to_string(exit.code);
  try {
    co_await child.write_all("late");
  } catch (const Error& e) {
    answer += e.code() == Code::conflict ? " conflict" : " another error";
  }
  co_return answer;
}

}  // namespace

TEST_CASE("streams and processes of the host") {
  {
    Bench bench;
    std::size_t most = 0;
    CHECK(bench.run<std::size_t>([&] { return slow_reader(bench, 1000, most); }).value == 300000);
    CHECK(most <= 1000);

    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    std::thread peer([end = ends[1]] {
      std::array<char, 16> buffer{};
      const ssize_t n = ::read(end, buffer.data(), buffer.size());
      if (n > 0 && ::write(end, "pong", 4) == 4) ::shutdown(end, SHUT_WR);
      ::close(end);
    });
    CHECK(bench.run<std::string>([&] { return half_of_a_socket(ends[0]); }).value == "pong");
    peer.join();

    CHECK(bench.run<std::int32_t>([] { return signalled(); }).value == 9);
    CHECK(bench.run<Exit>([] { return not_there(); }).code == Code::not_found);
    CHECK(bench.run<std::string>([] { return write_after_the_end(); }).value == "0 conflict");
  }
  nothing_is_left();
}

TEST_CASE("a service that the host lacks is a typed error of the coroutine") {
  Bench bench;
  bench.host.absent = {SF_SERVICE_EXECUTOR, SF_SERVICE_PROCESS};
  detail::services().fill(&bench.host);
  CHECK(bench.run<void>([] { return sleep_for(milliseconds(1)); }).code == Code::unsupported);
  CHECK(bench.run<Exit>([] { return not_there(); }).code == Code::unsupported);
  CHECK(bench.run<void>([] { return run_blocking([] {}); }).code == Code::unsupported);
  CHECK(bench.run<std::string>([] { return half_of_a_socket(-1); }).code == Code::unsupported);
}

// ---- Stopping -----------------------------------------------------------------------------------

namespace {

using Waits = std::function<Task<void>(Bench&, std::atomic<bool>&)>;

Task<void> sleeps(Bench&, std::atomic<bool>& waits) {
  const Counted counted;
  waits = true;
  co_await sleep_for(hours(1));
}
Task<void> waits_for_the_pool(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  bench.host.hold_blocking = true;
  waits = true;
  co_await run_blocking([] {});
}
Task<void> works_in_the_pool(Bench&, std::atomic<bool>& waits) {
  const Counted counted;
  const StopToken stop = co_await current_stop();
  const auto work = [stop, &waits] {
    waits = true;
    while (!stop.wait_for(hours(1))) {
    }
    stop.throw_if_stopped();
  };
  co_await run_blocking(work);
}
Task<void> reads(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  HostProcess child = HostProcess::spawn(bench.lane(), shell("read never", true));
  waits = true;
  const std::optional<Output> piece = co_await child.read_some();
  if (piece) throw Error(Code::internal, "output of a silent process");
}
Task<void> writes(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  HostProcess child =
      HostProcess::spawn(bench.lane(), shell("echo up; exec tail -f /dev/null", true));
  const std::optional<Output> up = co_await child.read_some();
  waits = up.has_value();
  co_await child.write_all(std::string(1 << 20, 'x'));
}
Task<void> waits_for_another(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  co_await sleeps(bench, waits);
}
Task<void> waits_for_several(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  std::atomic<bool> other{false};
  co_await all(reads(bench, other), waits_for_another(bench, waits), sleeps(bench, other));
}
// The operation of somebody who ends it on a cancel only.
Task<void> waits_for_a_callback(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  const Lane lane = bench.lane();
  Async<void> operation(lane, [lane](auto* pending, sf_op** op, const sf_error_sink*) {
    fake::Op::give(op, [lane, pending] {
      lane.post([pending] {
        pending->fail(std::make_exception_ptr(Error(Code::cancelled, "as you wish")));
      });
    });
    return SF_OK;
  });
  waits = true;
  co_await std::move(operation);
}

void stop_while(const char* what, const Waits& waits_here, bool from_the_lane) {
  INFO(what << (from_the_lane ? ", stopped from the lane" : ", stopped from another thread"));
  {
    Bench bench;
    Bench::Ended<void> ended;
    std::atomic<bool> waits{false};
    bench.begin<void>(ended, [&] { return waits_here(bench, waits); });
    REQUIRE(bench.wait([&] { return waits.load(); }));
    bench.host.loop.drain();
    CHECK(ended.done == 0);
    CHECK(Counted::live > 0);
    if (from_the_lane) {
      bench.lane().post([&bench] { bench.stop().request_stop(); });
    } else {
      std::thread([&bench] { bench.stop().request_stop(StopReason::cancelled); }).join();
    }
    REQUIRE(bench.wait([&] { return ended.done > 0; }));
    CHECK(ended.code == Code::cancelled);
    CHECK(ended.on_lane);
    CHECK(Counted::live == 0);
    bench.host.loop.drain();
    CHECK(ended.done == 1);
    bench.host.run_held();
  }
  nothing_is_left();
}

}  // namespace

TEST_CASE("a stop ends a coroutine at each place where it can wait") {
  const std::vector<std::pair<const char*, Waits>> places = {
      {"a timer", sleeps},
      {"queued blocking work", waits_for_the_pool},
      {"running blocking work", works_in_the_pool},
      {"the output of a process", reads},
      {"room in the input of a process", writes},
      {"another task", waits_for_another},
      {"several tasks", waits_for_several},
      {"a callback", waits_for_a_callback}};
  for (const auto& [what, waits_here] : places) {
    stop_while(what, waits_here, false);
    stop_while(what, waits_here, true);
  }
}

namespace {

Task<void> after_a_stop(Bench& bench, std::string& kept) {
  const StopToken stop = co_await current_stop();
  bench.stop().request_stop(StopReason::timed_out);
  kept += stop.stop_requested() ? "stopped" : "running";
  co_await with_stop(StopToken(), Host().set_state(bench.lane(), nullptr, "cleanup", "done"));
  co_await with_stop(StopToken(), sleep_for(milliseconds(0)));
  kept += ", cleaned up";
  co_await Host().set_state(bench.lane(), nullptr, "late", "begun");
}

Task<Exit> exit_of_the_stopped(Bench& bench) {
  HostProcess child = HostProcess::spawn(bench.lane(), shell("read never", true));
  bench.lane().post([&bench] { bench.stop().request_stop(); });
  const Exit exit = co_await child.finish();
  co_return exit;
}

}  // namespace

TEST_CASE(
    "after a stop nothing begins but what is shielded, and a process still says how it ended") {
  {
    Bench bench;
    std::string kept;
    const auto ended = bench.run<void>([&] { return after_a_stop(bench, kept); });
    CHECK(ended.code == Code::timeout);
    CHECK(kept == "stopped, cleaned up");
    CHECK(bench.host.state == std::map<std::string, std::string>{{"/cleanup", "done"}});
  }
  {
    Bench bench;
    const auto ended = bench.run<Exit>([&] { return exit_of_the_stopped(bench); });
    REQUIRE(ended.value);
    CHECK(ended.value->outcome == ExitOutcome::cancelled);
  }
  {
    Bench bench;
    bench.stop().request_stop();
    std::atomic<bool> began{false};
    CHECK(bench.run<void>([&] { return sleeps(bench, began); }).code == Code::cancelled);
    CHECK_FALSE(began);
  }
  nothing_is_left();
}

// ---- Side by side -------------------------------------------------------------------------------

namespace {

Task<void> note(std::string& log, std::string text, int rounds) {
  const Counted counted;
  for (int i = 0; i < rounds; ++i) {
    log += text;
    co_await sleep_for(milliseconds(0));
  }
}
Task<void> fail_soon(Code code) {
  co_await sleep_for(milliseconds(0));
  throw Error(code, "soon");
}
Task<void> fail_at_once() {
  throw std::runtime_error("no Error");
  co_return;
}
Task<void> three_and_none(std::string& log) {
  co_await all(note(log, "a", 2), note(log, "b", 1), note(log, "c", 0));
  co_await all(std::vector<Task<void>>());
  log += ".";
}
Task<void> one_fails(Bench& bench) {
  std::atomic<bool> waits{false};
  std::vector<Task<void>> parts;
  parts.push_back(sleeps(bench, waits));
  parts.push_back(reads(bench, waits));
  parts.push_back(fail_soon(Code::forbidden));
  parts.push_back(all(sleeps(bench, waits), sleeps(bench, waits)));
  co_await all(std::move(parts));
}
Task<void> both_fail() {
  co_await all(fail_at_once(), fail_soon(Code::gone));
}

}  // namespace

TEST_CASE("tasks side by side: all end, the first failure stops the others") {
  {
    Bench bench;
    std::string log;
    CHECK_FALSE(bench.run<void>([&] { return three_and_none(log); }).code);
    CHECK(log.substr(0, 2) == "ab");
    CHECK(std::count(log.begin(), log.end(), 'a') == 2);
    CHECK(log.back() == '.');
    CHECK(bench.run<void>([&] { return one_fails(bench); }).code == Code::forbidden);
    CHECK(bench.run<void>([] { return both_fail(); }).message == "no Error");
  }
  nothing_is_left();
}

TEST_CASE("a process that nobody reads any more is ended, also while a reader waits elsewhere") {
  {
    Bench bench;
    const auto ended = bench.run<int>([&]() -> Task<int> {
      const Lane lane = co_await current_lane();
      HostProcess dropped = HostProcess::spawn(lane, shell("read never", true));
      HostProcess kept = HostProcess::spawn(lane, shell("echo kept"));
      dropped = std::move(kept);
      const std::optional<Output> piece = co_await dropped.read_some();
      const Exit exit = co_await dropped.finish();
      co_return exit.code + (piece ? 10 : 0);
    });
    CHECK(ended.value == 10);
  }
  nothing_is_left();
}

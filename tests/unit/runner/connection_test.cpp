// The socket between a host and a runner, and the first frames.
#include "runner/connection.hpp"

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runner/greeting.hpp"
#include "sandforge/posix/spawn.hpp"
#include "sandforge/posix/system.hpp"
#include "sandforge/runtime.hpp"
#include "support/temp_dir.hpp"
#include "test_paths.hpp"

using namespace sandforge;
using runner::Connection;

namespace {

struct Pair {
  Pair() {
    int both[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
    ours.reset(both[0]);
    theirs.reset(both[1]);
  }
  posix::Fd ours, theirs;
};

bool no_frame(const wire::runner::FrameView&) {
  return false;
}

// Read by this thread until it is over.
std::string end_of(Connection& connection) {
  CHECK(connection.read());
  return connection.reason();
}
std::string end_of_frameless(Connection& connection) {
  connection.prepare(no_frame);
  return end_of(connection);
}

// A runner that is given these bytes and then the end of its socket.
struct Ran {
  explicit Ran(const std::string& bytes) {
    Pair pair;
    posix::Pipe errors;
    REQUIRE(posix::make_pipe(errors));
    posix::SpawnSpec spec;
    spec.argv = {SANDFORGE_RUNNER};
    spec.stdin_fd = pair.theirs.get();
    spec.stdout_fd = spec.stderr_fd = errors.write.get();
    const auto result = posix::spawn(spec);
    REQUIRE(result.stage == posix::SpawnStage::none);
    pair.theirs.reset();
    errors.write.reset();
    CHECK(::send(pair.ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
    ::shutdown(pair.ours.get(), SHUT_WR);
    answer = read_all(pair.ours.get());
    said = read_all(errors.read.get());
    int status = 0;
    REQUIRE(::waitpid(result.pid, &status, 0) == result.pid);
    REQUIRE(WIFEXITED(status));
    code = WEXITSTATUS(status);
  }
  static std::string read_all(int from) {
    std::string out;
    char piece[4096];
    for (ssize_t n = 0; (n = ::read(from, piece, sizeof piece)) > 0;)
      out.append(piece, static_cast<std::size_t>(n));
    return out;
  }
  std::string answer, said;
  int code = 0;
};

}  // namespace

TEST_CASE("connection: an end is told by its cause", "[runner]") {
  SECTION("the other side closed") {
    Pair pair;
    Connection connection(std::move(pair.ours), Connection::Full::queue);
    pair.theirs.reset();
    CHECK(end_of_frameless(connection).empty());
  }
  SECTION("this side closed") {
    Pair pair;
    Connection connection(std::move(pair.ours), Connection::Full::queue);
    connection.close("enough");
    CHECK(end_of_frameless(connection) == "enough");
  }
  SECTION("the other side ended, and somebody holds its socket") {
    Pair pair;
    Connection connection(std::move(pair.ours), Connection::Full::queue);
    std::string bytes;
    wire::runner::append_frame(bytes, wire::runner::Header(), "last words");
    REQUIRE(::send(pair.theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
    posix::Pipe ended;
    REQUIRE(posix::make_pipe(ended));
    ended.write.reset();
    std::string heard;
    connection.prepare(
        [&](const wire::runner::FrameView& frame) {
          heard = frame.payload;
          return true;
        },
        {{ended.read.get(), [&] {
            connection.drain();
            return false;
          }}});
    CHECK(end_of(connection).empty());
    CHECK(heard == "last words");
  }
  SECTION("a system call failed") {
    Pair pair;
    Connection connection(std::move(pair.ours), Connection::Full::queue);
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlimit fewer{1, limit.rlim_max};  // nothing to poll with
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &fewer) == 0);
    const std::string why = end_of_frameless(connection);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(why == "its socket failed: Too many open files");
  }
}

TEST_CASE("connection: what waits to be sent costs the same for each byte of it", "[runner]") {
  // Of the thread that sends it, in nanoseconds for each KiB.
  const auto cost_of = [](std::size_t mib) {
    Pair pair;
    const int small = 8192;  // so that it is sent in many pieces
    REQUIRE(::setsockopt(pair.ours.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    Connection connection(std::move(pair.ours), Connection::Full::queue);
    connection.prepare([](const wire::runner::FrameView&) { return true; });
    const std::string payload(64U << 10, 'x');
    const std::size_t frames = mib * 16;
    for (std::size_t i = 0; i < frames; ++i)
      REQUIRE(connection.send(wire::runner::Header(), payload));
    std::int64_t cost = 0;
    std::thread reader([&] {
      connection.read();
      timespec used{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
      cost = std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
    });
    std::string piece(256U << 10, '\0');
    std::size_t left = frames * (wire::runner::kHeaderSize + payload.size());
    while (left > 0) {
      const auto got = ::recv(pair.theirs.get(), piece.data(), piece.size(), 0);
      if (got <= 0) break;
      left -= static_cast<std::size_t>(got);
    }
    CHECK(left == 0);
    pair.theirs.reset();
    reader.join();
    return cost / static_cast<std::int64_t>(mib << 10);
  };
  const auto little = cost_of(2);
  const auto much = cost_of(32);
  CAPTURE(little, much);
  CHECK(much < 4 * little);
}

TEST_CASE("connection: a reader runs the lane of its frame, and the other one reads on",
          "[runner]") {
  Pair pair;
  Connection connection(std::move(pair.ours), Connection::Full::queue);
  Runtime runtime;
  const Lane lane = runtime.make_lane();
  const auto send = [&](std::string_view payload) {
    std::string bytes;
    wire::runner::append_frame(bytes, wire::runner::Header(), payload);
    REQUIRE(::send(pair.theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::thread::id> ran;
  bool go_on = false;
  const auto wait_for = [&](const std::string& what) {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return ran.count(what) != 0; }));
    return ran[what];
  };
  connection.prepare([&](const wire::runner::FrameView& frame) {
    // One lane for what waits, others for the rest.
    const std::string what(frame.payload);
    (what == "wait" ? lane : runtime.make_lane()).post([&, what] {
      std::unique_lock lock(mutex);
      ran[what] = std::this_thread::get_id();
      changed.notify_all();
      changed.wait(lock, [&] { return what != "wait" || go_on; });
    });
    return true;
  });
  std::atomic<int> ends{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] { ends += connection.read() ? 1 : 0; });
  const auto is_reader = [&](std::thread::id id) {
    return readers[0].get_id() == id || readers[1].get_id() == id;
  };
  // Until both are there.
  for (int i = 0;; ++i) {
    const std::string what = "try " + std::to_string(i);
    send(what);
    if (is_reader(wait_for(what))) break;
  }
  send("wait");
  const auto away = wait_for("wait");
  // Not by a reader, where the one of the frame before is not back yet.
  CHECK((connection.is_one_away() || !is_reader(away)));
  send("beside");
  const auto beside = wait_for("beside");
  CHECK((!is_reader(beside) || !is_reader(away)));
  // The end is found while one is away, by the other.
  pair.theirs.reset();
  if (is_reader(away)) {
    std::thread& present = readers[readers[0].get_id() == away ? 1 : 0];
    present.join();
    CHECK(ends == 1);
  }
  {
    const std::lock_guard lock(mutex);
    go_on = true;
    changed.notify_all();
  }
  for (std::thread& reader : readers)
    if (reader.joinable()) reader.join();
  CHECK(ends == 1);
  CHECK(connection.reason().empty());
}

TEST_CASE("runner: without a host it says what it is", "[runner]") {
  const Ran ran("");
  CHECK(ran.code == 2);
  CHECK(ran.answer.empty());
  CHECK(ran.said == "sandforge-runner is started by a host, on a socket\n");
}

TEST_CASE("runner: a host of another build is told so, and nothing else is said", "[runner]") {
  std::string hello = runner::encode(runner::Hello());
  hello[8] = static_cast<char>(hello[8] ^ 1);  // of the fingerprint
  wire::runner::Header header;
  header.kind = wire::runner::Kind::hello;
  std::string bytes;
  wire::runner::append_frame(bytes, header, hello);
  const Ran ran(bytes);
  CHECK(ran.code == 2);
  CHECK(ran.said.empty());
  wire::runner::FrameView frame;
  REQUIRE(wire::runner::parse_frame(ran.answer, frame) == wire::runner::ParseResult::frame);
  REQUIRE(frame.header.kind == wire::runner::Kind::ready);
  const auto ready = runner::decode_ready(frame.payload);
  REQUIRE(ready);
  CHECK(ready->attempt.stage == LoadStage::load_failed);
  CHECK_THAT(ready->attempt.message, Catch::Contains("is of another version"));
}

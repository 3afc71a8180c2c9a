// The socket between a host and a runner, and the first frames.
#include "runner/connection.hpp"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runner/greeting.hpp"
#include "sandforge/posix/spawn.hpp"
#include "sandforge/posix/system.hpp"
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
    CHECK(connection.run(no_frame).empty());
  }
  SECTION("this side closed") {
    Pair pair;
    Connection connection(std::move(pair.ours), Connection::Full::queue);
    connection.close("enough");
    CHECK(connection.run(no_frame) == "enough");
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
    const std::string why = connection.run(
        [&](const wire::runner::FrameView& frame) {
          heard = frame.payload;
          return true;
        },
        {{ended.read.get(), [&] {
            connection.drain();
            return false;
          }}});
    CHECK(why.empty());
    CHECK(heard == "last words");
  }
  SECTION("a system call failed") {
    Pair pair;
    Connection connection(std::move(pair.ours), Connection::Full::queue);
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlimit fewer{1, limit.rlim_max};  // poll takes no more descriptors than may be open
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &fewer) == 0);
    const std::string why = connection.run(no_frame);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(why == "its socket failed: Invalid argument");
  }
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

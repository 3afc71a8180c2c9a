// Descriptors as streams.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <condition_variable>
#include <thread>

#include <catch2/catch.hpp>

#include "plugin/abi_lane.hpp"
#include "sandforge/ext/host_executor.h"
#include "services/descriptor_stream.hpp"
#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

// The consumer of one stream, as a plugin would be.
class Consumer {
 public:
  explicit Consumer(Lane lane) : lane_(std::move(lane)) {}

  sf_stream_events events() {
    return {sizeof(sf_stream_events), this,
            [](void* ctx, std::uint32_t channel, std::uint32_t, sf_bytes data) noexcept {
              static_cast<Consumer*>(ctx)->take(channel, data);
            },
            [](void* ctx) noexcept { static_cast<Consumer*>(ctx)->writable(); },
            [](void* ctx, const sf_error* error, const sf_stream_end* end) noexcept {
              static_cast<Consumer*>(ctx)->done(error, *end);
            }};
  }

  // Waits until f() holds, which is looked at after every event.
  template <class F>
  bool until(F f) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return f(); });
  }
  bool until_done() {
    return until([this] { return done_; });
  }

  std::function<void(std::uint64_t)> on_take;  // on the lane, with the size
  std::string text;
  std::uint64_t bytes = 0;
  bool keep = true;
  int writables = 0;
  bool done_ = false;
  bool off_lane = false;
  sf_status code = SF_OK;
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;
  std::size_t largest = 0;

 private:
  template <class F>
  void change(F f) {
    // Whoever waits may end this object as soon as the lock is free.
    const std::lock_guard lock(mutex_);
    off_lane = off_lane || !lane_.is_current() || done_;
    f();
    changed_.notify_all();
  }
  void take(std::uint32_t channel, sf_bytes data) {
    change([&] {
      off_lane = off_lane || channel != SF_CHANNEL_DATA;
      if (keep) text.append(reinterpret_cast<const char*>(data.ptr), data.len);
      bytes += data.len;
      largest = std::max(largest, data.len);
    });
    if (on_take) on_take(data.len);
  }
  void writable() {
    change([&] { ++writables; });
  }
  void done(const sf_error* error, const sf_stream_end& end) {
    change([&] {
      done_ = true;
      code = error == nullptr ? SF_OK : error->code;
      delivered = end.delivered;
      dropped = end.dropped;
    });
  }

  const Lane lane_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

struct Streams {
  Streams() : lane(bench.sandbox_lane), consumer(lane) {}
  ~Streams() {
    release();
    for (const int fd : others)
      ::close(fd);
    bench.settle(lane);
  }
  // Adopts one end, keeps the other.
  int adopt(int descriptor, int other, std::uint64_t window) {
    others.push_back(other);
    const auto result = services::adopt_descriptor(*bench.plugin, bench.runtime, lane, descriptor,
                                                   window, consumer.events(), &stream);
    REQUIRE(result.ok());
    return other;
  }
  int socket(std::uint64_t window) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    mine = ends[0];
    return adopt(ends[0], ends[1], window);
  }
  int pipe(bool read_end, std::uint64_t window) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    mine = ends[read_end ? 0 : 1];
    return adopt(mine, ends[read_end ? 1 : 0], window);
  }
  void close_other() {
    ::close(others.back());
    others.pop_back();
  }
  void release() {
    if (stream != nullptr) stream->vtbl->release(std::exchange(stream, nullptr));
  }
  std::pair<sf_status, std::size_t> write(const std::string& text) {
    return bench.on(lane, [&] {
      std::size_t accepted = 12345;
      const sf_status status = stream->vtbl->write(
          stream, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 0, &accepted,
          nullptr);
      return std::pair(status, accepted);
    });
  }
  sf_status shutdown() {
    return bench.on(lane, [&] { return stream->vtbl->shutdown_write(stream, nullptr); });
  }

  Bench bench;
  Lane lane;
  Consumer consumer;
  sf_stream* stream = nullptr;
  std::vector<int> others;
  int mine = -1;
};

void put(int fd, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n <= 0) throw std::runtime_error("write failed");
    at += static_cast<std::size_t>(n);
  }
}

std::string read_all(int fd) {
  std::string out;
  char buffer[65536];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof(buffer))) > 0;)
    out.append(buffer, static_cast<std::size_t>(n));
  return out;
}

}  // namespace

TEST_CASE("stream: bytes of a socket, then its end") {
  Streams s;
  const int other = s.socket(1000);
  put(other, "hello");
  REQUIRE(s.consumer.until([&] { return s.consumer.text == "hello"; }));
  s.close_other();
  REQUIRE(s.consumer.until_done());
  CHECK(s.consumer.code == SF_OK);
  CHECK(s.consumer.delivered == 5);
  CHECK(s.consumer.dropped == 0);
  CHECK_FALSE(s.consumer.off_lane);
  CHECK(::fcntl(s.mine, F_GETFD) == -1);  // closed before done
}

TEST_CASE("stream: without credit nothing comes, with it the rest does") {
  Streams s;
  const int other = s.pipe(true, 3);
  put(other, "abcdef");
  REQUIRE(s.consumer.until([&] { return s.consumer.text.size() == 3; }));
  s.close_other();
  s.bench.settle(s.lane);
  CHECK(s.consumer.text == "abc");
  CHECK_FALSE(s.consumer.done_);
  s.stream->vtbl->grant(s.stream, 1);
  REQUIRE(s.consumer.until([&] { return s.consumer.text == "abcd"; }));
  s.stream->vtbl->grant(s.stream, SF_NONE);
  REQUIRE(s.consumer.until_done());
  CHECK(s.consumer.text == "abcdef");
}

TEST_CASE("stream: the end is seen without credit, and not before what is ungranted") {
  Streams s;
  const int other = s.socket(3);
  put(other, "abcdef");
  REQUIRE(s.consumer.until([&] { return s.consumer.text == "abc"; }));
  s.close_other();
  s.stream->vtbl->grant(s.stream, 3);  // exactly the rest
  REQUIRE(s.consumer.until_done());
  CHECK(s.consumer.text == "abcdef");
  CHECK(s.consumer.delivered == 6);
}

TEST_CASE("stream: the end of a pipe that is idle without credit") {
  Streams s;
  const int other = s.pipe(true, 2);
  put(other, "ab");
  REQUIRE(s.consumer.until([&] { return s.consumer.text == "ab"; }));
  s.close_other();
  REQUIRE(s.consumer.until_done());
  CHECK(s.consumer.code == SF_OK);
}

TEST_CASE("stream: cancel drops and counts what is left") {
  Streams s;
  const int other = s.socket(2);
  put(other, "abcdef");
  REQUIRE(s.consumer.until([&] { return s.consumer.text == "ab"; }));
  s.stream->vtbl->cancel(s.stream);
  s.stream->vtbl->cancel(s.stream);
  REQUIRE(s.consumer.until_done());
  CHECK(s.consumer.code == SF_CANCELLED);
  CHECK(s.consumer.delivered == 2);
  CHECK(s.consumer.dropped == 4);
}

TEST_CASE("stream: released, it drops what exceeds the credit until its end") {
  Streams s;
  const int other = s.socket(2);
  s.release();
  std::thread([&] { put(other, std::string(3 << 20, 'x')); }).join();
  s.close_other();
  REQUIRE(s.consumer.until_done());
  CHECK(s.consumer.text == "xx");
  CHECK(s.consumer.dropped == (3U << 20) - 2);
}

TEST_CASE("stream: partial writes, and room again") {
  Streams s;
  const int other = s.socket(0);
  const std::string big(8 << 20, 'b');
  const auto [status, first] = s.write(big);
  CHECK(status == SF_OK);
  CHECK(first > 0);
  REQUIRE(first < big.size());
  CHECK(s.write("x") == std::pair<sf_status, std::size_t>(SF_OK, 0));
  std::string got;
  std::thread reader([&] { got = read_all(other); });
  std::size_t sent = first;
  int seen = 0;
  while (sent < big.size()) {
    REQUIRE(s.consumer.until([&] { return s.consumer.writables > seen; }));
    seen = s.consumer.writables;
    sent += s.write(big.substr(sent)).second;
  }
  CHECK(s.shutdown() == SF_OK);
  CHECK(s.shutdown() == SF_OK);
  reader.join();
  CHECK(got == big);
  CHECK(s.write("more").first == SF_CONFLICT);
}

TEST_CASE("stream: the write end of a pipe") {
  Streams s;
  const int other = s.pipe(false, 0);
  CHECK(s.write("text") == std::pair<sf_status, std::size_t>(SF_OK, 4));
  CHECK(s.shutdown() == SF_OK);
  REQUIRE(s.consumer.until_done());
  CHECK(read_all(other) == "text");
}

TEST_CASE("stream: a reader that goes away ends the write end of a pipe, without a signal") {
  Streams s;
  s.pipe(false, 0);
  s.close_other();
  REQUIRE(s.consumer.until_done());
  CHECK(s.write("x").first == SF_CONFLICT);
}

TEST_CASE("stream: writing to a peer that has gone is an error, not a signal") {
  Streams s;
  s.socket(100);
  s.close_other();
  REQUIRE(s.consumer.until_done());
  CHECK(s.write("x").first == SF_CONFLICT);
}

TEST_CASE("stream: write outside the lane is refused") {
  Streams s;
  s.socket(100);
  std::size_t accepted = 0;
  const std::uint8_t byte = 1;
  CHECK(s.stream->vtbl->write(s.stream, {&byte, 1}, 0, &accepted, nullptr) == SF_INVALID);
  CHECK(s.bench.faults(plugin::Fault::off_lane) == 1);
}

TEST_CASE("stream: a terminal") {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(master >= 0);
  REQUIRE(::grantpt(master) == 0);
  REQUIRE(::unlockpt(master) == 0);
  char name[128];
  REQUIRE(::ptsname_r(master, name, sizeof(name)) == 0);
  const int slave = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(slave >= 0);
  Streams s;
  s.mine = master;
  s.adopt(master, slave, 1000);
  put(slave, "out");
  REQUIRE(s.consumer.until([&] { return s.consumer.text == "out"; }));
  CHECK(s.write("line\n").first == SF_OK);
  char buffer[64];
  REQUIRE(::read(slave, buffer, sizeof(buffer)) == 5);
  CHECK(std::string(buffer, 5) == "line\n");
  s.close_other();
  REQUIRE(s.consumer.until_done());
  CHECK(s.consumer.code == SF_OK);
}

TEST_CASE("stream: what is none stays the caller's") {
  Bench bench;
  Consumer consumer(bench.sandbox_lane);
  sf_stream* stream = nullptr;
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  for (const int fd : {file, -1, 987654}) {
    const auto result = services::adopt_descriptor(*bench.plugin, bench.runtime, bench.sandbox_lane,
                                                   fd, 1, consumer.events(), &stream);
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code == Status::invalid);
  }
  CHECK(stream == nullptr);
  CHECK(::fcntl(file, F_GETFD) >= 0);
  ::close(file);
}

TEST_CASE("stream: ends with the runtime") {
  auto bench = std::make_unique<Bench>();
  auto runtime = std::make_unique<Runtime>();
  const Lane lane = runtime->make_lane();
  Consumer consumer(lane);
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  sf_stream* stream = nullptr;
  REQUIRE(services::adopt_descriptor(*bench->plugin, *runtime, lane, ends[0], 1, consumer.events(),
                                     &stream)
              .ok());
  runtime = nullptr;
  CHECK(consumer.done_);
  CHECK(consumer.code == SF_CANCELLED);
  stream->vtbl->release(stream);
  ::close(ends[1]);
}

TEST_CASE("stream: many bytes under a small credit, in order and without a loss") {
  Streams s;
  s.consumer.keep = false;
  const int other = s.socket(256 << 10);
  constexpr std::uint64_t kTotal = 64ULL << 20;
  s.consumer.on_take = [&](std::uint64_t size) { s.stream->vtbl->grant(s.stream, size); };
  std::thread writer([&] {
    const std::string chunk(1 << 20, 'c');
    for (std::uint64_t sent = 0; sent < kTotal; sent += chunk.size())
      put(other, chunk);
    ::shutdown(other, SHUT_WR);
  });
  writer.join();
  REQUIRE(s.consumer.until_done());
  CHECK(s.consumer.bytes == kTotal);
  CHECK(s.consumer.delivered == kTotal);
  CHECK(s.consumer.largest <= 256U << 10);
  CHECK_FALSE(s.consumer.off_lane);
}

// The stream whose far end is a test.
#include <sandforge/testing/stream.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/consumer.hpp>

using namespace sandforge::testing;

namespace {

// A stream and its consumer, which grants nothing by itself.
struct Pipe {
  Loop loop;
  Lane* lane = Lane::create(loop);
  Consumer consumer;
  std::shared_ptr<Stream> far;

  explicit Pipe(std::uint64_t window) : consumer(window) {
    consumer.grant_back = false;
    far = Stream::create(*lane, consumer.events(), window);
    consumer.stream = far.get();
  }
  ~Pipe() {
    far->vtbl->release(far.get());
    loop.drain();
    far.reset();
    lane->release();
    CHECK(Stream::live == 0);
    CHECK(Lane::live == 0);
  }
};

}  // namespace

TEST_CASE("a stream delivers what was granted, and its end after the last byte") {
  Pipe pipe(3);
  pipe.far->push(SF_CHANNEL_STDOUT, 0, "hello");
  pipe.far->push(SF_CHANNEL_STDERR, 0, "!");
  pipe.far->finish();
  pipe.loop.drain();
  CHECK(pipe.consumer.out == "hel");
  CHECK(pipe.consumer.done == 0);
  pipe.consumer.grant(3);
  pipe.loop.drain();
  CHECK(pipe.consumer.out == "hello");
  CHECK(pipe.consumer.err == "!");
  CHECK(pipe.consumer.done == 1);
  CHECK(pipe.consumer.end.delivered == 6);
  CHECK(pipe.consumer.rules_kept());
}

TEST_CASE("the far end decides how much input it takes, and hears of the end") {
  Pipe pipe(8);
  std::string took;
  int shut = 0;
  pipe.far->on_write = [&](std::string_view data, std::uint32_t) {
    took += data.substr(0, 2);
    return std::min<std::size_t>(data.size(), 2);
  };
  pipe.far->on_shutdown = [&] { ++shut; };
  std::size_t accepted = 0;
  sf_stream* near = pipe.far.get();
  CHECK(near->vtbl->write(near, bytes("abc"), 0, &accepted, nullptr) == SF_OK);
  CHECK(accepted == 2);
  pipe.far->writable();
  pipe.loop.drain();
  CHECK(pipe.consumer.writable == 1);
  near->vtbl->shutdown_write(near, nullptr);
  near->vtbl->shutdown_write(near, nullptr);
  CHECK(shut == 1);
  CHECK(near->vtbl->write(near, bytes("c"), 0, &accepted, nullptr) == SF_CONFLICT);
  CHECK(took == "ab");
  pipe.far->finish();
  pipe.loop.drain();
}

TEST_CASE("a cancel drops what is undelivered and counts it") {
  Pipe pipe(1);
  pipe.far->push(SF_CHANNEL_DATA, 0, "abc");
  pipe.loop.drain();
  pipe.far->vtbl->cancel(pipe.far.get());
  pipe.loop.drain();
  CHECK(pipe.consumer.failure.code == SF_CANCELLED);
  CHECK(pipe.consumer.end.dropped == 2);
  CHECK(pipe.far->cancelled());
}

TEST_CASE("messages come whole, also in pieces and empty") {
  Pipe pipe(2);
  pipe.consumer.grant_back = true;
  pipe.far->push(SF_CHANNEL_DATA, SF_DATA_TEXT | SF_DATA_END, "five5");
  pipe.far->push(SF_CHANNEL_DATA, SF_DATA_BINARY | SF_DATA_END, "");
  pipe.far->finish(Failure(SF_TRANSPORT_LOST, "reset"));
  pipe.loop.drain();
  CHECK(pipe.consumer.messages == std::vector<std::string>{"five5", ""});
  CHECK(pipe.consumer.failure.message == "reset");
}

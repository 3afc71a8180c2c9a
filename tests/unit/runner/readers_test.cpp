// Two sides of a connection whose lanes call each other and wait: whoever reads runs lanes, too.
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "runner/connection.hpp"
#include "sandforge/runtime.hpp"

using namespace sandforge;
using runner::Connection;

namespace {

constexpr std::chrono::seconds kLimit{60};

// One of the two: each has readers and lanes of its own.
class Side {
 public:
  explicit Side(posix::Fd socket) : connection_(std::move(socket), Connection::Full::queue) {
    for (Seat& seat : seats_)
      seat.lane = runtime_.make_lane();
    connection_.prepare([this](const wire::runner::FrameView& frame) { return take(frame); });
    for (int i = 0; i < 2; ++i)
      readers_.emplace_back([this] {
        if (!connection_.read()) return;
        ++ends_;
        lose();
      });
  }
  ~Side() {
    connection_.close();
    for (std::thread& reader : readers_)
      reader.join();
    CHECK(ends_ == 1);
    CHECK(faults_ == 0);
  }

  // Asks the lane of that number on the other side, which asks back until the depth is used up.
  // False: the connection is over.
  bool ask(std::uint64_t seat, std::uint64_t depth) {
    auto answer = std::make_shared<std::promise<bool>>();
    auto answered = answer->get_future();
    const std::uint64_t id = next_.fetch_add(1);
    {
      const std::lock_guard lock(mutex_);
      if (lost_) return false;
      waiting_[id] = std::move(answer);
    }
    send(wire::runner::Kind::call, seat, depth, id);
    if (answered.wait_for(kLimit) == std::future_status::ready) return answered.get();
    ++faults_;
    return false;
  }

  // Numbered frames, for the lane of that number.
  void tell(std::uint64_t seat, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
      send(wire::runner::Kind::event, seat, 0, i);
  }
  bool has_heard(std::uint64_t seat, std::uint64_t count) {
    Seat& heard = seats_[seat];
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLimit, [&] { return heard.heard == count; });
  }
  void close() { connection_.close(); }

 private:
  struct Seat {
    Lane lane;
    std::atomic<bool> busy{false};
    std::uint64_t heard = 0;
  };

  void send(wire::runner::Kind kind, std::uint64_t seat, std::uint64_t depth, std::uint64_t id) {
    wire::runner::Header header;
    header.kind = kind;
    header.lane = seat;
    header.target = depth;
    header.id = id;
    connection_.send(header, "some bytes");
  }

  bool take(const wire::runner::FrameView& frame) {
    const wire::runner::Header header = frame.header;
    if (header.kind == wire::runner::Kind::reply) {
      const std::lock_guard lock(mutex_);
      const auto found = waiting_.find(header.id);
      if (found == waiting_.end()) return true;
      found->second->set_value(true);
      waiting_.erase(found);
      return true;
    }
    Seat& seat = seats_[header.lane];
    seat.lane.post([this, &seat, header] {
      if (seat.busy.exchange(true)) ++faults_;  // on two threads
      if (header.kind == wire::runner::Kind::event) {
        hear(seat, header.id);
      } else {
        if (header.target > 0) ask(header.lane + 1, header.target - 1);
        send(wire::runner::Kind::reply, 0, 0, header.id);
      }
      seat.busy = false;
    });
    return true;
  }
  void hear(Seat& seat, std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (seat.heard++ != number) ++faults_;  // in another order
    changed_.notify_all();
  }
  void lose() {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    for (const auto& [id, answer] : waiting_)
      answer->set_value(false);
    waiting_.clear();
  }

  static Runtime::Options threads() {
    Runtime::Options out;
    out.io_threads = 6;  // as many lanes as may wait at once, and one
    return out;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<std::promise<bool>>> waiting_;
  bool lost_ = false;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<int> ends_{0}, faults_{0};
  std::array<Seat, 8> seats_;
  Connection connection_;
  std::vector<std::thread> readers_;
  Runtime runtime_{threads()};
};

struct Both {
  Both() {
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    one = std::make_unique<Side>(posix::Fd(pair[0]));
    other = std::make_unique<Side>(posix::Fd(pair[1]));
  }
  std::unique_ptr<Side> one, other;
};

}  // namespace

TEST_CASE("readers: lanes that wait call each other, three deep and from both sides", "[runner]") {
  Both both;
  std::vector<std::future<bool>> ends;
  for (Side* side : {both.one.get(), both.other.get()})
    ends.push_back(
        std::async(std::launch::async, [&, side, base = side == both.one.get() ? 0U : 4U] {
          bool answered = true;
          for (int i = 0; i < 300 && answered; ++i)
            answered = side->ask(base, 3);
          return answered;
        }));
  for (auto& end : ends)
    CHECK(end.get());
}

TEST_CASE("readers: frames of a lane keep their order, whoever runs it", "[runner]") {
  Both both;
  constexpr std::uint64_t count = 2000;
  std::vector<std::future<void>> senders;
  for (Side* side : {both.one.get(), both.other.get()})
    for (std::uint64_t seat = 0; seat < 3; ++seat)
      senders.push_back(std::async(std::launch::async, [=] { side->tell(seat, count); }));
  for (auto& sender : senders)
    sender.get();
  for (Side* side : {both.one.get(), both.other.get()})
    for (std::uint64_t seat = 0; seat < 3; ++seat)
      CHECK(side->has_heard(seat, count));
}

TEST_CASE("readers: who waits when the connection ends is told so", "[runner]") {
  for (int round = 0; round < 50; ++round) {
    Both both;
    std::promise<void> begun;
    std::atomic<int> asked{0};
    const auto ask_until_over = [&](Side& side, std::uint64_t base) {
      while (side.ask(base, 3))
        if (++asked == round) begun.set_value();
    };
    auto one = std::async(std::launch::async, [&] { ask_until_over(*both.one, 0); });
    auto other = std::async(std::launch::async, [&] { ask_until_over(*both.other, 4); });
    if (round > 0) begun.get_future().wait();
    (round % 2 == 0 ? both.one : both.other)->close();
    CHECK(one.wait_for(kLimit) == std::future_status::ready);
    CHECK(other.wait_for(kLimit) == std::future_status::ready);
  }
}

// The connection to a session's guest, on the sandbox's lane.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sandforge/ext/host_executor.h"
#include "sandforge/guest_link/abi_glue.hpp"
#include "sandforge/wire/guest/listeners.hpp"

namespace sandforge::guest_link {

namespace guest = wire::guest;

// What one channel of the connection tells its owner. The last call is one of on_end, on_done, a
// reply, on_file_end, on_error and on_lost, or the on_file_entries that none follow.
class ChannelListener : public guest::Listener {
 public:
  void on_error(const guest::ErrorInfo& error) override = 0;
  virtual void on_lost(bool may_have_started) = 0;
};

// Lives until its stream's done, also when nobody holds it any more. All of it on the lane.
class GuestLink final : private guest::Listeners<ChannelListener>,
                        public std::enable_shared_from_this<GuestLink> {
 public:
  // A guest that says nothing for `silence_ms` while something is asked of it is silent. Counted by
  // a timer, each round of it once, however long that took: the time in which this process was
  // stopped, or the machine slept, is none. 0: never.
  GuestLink(sf_host* host, const sf_executor_service* executor, LaneRef lane,
            std::uint64_t silence_ms);
  ~GuestLink() override;
  // Called at most once, when the guest is silent. From then on nothing ends, also where the
  // connection does, until let_go: then all that was asked is lost. Or until go_on: it has a
  // reason.
  void when_silent(std::function<void()> work) { when_silent_ = std::move(work); }
  void let_go();
  void go_on();

  // Opens the stream that the guest is at the other end of, with these events.
  using Opener =
      std::function<sf_status(const sf_stream_events&, sf_stream**, const sf_error_sink*)>;
  // ready comes once, with null when the guest answered its hello.
  sf_status open(const Opener& opener, std::function<void(const Failure*)> ready,
                 const sf_error_sink* err);
  // The same over a connected socket, which is taken over.
  sf_status open(int descriptor, std::function<void(const Failure*)> ready,
                 const sf_error_sink* err);
  // Where others wrap what the guest says: takes its next piece off the front of what came. False:
  // there is none in what is left, which is used up. Before open.
  using Unwrap = std::function<bool(std::string_view& came, std::string_view& piece)>;
  void unwrap_by(Unwrap unwrap) { unwrap_ = std::move(unwrap); }
  bool up() const noexcept { return stream_ != nullptr && !gone_ && !client_.failed(); }
  void close() noexcept;
  // Nobody will ask for anything more: it closes when what was asked has its answers.
  void close_when_idle() noexcept;
  // Called at most once, when the connection has ended while something was asked of the guest.
  // Nothing hears of it until let_go.
  void when_lost(std::function<void()> work) { when_lost_ = std::move(work); }
  // What a lost connection means to those who have asked.
  void lost_means(Failure failure) { lost_ = std::move(failure); }
  Failure lost(bool may_have_started) const;
  // Once, when the connection has ended; at once when it has already.
  void when_ended(std::function<void()> work);

  // Makes a request of the client and listens on its channel. Only while up.
  guest::ChannelId request(const std::function<guest::ChannelId(guest::GuestClient&)>& make,
                           std::shared_ptr<ChannelListener> listener);
  // The same for a channel that was opened on the client.
  void listen(guest::ChannelId channel, std::shared_ptr<ChannelListener> listener) {
    add(channel, std::move(listener));
    if (tick_ == nullptr) watch();
  }
  // Gives a channel up: its listener hears nothing more.
  void leave(guest::ChannelId channel);
  guest::GuestClient& client() noexcept { return client_; }
  // Before anything is asked of the client otherwise: tells the guest what was forgotten.
  guest::GuestClient& ask() {
    pass_on_forgotten();
    return client_;
  }
  // The guest need not remember this process, which has ended. It is told with the next request:
  // a message of its own would wake it up once more for every command.
  void forget(guest::ProcessId process);
  // Hands to the socket what the client has to say, now or when the event is over.
  void flush();
  // Its on_stdin_credit is called when the client may take more input: what others have to say can
  // stand in the way, too.
  void wait_for_room(std::weak_ptr<ChannelListener> who) { stalled_.push_back(std::move(who)); }

  // What the guest said of itself.
  const guest::HelloReply& hello() const noexcept { return hello_; }

  // Inside an event of the client: what is said then goes out when the event is over.
  bool busy() const noexcept { return busy_; }
  void after_event(std::function<void()> work) { after_.push_back(std::move(work)); }

  const LaneRef& lane() const noexcept { return lane_; }

 private:
  void on_hello(const guest::HelloReply&) override;
  void on_lost(guest::ChannelId, bool) override;

  void data(std::string_view bytes);
  bool feed(std::string_view bytes);
  void ended(const sf_error* error);
  void tell_ready(const Failure* failure);
  void pass_on_forgotten();
  void call_stalled();
  void watch();
  void arm();
  void tick();
  void drop_tick(bool cancel) noexcept;

  sf_host* host_;
  const sf_executor_service* executor_;
  LaneRef lane_;
  guest::GuestClient client_;
  guest::HelloReply hello_;
  Unwrap unwrap_;
  sf_stream* stream_ = nullptr;
  std::function<void(const Failure*)> ready_;
  std::function<void()> when_ended_;
  std::vector<guest::ProcessId> forgotten_;
  std::shared_ptr<GuestLink> self_;  // until the stream's done
  std::vector<std::function<void()>> after_;
  std::vector<std::weak_ptr<ChannelListener>> stalled_;
  bool busy_ = false;

  const std::uint64_t round_ms_;
  sf_op* tick_ = nullptr;  // while channels are open
  unsigned quiet_ = 0;     // rounds since the guest said something
  std::uint64_t counted_ms_ = 0;
  std::function<void()> when_silent_;
  std::function<void()> when_lost_;
  Failure lost_;
  bool idle_closes_ = false;
  bool held_ = false;
  bool gone_ = false;  // the connection ended while held
};

}  // namespace sandforge::guest_link

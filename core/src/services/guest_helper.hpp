// The sandforge-guest that runs the commands of one plugin on the host's machine: started for the
// first of them, ended with the Runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "sandforge/error.hpp"
#include "sandforge/posix/fd.hpp"
#include "sandforge/runtime.hpp"
#include "sandforge/wire/guest/listeners.hpp"

namespace sandforge::services {

namespace guest = wire::guest;

// What one channel of the connection tells. The last call is one of on_end, on_done, on_error and
// on_lost. All of them on the helper's lane.
class HelperChannel : public guest::Listener {
 public:
  virtual void on_lost(const Error&) {}
  // The host ends everything: what is still to come goes nowhere.
  virtual void on_host_end() {}
};

// The program while it runs. Dropped unreaped it is left to end by itself, as its socket closes.
struct HelperProgram {
  posix::Fd socket;
  pid_t pid = -1;
  std::optional<Error> error;  // instead of the two
};

class GuestHelper final : public Pending,
                          private guest::Listeners<HelperChannel>,
                          public std::enable_shared_from_this<GuestHelper> {
 public:
  // Starts nothing yet.
  static std::shared_ptr<GuestHelper> make(std::shared_ptr<Runtime> runtime,
                                           const std::filesystem::path& program);

  // False once it has ended, or could not be started. [any]
  bool usable() const noexcept { return !ended_.load(); }
  // The Runtime ends: everything that runs is ended, then the helper. [any]
  void cancel() noexcept override;
  // Nobody will run anything more: the helper ends with its last command. [any]
  void retire() noexcept;
  // Everything that runs is ended, then the helper; nothing begins any more. [any]
  void end_all(std::uint64_t grace_ms, Handler<void> done);

  const Lane& lane() const noexcept { return lane_; }

  // The rest on the lane.

  // Calls `use` once the helper answers, now or later; with an error when it does not.
  void when_open(std::function<void(const Error*)> use);
  guest::GuestClient& client() noexcept { return client_; }
  void listen(guest::ChannelId channel, std::shared_ptr<HelperChannel> to) {
    add(channel, std::move(to));
  }
  // Makes a request whose answer goes to `to`; null: to nobody.
  void request(const std::function<guest::ChannelId(guest::GuestClient&)>& make,
               std::shared_ptr<HelperChannel> to);
  // Its on_stdin_credit is called when the client may take more input: what others have to say can
  // stand in the way, too.
  void wait_for_room(std::weak_ptr<HelperChannel> who) { stalled_.push_back(std::move(who)); }
  // Hands to the socket what the client has to say, now or when the event is over.
  void flush();

 private:
  enum class State : std::uint8_t { fresh, starting, open, ended };

  GuestHelper(std::shared_ptr<Runtime> runtime, std::filesystem::path program);

  void start();
  void started(HelperProgram program);
  void answered(const Error* error);
  void expect_answer();
  void end_now();
  void call_stalled();
  void read();
  void wait_readable();
  void lose(const std::string& why);
  Error end_of(const std::string& why) const;
  void reap(int tries);
  void end_if_retired();

  void on_hello(const guest::HelloReply&) override;
  void on_lost(guest::ChannelId, bool) override;

  const std::shared_ptr<Runtime> runtime_;
  const std::filesystem::path program_;
  const Lane lane_;
  std::atomic<bool> ended_{false};

  // On the lane.
  guest::GuestClient client_;
  std::optional<boost::asio::posix::stream_descriptor> io_;
  std::vector<std::function<void(const Error*)>> waiting_;
  std::vector<std::weak_ptr<HelperChannel>> stalled_;
  std::shared_ptr<Pending> answer_timer_;
  std::optional<Error> failure_;
  State state_ = State::fresh;
  pid_t pid_ = -1;
  bool answered_ = false;
  bool busy_ = false;    // inside an event of the client
  bool ending_ = false;  // the host asked for the end
  bool retired_ = false;
  bool closed_ = false;  // by end_all
  bool waiting_write_ = false;
};

}  // namespace sandforge::services

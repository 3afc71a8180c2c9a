// One request: its bytes out, its answer in, its stream, its deadlines.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/steady_timer.hpp>

#include "http/answer_parser.hpp"
#include "http/client.hpp"
#include "http/connection.hpp"
#include "http/request.hpp"
#include "http/websocket.hpp"
#include "plugin/stream_events.hpp"
#include "sandforge/abi.h"
#include "sandforge/ext/host_http.h"

namespace sandforge::http {

// What the plugin gave, copied. Those of `http` that are absent are null.
struct Events {
  sf_stream_events io{};
  sf_http_events http{};
};

// Lives until its done, and as long as the plugin's handle. On the client's lane, but for what is
// [any].
class Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(std::shared_ptr<Client> client, Request request, const Events& events);

  // As in sf_stream_vtbl.
  void grant(std::uint64_t bytes) noexcept;  // [any]
  sf_status write(sf_bytes data, std::uint32_t flags, std::size_t* accepted,
                  const sf_error_sink* err) noexcept;
  sf_status shutdown_write(const sf_error_sink* err) noexcept;
  void cancel() noexcept;    // [any]
  void released() noexcept;  // [any]

  // Queues it: counted at once, and never ended inside this call.
  void begin();
  // By the client: one of connect and use for each try.
  bool may_reuse() const noexcept { return !request_.fresh && !request_.tunnel && !retried_; }
  void connect();
  void use(std::shared_ptr<Connection> connection, bool reused);
  // Ends it; nothing when it has ended.
  void end(std::optional<Error> error);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Mode : std::uint8_t { head, body, raw, messages };
  struct Deadline {
    Clock::time_point at;
    const char* missed;  // null: time for a ping
  };

  // What is to be sent.
  void send();
  void send_failed(const Io& io);
  void send_later();
  void wait_to_send(Io::What what);
  void tell_writable();
  std::size_t unsent() const noexcept { return out_.size() - sent_; }
  std::size_t room() const noexcept;
  // Whether the plugin has to wait for the answer before it may write.
  bool before_upgrade() const noexcept {
    return mode_ == Mode::head && (request_.upgrade || !request_.websocket_key.empty());
  }
  void append(std::string_view piece);
  bool all_sent() const noexcept { return unsent() == 0 && input_shut_; }

  // What comes.
  void receive();
  // False: no more bytes are wanted now.
  bool digest();
  bool digest_head();
  bool digest_body();
  bool digest_raw();
  bool on_head();
  // Of a 101, or what stands for it: the mode that follows; head: it was not asked for.
  Mode upgraded_to(const AnswerHead& head) const noexcept;
  void tell_response(const AnswerHead& head);
  void read_ended();
  void read_failed(const Io& io);
  void complete();
  void deliver(std::string_view data, std::uint32_t flags);
  std::size_t wanted(std::size_t limit) const noexcept;
  std::uint64_t drain();

  // A WebSocket, in exchange_messages.cpp.
  Result<void> write_message(std::string_view data, std::uint32_t flags, std::size_t* accepted);
  bool digest_messages();
  bool on_frame(const FrameReader::Step& step);
  void send_close(std::uint16_t code);
  void on_close(const FrameReader::Step& step);
  bool breaks_off(const FrameReader::Step& step);
  void ping();
  std::uint64_t drain_messages();
  bool dropping() const noexcept { return released_ && credit_.none(); }
  bool again();  // on another connection, when nothing has gone out

  std::chrono::seconds keep() const;
  Error lost(const std::string& why, int number) const;
  Error lost(const Io& io) const;
  Error garbled(const std::string& why) const;
  void moved() noexcept { moved_at_ = Clock::now(); }
  void arm();
  void check_deadlines();
  std::optional<Deadline> next_deadline() const;
  const char* why_no_head() const noexcept;
  bool waits_for_peer() const noexcept;
  sf_status off_lane(const char* what, const sf_error_sink* err) const;
  void finish(std::optional<Error> error);

  const std::shared_ptr<Client> client_;
  Request request_;
  const Events events_;

  plugin::Credit credit_;
  bool released_ = false;
  bool ended_ = false;
  bool retried_ = false;
  std::uint32_t phase_ = SF_HTTP_NOT_CONNECTED;

  std::shared_ptr<Connector> connector_;
  std::shared_ptr<Connection> connection_;
  bool reused_ = false;

  std::string out_;
  std::size_t sent_ = 0;
  std::uint64_t written_ = 0;  // of a streamed body
  bool input_shut_ = false;    // all of the request is in out_, or was
  bool shut_asked_ = false;    // before the upgrade
  bool send_failed_ = false;
  bool send_posted_ = false;
  bool waiting_write_ = false;
  bool wants_writable_ = false;
  bool shut_down_ = false;

  Mode mode_ = Mode::head;
  std::unique_ptr<AnswerParser> parser_;
  unsigned informational_ = 0;
  bool waiting_read_ = false;
  bool turn_posted_ = false;
  std::uint64_t delivered_ = 0;
  std::uint64_t dropped_ = 0;

  struct Messages {
    FrameReader in;
    Utf8Check check;                     // of what the plugin writes
    Opcode open = Opcode::continuation;  // the message that it is in; continuation: none
    bool close_sent = false;
    bool close_came = false;
    std::uint16_t close_code = 0;
    std::string close_reason;
    bool pinged = false;
    Clock::time_point heard_at{};  // or pinged
    Clock::time_point closing_since{};
  };
  Messages messages_;

  boost::asio::steady_timer timer_;
  std::optional<Clock::time_point> timer_at_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point connecting_since_ = began_;
  Clock::time_point moved_at_ = began_;
};

}  // namespace sandforge::http

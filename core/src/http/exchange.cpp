#include "http/exchange.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plugin/abi_call.hpp"

namespace sandforge::http {
namespace {

using plugin::call_value;

constexpr std::size_t kScratch = 64U << 10;
constexpr std::size_t kOutput = 256U << 10;  // of a streamed body or an upgraded connection
constexpr std::size_t kTurn = 1U << 20;      // then others of the lane have theirs
constexpr unsigned kMaxInformational = 16;
constexpr std::chrono::seconds kKeep{30};  // an idle connection, unless the server says less

// One buffer per thread, not per request: on_data borrows it for the call.
std::array<std::uint8_t, kScratch>& scratch() {
  thread_local auto buffer = std::make_unique<std::array<std::uint8_t, kScratch>>();
  return *buffer;
}

std::chrono::steady_clock::time_point after(std::chrono::steady_clock::time_point from,
                                            std::uint64_t ms) {
  constexpr std::uint64_t longest = std::uint64_t{1000} * 3600 * 24 * 365;
  return from + std::chrono::milliseconds(std::min(ms, longest));
}

}  // namespace

Exchange::Exchange(std::shared_ptr<Client> client, Request request, const Events& events)
    : client_(std::move(client)),
      request_(std::move(request)),
      events_(events),
      credit_(request_.window),
      out_(std::move(request_.bytes)),
      input_shut_(!request_.streamed),
      timer_(client_->lane().executor()) {}

// ---- The plugin's calls

void Exchange::grant(std::uint64_t bytes) noexcept {
  if (credit_.grant(bytes)) client_->lane().post([self = shared_from_this()] { self->receive(); });
}

void Exchange::cancel() noexcept {
  client_->lane().post([self = shared_from_this()] {
    self->end(Error(Status::cancelled, "the request was cancelled", "http.cancelled"));
  });
}

void Exchange::released() noexcept {
  client_->lane().post([self = shared_from_this()] {
    self->released_ = true;
    self->receive();
  });
}

sf_status Exchange::off_lane(const char* what, const sf_error_sink* err) const {
  client_->plugin().faults.report(plugin::Fault::off_lane, what);
  return plugin::refuse(
      err, Error(Status::invalid, "a [lane] function of a stream was called outside its lane"));
}

sf_status Exchange::write(sf_bytes data, std::uint32_t flags, std::size_t* accepted,
                          const sf_error_sink* err) noexcept {
  try {
    if (!client_->lane().is_current()) return off_lane("http.write", err);
    if (accepted == nullptr || (data.ptr == nullptr && data.len > 0))
      return plugin::refuse(err,
                            Error(Status::invalid, "write needs bytes and a place for a count"));
    if (ended_ || send_failed_ || (input_shut_ && !before_upgrade()) || shut_asked_)
      return plugin::refuse(
          err, Error(Status::conflict, "the request takes no more input", "http.no_input"));
    if (request_.length && data.len > *request_.length - written_)
      return plugin::refuse(
          err, Error(Status::invalid, "the body is longer than its Content-Length", "http.body"));
    std::size_t size = before_upgrade() ? 0 : std::min(data.len, room());
    if (mode_ == Mode::messages) {
      if (auto good = write_message(plugin::view(data), flags, &size); !good)
        return plugin::refuse(err, good.error());
    } else {
      append(plugin::view(data).substr(0, size));
    }
    wants_writable_ = size < data.len;
    *accepted = size;
    if (unsent() > 0) send_later();
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

sf_status Exchange::shutdown_write(const sf_error_sink* err) noexcept {
  try {
    if (!client_->lane().is_current()) return off_lane("http.shutdown_write", err);
    if (ended_) return SF_OK;
    if (before_upgrade()) shut_asked_ = true;
    if (std::exchange(input_shut_, true)) return SF_OK;
    if (mode_ == Mode::messages) send_close(static_cast<std::uint16_t>(CloseCode::normal));
    if (request_.length && written_ < *request_.length) {
      client_->lane().post([self = shared_from_this()] {
        self->end(
            Error(Status::invalid, "the body was shorter than its Content-Length", "http.body"));
      });
      return SF_OK;
    }
    if (request_.streamed && !request_.length) out_.append("0\r\n\r\n");
    send_later();
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

// ---- Its connection

void Exchange::begin() {
  client_->begin(shared_from_this());
  arm();
}

void Exchange::connect() {
  phase_ = SF_HTTP_NOT_CONNECTED;
  connecting_since_ = Clock::now();
  connector_ = client_->dial_up(
      request_.tunnel, [self = shared_from_this()](Result<std::shared_ptr<Connection>> connection) {
        self->connector_.reset();
        if (connection) return self->use(std::move(*connection), false);
        self->client_->connection_gone();
        self->finish(std::move(connection).error());
      });
  arm();
}

void Exchange::use(std::shared_ptr<Connection> connection, bool reused) {
  connection_ = std::move(connection);
  reused_ = reused;
  phase_ = SF_HTTP_NOT_SENT;
  parser_ = std::make_unique<AnswerParser>(request_.to_head);
  moved();
  send();
  receive();
}

bool Exchange::again() {
  if (phase_ != SF_HTTP_NOT_SENT || !reused_) return false;
  connection_->close();
  connection_.reset();
  client_->connection_gone();
  retried_ = true;
  send_failed_ = waiting_read_ = waiting_write_ = false;
  phase_ = SF_HTTP_NOT_CONNECTED;
  client_->begin_again(shared_from_this());
  return true;
}

// ---- Out

std::size_t Exchange::room() const noexcept {
  return unsent() >= kOutput ? 0 : kOutput - unsent();
}

void Exchange::append(std::string_view piece) {
  if (piece.empty()) return;
  written_ += piece.size();
  const bool chunk = mode_ != Mode::raw && request_.streamed && !request_.length;
  if (chunk) out_.append(fmt::format("{:x}\r\n", piece.size()));
  out_.append(piece);
  if (chunk) out_.append("\r\n");
}

// Never inside a call of the plugin.
void Exchange::send_later() {
  if (waiting_write_ || std::exchange(send_posted_, true)) return;
  client_->lane().post([self = shared_from_this()] {
    self->send_posted_ = false;
    self->send();
  });
}

void Exchange::send() {
  if (ended_ || !connection_ || waiting_write_ || send_failed_) return;
  std::size_t turn = 0;
  while (unsent() > 0) {
    if (turn >= kTurn) return send_later();
    const Io io = connection_->io().write(out_.data() + sent_, std::min(unsent(), kOutput));
    if (io.what == Io::What::wants_read || io.what == Io::What::wants_write) {
      wait_to_send(io.what);
      break;
    }
    if (io.what != Io::What::moved) return send_failed(io);
    phase_ = std::max(phase_, SF_HTTP_MAYBE_SENT);
    sent_ += io.bytes;
    turn += io.bytes;
    moved();
    messages_.closing_since = moved_at_;
  }
  if (unsent() == 0) {
    std::string().swap(out_);
    sent_ = 0;
  } else if (sent_ >= kOutput) {
    out_.erase(0, std::exchange(sent_, 0));
  }
  if (mode_ == Mode::raw && all_sent() && !shut_down_) {
    const Io io = connection_->io().shutdown_write();
    shut_down_ = io.what == Io::What::moved || io.what == Io::What::failed;
    if (!shut_down_) wait_to_send(io.what);
  }
  if (messages_.close_came && messages_.close_sent && unsent() == 0) return finish(std::nullopt);
  tell_writable();
}

void Exchange::wait_to_send(Io::What what) {
  waiting_write_ = true;
  connection_->wait(what, [self = shared_from_this(), of = connection_] {
    if (self->connection_ != of) return;
    self->waiting_write_ = false;
    self->send();
  });
  arm();
}

// The answer may be there all the same: it says why the rest is not wanted.
void Exchange::send_failed(const Io& io) {
  if (again()) return;
  if (phase_ == SF_HTTP_NOT_SENT) return finish(lost(io));
  if (messages_.close_came) return finish(std::nullopt);
  send_failed_ = true;
  std::string().swap(out_);
  sent_ = 0;
  tell_writable();
}

void Exchange::tell_writable() {
  const bool now = send_failed_ || (room() > 0 && !before_upgrade());
  if (ended_ || !now || !std::exchange(wants_writable_, false)) return;
  call_value(client_->plugin(), "on_writable", events_.io.on_writable, events_.io.ctx);
}

// ---- In

void Exchange::receive() {
  if (ended_ || !connection_ || waiting_read_ || turn_posted_) return;
  std::size_t turn = 0;
  while (digest()) {
    if (turn >= kTurn) {
      turn_posted_ = true;
      client_->lane().post([self = shared_from_this()] {
        self->turn_posted_ = false;
        self->receive();
      });
      return;
    }
    const Io io = connection_->fill();
    if (io.what == Io::What::end) return read_ended();
    if (io.what == Io::What::failed) return read_failed(io);
    if (io.what == Io::What::moved) {
      turn += io.bytes;
      moved();
      messages_.heard_at = moved_at_;
      messages_.pinged = false;
      continue;
    }
    waiting_read_ = true;
    connection_->wait(io.what, [self = shared_from_this(), of = connection_] {
      if (self->connection_ != of) return;
      self->waiting_read_ = false;
      self->receive();
    });
    return arm();
  }
}

bool Exchange::digest() {
  while (mode_ == Mode::head && !connection_->input().empty()) {
    const std::size_t before = connection_->input().size();
    if (!digest_head()) return false;
    if (mode_ == Mode::head && connection_->input().size() == before) return true;
  }
  if (mode_ == Mode::head) return true;
  if (mode_ == Mode::messages) return digest_messages();
  return mode_ == Mode::raw ? digest_raw() : digest_body();
}

bool Exchange::digest_head() {
  const auto step = parser_->feed(connection_->input(), nullptr, 0);
  connection_->used(step.used);
  if (step.state == AnswerParser::State::head) return on_head();
  if (step.state == AnswerParser::State::wrong) {
    finish(garbled(parser_->why()));
    return false;
  }
  return true;
}

bool Exchange::on_head() {
  const AnswerHead& head = parser_->head();
  if (head.status >= 100 && head.status < 200 && head.status != 101) {
    if (++informational_ > kMaxInformational) {
      finish(garbled("it has no end of informational heads"));
      return false;
    }
    parser_ = std::make_unique<AnswerParser>(request_.to_head);
    return true;
  }
  const Mode next = upgraded_to(head);
  const bool raw = next == Mode::raw || next == Mode::messages;
  if ((head.status == 101 && !raw) || (raw && unsent() > 0)) {
    finish(garbled("it changes the protocol unasked"));
    return false;
  }
  if (next == Mode::messages) {
    const auto wrong = check_handshake(head, request_.websocket_key, request_.subprotocols);
    if (!wrong.empty()) {
      finish(garbled(wrong));
      return false;
    }
  }
  phase_ = SF_HTTP_HEAD;
  mode_ = next;
  if (raw) input_shut_ = shut_asked_;
  tell_response(head);
  if (raw) {
    messages_.heard_at = Clock::now();
    if (next == Mode::messages && shut_asked_)
      send_close(static_cast<std::uint16_t>(CloseCode::normal));
    wants_writable_ = !input_shut_;
    send();
  } else if (parser_->done()) {
    complete();
    return false;
  } else if ((request_.upgrade || !request_.websocket_key.empty()) &&
             std::exchange(wants_writable_, false)) {
    // Refused: the next write says so.
    call_value(client_->plugin(), "on_writable", events_.io.on_writable, events_.io.ctx);
  }
  return !ended_;
}

Exchange::Mode Exchange::upgraded_to(const AnswerHead& head) const noexcept {
  if (!request_.websocket_key.empty()) return head.status == 101 ? Mode::messages : Mode::body;
  const bool raw = request_.upgrade && !request_.to_head &&
                   (head.status == 101 || (head.status == 200 && !head.framed));
  return raw ? Mode::raw : Mode::body;
}

void Exchange::tell_response(const AnswerHead& head) {
  if (events_.http.on_response == nullptr) return;
  std::vector<sf_http_header> headers;
  for (const auto& [name, value] : head.headers)
    headers.push_back({plugin::to_bytes(name), plugin::to_bytes(value)});
  const std::string subprotocol(mode_ == Mode::messages ? head.header("Sec-WebSocket-Protocol")
                                                        : std::string_view());
  const sf_http_response response{sizeof(response), head.status,    mode_ == Mode::body ? 0U : 1U,
                                  headers.data(),   headers.size(), plugin::to_str(subprotocol)};
  const sf_http_response* given = &response;
  call_value(client_->plugin(), "on_response", events_.http.on_response, events_.http.ctx, given);
}

std::size_t Exchange::wanted(std::size_t limit) const noexcept {
  return dropping() ? limit : credit_.of(limit);
}

void Exchange::deliver(std::string_view data, std::uint32_t flags) {
  if (data.empty() && flags == 0) return;
  phase_ = SF_HTTP_BODY;
  if (dropping()) {
    dropped_ += data.size();
    return;
  }
  credit_.spend(data.size());
  delivered_ += data.size();
  call_value(client_->plugin(), "on_data", events_.io.on_data, events_.io.ctx, SF_CHANNEL_DATA,
             flags, sf_bytes{reinterpret_cast<const std::uint8_t*>(data.data()), data.size()});
}

bool Exchange::digest_body() {
  while (!connection_->input().empty()) {
    const auto step = parser_->feed(connection_->input(), scratch().data(), wanted(kScratch));
    connection_->used(step.used);
    deliver({reinterpret_cast<const char*>(scratch().data()), step.body}, 0);
    switch (step.state) {
      case AnswerParser::State::complete:
        complete();
        return false;
      case AnswerParser::State::wrong:
        finish(garbled(parser_->why()));
        return false;
      case AnswerParser::State::room:
        if (wanted(1) == 0) return false;
        break;
      default:
        if (step.used > 0) break;
        if (!connection_->full()) return true;
        finish(garbled("a line of its body is too long"));
        return false;
    }
  }
  return true;
}

bool Exchange::digest_raw() {
  while (!connection_->input().empty()) {
    const auto input = connection_->input();
    const std::size_t size = wanted(input.size());
    if (size == 0) return false;
    deliver(input.substr(0, size), 0);
    connection_->used(size);
  }
  return true;
}

void Exchange::read_ended() {
  if (again()) return;
  if (mode_ == Mode::raw) return finish(std::nullopt);
  if (mode_ == Mode::messages) {
    // Many servers answer a close by ending the connection.
    if (messages_.close_sent && messages_.in.between() && connection_->input().empty())
      return finish(std::nullopt);
    return finish(lost("it ended without a close", 0));
  }
  if (parser_->finish() == AnswerParser::State::complete) return complete();
  finish(lost(parser_->why(), 0));
}

void Exchange::read_failed(const Io& io) {
  if (again()) return;
  finish(lost(io));
}

// ---- The end

void Exchange::complete() {
  const auto seconds = keep();
  if (seconds.count() > 0) {
    client_->give_back(std::exchange(connection_, nullptr), seconds);
  }
  finish(std::nullopt);
}

// How long the connection can be kept; 0: it cannot.
std::chrono::seconds Exchange::keep() const {
  const AnswerHead& head = parser_->head();
  if (!head.keep_alive || !all_sent() || send_failed_ || request_.tunnel ||
      !connection_->input().empty())
    return std::chrono::seconds(0);
  const auto said = head.header("Keep-Alive");
  const auto at = said.find("timeout=");
  if (at == std::string_view::npos) return kKeep;
  int seconds = 0;
  const auto number = said.substr(at + sizeof("timeout=") - 1);
  std::from_chars(number.data(), number.data() + number.size(), seconds);
  // A second less: what is sent must arrive before the server has closed.
  return std::clamp(std::chrono::seconds(seconds) - std::chrono::seconds(1),
                    std::chrono::seconds(0), kKeep);
}

Error Exchange::lost(const std::string& why, int number) const {
  Error error(Status::transport_lost,
              fmt::format("the connection to {} was lost: {}", client_->dial().address.name(), why),
              "http.lost");
  if (number != 0) error.details.set("errno", number);
  return error;
}

// With what is TLS's own: a server refuses a certificate only after the handshake.
Error Exchange::lost(const Io& io) const {
  Error error = lost(io.why, io.number);
  if (io.of_tls) error.details.set("tls", true);
  return error;
}

Error Exchange::garbled(const std::string& why) const {
  return Error(
      Status::transport_lost,
      fmt::format("the answer of {} is not HTTP/1.1: {}", client_->dial().address.name(), why),
      "http.protocol");
}

void Exchange::end(std::optional<Error> error) {
  finish(std::move(error));
}

// Bytes that are here and will not be delivered.
std::uint64_t Exchange::drain() {
  if (mode_ == Mode::raw) return connection_->input().size();
  if (mode_ == Mode::messages) return drain_messages();
  std::uint64_t count = 0;
  while (mode_ == Mode::body && !connection_->input().empty() && !parser_->done()) {
    const auto step = parser_->feed(connection_->input(), scratch().data(), kScratch);
    connection_->used(step.used);
    count += step.body;
    if (step.state == AnswerParser::State::wrong || step.used == 0) break;
  }
  return count;
}

void Exchange::finish(std::optional<Error> error) {
  if (std::exchange(ended_, true)) return;
  const auto self = shared_from_this();
  timer_.cancel();
  if (connector_) {
    std::exchange(connector_, nullptr)->cancel();
    client_->connection_gone();
  }
  if (connection_) {
    if (error) dropped_ += drain();
    std::exchange(connection_, nullptr)->close();
    client_->connection_gone();
  }
  client_->forget(self);
  std::string().swap(out_);
  sent_ = 0;
  if (error) error->may_have_started = phase_ >= SF_HTTP_MAYBE_SENT;

  plugin::Plugin& plugin = client_->plugin();
  const sf_http_end http_end{sizeof(http_end), error ? phase_ : SF_HTTP_BODY, messages_.close_code,
                             plugin::to_str(messages_.close_reason)};
  const sf_http_end* given_http = &http_end;
  if (events_.http.on_end != nullptr)
    call_value(plugin, "on_end", events_.http.on_end, events_.http.ctx, given_http);
  plugin::call_stream_done(plugin, "http.done", events_.io, error ? &*error : nullptr, delivered_,
                           dropped_);
}

// ---- Deadlines

// A consumer that grants nothing is no fault of the other end.
bool Exchange::waits_for_peer() const noexcept {
  return connection_ && (waiting_write_ || (mode_ != Mode::head && waiting_read_));
}

const char* Exchange::why_no_head() const noexcept {
  if (connector_) return "could not be reached in time";
  return connection_ ? "did not answer in time" : "had no connection free in time";
}

std::optional<Exchange::Deadline> Exchange::next_deadline() const {
  std::optional<Deadline> next;
  const auto add = [&](bool holds, Clock::time_point from, std::uint64_t ms, const char* missed) {
    if (!holds || ms == 0) return;
    const auto at = after(from, ms);
    if (!next || at < next->at) next = Deadline{at, missed};
  };
  const auto connect = static_cast<std::uint64_t>(client_->dial().connect_timeout.count());
  add(connector_ != nullptr, connecting_since_, connect, "could not be reached in time");
  add(mode_ == Mode::head, began_, request_.head_timeout_ms, why_no_head());
  add(true, began_, request_.total_timeout_ms,
      mode_ == Mode::head ? why_no_head() : "did not come to an end in time");
  add(waits_for_peer(), moved_at_, request_.idle_timeout_ms, "sent or took nothing for too long");
  if (mode_ != Mode::messages) return next;
  add(messages_.close_sent && waits_for_peer(), messages_.closing_since, request_.close_timeout_ms,
      "did not answer the close in time");
  add(!messages_.close_sent && waiting_read_, messages_.heard_at, request_.ping_ms,
      messages_.pinged ? "did not answer a ping in time" : nullptr);
  return next;
}

// The timer may come too early, and then looks anew, but never too late.
void Exchange::arm() {
  const auto next = next_deadline();
  if (ended_ || !next || (timer_at_ && *timer_at_ <= next->at)) return;
  timer_at_ = next->at;
  timer_.expires_at(next->at);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& wrong) {
    if (wrong || self->ended_) return;
    self->timer_at_.reset();
    self->check_deadlines();
  });
}

void Exchange::check_deadlines() {
  const auto next = next_deadline();
  if (next && next->at <= Clock::now()) {
    if (next->missed != nullptr)
      return finish(Error(Status::timeout,
                          fmt::format("{} {}", client_->dial().address.name(), next->missed),
                          "http.timeout"));
    ping();
  }
  arm();
}

}  // namespace sandforge::http

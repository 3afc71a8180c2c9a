#include "http/client.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "http/exchange.hpp"

namespace sandforge::http {

// A connection that waits for its next request. The end of it is seen at once.
struct Client::Idle {
  Idle(const Lane& lane, std::shared_ptr<Connection> c)
      : connection(std::move(c)), timer(lane.executor()) {}
  const std::shared_ptr<Connection> connection;
  boost::asio::steady_timer timer;
  bool taken = false;
};

Client::Client(plugin::Plugin& plugin, std::shared_ptr<Runtime> runtime, Lane lane,
               std::shared_ptr<const Dial> dial, std::size_t max_connections)
    : plugin_(plugin),
      runtime_(std::move(runtime)),
      lane_(std::move(lane)),
      dial_(std::move(dial)),
      max_connections_(max_connections) {}

void Client::begin(std::shared_ptr<Exchange> exchange) {
  running_.insert(exchange);
  waiting_.push_back(std::move(exchange));
  serve_later();
}

void Client::begin_again(std::shared_ptr<Exchange> exchange) {
  waiting_.push_front(std::move(exchange));
  serve_later();
}

std::shared_ptr<Connector> Client::dial_up(bool tunnel, Connector::Done done) {
  return Connector::start(lane_, dial_, tunnel, std::move(done));
}

void Client::forget(const std::shared_ptr<Exchange>& exchange) {
  running_.erase(exchange);
  std::erase(waiting_, exchange);
}

void Client::connection_gone() {
  --count_;
  serve_later();
}

// Later: whoever ends just now is done with itself first.
void Client::serve_later() {
  if (waiting_.empty() || std::exchange(serve_posted_, true)) return;
  lane_.post([self = shared_from_this()] {
    self->serve_posted_ = false;
    self->serve();
  });
}

void Client::serve() {
  while (!waiting_.empty()) {
    const auto exchange = waiting_.front();
    // One whose first write failed there waits again.
    if (exchange->may_reuse() && reuse(exchange)) continue;
    if (!make_room()) return;
    std::erase(waiting_, exchange);
    ++count_;
    exchange->connect();
  }
}

bool Client::reuse(const std::shared_ptr<Exchange>& exchange) {
  while (!idle_.empty()) {
    const auto idle = idle_.back();
    const auto connection = idle->connection;
    if (!connection->quiet()) {
      drop(idle);
      continue;
    }
    idle->taken = true;
    idle->timer.cancel();
    idle_.pop_back();
    std::erase(waiting_, exchange);
    exchange->use(connection, true);
    return true;
  }
  return false;
}

bool Client::make_room() {
  if (count_ < max_connections_) return true;
  if (idle_.empty()) return false;
  drop(idle_.front());
  return true;
}

void Client::give_back(std::shared_ptr<Connection> connection, std::chrono::seconds keep) {
  if (released_ || ended_ || keep.count() <= 0) {
    connection->close();
    return connection_gone();
  }
  connection->free_input();
  auto idle = std::make_shared<Idle>(lane_, std::move(connection));
  idle_.push_back(idle);
  idle->timer.expires_after(keep);
  idle->timer.async_wait([weak = weak_from_this(), idle](const boost::system::error_code&) {
    if (const auto self = weak.lock()) self->drop(idle);
  });
  watch(idle);
  serve_later();
}

// Nothing may come that nobody asked for: the end, or bytes that would be taken for an answer. A
// wait may also end for an answer that was read long ago.
void Client::watch(const std::shared_ptr<Idle>& idle) {
  idle->connection->wait(Io::What::wants_read, [weak = weak_from_this(), idle] {
    const auto self = weak.lock();
    if (!self || idle->taken) return;
    if (idle->connection->quiet()) return self->watch(idle);
    self->drop(idle);
  });
}

void Client::drop(std::shared_ptr<Idle> idle) {
  if (std::exchange(idle->taken, true)) return;
  std::erase(idle_, idle);
  idle->timer.cancel();
  idle->connection->close();
  connection_gone();
}

void Client::close_idle() {
  while (!idle_.empty()) {
    drop(idle_.back());
  }
}

void Client::released() {
  released_ = true;
  close_idle();
}

void Client::cancel() noexcept {
  lane_.post([self = shared_from_this()] {
    self->ended_ = true;
    self->close_idle();
    const auto running = self->running_;
    for (const auto& exchange : running)
      exchange->end(Error(Status::cancelled, "the host ends", "http.host_ended"));
  });
}

}  // namespace sandforge::http

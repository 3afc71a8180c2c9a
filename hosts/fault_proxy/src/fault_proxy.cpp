#include "fault_proxy.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

namespace sandforge::proxy {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;
using Acceptor = asio::basic_socket_acceptor<Protocol>;

constexpr std::size_t kBuffer = 16 * 1024;  // of each direction

Protocol::endpoint endpoint_of(const ProxyAddress& address) {
  if (address.is_unix()) return asio::local::stream_protocol::endpoint(address.path);
  return asio::ip::tcp::endpoint(asio::ip::make_address(address.host), address.port);
}

// How much of the end of `data` may be the beginning of the pattern.
std::size_t begun(std::string_view data, std::string_view pattern) {
  std::size_t n = std::min(data.size(), pattern.size() - 1);
  while (n > 0 && data.substr(data.size() - n) != pattern.substr(0, n))
    --n;
  return n;
}

const char* phrase(int status) {
  switch (status) {
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Fault";
  }
}

std::string answer_of(const ProxyRule& rule) {
  std::string text = "HTTP/1.1 " + std::to_string(rule.status) + ' ' + phrase(rule.status) +
                     "\r\nContent-Length: 0\r\nConnection: close\r\n";
  if (rule.retry_after) text += "Retry-After: " + std::to_string(*rule.retry_after) + "\r\n";
  return text + "\r\n";
}

class Connection;

// What connections need of the proxy. On its thread.
struct Owner {
  virtual ~Owner() = default;
  virtual void ended(const std::shared_ptr<Connection>& connection) = 0;
  virtual void strike(std::size_t rule) = 0;
};

// One client and its server.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& io, Owner& owner, Protocol::socket client, const ProxyRule* rule,
             std::size_t index)
      : owner_(owner),
        rule_(rule),
        index_(index),
        client_(std::move(client)),
        server_(io),
        up_(io, client_, server_, Direction::up),
        down_(io, server_, client_, Direction::down) {}

  void run(const Protocol::endpoint& to) {
    if (is(ProxyFault::refuse) && rule_->pattern.empty()) {
      owner_.strike(index_);
      return reset();
    }
    server_.async_connect(to, [self = shared_from_this()](const error_code& failed) {
      if (failed) return self->reset();
      self->read(self->up_);
      self->read(self->down_);
    });
  }

  // Both ends see a connection that breaks, not one that ends.
  void reset() {
    error_code ignored;  // what is closed already stays closed
    for (Protocol::socket* socket : {&client_, &server_}) {
      socket->set_option(asio::socket_base::linger(true, 0), ignored);
      socket->close(ignored);
    }
    up_.timer.cancel();
    down_.timer.cancel();
    finished();
  }

 private:
  // One direction. At any time it reads, waits or writes: who reads slowly holds back who writes.
  struct Pump {
    Pump(asio::io_context& io, Protocol::socket& f, Protocol::socket& t, Direction d)
        : from(f), to(t), direction(d), timer(io) {}
    Protocol::socket& from;
    Protocol::socket& to;
    const Direction direction;
    asio::steady_timer timer;
    std::array<char, kBuffer> buffer{};
    std::string data;  // what is being written; else what waits, as it may begin the pattern
    std::string tail;  // what has passed and may begin the pattern
    std::uint64_t passed = 0;
    bool slow = false;
    bool swallows = false;
    bool done = false;
  };

  bool is(ProxyFault fault) const noexcept { return rule_ != nullptr && rule_->fault == fault; }
  bool concerns(const Pump& pump) const noexcept {
    return rule_ != nullptr && !struck_ &&
           (rule_->direction == Direction::both || rule_->direction == pump.direction);
  }

  void read(Pump& pump) {
    pump.from.async_read_some(
        asio::buffer(pump.buffer),
        [self = shared_from_this(), &pump](const error_code& failed, std::size_t n) {
          if (failed == asio::error::eof) return self->at_end(pump);
          if (failed) return self->reset();
          self->take(pump, std::string_view(pump.buffer.data(), n));
        });
  }

  void take(Pump& pump, std::string_view bytes) {
    if (pump.swallows) return read(pump);
    if (replaces_ && pump.direction == Direction::down) return give_answer();
    pump.data += bytes;
    if (!concerns(pump)) return forward(pump, {}, false);
    std::size_t at = 0;
    if (is(ProxyFault::refuse)) {
      // Nothing of the pattern may be delivered: what may begin it waits for what follows.
      const auto found = pump.data.find(rule_->pattern);
      if (found == std::string::npos) {
        const auto rest = begun(pump.data, rule_->pattern);
        std::string kept = pump.data.substr(pump.data.size() - rest);
        pump.data.resize(pump.data.size() - rest);
        return forward(pump, std::move(kept), false);
      }
      at = found;
    } else if (!rule_->pattern.empty()) {
      // It strikes after the pattern, so that nothing waits: a side whose message ends like the
      // pattern begins would never be answered.
      const auto before = pump.tail.size();
      pump.tail += bytes;
      const auto found = pump.tail.find(rule_->pattern);
      if (found == std::string::npos) {
        pump.tail.erase(0, pump.tail.size() - begun(pump.tail, rule_->pattern));
        return forward(pump, {}, false);
      }
      at = found + rule_->pattern.size() - before;
    } else {
      const auto left = rule_->after - pump.passed;
      if (pump.data.size() < left) return forward(pump, {}, false);
      at = static_cast<std::size_t>(left);
    }
    strike(pump, at);
  }

  void strike(Pump& pump, std::size_t at) {
    struck_ = true;
    owner_.strike(index_);
    switch (rule_->fault) {
      case ProxyFault::delay:
        for (Pump* each : {&up_, &down_})
          each->slow = rule_->direction == Direction::both || rule_->direction == each->direction;
        return forward(pump, {}, false);
      case ProxyFault::answer:
        replaces_ = true;
        return forward(pump, {}, false);
      case ProxyFault::black_hole:
        pump.data.resize(at);
        for (Pump* each : {&up_, &down_})
          each->swallows =
              rule_->direction == Direction::both || rule_->direction == each->direction;
        return forward(pump, {}, false);
      default:
        pump.data.resize(at);
        return forward(pump, {}, true);
    }
  }

  // Writes pump.data, now or late; `kept` waits for what follows it.
  void forward(Pump& pump, std::string kept, bool then_reset) {
    if (!pump.slow) return write(pump, std::move(kept), then_reset);
    pump.timer.expires_after(rule_->delay);
    pump.timer.async_wait([self = shared_from_this(), &pump, kept = std::move(kept),
                           then_reset](const error_code& failed) mutable {
      if (failed) return;
      self->write(pump, std::move(kept), then_reset);
    });
  }

  void write(Pump& pump, std::string kept, bool then_reset) {
    asio::async_write(pump.to, asio::buffer(pump.data),
                      [self = shared_from_this(), &pump, kept = std::move(kept), then_reset](
                          const error_code& failed, std::size_t n) mutable {
                        // The server was let go of on purpose: the answer is not lost with it.
                        if (failed && pump.swallows) return self->read(pump);
                        if (failed || then_reset) return self->reset();
                        pump.passed += n;
                        pump.data = std::move(kept);
                        if (pump.done) return self->pass_end(pump);
                        self->read(pump);
                      });
  }

  void at_end(Pump& pump) {
    pump.done = true;
    if (replaces_ && pump.direction == Direction::down) return give_answer();
    if (pump.swallows) return finished();  // the other end does not learn of it
    write(pump, {}, false);                // what may have begun the pattern
  }

  void pass_end(Pump& pump) {
    error_code ignored;  // it may be closed already
    pump.to.shutdown(Protocol::socket::shutdown_send, ignored);
    finished();
  }

  // The server has answered, so the request has arrived: the client hears something else.
  void give_answer() {
    error_code ignored;
    server_.close(ignored);
    up_.swallows = true;
    down_.done = true;
    replaces_ = false;
    down_.data = answer_of(*rule_);
    write(down_, {}, false);
  }

  void finished() {
    const bool open = client_.is_open() || server_.is_open();
    if (open && !(up_.done && down_.done)) return;
    error_code ignored;
    client_.close(ignored);
    server_.close(ignored);
    owner_.ended(shared_from_this());
  }

  Owner& owner_;
  const ProxyRule* const rule_;
  const std::size_t index_;
  Protocol::socket client_;
  Protocol::socket server_;
  Pump up_;
  Pump down_;
  bool struck_ = false;
  bool replaces_ = false;
};

Error unavailable(const ProxyAddress& address, const std::string& why) {
  return Error(Status::unavailable, "cannot listen at " + to_string(address) + ": " + why,
               "proxy.listen");
}

}  // namespace

struct FaultProxy::Impl final : Owner {
  explicit Impl(Options o)
      : options(std::move(o)), acceptor(io), struck(options.plan.rules.size()) {
    to = endpoint_of(options.to);
  }

  std::optional<Error> listen() {
    address = options.listen;
    const auto endpoint = endpoint_of(address);
    error_code failed;
    acceptor.open(endpoint.protocol(), failed);
    if (failed) return unavailable(address, failed.message());
    if (address.is_unix()) {
      // The file gets the mode of the socket.
      if (::fchmod(acceptor.native_handle(), 0600) != 0)
        failed.assign(errno, boost::system::system_category());
    } else {
      acceptor.set_option(asio::socket_base::reuse_address(true), failed);
    }
    if (failed) return unavailable(address, failed.message());
    acceptor.bind(endpoint, failed);
    if (failed) return unavailable(address, failed.message());
    bound = true;
    acceptor.listen(asio::socket_base::max_listen_connections, failed);
    if (failed) return unavailable(address, failed.message());
    if (!address.is_unix()) {
      asio::ip::tcp::endpoint real;
      const auto local = acceptor.local_endpoint();
      std::memcpy(real.data(), local.data(), std::min(local.size(), real.capacity()));
      address.port = real.port();
    }
    return std::nullopt;
  }

  void accept() {
    if (accepting || open.size() >= options.max_connections || !acceptor.is_open()) return;
    accepting = true;
    acceptor.async_accept([this](const error_code& failed, Protocol::socket client) {
      accepting = false;
      if (failed == asio::error::operation_aborted) return;
      // Out of descriptors, or a client that left: the next one may be better.
      if (failed) return accept_later();
      serve(std::move(client));
      accept();
    });
  }

  void accept_later() {
    pause.expires_after(std::chrono::milliseconds(50));
    pause.async_wait([this](const error_code& failed) {
      if (!failed) accept();
    });
  }

  void serve(Protocol::socket client) {
    const auto number = ++connections;
    const ProxyRule* rule = nullptr;
    std::size_t index = 0;
    for (; index < options.plan.rules.size() && rule == nullptr; ++index) {
      const ProxyRule& each = options.plan.rules[index];
      const bool fits = each.nth ? *each.nth == number : !each.every || number % *each.every == 0;
      if (fits) rule = &each;
    }
    auto connection = std::make_shared<Connection>(io, *this, std::move(client), rule,
                                                   rule != nullptr ? index - 1 : 0);
    open.insert(connection);
    connection->run(to);
  }

  void ended(const std::shared_ptr<Connection>& connection) override {
    if (open.erase(connection) != 0) accept();
  }
  void strike(std::size_t rule) override { ++struck[rule]; }

  void close() {
    asio::post(io, [this] {
      error_code ignored;
      acceptor.close(ignored);
      pause.cancel();
      const auto all = open;
      for (const auto& connection : all)
        connection->reset();
    });
    if (thread.joinable()) thread.join();
    if (bound && address.is_unix()) ::unlink(address.path.c_str());
  }

  const Options options;
  asio::io_context io{1};
  Acceptor acceptor;
  asio::steady_timer pause{io};
  Protocol::endpoint to;
  ProxyAddress address;
  bool bound = false;
  bool accepting = false;
  std::set<std::shared_ptr<Connection>> open;
  std::atomic<std::uint64_t> connections{0};
  std::vector<std::atomic<std::uint64_t>> struck;
  std::thread thread;
};

Result<std::unique_ptr<FaultProxy>> FaultProxy::open(Options options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  auto failed = impl->listen();
  if (!failed) {
    impl->accept();
    try {
      impl->thread = std::thread([io = &impl->io] { io->run(); });
    } catch (const std::system_error&) {
      failed = Error(Status::unavailable, "the proxy gets no thread", "proxy.no_thread");
    }
  }
  if (failed) {
    if (impl->bound && impl->address.is_unix()) ::unlink(impl->address.path.c_str());
    return *std::move(failed);
  }
  return std::unique_ptr<FaultProxy>(new FaultProxy(std::move(impl)));
}

FaultProxy::FaultProxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FaultProxy::~FaultProxy() {
  impl_->close();
}

ProxyAddress FaultProxy::address() const {
  return impl_->address;
}
std::uint64_t FaultProxy::connections() const {
  return impl_->connections;
}
std::uint64_t FaultProxy::struck(std::size_t rule) const {
  return rule < impl_->struck.size() ? impl_->struck[rule].load() : 0;
}

}  // namespace sandforge::proxy

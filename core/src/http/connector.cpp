#include "http/connector.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/answer_parser.hpp"

namespace sandforge::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::chrono::milliseconds kPatience{5000};  // with one of several addresses
constexpr std::chrono::milliseconds kBacklogPause{5};

// An address as connect() takes it.
struct Target {
  sockaddr_storage address{};
  socklen_t size = 0;
};

Target unix_target(const std::string& path) {
  Target out;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  std::memcpy(&out.address, &address, sizeof(address));
  out.size = sizeof(address);
  return out;
}

Target tcp_target(const tcp::endpoint& endpoint) {
  Target out;
  std::memcpy(&out.address, endpoint.data(), endpoint.size());
  out.size = static_cast<socklen_t>(endpoint.size());
  return out;
}

void set(int socket, int level, int option, std::int64_t value) noexcept {
  const int number = static_cast<int>(std::clamp<std::int64_t>(value, 0, 1 << 30));
  ::setsockopt(socket, level, option, &number, sizeof(number));
}

void tune(int socket, const Dial& dial) noexcept {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  if (dial.user_timeout.count() > 0)
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, dial.user_timeout.count());
  if (dial.keepalive.count() == 0) return;
  const auto seconds = std::max<std::int64_t>(1, dial.keepalive.count() / 1000);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max<std::int64_t>(1, seconds / 3));
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

class Dialer final : public Connector, public std::enable_shared_from_this<Dialer> {
 public:
  Dialer(const Lane& lane, std::shared_ptr<const Dial> dial, bool tunnel, Done done)
      : lane_(lane),
        dial_(std::move(dial)),
        next_hop_(dial_->proxy ? dial_->proxy->address : dial_->address),
        tunnel_(dial_->proxy && (tunnel || dial_->address.kind == Address::Kind::tls)),
        done_(std::move(done)),
        resolver_(lane.executor()),
        timer_(lane.executor()) {}

  void start() {
    const Address& address = next_hop_;
    if (address.kind == Address::Kind::unix_socket) {
      targets_.push_back(unix_target(address.host));
      return next();
    }
    boost::system::error_code wrong;
    const auto number = asio::ip::make_address(address.host, wrong);
    if (!wrong) {
      targets_.push_back(tcp_target({number, address.port}));
      return next();
    }
    resolver_.async_resolve(address.host, std::to_string(address.port),
                            tcp::resolver::numeric_service,
                            [self = shared_from_this()](const boost::system::error_code& failed,
                                                        const tcp::resolver::results_type& found) {
                              if (!self->done_) return;
                              if (failed) return self->fail(failed.message(), 0);
                              for (const auto& entry : found)
                                self->targets_.push_back(tcp_target(entry.endpoint()));
                              self->next();
                            });
  }

  void cancel() noexcept override {
    done_ = nullptr;
    resolver_.cancel();
    timer_.cancel();
    drop();
  }

 private:
  // A wait that is under way keeps the connection alive: only close ends both.
  void drop() noexcept {
    if (const auto connection = std::exchange(connection_, nullptr)) connection->close();
  }

  void fail(const std::string& why, int number) {
    Error error(number == EACCES || number == EPERM ? Status::forbidden : Status::transport_lost,
                fmt::format("cannot connect to {}: {}", whole_name(), why), "http.connect");
    if (number != 0) error.details.set("errno", number);
    if (of_tls_) error.details.set("tls", true);
    finish(std::move(error));
  }

  std::string whole_name() const {
    const std::string name = dial_->address.name();
    return dial_->proxy ? name + " by the proxy " + next_hop_.name() : name;
  }

  void finish(Result<std::shared_ptr<Connection>> result) {
    timer_.cancel();
    auto done = std::exchange(done_, nullptr);
    if (!result) drop();
    connection_.reset();
    if (done) done(std::move(result));
  }

  // What one address said; the last one's word is the error.
  void failed(int number, const std::string& why = {}, bool of_tls = false) {
    of_tls_ = of_tls;
    why_ = why.empty() ? std::string(std::strerror(number)) : why;
    number_ = number;
    drop();
    next();
  }

  void next() {
    if (at_ >= targets_.size())
      return fail(why_.empty() ? "the name has no address" : why_, number_);
    const Target& target = targets_[at_++];
    const int socket =
        ::socket(target.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0) return fail(std::strerror(errno), errno);
    try {
      connection_ = std::make_shared<Connection>(lane_, socket);
    } catch (const boost::system::system_error& e) {
      ::close(socket);
      return fail(e.code().message(), e.code().value());
    }
    if (target.address.ss_family != AF_UNIX) tune(socket, *dial_);
    watch(connection_);
    connect(connection_, target);
  }

  // One address of several must not use up the time of all.
  void watch(const std::shared_ptr<Connection>& connection) {
    if (at_ >= targets_.size()) return;
    const auto whole = dial_->connect_timeout;
    const auto share = whole.count() > 0
                           ? std::min(kPatience, whole / static_cast<int>(targets_.size()))
                           : kPatience;
    timer_.expires_after(share);
    timer_.async_wait([self = shared_from_this(), connection](const boost::system::error_code& ec) {
      if (ec || !self->done_ || self->connection_ != connection) return;
      self->failed(ETIMEDOUT);
    });
  }

  void connect(const std::shared_ptr<Connection>& connection, const Target& target) {
    const auto* address = reinterpret_cast<const sockaddr*>(&target.address);
    if (::connect(connection->socket(), address, target.size) == 0) return connected(connection);
    if (errno == EINPROGRESS || errno == EINTR) {
      connection->wait(Io::What::wants_write,
                       [self = shared_from_this(), connection] { self->look(connection); });
      return;
    }
    // A unix socket whose queue is full.
    if (errno == EAGAIN) return connect_again(connection, target);
    failed(errno);
  }

  void connect_again(const std::shared_ptr<Connection>& connection, const Target& target) {
    timer_.expires_after(kBacklogPause);
    timer_.async_wait(
        [self = shared_from_this(), connection, target](const boost::system::error_code& ec) {
          if (!ec && self->current(connection)) self->connect(connection, target);
        });
  }

  bool current(const std::shared_ptr<Connection>& connection) const {
    return done_ && connection_ == connection;
  }

  void look(const std::shared_ptr<Connection>& connection) {
    if (!current(connection)) return;
    int number = 0;
    socklen_t size = sizeof(number);
    if (::getsockopt(connection->socket(), SOL_SOCKET, SO_ERROR, &number, &size) != 0)
      number = errno;
    if (number != 0) return failed(number);
    connected(connection);
  }

  void connected(const std::shared_ptr<Connection>& connection) {
    if (!tunnel_) return secure(connection);
    connection->use(plain_transport(connection->socket()));
    const std::string name = dial_->address.name();
    ask_ = "CONNECT " + name + " HTTP/1.1\r\nHost: " + name + "\r\n";
    if (!dial_->proxy->authorization.empty())
      ask_.append("Proxy-Authorization: ").append(dial_->proxy->authorization).append("\r\n");
    ask_.append("\r\n");
    asked_ = 0;
    answer_ = std::make_unique<AnswerParser>(true);
    ask(connection);
  }

  void ask(const std::shared_ptr<Connection>& connection) {
    if (!current(connection)) return;
    while (asked_ < ask_.size()) {
      const Io io = connection->io().write(ask_.data() + asked_, ask_.size() - asked_);
      if (io.what == Io::What::wants_write) {
        connection->wait(io.what,
                         [self = shared_from_this(), connection] { self->ask(connection); });
        return;
      }
      if (io.what != Io::What::moved) return failed(io.number, io.why);
      asked_ += io.bytes;
    }
    hear(connection);
  }

  void hear(const std::shared_ptr<Connection>& connection) {
    if (!current(connection)) return;
    for (;;) {
      const Io io = connection->fill();
      if (io.what == Io::What::wants_read) {
        connection->wait(io.what,
                         [self = shared_from_this(), connection] { self->hear(connection); });
        return;
      }
      if (io.what == Io::What::end) return failed(0, "the proxy has closed the connection");
      if (io.what != Io::What::moved) return failed(io.number, io.why);
      const auto step = answer_->feed(connection->input(), nullptr, 0);
      connection->used(step.used);
      if (step.state == AnswerParser::State::wrong)
        return failed(0, "the answer of the proxy is not HTTP/1.1: " + answer_->why());
      if (step.state == AnswerParser::State::head) return answered(connection);
    }
  }

  void answered(const std::shared_ptr<Connection>& connection) {
    const unsigned status = answer_->head().status;
    if (status < 200 || status > 299) return refused(status);
    // Neither end of what is to come speaks before this one does.
    if (!connection->input().empty()) return failed(0, "the proxy says more than its answer");
    connection->free_input();
    secure(connection);
  }

  void refused(unsigned status) {
    Status code = Status::transport_lost;
    if (status == 407) code = Status::unauthenticated;
    if (status == 401 || status == 403) code = Status::forbidden;
    Error error(code,
                fmt::format("cannot connect to {}: the proxy answered {}", whole_name(), status),
                "http.proxy");
    error.details.set("httpStatus", static_cast<std::int64_t>(status));
    finish(std::move(error));
  }

  void secure(const std::shared_ptr<Connection>& connection) {
    auto transport = dial_->transport(connection->socket());
    if (!transport) return finish(std::move(transport).error());
    connection->use(std::move(*transport));
    shake(connection);
  }

  void shake(const std::shared_ptr<Connection>& connection) {
    if (!current(connection)) return;
    const Io io = connection->io().handshake();
    if (io.what == Io::What::moved) return finish(connection);
    if (io.what == Io::What::wants_read || io.what == Io::What::wants_write) {
      connection->wait(io.what,
                       [self = shared_from_this(), connection] { self->shake(connection); });
      return;
    }
    failed(io.number, io.what == Io::What::end ? "the other end has closed the connection" : io.why,
           io.of_tls);
  }

  const Lane lane_;
  const std::shared_ptr<const Dial> dial_;
  const Address next_hop_;
  const bool tunnel_;
  Done done_;
  tcp::resolver resolver_;
  asio::steady_timer timer_;
  std::vector<Target> targets_;
  std::size_t at_ = 0;
  std::shared_ptr<Connection> connection_;
  std::string why_;
  int number_ = 0;
  bool of_tls_ = false;
  std::string ask_;  // of the proxy
  std::size_t asked_ = 0;
  std::unique_ptr<AnswerParser> answer_;
};

}  // namespace

std::shared_ptr<Connector> Connector::start(const Lane& lane, std::shared_ptr<const Dial> dial,
                                            bool tunnel, Done done) {
  auto dialer = std::make_shared<Dialer>(lane, std::move(dial), tunnel, std::move(done));
  lane.post([dialer] { dialer->start(); });
  return dialer;
}

}  // namespace sandforge::http

#include "http/connection.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace sandforge::http {
namespace {

class Plain final : public Transport {
 public:
  explicit Plain(int socket) : socket_(socket) {}

  Io handshake() override { return {Io::What::moved, 0, 0, {}}; }

  Io read(std::uint8_t* out, std::size_t size) override {
    const ssize_t n = step([&] { return ::recv(socket_, out, size, 0); });
    if (n == 0) return {Io::What::end, 0, 0, {}};
    return answer(n, Io::What::wants_read);
  }

  Io write(const char* data, std::size_t size) override {
    return answer(step([&] { return ::send(socket_, data, size, MSG_NOSIGNAL); }),
                  Io::What::wants_write);
  }

  Io shutdown_write() override {
    ::shutdown(socket_, SHUT_WR);
    return {Io::What::moved, 0, 0, {}};
  }

 private:
  template <class F>
  static ssize_t step(F call) {
    ssize_t n = 0;
    do {
      n = call();
    } while (n < 0 && errno == EINTR);
    return n;
  }

  static Io answer(ssize_t n, Io::What wants) {
    if (n >= 0) return {Io::What::moved, static_cast<std::size_t>(n), 0, {}};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {wants, 0, 0, {}};
    const int number = errno;
    return {Io::What::failed, 0, number, std::strerror(number)};
  }

  const int socket_;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(int socket) {
  return std::make_unique<Plain>(socket);
}

Connection::Connection(const Lane& lane, int socket) : descriptor_(lane.executor(), socket) {}

Connection::~Connection() {
  close();
}

Io Connection::fill() {
  if (!input_) input_ = std::make_unique<std::uint8_t[]>(kInput);
  if (begin_ > 0 && end_ == kInput) {
    std::memmove(input_.get(), input_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  Io io = transport_->read(input_.get() + end_, kInput - end_);
  if (io.what == Io::What::moved) end_ += io.bytes;
  return io;
}

void Connection::used(std::size_t bytes) noexcept {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

void Connection::free_input() noexcept {
  input_.reset();
  begin_ = end_ = 0;
}

void Connection::wait(Io::What what, std::function<void()> then) {
  using boost::asio::posix::descriptor_base;
  descriptor_.async_wait(
      what == Io::What::wants_write ? descriptor_base::wait_write : descriptor_base::wait_read,
      [then = std::move(then)](const boost::system::error_code& wrong) {
        if (wrong != boost::asio::error::operation_aborted) then();
      });
}

bool Connection::quiet() {
  if (!open()) return false;
  char byte = 0;
  return ::recv(socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void Connection::close() noexcept {
  boost::system::error_code ignored;  // the socket is gone either way
  descriptor_.close(ignored);
  free_input();
}

}  // namespace sandforge::http

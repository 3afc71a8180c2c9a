// A connected socket, plain or TLS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "sandforge/runtime.hpp"

namespace sandforge::http {

// How far one step came. None of them blocks.
struct Io {
  enum class What : std::uint8_t { moved, end, wants_read, wants_write, failed };
  What what = What::failed;
  std::size_t bytes = 0;
  int number = 0;       // errno, or 0
  std::string why;      // of a failure
  bool of_tls = false;  // it is no failure of the socket
};

// How bytes get through a socket, which stays its owner's.
class Transport {
 public:
  virtual ~Transport() = default;
  // moved: it is done.
  virtual Io handshake() = 0;
  virtual Io read(std::uint8_t* out, std::size_t size) = 0;
  virtual Io write(const char* data, std::size_t size) = 0;
  // The other end reads end of file; moved: it was told.
  virtual Io shutdown_write() = 0;
};
std::unique_ptr<Transport> plain_transport(int socket);

// Thread rule: on its lane, with all that it calls.
class Connection {
 public:
  // Takes the socket over.
  Connection(const Lane& lane, int socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void use(std::unique_ptr<Transport> transport) { transport_ = std::move(transport); }
  Transport& io() noexcept { return *transport_; }
  int socket() noexcept { return descriptor_.native_handle(); }
  bool open() const noexcept { return descriptor_.is_open(); }

  // Reads into `input`, which takes no more than kInput bytes.
  Io fill();
  std::string_view input() const noexcept {
    return std::string_view(reinterpret_cast<const char*>(input_.get()) + begin_, end_ - begin_);
  }
  void used(std::size_t bytes) noexcept;
  bool full() const noexcept { return end_ - begin_ == kInput; }
  void free_input() noexcept;

  // `then` runs once the socket is as `what` wants it, or has failed. close ends the wait; one that
  // was over just before still runs, so `then` looks whether it is still wanted.
  void wait(Io::What what, std::function<void()> then);
  // Nothing has come, and the other end has not gone.
  bool quiet();
  void close() noexcept;

  static constexpr std::size_t kInput = 128U << 10;  // more than a head may have

 private:
  boost::asio::posix::stream_descriptor descriptor_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<std::uint8_t[]> input_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace sandforge::http

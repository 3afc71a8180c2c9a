#include "http/tls.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

namespace sandforge::http {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<&BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<&X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<&EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<&SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<&SSL_free>>;

Error bad_tls(const char* why) {
  ERR_clear_error();
  return Error(Status::invalid, why, "http.tls");
}

// ---- A socket under TLS, as OpenSSL's own but without a signal for a lost connection

int socket_of(BIO* bio) {
  int socket = -1;
  std::memcpy(&socket, BIO_get_data(bio), sizeof(socket));
  return socket;
}

int after_step(BIO* bio, ssize_t n, int retry) {
  BIO_clear_retry_flags(bio);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(n);
}

int bio_write(BIO* bio, const char* data, int size) {
  return after_step(bio, ::send(socket_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL),
                    BIO_FLAGS_WRITE);
}

int bio_read(BIO* bio, char* out, int size) {
  const ssize_t n = ::recv(socket_of(bio), out, static_cast<std::size_t>(size), 0);
  const int answer = after_step(bio, n, BIO_FLAGS_READ);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return answer;
}

long bio_control(BIO* bio, int what, long, void*) {
  if (what == BIO_CTRL_FLUSH) return 1;
  if (what == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const only = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    if (made == nullptr) return made;
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return only;
}

// ---- One connection

class TlsTransport final : public Transport {
 public:
  TlsTransport(Session session, std::unique_ptr<int> socket)
      : socket_(std::move(socket)), session_(std::move(session)) {}

  Io handshake() override {
    return step([&] { return SSL_connect(session_.get()); });
  }
  Io read(std::uint8_t* out, std::size_t size) override {
    return step([&] { return SSL_read(session_.get(), out, bounded(size)); });
  }
  Io write(const char* data, std::size_t size) override {
    return step([&] { return SSL_write(session_.get(), data, bounded(size)); });
  }
  Io shutdown_write() override {
    // 0: told, and the other end has not said the same. That is all that is wanted here.
    return step([&] {
      const int told = SSL_shutdown(session_.get());
      return told == 0 ? 1 : told;
    });
  }

 private:
  static int bounded(std::size_t size) {
    return static_cast<int>(std::min<std::size_t>(size, INT_MAX));
  }

  template <class F>
  Io step(F call) {
    ERR_clear_error();
    errno = 0;
    const int n = call();
    const int number = errno;
    if (n > 0) return {Io::What::moved, static_cast<std::size_t>(n), 0, {}};
    switch (SSL_get_error(session_.get(), n)) {
      case SSL_ERROR_WANT_READ:
        return {Io::What::wants_read, 0, 0, {}};
      case SSL_ERROR_WANT_WRITE:
        return {Io::What::wants_write, 0, 0, {}};
      case SSL_ERROR_ZERO_RETURN:
        return {Io::What::end, 0, 0, {}};
      case SSL_ERROR_SYSCALL:
        return failed(number);
      default:
        return failed(0);
    }
  }

  static bool is_of_certificate(int reason) {
    switch (reason) {
      case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return true;
      default:
        return false;
    }
  }

  Io failed(int number) {
    Io io{Io::What::failed, 0, number, {}};
    const long verdict = SSL_get_verify_result(session_.get());
    const unsigned long code = ERR_peek_error();
    if (verdict != X509_V_OK) {
      io.why =
          std::string("its certificate is not accepted: ") + X509_verify_cert_error_string(verdict);
      io.of_tls = true;
    } else if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
      io.why = "the other end has closed the connection without a word";
    } else if (const char* reason = ERR_reason_error_string(code); code != 0 && reason != nullptr) {
      io.why = std::string("TLS: ") + reason;
      // Later it is a lost connection, but for what a server says of a certificate, which with TLS
      // 1.3 comes after the client's handshake.
      io.of_tls =
          SSL_is_init_finished(session_.get()) == 0 || is_of_certificate(ERR_GET_REASON(code));
    } else {
      io.why = number != 0 ? std::strerror(number) : "TLS failed";
    }
    ERR_clear_error();
    return io;
  }

  const std::unique_ptr<int> socket_;
  const Session session_;
};

// ---- What all of them share

// A key with a password is refused; nobody is asked for one.
int no_password(char*, int, int, void*) {
  return -1;
}

Bio text(const std::string& pem) {
  return Bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(std::min<std::size_t>(pem.size(), INT_MAX))));
}

// No certificate is left to read: the end of the text is an error, too, and any other a mistake.
bool at_its_end() {
  const bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return end;
}

bool add_ca(SSL_CTX* context, const std::string& pem) {
  const Bio in = text(pem);
  std::size_t count = 0;
  while (const Certificate ca{PEM_read_bio_X509(in.get(), nullptr, no_password, nullptr)}) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get()) != 1) return false;
    ++count;
  }
  return at_its_end() && count > 0;
}

bool add_client(SSL_CTX* context, const TlsOptions& options) {
  const Bio in = text(options.client_cert_pem);
  const Certificate own{PEM_read_bio_X509(in.get(), nullptr, no_password, nullptr)};
  const Bio key_in = text(options.client_key_pem);
  const Key key{PEM_read_bio_PrivateKey(key_in.get(), nullptr, no_password, nullptr)};
  if (!own || !key || SSL_CTX_use_certificate(context, own.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return false;
  while (Certificate signer{PEM_read_bio_X509(in.get(), nullptr, no_password, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, signer.get()) != 1) return false;
    static_cast<void>(signer.release());  // it is the context's now
  }
  return at_its_end();
}

class OpenSsl final : public Tls {
 public:
  OpenSsl(Context context, bool system_ca) : context_(std::move(context)), system_ca_(system_ca) {}

  Result<std::unique_ptr<Transport>> wrap(int socket, const Address& address) override {
    if (std::exchange(system_ca_, false)) SSL_CTX_set_default_verify_paths(context_.get());
    Session session(SSL_new(context_.get()));
    auto place = std::make_unique<int>(socket);
    Bio bio(socket_method() == nullptr ? nullptr : BIO_new(socket_method()));
    if (!session || !bio || !name(session.get(), address.host))
      return bad_tls("TLS cannot be set up for that host");
    BIO_set_data(bio.get(), place.get());
    BIO_set_init(bio.get(), 1);
    BIO* given = bio.release();
    SSL_set_bio(session.get(), given, given);
    return std::unique_ptr<Transport>(
        std::make_unique<TlsTransport>(std::move(session), std::move(place)));
  }

 private:
  // Whose certificate it must be.
  static bool name(SSL* session, const std::string& host) {
    in6_addr number{};
    const bool numeric = ::inet_pton(AF_INET, host.c_str(), &number) == 1 ||
                         ::inet_pton(AF_INET6, host.c_str(), &number) == 1;
    if (numeric) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1;
    SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(session, host.c_str()) == 1 &&
           SSL_set_tlsext_host_name(session, host.c_str()) == 1;
  }

  const Context context_;
  bool system_ca_;
};

}  // namespace

Result<std::shared_ptr<Tls>> Tls::make(const TlsOptions& options) {
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_client_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1)
    return bad_tls("TLS cannot be set up");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  static constexpr unsigned char protocols[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(context.get(), protocols, sizeof(protocols) - 1);
  if (!options.ca_pem.empty() && !add_ca(context.get(), options.ca_pem))
    return bad_tls("ca_pem holds no certificates in PEM form, or something else besides");
  if (options.client_cert_pem.empty() != options.client_key_pem.empty())
    return bad_tls("a client certificate needs its key, and a key its certificate");
  if (!options.client_cert_pem.empty() && !add_client(context.get(), options))
    return bad_tls(
        "the client certificate, its chain or its key is not in PEM form, or has a password, or "
        "they do not belong together");
  return std::shared_ptr<Tls>(
      std::make_shared<OpenSsl>(std::move(context), options.ca_pem.empty()));
}

}  // namespace sandforge::http

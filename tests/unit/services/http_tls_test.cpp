// Requests over TLS: whom the client trusts, and whom it does not.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "http_fixture.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

// A certificate and its key, signed by itself or by another one.
struct Identity {
  explicit Identity(const std::string& names, const Identity* signer = nullptr, int days = 1)
      : key(EVP_EC_gen("P-256")), certificate(X509_new()) {
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), signer == nullptr ? 1 : 2);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -48L * 3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), days * 24L * 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* name = X509_get_subject_name(certificate);
    const auto* text = reinterpret_cast<const unsigned char*>(signer == nullptr ? "ca" : "leaf");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
    X509_set_issuer_name(certificate,
                         signer == nullptr ? name : X509_get_subject_name(signer->certificate));
    if (signer == nullptr) extend(NID_basic_constraints, "critical,CA:TRUE");
    if (!names.empty()) extend(NID_subject_alt_name, names.c_str());
    X509_sign(certificate, signer == nullptr ? key : signer->key, EVP_sha256());
  }
  ~Identity() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;

  std::string pem() const {
    return written([&](BIO* out) { PEM_write_bio_X509(out, certificate); });
  }
  std::string key_pem() const {
    return written([&](BIO* out) {
      PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
  }

  EVP_PKEY* key;
  X509* certificate;

 private:
  void extend(int what, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
    REQUIRE(extension != nullptr);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  template <class F>
  static std::string written(F write) {
    BIO* out = BIO_new(BIO_s_mem());
    write(out);
    char* data = nullptr;
    const long size = BIO_get_mem_data(out, &data);
    std::string text(data, static_cast<std::size_t>(size));
    BIO_free(out);
    return text;
  }
};

// The server's end of one connection.
class TlsPeer {
 public:
  TlsPeer(Peer peer, const Identity& own, const Identity* client_ca = nullptr)
      : peer_(std::move(peer)), context_(SSL_CTX_new(TLS_server_method())) {
    SSL_CTX_use_certificate(context_, own.certificate);
    SSL_CTX_use_PrivateKey(context_, own.key);
    if (client_ca != nullptr) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), client_ca->certificate);
      SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    session_ = SSL_new(context_);
    SSL_set_fd(session_, peer_.socket());
    shaken = SSL_accept(session_) == 1;
  }
  ~TlsPeer() {
    SSL_free(session_);
    SSL_CTX_free(context_);
  }
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;

  void send(const std::string& text) {
    REQUIRE(SSL_write(session_, text.data(), static_cast<int>(text.size())) > 0);
  }
  std::string read_to(const std::string& end) {
    std::string out;
    char byte = 0;
    while (out.find(end) == std::string::npos)
      if (SSL_read(session_, &byte, 1) == 1) {
        out += byte;
      } else {
        return out + "<end>";
      }
    return out;
  }
  void goodbye() { SSL_shutdown(session_); }
  void cut() { peer_.close(); }

  bool shaken = false;

 private:
  Peer peer_;
  SSL_CTX* context_;
  SSL* session_ = nullptr;
};

sf_status open(HttpBench& bench, const Server& server, const std::string& ca,
               const Identity* own = nullptr) {
  const std::string url = "https" + server.url.substr(4);
  const std::string certificate = own == nullptr ? "" : own->pem();
  const std::string key = own == nullptr ? "" : own->key_pem();
  sf_http_client_options options{};
  options.struct_size = sizeof(options);
  options.base_url = plugin::to_str(url);
  options.ca_pem = plugin::to_str(ca);
  options.client_cert_pem = plugin::to_str(certificate);
  options.client_key_pem = plugin::to_str(key);
  const sf_error_sink sink = bench.errors();
  return bench.http->client_create(&bench.bench.plugin->host, bench.lane_object.get(), &options,
                                   &bench.client, &sink);
}

}  // namespace

TEST_CASE("http tls: a server that the CA has signed, for its address") {
  const Identity ca("");
  const Identity leaf("IP:127.0.0.1", &ca);
  Server server;
  HttpBench bench;
  REQUIRE(open(bench, server, ca.pem()) == SF_OK);
  Call& call = bench.send({});
  TlsPeer peer(server.accept(), leaf);
  REQUIRE(peer.shaken);
  CHECK_THAT(peer.read_to("\r\n\r\n"), Catch::StartsWith("GET / HTTP/1.1\r\n"));
  peer.send(answer("hello"));
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.body == "hello");
  // The connection is kept.
  Call& second = bench.send({});
  peer.read_to("\r\n\r\n");
  SECTION("an answer to the end, with a goodbye") {
    peer.send("HTTP/1.1 200 OK\r\n\r\nall of it");
    peer.goodbye();
    REQUIRE(second.until_done());
    CHECK(second.code == SF_OK);
    CHECK(second.body == "all of it");
  }
  SECTION("cut off, it may not be all of it") {
    peer.send("HTTP/1.1 200 OK\r\n\r\nall of it");
    peer.cut();
    REQUIRE(second.until_done());
    CHECK(second.code == SF_TRANSPORT_LOST);
    CHECK(second.phase == SF_HTTP_BODY);
  }
}

TEST_CASE("http tls: nobody is trusted without a reason, and nothing is sent to him") {
  const Identity ca("");
  const Identity other("");
  std::string trusted = ca.pem();
  std::unique_ptr<Identity> leaf;
  SECTION("another CA") {
    trusted = other.pem();
    leaf = std::make_unique<Identity>("IP:127.0.0.1", &ca);
  }
  SECTION("the system's CAs") {
    trusted.clear();
    leaf = std::make_unique<Identity>("IP:127.0.0.1", &ca);
  }
  SECTION("another address") {
    leaf = std::make_unique<Identity>("IP:127.0.0.2", &ca);
  }
  SECTION("a name") {
    leaf = std::make_unique<Identity>("DNS:127.0.0.1", &ca);
  }
  SECTION("over since yesterday") {
    leaf = std::make_unique<Identity>("IP:127.0.0.1", &ca, -1);
  }
  Server server;
  HttpBench bench;
  REQUIRE(open(bench, server, trusted) == SF_OK);
  Call& call = bench.send({});
  TlsPeer peer(server.accept(), *leaf);
  REQUIRE(call.until_done());
  CHECK(call.code == SF_TRANSPORT_LOST);
  CHECK(call.phase == SF_HTTP_NOT_CONNECTED);
  CHECK_FALSE(call.may_have_started);
  CHECK_THAT(call.message, Catch::Contains("its certificate is not accepted"));
}

TEST_CASE("http tls: a client's certificate") {
  const Identity ca("");
  const Identity leaf("IP:127.0.0.1", &ca);
  const Identity own("DNS:me", &ca);
  Server server;
  HttpBench bench;
  REQUIRE(open(bench, server, ca.pem(), &own) == SF_OK);
  Call& call = bench.send({});
  TlsPeer peer(server.accept(), leaf, &ca);
  REQUIRE(peer.shaken);
  peer.read_to("\r\n\r\n");
  peer.send(answer("hello"));
  REQUIRE(call.until_done());
  CHECK(call.body == "hello");
}

TEST_CASE("http tls: a raw stream, closed on one side") {
  const Identity ca("");
  const Identity leaf("IP:127.0.0.1", &ca);
  Server server;
  HttpBench bench;
  REQUIRE(open(bench, server, ca.pem()) == SF_OK);
  Ask ask;
  ask.flags = SF_HTTP_UPGRADE;
  Call& call = bench.send(ask);
  TlsPeer peer(server.accept(), leaf);
  peer.read_to("\r\n\r\n");
  peer.send("HTTP/1.1 101 Switching Protocols\r\n\r\nfirst");
  REQUIRE(call.until([&] { return call.body == "first" && call.writables > 0; }));
  CHECK(bench.write(call, "input").second == 5);
  CHECK(bench.shutdown(call) == SF_OK);
  CHECK(peer.read_to("nothing") == "input<end>");
  peer.send("rest");
  peer.goodbye();
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.body == "firstrest");
}

TEST_CASE("http tls: texts that are no certificates and keys") {
  const Identity ca("");
  const Identity own("DNS:me", &ca);
  Server server;
  HttpBench bench;
  CHECK(open(bench, server, "nonsense") == SF_INVALID);
  CHECK(open(bench, server, ca.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n") == SF_INVALID);
  Identity strange("DNS:me", &ca);
  std::swap(strange.key, const_cast<Identity&>(own).key);
  CHECK(open(bench, server, ca.pem(), &strange) == SF_INVALID);
  CHECK_THAT(bench.error, !Catch::Contains("BEGIN"));
}

// Certificates that tests make, and a server's end of a TLS connection.
#pragma once

#include <string>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "http_fixture.hpp"

namespace sandforge::test {

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

}  // namespace sandforge::test

// Requests over TLS: whom the client trusts, and whom it does not.
#include "http_tls_fixture.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

sf_status open(HttpBench& bench, const Server& server, const std::string& ca,
               const Identity* own = nullptr, const std::string& chain = {}) {
  const std::string url = "https" + server.url.substr(4);
  const std::string certificate = own == nullptr ? "" : own->pem() + chain;
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
  // Its chain and what else is in the text belong to it.
  REQUIRE(open(bench, server, ca.pem(), &own, ca.pem() + own.key_pem()) == SF_OK);
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
  Identity own("DNS:me", &ca);
  Server server;
  HttpBench bench;
  CHECK(open(bench, server, "nonsense") == SF_INVALID);
  CHECK(open(bench, server, ca.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n") == SF_INVALID);
  CHECK(open(bench, server, ca.pem(), &own, "-----BEGIN CERTIFICATE-----\nAAAA\n") == SF_INVALID);
  CHECK(bench.client == nullptr);
  Identity strange("DNS:me", &ca);
  std::swap(strange.key, own.key);
  CHECK(open(bench, server, ca.pem(), &strange) == SF_INVALID);
  CHECK_THAT(bench.error, !Catch::Contains("BEGIN"));
}

#include "sandforge/wire/docker/endpoint.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace sandforge::wire::docker;

TEST_CASE("endpoints") {
  const auto url = [](const char* host, bool verify = false) {
    const EndpointResult result = parse_endpoint(host, verify);
    return result.endpoint ? result.endpoint->base_url : "error: " + result.error;
  };
  CHECK(url("") == "unix:///var/run/docker.sock");
  CHECK(url("unix://") == "unix:///var/run/docker.sock");
  CHECK(url("unix:///run/podman.sock") == "unix:///run/podman.sock");
  CHECK(url("unix://relative").rfind("error: the path of a socket", 0) == 0);
  CHECK(url("tcp://box") == "http://box:2375");
  CHECK(url("tcp://box", true) == "https://box:2376");
  CHECK(url("tcp://box:2376") == "https://box:2376");
  CHECK(url("tcp://box:1234", true) == "https://box:1234");
  CHECK(url("box:1234") == "http://box:1234");
  CHECK(url("tcp://[::1]:2375/") == "http://[::1]:2375");
  CHECK(url("tcp://[::1]") == "http://[::1]:2375");
  CHECK(url("http://box") == "http://box:2375");
  CHECK(url("https://box:1") == "https://box:1");
  CHECK(url("tcp://").rfind("error: the address of the engine names no host", 0) == 0);
  CHECK(url("tcp://user@box").rfind("error: ", 0) == 0);
  CHECK(url("tcp://box/path").rfind("error: ", 0) == 0);
  CHECK(url("ssh://box").rfind("error: engines are reached by", 0) == 0);
  CHECK(url("npipe:////./pipe/docker").rfind("error: ", 0) == 0);
  CHECK(parse_endpoint("", false).endpoint->path == "/var/run/docker.sock");
  CHECK(parse_endpoint("box:1", false).endpoint->shown == "tcp://box:1");
}

TEST_CASE("a login in an address is in no message") {
  for (const char* host : {"tcp://me:hush@box:1", "ssh://me:hush@box", "me:hush@box", "tcp://hush@",
                           "http://me:hu/sh@hush@box/path"}) {
    CAPTURE(host);
    const EndpointResult result = parse_endpoint(host, false);
    CHECK_FALSE(result.endpoint);
    CHECK_FALSE(result.error.empty());
    CHECK(result.error.find("hush") == std::string::npos);
    CHECK(result.error.find("hu/sh") == std::string::npos);
  }
  CHECK(parse_endpoint("ssh://me:hush@box", false).error.find("ssh://box") != std::string::npos);
}

TEST_CASE("versions of the API") {
  CHECK(parse_api_version("1.41")->text() == "1.41");
  CHECK(parse_api_version("v1.9")->minor == 9);
  CHECK(*parse_api_version("1.9") < *parse_api_version("1.41"));
  CHECK_FALSE(*parse_api_version("2.0") < *parse_api_version("1.41"));
  for (const char* none : {"", "1", "1.", ".4", "1.4.1", "1.-1", "1.4x", "99999.1"})
    CHECK_FALSE(parse_api_version(none));
}

#include "sandforge/wire/docker/names.hpp"

#include <catch2/catch.hpp>

#include "sandforge/wire/docker/endpoint.hpp"

using namespace sandforge::wire::docker;

TEST_CASE("names of containers have only characters that engines take, and are never shared") {
  CHECK(container_name("sandforge", "user/1001:dev") == "sandforge-user-1001-dev-e8ad125b");
  CHECK(container_name("", "-leading-dash").rfind("s--leading-dash-", 0) == 0);
  CHECK(container_name("", "").rfind("s--", 0) == 0);
  CHECK(container_name("p", "a/b") != container_name("p", "a:b"));
  CHECK(container_name("p", std::string(300, 'x')).size() < 80);
  CHECK(container_name("p", std::string(300, 'x')) != container_name("p", std::string(301, 'x')));
  CHECK(container_name("p", "\xc3\xa9") != container_name("p", "e\xcc\x81"));
}

TEST_CASE("references of images") {
  const auto is = [](const char* reference, const char* repository, const char* tag) {
    const ImageReference split = split_image(reference);
    CHECK(split.repository == repository);
    CHECK(split.tag == tag);
  };
  is("node", "node", "latest");
  is("node:22-slim", "node", "22-slim");
  is("registry:5000/a/b", "registry:5000/a/b", "latest");
  is("registry:5000/a/b:1.2", "registry:5000/a/b", "1.2");
  is("a/b@sha256:0123", "a/b@sha256:0123", "");
  is("a/b:1@sha256:0123", "a/b:1@sha256:0123", "");
  CHECK(registry_of("node:22") == "docker.io");
  CHECK(registry_of("library/node") == "docker.io");
  CHECK(registry_of("localhost/x") == "localhost");
  CHECK(registry_of("ghcr.io/a/b:1") == "ghcr.io");
  CHECK(registry_of("registry:5000/a") == "registry:5000");
}

TEST_CASE("queries are percent-encoded") {
  CHECK(Query().text().empty());
  CHECK(Query().add("all", "true").add("filters", R"({"a":["b=c d"]})").text() ==
        "?all=true&filters=%7B%22a%22%3A%5B%22b%3Dc%20d%22%5D%7D");
}

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

TEST_CASE("versions of the API") {
  CHECK(parse_api_version("1.41")->text() == "1.41");
  CHECK(parse_api_version("v1.9")->minor == 9);
  CHECK(*parse_api_version("1.9") < *parse_api_version("1.41"));
  CHECK_FALSE(*parse_api_version("2.0") < *parse_api_version("1.41"));
  for (const char* none : {"", "1", "1.", ".4", "1.4.1", "1.-1", "1.4x", "99999.1"})
    CHECK_FALSE(parse_api_version(none));
}

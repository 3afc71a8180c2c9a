#include "sandforge/wire/docker/names.hpp"

#include <catch2/catch.hpp>

using namespace sandforge::wire::docker;

TEST_CASE("names of containers have only characters that engines take, and are never shared") {
  CHECK(container_name("sandforge", "user/1001:dev") == "sandforge-user-1001-dev-e8ad125b");
  CHECK(is_container_name("sandforge-user-1001-dev-e8ad125b", "user/1001:dev"));
  CHECK(is_container_name("other-user-1001-dev-e8ad125b", "user/1001:dev"));
  CHECK_FALSE(is_container_name("sandforge-user-1001-dev-e8ad125b", "user/1001:prod"));
  CHECK_FALSE(is_container_name("e8ad125b", "user/1001:dev"));
  CHECK_FALSE(is_container_name("", ""));
  CHECK(container_name("", "-leading-dash").rfind("s--leading-dash-", 0) == 0);
  CHECK(container_name("", "").rfind("s--", 0) == 0);
  CHECK(container_name("p", "a/b") != container_name("p", "a:b"));
  CHECK(container_name("p", std::string(300, 'x')).size() < 80);
  CHECK(container_name("p", std::string(300, 'x')) != container_name("p", std::string(301, 'x')));
  CHECK(container_name("p", "\xc3\xa9") != container_name("p", "e\xcc\x81"));
}

TEST_CASE("images of checkpoints have tags that engines take, and never share one") {
  CHECK(checkpoint_image("a/b") == "sandforge-checkpoint:a-b-c14cddc033f64b9d");
  CHECK(checkpoint_image("-a").rfind("sandforge-checkpoint:s--a-", 0) == 0);
  CHECK(checkpoint_image("a/b") != checkpoint_image("a:b"));
  const std::string longest = checkpoint_image(std::string(300, 'x'));
  CHECK(longest.size() - longest.find(':') <= 128);
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

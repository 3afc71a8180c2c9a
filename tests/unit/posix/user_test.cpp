#include "sandforge/posix/user.hpp"

#include <catch2/catch.hpp>

using namespace sandforge::posix;

namespace {

constexpr char kPasswd[] =
    "root:x:0:0:root:/root:/bin/sh\n"
    "# comment\n"
    "\n"
    "broken\n"
    "bad:x:abc:0::/:\n"
    "app:x:1000:1001:App,,,:/home/app:/bin/bash\n"
    "1234:x:77:78::/odd:\n"
    "last:x:5:6::/last:/bin/sh";
constexpr char kGroup[] =
    "root:x:0:\n"
    "app:x:1001:\n"
    "docker:x:999:other,app\n"
    "video:x:44:application,app,x\n"
    "near:x:45:application\n"
    "4321:x:90:\n";

Identity found(const char* text) {
  Identity out;
  std::string why;
  INFO(text);
  REQUIRE(find_identity_in(text, kPasswd, kGroup, out, why));
  return out;
}

std::string refused(const char* text) {
  Identity out;
  std::string why;
  CHECK_FALSE(find_identity_in(text, kPasswd, kGroup, out, why));
  return why;
}

}  // namespace

TEST_CASE("names, numbers and groups are found") {
  Identity user = found("app");
  CHECK(user.uid == 1000);
  CHECK(user.gid == 1001);
  CHECK(user.groups == std::vector<gid_t>{999, 44});
  CHECK(user.home == "/home/app");
  CHECK(user.name == "app");

  user = found("1000");
  CHECK(user.name == "app");
  CHECK(user.groups == std::vector<gid_t>{999, 44});

  user = found("app:docker");
  CHECK(user.gid == 999);
  CHECK(user.groups.empty());

  user = found("4000");
  CHECK(user.uid == 4000);
  CHECK(user.gid == 0);
  CHECK(user.name.empty());

  user = found("4000:5000");
  CHECK(user.gid == 5000);
  CHECK(found("last").uid == 5);
}

TEST_CASE("a name of digits wins over the number") {
  CHECK(found("1234").uid == 77);
  CHECK(found("root:4321").gid == 90);
}

TEST_CASE("what does not exist is named") {
  CHECK(refused("ghost") == "there is no user 'ghost'");
  CHECK(refused("") == "there is no user ''");
  CHECK(refused("app:ghosts") == "there is no group 'ghosts'");
  CHECK(refused("app:") == "there is no group ''");
  CHECK(refused(":app") == "there is no user ''");
  CHECK(refused("-1") == "there is no user '-1'");
  CHECK(refused("4294967295") == "there is no user '4294967295'");
  CHECK(refused("4294967296") == "there is no user '4294967296'");
  CHECK(refused("bad") == "there is no user 'bad'");
  CHECK(refused("broken") == "there is no user 'broken'");
}

#include "paths.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "support/temp_dir.hpp"

using namespace sandforge::local;
using sandforge::test::TempDir;
namespace fs = std::filesystem;

TEST_CASE("safe session ids are folder names as they are") {
  for (const std::string id : {"a", "A-1", "x_y.z", "_x", "0", "CON", "3f2b9c1e-aaaa-bbbb"})
    CHECK(encode_id(id) == id);
  CHECK(encode_id(std::string(128, 'a')) == std::string(128, 'a'));
}

TEST_CASE("other session ids are encoded into one harmless component") {
  const std::string nfc = "caf\xc3\xa9";
  const std::string nfd = "cafe\xcc\x81";
  const std::vector<std::string> ids = {"",
                                        "..",
                                        ".",
                                        "a/../b",
                                        "/etc",
                                        std::string("a\0b", 3),
                                        std::string(129, 'a'),
                                        std::string(300, 'x'),
                                        nfc,
                                        nfd,
                                        "-rf",
                                        ".sandforge",
                                        "%41",
                                        "%h",
                                        "a b",
                                        "\n"};
  std::set<std::string> names;
  for (const auto& id : ids) {
    const auto name = encode_id(id);
    CAPTURE(id, name);
    CHECK(name.find('/') == std::string::npos);
    CHECK(name.find('\0') == std::string::npos);
    CHECK(name.front() != '.');
    CHECK(name.front() != '-');
    CHECK(name.size() <= 200);
    CHECK(names.insert(name).second);
  }
  CHECK(encode_id("..") == "%2E.");
  CHECK(encode_id("a/b") == "a%2Fb");
  CHECK(encode_id("%41") == "%2541");
}

TEST_CASE("a session's folder is told apart into its root and its name") {
  for (const std::string id : {"a", "a/../b", "..", "%41", "", "-rf"})
    for (const std::string root : {"/", "/srv/x", "/srv/with space"}) {
      CAPTURE(id, root);
      const auto parts = split_folder(root + "/" + encode_id(id));
      REQUIRE(parts);
      CHECK(parts->root == root);
      CHECK(parts->name == encode_id(id));
    }
  CHECK(split_folder("/a")->root == "/");
  const std::string nul("/srv/a\0b", 8);
  for (const std::string& folder :
       {std::string(), std::string("/"), std::string("srv/a"), std::string("/srv/"),
        std::string("/srv/.."), std::string("/srv/.sandforge"), std::string("/srv/a b"), nul,
        "/srv/" + std::string(201, 'a')}) {
    CAPTURE(folder);
    CHECK_FALSE(split_folder(folder));
  }
}

TEST_CASE("~ stands for the home folder") {
  CHECK(expand_home("~", "/home/x") == "/home/x");
  CHECK(expand_home("~/a", "/home/x") == "/home/x/a");
  CHECK(expand_home("~a", "/home/x") == "~a");
  CHECK(expand_home("/a~", "/home/x") == "/a~");
}

TEST_CASE("the first to make a folder is told so") {
  const TempDir scratch;
  Descriptor root;
  REQUIRE_FALSE(open_root(scratch.str() + "/deep/er", root));
  OpenedFolder first, second;
  REQUIRE_FALSE(open_child(root.get(), "s", "s", true, first));
  REQUIRE_FALSE(open_child(root.get(), "s", "s", true, second));
  CHECK(first.created);
  CHECK_FALSE(second.created);
  struct stat st {};
  REQUIRE(::fstat(first.fd.get(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0700);
}

TEST_CASE("a symlink or a file in place of a folder is refused") {
  const TempDir scratch;
  Descriptor root;
  REQUIRE_FALSE(open_root(scratch.str(), root));
  REQUIRE(::symlink("/etc", (scratch.str() + "/link").c_str()) == 0);
  std::ofstream(scratch.str() + "/file") << "x";
  OpenedFolder out;
  const auto link = open_child(root.get(), "link", "link", true, out);
  REQUIRE(link);
  CHECK(link->code == SF_INVALID);
  const auto file = open_child(root.get(), "file", "file", true, out);
  REQUIRE(file);
  CHECK(file->error_number == ENOTDIR);
  const auto missing = open_child(root.get(), "none", "none", false, out);
  REQUIRE(missing);
  CHECK(missing->code == SF_NOT_FOUND);
}

TEST_CASE("a relative root is refused") {
  Descriptor root;
  const auto failure = open_root("relative", root);
  REQUIRE(failure);
  CHECK(failure->reason == "local.root");
}

TEST_CASE("removing a guest's folder takes its files and nothing outside") {
  const TempDir scratch;
  Descriptor root;
  REQUIRE_FALSE(open_root(scratch.str(), root));
  fs::create_directory(scratch.str() + "/g");
  std::ofstream(scratch.str() + "/g/guest") << "x";
  std::ofstream(scratch.str() + "/precious") << "x";
  REQUIRE(::symlink("../precious", (scratch.str() + "/g/link").c_str()) == 0);
  CHECK_FALSE(remove_guest_folder(root.get(), "g"));
  CHECK_FALSE(fs::exists(scratch.str() + "/g"));
  CHECK(fs::exists(scratch.str() + "/precious"));
  CHECK_FALSE(remove_guest_folder(root.get(), "g"));
}

TEST_CASE("the folder of a guest is removed with folders in it, and nothing outside") {
  const TempDir scratch;
  const fs::path guest = scratch.path() / "guest";
  fs::create_directories(guest / "a" / "b" / "c");
  fs::create_directories(guest / "%1");  // a name that the removal itself might take
  fs::create_directories(scratch.path() / "outside");
  std::ofstream(guest / "a" / "b" / "file") << "x";
  std::ofstream(scratch.path() / "outside" / "kept") << "x";
  fs::create_symlink("../outside", guest / "link");
  fs::create_symlink("../../outside", guest / "a" / "link");
  fs::permissions(guest / "a", fs::perms::none);
  Descriptor parent;
  REQUIRE_FALSE(open_root(scratch.str(), parent));
  CHECK_FALSE(remove_guest_folder(parent.get(), "guest"));
  CHECK_FALSE(fs::exists(guest));
  CHECK(fs::exists(scratch.path() / "outside" / "kept"));
  CHECK_FALSE(remove_guest_folder(parent.get(), "guest"));
}

#include "sandforge/posix/beneath.hpp"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

using sandforge::posix::Beneath;
using sandforge::posix::Fd;

namespace {

int remove_one(const char* path, const struct stat*, int, struct FTW*) {
  return ::remove(path);
}

// top/inside is the folder; top/secret lies outside of it.
class Place {
 public:
  Place() {
    const char* base = std::getenv("TMPDIR");
    top = std::string(base ? base : "/tmp") + "/sandforge-beneath-XXXXXX";
    REQUIRE(::mkdtemp(top.data()) != nullptr);
    inside = top + "/inside";
    REQUIRE(::mkdir(inside.c_str(), 0755) == 0);
    REQUIRE(::mkdir((inside + "/sub").c_str(), 0755) == 0);
    write(top + "/secret", "outside");
    write(inside + "/file", "inside");
    write(inside + "/sub/deep", "deep");
  }
  ~Place() { ::nftw(top.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  static void write(const std::string& path, const std::string& text) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    REQUIRE(::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void link(const std::string& target, const std::string& name) const {
    REQUIRE(::symlink(target.c_str(), (inside + "/" + name).c_str()) == 0);
  }

  std::string top, inside;
};

std::string text_of(const Fd& fd) {
  char text[64];
  const ssize_t n = fd ? ::read(fd.get(), text, sizeof text) : -1;
  return n < 0 ? "errno " + std::to_string(errno) : std::string(text, static_cast<std::size_t>(n));
}

std::string error(int number) {
  return "errno " + std::to_string(number);
}

}  // namespace

TEST_CASE("paths reach what lies beneath and nothing else, with and without openat2") {
  const Place place;
  place.link("file", "to_file");
  place.link("sub/../file", "around");
  place.link("sub", "to_sub");
  place.link("../secret", "out");
  place.link(place.top + "/secret", "absolute");
  place.link(place.inside + "/file", "absolute_inside");
  place.link("..", "up");
  place.link("loop", "loop");
  place.link("nothing", "dangling");
  place.link("../new", "dangling_out");
  const auto way = GENERATE(Beneath::Way::best, Beneath::Way::walk);
  Beneath root;
  REQUIRE(root.open(place.inside, way));
  const auto read = [&](const std::string& path) { return text_of(root.at(path, O_RDONLY)); };

  CHECK(read("file") == "inside");
  CHECK(read("./sub/../file") == "inside");
  CHECK(read("/sub//deep") == "deep");
  CHECK(read("to_file") == "inside");
  CHECK(read("around") == "inside");
  CHECK(read("to_sub/deep") == "deep");
  CHECK(read("to_sub/../file") == "inside");
  CHECK(read("../secret") == error(EXDEV));
  CHECK(read("sub/../../secret") == error(EXDEV));
  CHECK(read("out") == error(EXDEV));
  CHECK(read("absolute") == error(EXDEV));
  CHECK(read("absolute_inside") == error(EXDEV));
  CHECK(read("up/secret") == error(EXDEV));
  CHECK(read("loop") == error(ELOOP));
  CHECK(read("dangling") == error(ENOENT));
  CHECK(read("dangling_out") == error(EXDEV));
  CHECK(read("file/x") == error(ENOTDIR));
  CHECK(read("file/") == error(ENOTDIR));
  CHECK(read(std::string("file\0x", 6)) == error(EINVAL));
  CHECK(read(std::string(5000, 'x')) == error(ENAMETOOLONG));
  CHECK(text_of(root.at("to_file", O_RDONLY | O_NOFOLLOW)) == error(ELOOP));
  CHECK(root.at("to_sub", O_PATH | O_DIRECTORY));
  CHECK(root.at(".", O_PATH | O_DIRECTORY));

  std::string name;
  CHECK(root.parent("to_sub/deep", name));
  CHECK(name == "deep");
  CHECK(root.parent("out", name));  // the link's own folder: it is not followed
  CHECK(name == "out");
  CHECK_FALSE(root.parent("up/secret", name));
  CHECK(errno == EXDEV);
  for (const std::string& path : {std::string("."), std::string("/"), std::string("sub/..")}) {
    CHECK_FALSE(root.parent(path, name));
    CHECK(errno == EINVAL);
  }
  CHECK(root.make_parent("a/b/c/d", name));
  CHECK(name == "d");
  CHECK(::access((place.inside + "/a/b/c").c_str(), F_OK) == 0);
  CHECK_FALSE(root.make_parent("up/new/d", name));
  CHECK(errno == EXDEV);
  CHECK(::access((place.top + "/new").c_str(), F_OK) != 0);
}

TEST_CASE("a whole file system has no outside: absolute links hold") {
  const Place place;
  place.link(place.top + "/secret", "absolute");
  const auto way = GENERATE(Beneath::Way::best, Beneath::Way::walk);
  Beneath root;
  REQUIRE(root.open("/", way));
  CHECK(text_of(root.at(place.inside + "/absolute", O_RDONLY)) == "outside");
  CHECK(root.at("/../..", O_PATH | O_DIRECTORY));
}

TEST_CASE("a folder that becomes a link while it is walked leads nowhere else") {
  const Place place;
  REQUIRE(::mkdir((place.top + "/trap").c_str(), 0755) == 0);
  Place::write(place.top + "/trap/deep", "outside");
  const auto way = GENERATE(Beneath::Way::best, Beneath::Way::walk);
  Beneath root;
  REQUIRE(root.open(place.inside, way));
  const std::string sub = place.inside + "/sub", kept = place.inside + "/kept";
  std::atomic<bool> stop{false};
  std::thread swap([&] {
    while (!stop) {
      ::rename(sub.c_str(), kept.c_str());
      ::symlink("../trap", sub.c_str());
      ::unlink(sub.c_str());
      ::rename(kept.c_str(), sub.c_str());
    }
  });
  int reached = 0;
  std::string wrong;
  // Until it was there at least once, too: who swaps may have the processor for long.
  for (int i = 0; i < 20000 || (reached == 0 && i < 2000000); ++i) {
    const std::string text = text_of(root.at("sub/deep", O_RDONLY));
    if (text == "deep") ++reached;
    if (text == "outside") wrong = text;
  }
  stop = true;
  swap.join();
  CHECK(wrong.empty());
  CHECK(reached > 0);
}

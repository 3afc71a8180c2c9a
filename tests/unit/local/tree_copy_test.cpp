#include "tree_copy.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.hpp"

using namespace sandforge::local;
using sandforge::test::TempDir;
namespace fs = std::filesystem;

namespace {

struct Trees {
  Trees() {
    fs::create_directory(from);
    fs::create_directory(to);
  }
  std::optional<Failure> copy() {
    const Descriptor source(::open(from.c_str(), kFolder)), target(::open(to.c_str(), kFolder));
    return copy_tree(source.get(), target.get(), cancelled, report);
  }
  struct stat of_copy(const std::string& name) const {
    struct stat out {};
    REQUIRE(::lstat((to / name).c_str(), &out) == 0);
    return out;
  }

  TempDir dir;
  const fs::path from = dir / "from", to = dir / "to";
  std::atomic<bool> cancelled{false};
  CopyReport report;
};

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read(const fs::path& path) {
  return sandforge::test::read_file(path);
}

}  // namespace

TEST_CASE("a copy has the files with modes and times, the folders too") {
  Trees trees;
  fs::create_directories(trees.from / "a/b");
  write(trees.from / "a/b/file", "text");
  write(trees.from / "a/program", "x");
  write(trees.from / "new\nline", "");
  REQUIRE(::chmod((trees.from / "a/program").c_str(), 04711) == 0);
  REQUIRE(::chmod((trees.from / "a/b").c_str(), 0500) == 0);
  const timespec times[2] = {{1000, 0}, {2000, 42}};
  for (const auto* name : {"a/b/file", "a/b", "a"})
    REQUIRE(::utimensat(AT_FDCWD, (trees.from / name).c_str(), times, 0) == 0);
  REQUIRE_FALSE(trees.copy());
  CHECK(read(trees.to / "a/b/file") == "text");
  CHECK(read(trees.to / "new\nline").empty());
  CHECK((trees.of_copy("a/program").st_mode & 07777) == 04711);
  CHECK((trees.of_copy("a/b").st_mode & 07777) == 0500);
  for (const auto* name : {"a/b/file", "a/b", "a"}) {
    CHECK(trees.of_copy(name).st_mtim.tv_sec == 2000);
    CHECK(trees.of_copy(name).st_mtim.tv_nsec == 42);
  }
  CHECK(trees.report.bytes == 5);
  CHECK(trees.report.warnings().empty());
  for (const auto* tree : {"from", "to"})  // so that the end of the test can remove them
    REQUIRE(::chmod((trees.dir / tree / "a/b").c_str(), 0700) == 0);
}

TEST_CASE("links are copied, and none is followed") {
  Trees trees;
  trees.dir.write("secret", "outside");
  fs::create_symlink(trees.dir / "secret", trees.from / "file");
  fs::create_symlink(trees.dir.path(), trees.from / "folder");
  fs::create_symlink("nowhere", trees.from / "dangling");
  REQUIRE_FALSE(trees.copy());
  CHECK(fs::read_symlink(trees.to / "file") == trees.dir / "secret");
  CHECK(fs::read_symlink(trees.to / "folder") == trees.dir.path());
  CHECK(fs::read_symlink(trees.to / "dangling") == "nowhere");
}

TEST_CASE("files with several names stay one file, which is not the original") {
  Trees trees;
  fs::create_directory(trees.from / "deep");
  write(trees.from / "deep/one", "text");
  fs::create_hard_link(trees.from / "deep/one", trees.from / "two");
  fs::create_hard_link(trees.from / "deep/one", trees.from / "deep/three");
  REQUIRE_FALSE(trees.copy());
  CHECK(trees.of_copy("two").st_ino == trees.of_copy("deep/one").st_ino);
  CHECK(trees.of_copy("two").st_ino == trees.of_copy("deep/three").st_ino);
  CHECK(trees.of_copy("two").st_nlink == 3);
  CHECK(trees.report.bytes == 4);
  write(trees.from / "two", "changed");
  CHECK(read(trees.to / "two") == "text");
}

TEST_CASE("holes stay holes, and what is between them arrives") {
  Trees trees;
  constexpr off_t kSize = off_t{256} << 20;
  {
    const Descriptor fd(
        ::open((trees.from / "sparse").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(::pwrite(fd.get(), "middle", 6, kSize / 2) == 6);
    REQUIRE(::ftruncate(fd.get(), kSize) == 0);
  }
  REQUIRE_FALSE(trees.copy());
  const auto copied = trees.of_copy("sparse");
  CHECK(copied.st_size == kSize);
  CHECK(copied.st_blocks * 512 < (off_t{8} << 20));
  std::ifstream in(trees.to / "sparse", std::ios::binary);
  in.seekg(kSize / 2);
  char text[6];
  in.read(text, sizeof text);
  CHECK(std::string(text, sizeof text) == "middle");
  CHECK(trees.report.bytes == static_cast<std::uint64_t>(kSize));
}

TEST_CASE("what is no file, folder or link is left out, and told") {
  Trees trees;
  REQUIRE(::mkfifo((trees.from / "pipe").c_str(), 0600) == 0);
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (trees.from / "s").string();
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  write(trees.from / "file", "text");
  REQUIRE_FALSE(trees.copy());
  CHECK(read(trees.to / "file") == "text");
  CHECK_FALSE(fs::exists(trees.to / "pipe"));
  CHECK_FALSE(fs::exists(trees.to / "s"));
  CHECK(trees.report.special.count == 2);
  REQUIRE(trees.report.warnings().size() == 1);
  CHECK(trees.report.warnings()[0].find("2 sockets, pipes and devices were left out, such as ") ==
        0);
}

TEST_CASE("a tree that is deeper than a path can be long is copied") {
  Trees trees;
  constexpr int kDepth = 30;
  const std::string name(200, 'n');
  Descriptor at(::open(trees.from.c_str(), kFolder));
  for (int i = 0; i < kDepth; ++i) {
    REQUIRE(::mkdirat(at.get(), name.c_str(), 0700) == 0);
    at = Descriptor(::openat(at.get(), name.c_str(), kFolder));
  }
  { const Descriptor file(::openat(at.get(), "end", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); }
  REQUIRE_FALSE(trees.copy());
  at = Descriptor(::open(trees.to.c_str(), kFolder));
  for (int i = 0; i < kDepth; ++i)
    at = Descriptor(::openat(at.get(), name.c_str(), kFolder));
  CHECK(::faccessat(at.get(), "end", F_OK, 0) == 0);
  at = Descriptor();
  const Descriptor parent(::open(trees.dir.str().c_str(), kFolder));
  for (const auto* tree : {"from", "to"})  // std::filesystem cannot
    CHECK_FALSE(remove_guest_folder(parent.get(), tree));
}

TEST_CASE("a copy that is cancelled says so") {
  Trees trees;
  write(trees.from / "file", "text");
  trees.cancelled = true;
  const auto failed = trees.copy();
  REQUIRE(failed);
  CHECK(failed->code == SF_CANCELLED);
}

TEST_CASE("what cannot be read is an error that names it") {
  if (::geteuid() == 0) return;  // who may read everything
  Trees trees;
  fs::create_directory(trees.from / "a");
  write(trees.from / "a/closed", "text");
  REQUIRE(::chmod((trees.from / "a/closed").c_str(), 0) == 0);
  const auto failed = trees.copy();
  REQUIRE(failed);
  CHECK(failed->code == SF_FORBIDDEN);
  CHECK(failed->path == "a/closed");
}

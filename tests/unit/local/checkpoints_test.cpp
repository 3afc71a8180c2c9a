// Checkpoints on disk: captured and booted from as a whole, or not at all.
#include "checkpoints.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/temp_dir.hpp"

using namespace sandforge::local;
using sandforge::test::TempDir;
namespace fs = std::filesystem;

namespace {

class Site {
 public:
  Site() {
    place.root = dir.str();
    place.name = "s";
  }
  fs::path session() const { return place.folder(); }
  fs::path store() const { return dir / ".checkpoints"; }
  // As a start leaves it.
  void make_machine() {
    fs::create_directory(session());
    Descriptor guest;
    REQUIRE_FALSE(make_guest_folder(place, guest));
  }
  // As a destroy leaves it.
  void destroy() { REQUIRE_FALSE(remove_guest(place)); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(session() / name) << text;
  }
  std::string read(const std::string& name) const {
    return sandforge::test::read_file(session() / name);
  }
  CheckpointInfo keep(const std::string& name) {
    CheckpointInfo info;
    const auto failed = capture(place, name, go_on, info);
    INFO((failed ? failed->message : ""));
    REQUIRE_FALSE(failed);
    return info;
  }
  Booted start(BootNames names) {
    Booted booted;
    const auto failed = boot(place, names, go_on, booted);
    INFO((failed ? failed->message : ""));
    REQUIRE_FALSE(failed);
    make_machine();
    return booted;
  }
  std::vector<std::string> names() const {
    std::vector<CheckpointInfo> all;
    REQUIRE_FALSE(list_checkpoints(place.root, all));
    std::vector<std::string> out;
    for (const auto& one : all)
      out.push_back(one.name);
    return out;
  }
  std::vector<std::string> leftovers() const {
    std::vector<std::string> out;
    if (!fs::exists(store())) return out;
    for (const auto& entry : fs::directory_iterator(store()))
      if (entry.path().filename().string().front() == '.')
        out.push_back(entry.path().filename().string());
    return out;
  }

  TempDir dir;
  SessionPlace place;
  CancelFlag go_on{false};
};

BootNames own(std::string name) {
  BootNames names;
  names.own = std::move(name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a checkpoint holds what the session had, and the next one replaces it") {
  Site site;
  site.make_machine();
  site.write("file", "one");
  const auto first = site.keep("c");
  CHECK(first.name == "c");
  CHECK(first.bytes == 3);
  site.write("file", "second");
  const auto second = site.keep("c");
  CHECK(second.created_at > first.created_at);
  CHECK(site.names() == Names{"c"});
  CHECK(site.leftovers().empty());
  fs::remove_all(site.session());
  site.destroy();
  CHECK(site.start(own("c")).from == BootedFrom::own);
  CHECK(site.read("file") == "second");
}

TEST_CASE("names that folders cannot have are names of checkpoints all the same") {
  Site site;
  site.make_machine();
  Names all = {"..", ".sandforge", "a/b", std::string(200, 'x'), "s", "\xc3\xa9"};
  for (const auto& name : all)
    site.keep(name);
  auto listed = site.names();
  std::sort(listed.begin(), listed.end());
  std::sort(all.begin(), all.end());
  CHECK(listed == all);
  for (const auto& name : all) {
    CHECK_FALSE(find_checkpoint(site.place.root, name));
    REQUIRE_FALSE(remove_checkpoint(site.place.root, name));
    CHECK(find_checkpoint(site.place.root, name)->code == SF_NOT_FOUND);
    CHECK_FALSE(remove_checkpoint(site.place.root, name));
  }
  CHECK(site.names().empty());
  CHECK_FALSE(fs::exists(site.store()));
}

TEST_CASE("a machine that exists is not booted, whatever checkpoints there are") {
  Site site;
  site.make_machine();
  site.write("file", "kept");
  site.keep("s");
  site.write("file", "newer");
  CHECK(site.start(own("s")).from == BootedFrom::nothing);
  CHECK(site.read("file") == "newer");
}

TEST_CASE("after destroy the checkpoint counts, and what destroy kept is set aside for good") {
  Site site;
  site.make_machine();
  site.write("file", "kept");
  site.keep("s");
  site.write("file", "newer");
  site.destroy();
  const auto booted = site.start(own("s"));
  CHECK(booted.from == BootedFrom::own);
  CHECK(site.read("file") == "kept");
  const auto before = fs::path(site.place.root) / ".before-checkpoint/s";
  CHECK(sandforge::test::read_file(before / "file") == "newer");
  REQUIRE(booted.warnings.size() == 1);
  CHECK(booted.warnings[0].find(before.string()) != std::string::npos);
  // No destroy removes what one has kept, and no later one takes its place.
  site.write("file", "newest");
  site.destroy();
  CHECK(sandforge::test::read_file(before / "file") == "newer");
  CHECK_THAT(site.start(own("s")).warnings.at(0), Catch::Contains(before.string() + "~2 "));
  CHECK(sandforge::test::read_file(before / "file") == "newer");
  CHECK(sandforge::test::read_file(fs::path(before.string() + "~2") / "file") == "newest");
  CHECK(site.names() == Names{"s"});
}

TEST_CASE("the seed counts for a session without files, and while its own does not exist") {
  Site site;
  site.make_machine();
  site.write("file", "seed");
  site.keep("seed");
  site.destroy();
  BootNames names;
  names.own = "s";
  names.seed = "seed";
  // Its files were never captured: nothing takes their place.
  site.write("file", "mine");
  CHECK(site.start(names).from == BootedFrom::nothing);
  CHECK(site.read("file") == "mine");
  site.destroy();
  fs::remove(site.session() / "file");
  CHECK(site.start(names).from == BootedFrom::seed);
  CHECK(site.read("file") == "seed");
  site.write("file", "own");
  site.keep("s");
  site.destroy();
  fs::remove_all(site.session());
  CHECK(site.start(names).from == BootedFrom::own);
  CHECK(site.read("file") == "own");
}

TEST_CASE("a checkpoint that was asked for must be there, and comes first") {
  Site site;
  site.make_machine();
  site.write("file", "own");
  site.keep("s");
  site.write("file", "other");
  site.keep("other");
  site.destroy();
  auto names = own("s");
  names.wanted = "nothing";
  Booted booted;
  const auto failed = boot(site.place, names, site.go_on, booted);
  REQUIRE(failed);
  CHECK(failed->code == SF_NOT_FOUND);
  CHECK(site.read("file") == "other");
  names.wanted = "other";
  site.write("file", "newer");
  CHECK(site.start(names).from == BootedFrom::wanted);
  CHECK(site.read("file") == "other");
}

TEST_CASE(
    "what an interrupted capture left is removed at the next use, what somebody holds is not") {
  Site site;
  site.make_machine();
  site.write("file", "text");
  site.keep("c");
  fs::create_directories(site.store() / ".tmp-0123/files/a");
  fs::create_directories(site.store() / ".tmp-held/files");
  const Descriptor held(::open((site.store() / ".tmp-held").c_str(), kFolder));
  REQUIRE(::flock(held.get(), LOCK_EX | LOCK_NB) == 0);
  SECTION("a capture") {
    site.keep("d");
  }
  SECTION("a removal") {
    REQUIRE_FALSE(remove_checkpoint(site.place.root, "d"));
  }
  SECTION("a start") {
    site.destroy();
    site.start(own("c"));
  }
  CHECK(site.leftovers() == Names{".tmp-held"});
  CHECK(site.names().back() == "c");
}

TEST_CASE("what cannot be removed of an earlier capture hinders nothing, and is told") {
  Site site;
  site.make_machine();
  site.write("file", "text");
  site.keep("c");
  std::ofstream(site.store() / ".tmp-0123") << "no folder";
  SECTION("a capture") {
    CHECK(site.keep("d").warnings.size() == 1);
  }
  SECTION("a removal") {
    REQUIRE_FALSE(remove_checkpoint(site.place.root, "d"));
  }
  SECTION("a start") {
    site.destroy();
    const auto booted = site.start(own("c"));
    CHECK(std::any_of(booted.warnings.begin(), booted.warnings.end(), [](const auto& warning) {
      return warning.find("earlier checkpoint stays") != std::string::npos;
    }));
  }
  CHECK(site.leftovers() == Names{".tmp-0123"});
}

TEST_CASE("a capture that fails leaves the checkpoint that was there") {
  Site site;
  site.make_machine();
  site.write("file", "old");
  site.keep("c");
  site.write("file", "new");
  CancelFlag cancelled{true};
  CheckpointInfo info;
  CHECK(capture(site.place, "c", cancelled, info)->code == SF_CANCELLED);
  CHECK(site.leftovers().empty());
  site.destroy();
  Booted booted;
  CHECK(boot(site.place, own("c"), cancelled, booted)->code == SF_CANCELLED);
  CHECK(site.read("file") == "new");
  CHECK(site.leftovers().empty());
  site.start(own("c"));
  CHECK(site.read("file") == "old");
}

TEST_CASE("a checkpoint that is read while it is replaced is read to its end") {
  Site site;
  site.make_machine();
  constexpr int kFiles = 40;
  const auto fill = [&](const std::string& text) {
    for (int i = 0; i < kFiles; ++i)
      site.write(std::to_string(i), text);
  };
  fill("0");
  site.keep("c");
  std::atomic<bool> failed{false};
  std::thread writer([&] {
    for (int round = 1; round <= 8; ++round) {
      fill(std::to_string(round));
      CheckpointInfo info;
      failed = failed || capture(site.place, "c", site.go_on, info).has_value();
    }
  });
  for (int n = 0; n < 40; ++n) {
    SessionPlace other = site.place;
    other.name = "reader-" + std::to_string(n);
    Booted booted;
    const auto why = boot(other, own("c"), site.go_on, booted);
    INFO((why ? why->message : ""));
    CHECK_FALSE(why);
    const auto text = sandforge::test::read_file(fs::path(other.folder()) / "0");
    for (int i = 1; i < kFiles; ++i)
      CHECK(sandforge::test::read_file(fs::path(other.folder()) / std::to_string(i)) == text);
  }
  writer.join();
  CHECK_FALSE(failed);
  REQUIRE_FALSE(remove_checkpoint(site.place.root, "c"));
  CHECK(site.leftovers().empty());
}

TEST_CASE("captures at once under one name leave one whole checkpoint") {
  Site site;
  site.make_machine();
  site.write("file", "text");
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n)
    threads.emplace_back([&] {
      for (int round = 0; round < 4; ++round) {
        CheckpointInfo info;
        if (capture(site.place, "c", site.go_on, info)) ++failed;
      }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(failed == 0);
  CHECK(site.names() == Names{"c"});
  REQUIRE_FALSE(remove_checkpoint(site.place.root, "other"));
  CHECK(site.leftovers().empty());
  site.destroy();
  site.write("file", "newer");
  site.start(own("c"));
  CHECK(site.read("file") == "text");
}

TEST_CASE("captures get along with who removes the last checkpoint") {
  Site site;
  site.make_machine();
  site.write("file", "text");
  std::atomic<bool> ended{false};
  std::vector<std::string> of_captures, of_removals;
  std::thread remover([&] {
    while (!ended)
      if (const auto failed = remove_checkpoint(site.place.root, "c"))
        of_removals.push_back(failed->message);
  });
  for (int round = 0; round < 20; ++round) {
    CheckpointInfo info;
    if (const auto failed = capture(site.place, "c", site.go_on, info))
      of_captures.push_back(failed->message);
  }
  ended = true;
  remover.join();
  CHECK(of_captures == Names{});
  CHECK(of_removals == Names{});
  REQUIRE_FALSE(remove_checkpoint(site.place.root, "c"));
  CHECK_FALSE(fs::exists(site.store()));
}

TEST_CASE("a session that works elsewhere has no checkpoints, and one that is gone is gone") {
  Site site;
  CheckpointInfo info;
  CHECK(capture(site.place, "c", site.go_on, info)->code == SF_GONE);
  CHECK_FALSE(fs::exists(site.store()));
  site.make_machine();
  site.keep("c");
  site.destroy();
  site.place.working_directory = (site.dir / "elsewhere").string();
  CHECK(capture(site.place, "c", site.go_on, info)->code == SF_UNSUPPORTED);
  CHECK(site.start(own("c")).from == BootedFrom::nothing);
  site.destroy();
  auto names = own("c");
  names.wanted = "c";
  Booted booted;
  CHECK(boot(site.place, names, site.go_on, booted)->code == SF_UNSUPPORTED);
  site.place.working_directory = site.place.folder() + "/inside";
  CHECK(site.start(own("c")).from == BootedFrom::own);
}

TEST_CASE("a store behind a link is refused, and nothing there is touched") {
  Site site;
  site.make_machine();
  fs::create_directory(site.dir / "outside");
  std::ofstream(site.dir / "outside/file") << "text";
  fs::create_directory_symlink(site.dir / "outside", site.store());
  CheckpointInfo info;
  CHECK(capture(site.place, "c", site.go_on, info));
  CHECK(remove_checkpoint(site.place.root, "file"));
  site.destroy();
  Booted booted;
  CHECK(boot(site.place, own("c"), site.go_on, booted));
  CHECK(sandforge::test::read_file(site.dir / "outside/file") == "text");
}

TEST_CASE("a checkpoint whose description is damaged is listed by its folder's name") {
  Site site;
  site.make_machine();
  site.write("file", "text");
  site.keep("c");
  std::ofstream(site.store() / "c/about.json") << "{";
  CHECK(site.names() == Names{"c"});
  site.destroy();
  CHECK(site.start(own("c")).from == BootedFrom::own);
}

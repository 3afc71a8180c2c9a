// G: files that are served beside the commands. What lies outside is on this machine, where the
// suite can see it: a link that leads there must reach it on no provider.
#include "sandforge/files.hpp"

#include <atomic>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

WriteOptions with_mode(std::uint32_t mode, bool parents = false) {
  WriteOptions options;
  options.mode = mode;
  options.create_parents = parents;
  return options;
}

std::string octal_mode(Sandbox& sandbox, const std::string& path) {
  auto text = sandbox.exec({"stat", "-c", "%a", path}).out;
  if (!text.empty()) text.pop_back();
  return text;
}

std::set<std::string> listed(Files& files, const std::string& path, std::uint32_t depth) {
  std::set<std::string> out;
  for (const auto& entry : files.list(path, depth))
    CHECK(out.insert(entry.path).second);
  return out;
}

Status status_of(const std::function<void()>& call) {
  return error_of(call).code;
}

// ---- G_files

void whole_files(Sandbox& sandbox, Files& files) {
  CHECK(status_of([&] { files.write_file("a/b/file", "x"); }) == Status::not_found);
  files.write_file("a/b/file", "hello", with_mode(0640, true));
  CHECK(read_file(sandbox, "a/b/file") == "hello");
  CHECK(octal_mode(sandbox, "a/b/file") == "640");
  // The old one's mode, and the new one's bytes.
  files.write_file("a/b/file", "hello, world");
  CHECK(octal_mode(sandbox, "a/b/file") == "640");
  files.write_file("plain", "");
  CHECK(octal_mode(sandbox, "plain") == "644");
  CHECK(files.read_file("plain").empty());
  CHECK(files.read_file("a/b/file") == "hello, world");

  ReadOptions part;
  part.offset = 7;
  part.length = 3;
  part.window = 1;
  const auto reader = files.open("a/b/file", part);
  std::string bytes;
  for (std::string piece; !(piece = reader->read()).empty();)
    bytes += piece;
  CHECK(bytes == "wor");
  CHECK(status_of([&] { files.read_file("none"); }) == Status::not_found);
  CHECK(status_of([&] { files.read_file("a"); }) == Status::invalid);
  CHECK(status_of([&] { files.read_file("a/b/file", 3); }) == Status::no_space);
  CHECK(status_of([&] { files.write_file("a", "x"); }) == Status::invalid);
}

void described_files(Sandbox& sandbox, Files& files) {
  REQUIRE(sh(sandbox, "ln -s b/file a/link && printf '\\001\\377\\000' >bytes").success);
  const auto file = files.stat("a/b/file");
  CHECK(file.kind == FileKind::regular);
  CHECK(file.size == 12);
  CHECK(file.mode == 0640);
  CHECK(file.modified_at_ns > 0);
  const auto link = files.stat("a/link");
  CHECK(link.kind == FileKind::symlink);
  CHECK(link.link_target == "b/file");
  CHECK(files.stat(".").kind == FileKind::directory);
  CHECK(files.read_file("a/link") == "hello, world");
  CHECK(files.read_file("bytes") == std::string("\001\377\000", 3));
  CHECK(listed(files, "a", 1) == std::set<std::string>{"a/b", "a/link"});
  CHECK(listed(files, "a", 2) == std::set<std::string>{"a/b", "a/link", "a/b/file"});
  CHECK(status_of([&] { files.list("bytes"); }) == Status::invalid);
}

void changed_files(Sandbox& sandbox, Files& files) {
  MakeDirectoryOptions parents;
  parents.create_parents = true;
  parents.mode = 0700;
  CHECK(status_of([&] { files.make_directory("x/y/z"); }) == Status::not_found);
  files.make_directory("x/y/z", parents);
  files.make_directory("x/y/z", parents);
  CHECK(octal_mode(sandbox, "x/y/z") == "700");
  CHECK(status_of([&] { files.make_directory("x/y/z"); }) == Status::already_exists);

  files.write_file("one", "1");
  files.write_file("two", "2");
  CHECK(status_of([&] { files.move("one", "two"); }) == Status::already_exists);
  CHECK(read_file(sandbox, "two") == "2");
  files.move("one", "two", true);
  CHECK(read_file(sandbox, "two") == "1");
  CHECK_FALSE(exists(sandbox, "one"));
  CHECK(status_of([&] { files.move("one", "three"); }) == Status::not_found);

  CHECK(status_of([&] { files.remove("x"); }) == Status::invalid);
  CHECK(exists(sandbox, "x/y/z"));
  files.remove("x", true);
  files.remove("two");
  CHECK_FALSE(exists(sandbox, "x"));
  CHECK_FALSE(exists(sandbox, "two"));
  CHECK(status_of([&] { files.remove("two"); }) == Status::not_found);
}

// What was not committed leaves the old file and nothing beside it.
void cut_short(Sandbox& sandbox, Files& files) {
  // More than waits anywhere on the way: the provider has begun to write.
  const std::string much(static_cast<std::size_t>(16 * kMebibyte), 'n');
  files.make_directory("cut");
  files.write_file("cut/file", "old");
  {
    const auto writer = files.create("cut/file");
    writer->write(much);
  }
  const auto cancelled = files.create("cut/file");
  cancelled->write(much);
  cancelled->cancel();
  CHECK_THROWS_AS(cancelled->commit(), SandboxAbortError);
  CHECK(eventually([&] { return sandbox.exec({"ls", "-A", "cut"}).out == "file\n"; }));
  CHECK(read_file(sandbox, "cut/file") == "old");
}

void files(Host& host) {
  // Not started: the first call starts it, as a command does.
  const auto sandbox = host.make();
  const auto all = sandbox->files();
  all->write_file("first", "1");
  CHECK(sandbox->status() == SandboxStatus::running);
  whole_files(*sandbox, *all);
  described_files(*sandbox, *all);
  changed_files(*sandbox, *all);
  cut_short(*sandbox, *all);
  sandbox->stop();
  CHECK(all->read_file("first") == "1");
  sandbox->destroy();
  CHECK_THROWS_AS(all->stat("first"), SandboxDestroyedError);
}

// ---- G_links

// A folder of this machine that no sandbox is.
struct Outside {
  explicit Outside(Host& host) : folder(host.scratch()), token(host.word("outside")) {
    fs::create_directories(folder);
    std::ofstream(folder / "file") << token;
  }
  // Nothing was written here, and nothing removed.
  void check_untouched() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      names.insert(entry.path().filename().string());
    CHECK(names == std::set<std::string>{"file"});
    std::ifstream in(folder / "file");
    std::stringstream text;
    text << in.rdbuf();
    CHECK(text.str() == token);
  }
  const fs::path folder;
  const std::string token;
};

std::string read_or_nothing(Files& files, const std::string& path) {
  try {
    return files.read_file(path);
  } catch (const Exception&) {
    return {};
  }
}

void try_write(Files& files, const std::string& path, bool parents) {
  try {
    files.write_file(path, "written", with_mode(0, parents));
  } catch (const Exception&) {
  }
}

void standing_links(Sandbox& sandbox, Files& files, const Outside& outside) {
  const std::string out = outside.folder.string();
  REQUIRE(sandbox.exec({"ln", "-s", out, "dir"}).success);
  REQUIRE(sandbox.exec({"ln", "-s", out + "/file", "link"}).success);
  REQUIRE(sandbox.exec({"ln", "-s", out + "/new", "dangling"}).success);
  std::string up;
  for (int i = 0; i < 40; ++i)
    up += "../";
  REQUIRE(sandbox.exec({"ln", "-s", up + out.substr(1), "relative"}).success);
  for (const std::string& path :
       {std::string("link"), std::string("dir/file"), std::string("relative/file"), out + "/file",
        up + out.substr(1) + "/file", std::string("dangling")}) {
    CAPTURE(path);
    CHECK(read_or_nothing(files, path) != outside.token);
  }
  for (const std::string& path :
       {std::string("dir/new"), std::string("relative/new"), std::string("dir/deep/new"),
        out + "/new", up + out.substr(1) + "/new", std::string("dangling")})
    try_write(files, path, true);
  for (const char* path : {"dir/file", "relative/file"})
    CHECK_THROWS_AS(files.remove(path), Exception);
  CHECK_THROWS_AS(files.move("dir/file", "mine"), Exception);
  try {
    for (const auto& entry : files.list("dir", 3))
      CHECK(entry.path != "dir/file");
  } catch (const Exception&) {
  }
  files.remove("dir", true);
  outside.check_untouched();
}

void swapped_links(Sandbox& sandbox, Files& files, const Outside& outside) {
  REQUIRE(sh(sandbox, "mkdir swap && echo inside >swap/file").success);
  SpawnOptions quiet;
  quiet.stdin_pipe = false;
  const auto swapper = sandbox.spawn(
      argv({"sh", "-c", "while :; do mv swap kept; ln -s \"$1\" swap; rm swap; mv kept swap; done",
            "sh", outside.folder.string()}),
      quiet);
  for (int i = 0; i < 300; ++i) {
    if (read_or_nothing(files, "swap/file") == outside.token)
      findings().add("a file outside was read through a folder that became a link");
    try_write(files, "swap/new", false);
  }
  swapper->kill();
  outside.check_untouched();
}

void links(Host& host) {
  const Outside outside(host);
  const auto sandbox = host.started();
  const auto files = sandbox->files();
  standing_links(*sandbox, *files, outside);
  swapped_links(*sandbox, *files, outside);
}

// ---- G_names

void names(Host& host) {
  const auto sandbox = host.started();
  const auto files = sandbox->files();
  files->make_directory("names");
  std::set<std::string> all;
  for (const std::string& name :
       {std::string("a b"), std::string("it's \"quoted\" `x` $HOME"), std::string("line\nbreak\n"),
        std::string("-rf"), std::string("*?["), std::string("tab\tand\\backslash"),
        std::string("caf\xc3\xa9"), std::string("not\xff\xfeutf8"), std::string(255, 'n')}) {
    CAPTURE(name);
    const std::string path = "names/" + name;
    files->write_file(path, name);
    CHECK(files->read_file(path) == name);
    CHECK(sandbox->exec({"cat", "./" + path}).out == name);
    CHECK(files->stat(path).path == path);
    all.insert(path);
  }
  CHECK(listed(*files, "names", 1) == all);
  for (const std::string& path : all)
    files->remove(path);
  CHECK(files->list("names").empty());
  CHECK(status_of([&] { files->write_file("names/" + std::string(256, 'n'), "x"); }) ==
        Status::invalid);
  CHECK(status_of([&] { files->read_file(std::string("a\0b", 3)); }) == Status::invalid);
  CHECK(status_of([&] { files->read_file(""); }) == Status::invalid);
}

// ---- G_large, A04

// A piece of a file that tells where it belongs.
std::string piece_at(std::uint64_t index) {
  std::string piece = "piece " + std::to_string(index) + "\n";
  piece.resize(kMebibyte, '.');
  return piece;
}

void upload(Files& files, const std::string& path, std::uint64_t mebibytes) {
  const auto writer = files.create(path);
  for (std::uint64_t i = 0; i < mebibytes; ++i)
    writer->write(piece_at(i));
  writer->commit();
}

// How many bytes came, all of them in their place.
std::uint64_t download(Files& files, const std::string& path) {
  const auto reader = files.open(path);
  std::uint64_t total = 0;
  std::string piece;
  for (std::string bytes; !(bytes = reader->read()).empty();) {
    total += bytes.size();
    piece += bytes;
    while (piece.size() >= kMebibyte) {
      if (piece.compare(0, kMebibyte, piece_at(total / kMebibyte - piece.size() / kMebibyte)) != 0)
        return 0;
      piece.erase(0, kMebibyte);
    }
  }
  return total;
}

void large(Host& host) {
  const auto sandbox = host.started();
  const auto files = sandbox->files();
  // A file with a hole: what is streamed needs no disk.
  REQUIRE(sandbox->exec({"truncate", "-s", "1G", "hole"}).success);
  constexpr std::uint64_t kUpload = 256;
  const PeakMemory memory;
  const auto reader = files->open("hole");
  std::uint64_t seen = 0;
  bool zero = true;
  for (std::string bytes; !(bytes = reader->read()).empty();) {
    zero = zero && bytes.find_first_not_of('\0') == std::string::npos;
    seen += bytes.size();
  }
  CHECK(seen == 1024 * kMebibyte);
  CHECK(zero);
  upload(*files, "pieces", kUpload);
  CHECK(files->stat("pieces").size == kUpload * kMebibyte);
  CHECK(download(*files, "pieces") == kUpload * kMebibyte);
  const auto growth = memory.growth_kib();
  if (!sanitized()) CHECK(growth <= 32 * 1024);
}

// A reader that takes nothing holds the file back, and nobody else.
void held_back(Host& host) {
  const auto sandbox = host.started();
  const auto files = sandbox->files();
  REQUIRE(sandbox->exec({"truncate", "-s", "1G", "hole"}).success);
  const PeakMemory memory;
  const auto reader = files->open("hole");
  for (int i = 0; i < 50; ++i)
    CHECK(files->stat("hole").size == 1024 * kMebibyte);
  CHECK(sandbox->exec({"true"}).success);
  CHECK(reader->read().size() <= kMebibyte);
  if (!sanitized()) CHECK(memory.growth_kib() <= 16 * 1024);
}

void upload_100_mib(Host& host) {
  if (!host.has("files")) return;
  const auto sandbox = host.started("upload");
  upload(*sandbox->files(), "big", 100);
  CHECK(sandbox->exec({"sh", "-c", "wc -c <big"}).out == std::to_string(100 * kMebibyte) + "\n");
}

// ---- G_watch

class Changes {
 public:
  std::function<void(const FileEvent&)> listener() {
    return [this](const FileEvent& event) {
      const std::lock_guard lock(mutex_);
      seen_.insert(event.event + " " + event.path);
    };
  }
  void expect(const std::string& change) {
    CAPTURE(change);
    const bool there = eventually([&] {
      const std::lock_guard lock(mutex_);
      return seen_.count(change) != 0;
    });
    CHECK(there);
  }
  bool has(const std::string& change) {
    const std::lock_guard lock(mutex_);
    return seen_.count(change) != 0;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> seen_;
};

void watch(Host& host) {
  const auto sandbox = host.started();
  const auto files = sandbox->files();
  REQUIRE(sh(*sandbox, "mkdir -p top/old").success);
  Changes changes, flat;
  const auto watch = files->watch("top", true, changes.listener());
  const auto one = files->watch("top", false, flat.listener());
  CHECK(sh(*sandbox, "echo 1 >top/old/file; mkdir -p top/new/deep; echo 2 >top/new/deep/file")
            .success);
  changes.expect("create top/old/file");
  changes.expect("write top/old/file");
  changes.expect("create top/new");
  changes.expect("create top/new/deep/file");
  files->write_file("top/served", "3");
  changes.expect("create top/served");
  flat.expect("create top/served");
  CHECK_FALSE(flat.has("create top/old/file"));
  files->move("top/served", "top/moved");
  changes.expect("rename top/served");
  changes.expect("create top/moved");
  files->remove("top/moved");
  changes.expect("remove top/moved");
  CHECK(status_of([&] { files->watch("none", true, nullptr); }) == Status::not_found);
}

}  // namespace

void add_files(Procedures& to) {
  to["files.files"] = files;
  to["files.held_back"] = held_back;
  to["files.large"] = large;
  to["files.links"] = links;
  to["files.names"] = names;
  to["files.upload_100_mib"] = upload_100_mib;
  to["files.watch"] = watch;
}

}  // namespace sandforge::conformance

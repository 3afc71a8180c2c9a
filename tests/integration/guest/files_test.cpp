// Files: cases G of the conformance list, as the guest alone shows them.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <set>

#include "harness.hpp"

using namespace guest_test;
using wire::ErrorCode;
using wire::FileChange;
using wire::FileKind;
using wire::FrameType;

namespace {

constexpr std::uint64_t kFileWindow = 256 * 1024;

wire::FileRequest about(const std::string& path) {
  wire::FileRequest request;
  request.path = path;
  request.window = kFileWindow;
  return request;
}

// A guest whose root is `folder`/root.
class Served {
 public:
  explicit Served(std::vector<std::string> options = {}) : root(folder.file("root")) {
    REQUIRE(::mkdir(root.c_str(), 0755) == 0);
    options.insert(options.end(), {"--root", root});
    guest = std::make_unique<Guest>(std::move(options));
  }
  Host& host() { return guest->host(); }
  std::string at(const std::string& name) const { return root + "/" + name; }

  Seen& ask(FrameType operation, const wire::FileRequest& request) {
    std::string why;
    const auto id = host().client.file(operation, request, &why);
    INFO(why);
    REQUIRE(id);
    return host().wait(*id);
  }
  Seen& ask(FrameType operation, const std::string& path) { return ask(operation, about(path)); }

  // All of it, as the guest grants.
  wire::ChannelId begin_write(const wire::FileRequest& request, std::string_view text) {
    const auto id = *host().client.file(FrameType::file_write, request);
    while (!text.empty() && !host().of(id).over()) {
      host().until([&] { return host().client.file_room(id) > 0 || host().of(id).over(); });
      text.remove_prefix(host().client.write_file(id, text).value_or(text.size()));
    }
    return id;
  }
  Seen& write(const wire::FileRequest& request, std::string_view text) {
    const auto id = begin_write(request, text);
    host().client.commit_file(id);
    return host().wait(id);
  }
  std::set<std::string> names() {
    std::set<std::string> out;
    wire::FileRequest all = about(".");
    all.depth = 100;
    for (const wire::FileEntry& entry : ask(FrameType::file_list, all).files)
      out.insert(entry.path);
    return out;
  }

  TempFolder folder;
  std::string root;
  std::unique_ptr<Guest> guest;
};

std::optional<ErrorCode> code(const Seen& seen) {
  return seen.error ? std::optional(seen.error->code) : std::nullopt;
}

mode_t mode_of(const std::string& path) {
  struct stat st = {};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

}  // namespace

TEST_CASE("G files are written whole, read in parts, and described", "[cases.G_files]") {
  Served served;
  wire::FileRequest request = about("a/b/file");
  CHECK(code(served.write(request, "text")) == ErrorCode::not_found);
  request.parents = true;
  request.mode = 0750;
  CHECK(served.write(request, "hello").file_end == std::uint64_t{5});
  CHECK(contents(served.at("a/b/file")) == "hello");
  CHECK(mode_of(served.at("a/b/file")) == 0750);
  request.mode = 0;  // the old one's
  CHECK(served.write(request, "hello, world").file_end);
  CHECK(mode_of(served.at("a/b/file")) == 0750);
  // But not the rights that the old one lent.
  REQUIRE(::chmod(served.at("a/b/file").c_str(), 06750) == 0);
  CHECK(served.write(request, "hello, world").file_end);
  CHECK(mode_of(served.at("a/b/file")) == 0750);
  CHECK(served.write(about("empty"), "").file_end == std::uint64_t{0});
  CHECK(mode_of(served.at("empty")) == 0644);

  CHECK(served.ask(FrameType::file_read, "a/b/file").out == "hello, world");
  CHECK(served.ask(FrameType::file_read, served.at("a/b/file")).out == "hello, world");
  wire::FileRequest part = about("a/b/file");
  part.offset = 7;
  part.length = 3;
  CHECK(served.ask(FrameType::file_read, part).out == "wor");
  part.offset = 100;
  CHECK(served.ask(FrameType::file_read, part).file_end == std::uint64_t{0});
  CHECK(code(served.ask(FrameType::file_read, "a")) == ErrorCode::invalid);
  CHECK(code(served.ask(FrameType::file_read, "none")) == ErrorCode::not_found);
  REQUIRE(::mkfifo(served.at("pipe").c_str(), 0600) == 0);
  CHECK(code(served.ask(FrameType::file_read, "pipe")) == ErrorCode::invalid);

  REQUIRE(::symlink("a/b/file", served.at("link").c_str()) == 0);
  const Seen& file = served.ask(FrameType::file_stat, "a/b/file");
  REQUIRE(file.files.size() == 1);
  CHECK(file.files[0].kind == FileKind::regular);
  CHECK(file.files[0].size == 12);
  CHECK(file.files[0].mode == 0750);
  CHECK(file.files[0].modified_ns > 0);
  const Seen& link = served.ask(FrameType::file_stat, "link");
  REQUIRE(link.files.size() == 1);
  CHECK(link.files[0].kind == FileKind::symlink);
  CHECK(link.files[0].link_target == "a/b/file");
  const Seen& root = served.ask(FrameType::file_stat, ".");
  REQUIRE(root.files.size() == 1);
  CHECK(root.files[0].kind == FileKind::directory);

  const std::set<std::string> all = {"a", "a/b", "a/b/file", "empty", "link", "pipe"};
  CHECK(served.names() == all);
  wire::FileRequest own = about("a");
  CHECK(served.ask(FrameType::file_list, own).files.size() == 1);
  CHECK(code(served.ask(FrameType::file_list, "empty")) == ErrorCode::no_directory);
}

TEST_CASE("G directories are made, things are moved and removed", "[cases.G_files]") {
  Served served;
  wire::FileRequest made = about("x/y/z");
  CHECK(code(served.ask(FrameType::file_make_directory, made)) == ErrorCode::not_found);
  made.parents = true;
  made.mode = 0700;
  CHECK(served.ask(FrameType::file_make_directory, made).file_end);
  CHECK(mode_of(served.at("x/y/z")) == 0700);
  CHECK(served.ask(FrameType::file_make_directory, made).file_end);
  made.parents = false;
  CHECK(code(served.ask(FrameType::file_make_directory, made)) == ErrorCode::exists);

  served.write(about("one"), "1");
  served.write(about("two"), "2");
  wire::FileRequest moved = about("one");
  moved.target = "two";
  CHECK(code(served.ask(FrameType::file_move, moved)) == ErrorCode::exists);
  CHECK(contents(served.at("two")) == "2");
  moved.replace = true;
  CHECK(served.ask(FrameType::file_move, moved).file_end);
  CHECK(contents(served.at("two")) == "1");
  CHECK(code(served.ask(FrameType::file_move, moved)) == ErrorCode::not_found);
  moved.path = "two";
  moved.target = "../three";
  CHECK(code(served.ask(FrameType::file_move, moved)) == ErrorCode::outside);

  CHECK(code(served.ask(FrameType::file_remove, "x")) == ErrorCode::not_empty);
  wire::FileRequest tree = about("x");
  tree.tree = true;
  CHECK(served.ask(FrameType::file_remove, tree).file_end);
  CHECK(served.ask(FrameType::file_remove, "two").file_end);
  CHECK(code(served.ask(FrameType::file_remove, "two")) == ErrorCode::not_found);
  tree.path = ".";
  CHECK(code(served.ask(FrameType::file_remove, tree)) == ErrorCode::invalid);
  CHECK(served.names().empty());
}

TEST_CASE("G what leads outside is neither read nor written, and removed as the link that it is",
          "[cases.G_links]") {
  BlockedCalls none;
  Served served;
  write_text(served.folder.file("secret"), "outside");
  REQUIRE(::mkdir(served.folder.file("elsewhere").c_str(), 0755) == 0);
  write_text(served.folder.file("elsewhere/kept"), "kept");
  REQUIRE(::symlink("../secret", served.at("out").c_str()) == 0);
  REQUIRE(::symlink(served.folder.file("secret").c_str(), served.at("absolute").c_str()) == 0);
  REQUIRE(::symlink("../new", served.at("dangling").c_str()) == 0);
  REQUIRE(::symlink("../elsewhere", served.at("dir").c_str()) == 0);

  for (const char* path :
       {"out", "absolute", "dangling", "dir/kept", "../secret", "/etc/passwd", "a/../../secret"}) {
    INFO(path);
    const auto got = code(served.ask(FrameType::file_read, path));
    CHECK((got == ErrorCode::outside || got == ErrorCode::not_found));
    CHECK(served.host().seen.rbegin()->second.out.empty());
  }
  CHECK(code(served.write(about("dir/new"), "x")) == ErrorCode::outside);
  wire::FileRequest parents = about("dir/deep/new");
  parents.parents = true;
  CHECK(code(served.write(parents, "x")) == ErrorCode::outside);
  CHECK(code(served.ask(FrameType::file_make_directory, "dir/made")) == ErrorCode::outside);
  CHECK(code(served.ask(FrameType::file_list, "dir")) == ErrorCode::outside);
  CHECK(code(served.ask(FrameType::file_watch, "dir")) == ErrorCode::outside);
  CHECK(code(served.ask(FrameType::file_remove, "dir/kept")) == ErrorCode::outside);
  // A link at the path itself is replaced.
  CHECK(served.write(about("dangling"), "mine").file_end);
  CHECK(contents(served.at("dangling")) == "mine");
  CHECK(served.write(about("out"), "mine").file_end);
  CHECK(contents(served.folder.file("secret")) == "outside");
  CHECK_FALSE(exists(served.folder.file("new")));
  CHECK_FALSE(exists(served.folder.file("elsewhere/new")));
  CHECK_FALSE(exists(served.folder.file("elsewhere/deep")));

  wire::FileRequest tree = about("dir");
  tree.tree = true;
  CHECK(served.ask(FrameType::file_remove, tree).file_end);
  CHECK(contents(served.folder.file("elsewhere/kept")) == "kept");
}

TEST_CASE("G names of any bytes are kept", "[cases.G_names]") {
  Served served;
  const std::set<std::string> names = {
      "a b",      "it's \"quoted\"", "line\nbreak",         "-rf", "*",
      "\xff\xfe", "tab\tand\\b",     std::string(255, 'n'), "…"};
  for (const std::string& name : names) {
    INFO(name);
    CHECK(served.write(about(name), name).file_end);
    CHECK(served.ask(FrameType::file_read, name).out == name);
  }
  CHECK(served.names() == names);
  CHECK(code(served.write(about(std::string(256, 'n')), "x")) == ErrorCode::too_large);
  std::string why;
  CHECK_FALSE(served.host().client.file(FrameType::file_stat, about(std::string("a\0b", 3)), &why));
  CHECK_FALSE(served.host().client.file(FrameType::file_stat, about(""), &why));
}

TEST_CASE("G a write that is cut short leaves the old file and nothing else", "[cases.G_files]") {
  Served served({"--on-disconnect", "keep"});
  served.write(about("file"), "old");
  const auto left = served.begin_write(about("file"), "new");
  served.host().client.leave(left);
  CHECK(contents(served.at("file")) == "old");
  CHECK(served.names() == std::set<std::string>{"file"});

  const std::string socket = served.folder.file("s/socket");
  Guest other = Guest::listening(socket, {"--root", served.root});
  Host host(connect_socket(socket));
  const auto id = *host.client.file(FrameType::file_write, about("file"));
  REQUIRE(host.until([&] { return host.client.file_room(id) > 0; }));
  host.client.write_file(id, "lost");
  REQUIRE(host.until([&] { return host.client.output().empty(); }));
  host.cut();
  Host again(connect_socket(socket));
  REQUIRE(again.until([&] { return again.hello.has_value(); }));
  CHECK(eventually([&] { return served.names() == std::set<std::string>{"file"}; }));
  CHECK(contents(served.at("file")) == "old");
}

TEST_CASE("G a file is read as far as credit goes, and others are served meanwhile",
          "[cases.G_large]") {
  Served served;
  {
    const Fd big(::open(served.at("big").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    REQUIRE(::ftruncate(big.get(), 1 << 30) == 0);
  }
  Host& host = served.host();
  host.auto_grant = false;
  host.keep_output = false;
  const auto id = *host.client.file(FrameType::file_read, about("big"));
  REQUIRE(host.until([&] { return host.counted == kFileWindow; }));
  CHECK(served.ask(FrameType::file_stat, "big").files.size() == 1);
  CHECK(host.counted == kFileWindow);
  host.client.grant(id, 1000);
  REQUIRE(host.until([&] { return host.counted == kFileWindow + 1000; }));
  host.auto_grant = true;
  host.client.grant(id, kFileWindow);
  REQUIRE(host.until([&] { return host.counted > (100 << 20); }));
  const auto before = resident_kib(served.guest->pid());
  CHECK(served.host().run(shell("echo alive")).code() == 0);
  CHECK(host.wait(id).file_end == std::uint64_t{1} << 30);
  CHECK(resident_kib(served.guest->pid()) < before + 8 * 1024);
}

TEST_CASE("G deep and wide trees are listed in pieces and removed", "[cases.G_files]") {
  Served served;
  Host& host = served.host();
  CHECK(host.run(shell("cd '" + served.root +
                       "' && mkdir wide && cd wide && seq 3000 | xargs touch && cd .. && "
                       "i=0; while [ $i -lt 200 ]; do mkdir d && cd d && touch f && "
                       "i=$((i+1)); done"))
            .code() == 0);
  wire::FileRequest all = about(".");
  all.depth = 1000;
  const Seen& listed = served.ask(FrameType::file_list, all);
  CHECK(listed.files.size() == 3001 + 400);
  CHECK(listed.file_pieces > 1);
  wire::FileRequest tree = about("d");
  tree.tree = true;
  CHECK(served.ask(FrameType::file_remove, tree).file_end);
  tree.path = "wide";
  CHECK(served.ask(FrameType::file_remove, tree).file_end);
  CHECK(served.names().empty());
}

TEST_CASE("G a list that nobody can hold is refused", "[cases.G_files]") {
  Served served;
  const std::string target = std::string(4000, 't');
  REQUIRE(::symlink(target.c_str(), served.at("0").c_str()) == 0);
  const std::size_t count = wire::kMaxListedBytes / target.size() + 1;
  for (std::size_t i = 1; i < count; ++i)
    REQUIRE(::link(served.at("0").c_str(), served.at(std::to_string(i)).c_str()) == 0);
  CHECK(code(served.ask(FrameType::file_list, ".")) == ErrorCode::too_large);
  CHECK(served.host().seen.rbegin()->second.error->message.find("below .") != std::string::npos);
}

TEST_CASE("G what a removal that was cut short left is removed, too", "[cases.G_files]") {
  Served served;
  Host& host = served.host();
  const std::string chains =
      "for c in 1 2 3; do (i=0; while [ $i -lt 100 ]; do mkdir d$c && cd d$c && i=$((i+1)); done); "
      "done";
  CHECK(
      host.run(shell("mkdir '" + served.root + "/top' && cd '" + served.root + "/top' && " +
                     chains +
                     " && for n in $(seq 40); do mkdir -p .sandforge-removed-$n/x; done && "
                     "touch .sandforge-removed-0 && for c in 4 5 6; do mv d$((c-3)) d$c; done && " +
                     chains))
          .code() == 0);
  wire::FileRequest tree = about("top");
  tree.tree = true;
  CHECK(served.ask(FrameType::file_remove, tree).file_end);
  CHECK(served.names().empty());
}

TEST_CASE("G a root that became a link leads outside, unless the host chose it",
          "[cases.G_links]") {
  TempFolder folder;
  REQUIRE(::mkdir(folder.file("real").c_str(), 0755) == 0);
  write_text(folder.file("real/secret"), "outside");
  REQUIRE(::symlink("real", folder.file("root").c_str()) == 0);
  const std::string slash = GENERATE("", "/");
  const auto read = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--root", folder.file("root") + slash});
    Guest guest(std::move(options));
    const auto id = guest.host().client.file(FrameType::file_read, about("secret"));
    return guest.host().wait(*id);
  };
  const Seen refused = read({});
  CHECK(code(refused) == ErrorCode::outside);
  CHECK(refused.out.empty());
  CHECK(read({"--files-link"}).out == "outside");
}

TEST_CASE("G changes are told, also of directories that are new", "[cases.G_watch]") {
  Served served;
  Host& host = served.host();
  REQUIRE(::mkdir(served.at("old").c_str(), 0755) == 0);
  wire::FileRequest request = about(".");
  request.recursive = true;
  const auto id = *host.client.file(FrameType::file_watch, request);
  const auto told = [&](FileChange change, const std::string& path) {
    return host.until([&] {
      const auto& all = host.of(id).changes;
      return std::any_of(all.begin(), all.end(), [&](const wire::FileEvent& e) {
        return e.change == change && e.path == path;
      });
    });
  };
  REQUIRE(told(FileChange::start, "."));
  CHECK(host.run(shell("cd '" + served.root +
                       "' && echo 1 >old/file && mkdir -p new/deeper && echo 2 >new/deeper/file && "
                       "mv old/file old/moved && chmod 600 old/moved && rm old/moved"))
            .code() == 0);
  CHECK(told(FileChange::create, "old/file"));
  CHECK(told(FileChange::write, "old/file"));
  CHECK(told(FileChange::rename, "old/file"));
  CHECK(told(FileChange::create, "old/moved"));
  CHECK(told(FileChange::attribute, "old/moved"));
  CHECK(told(FileChange::remove, "old/moved"));
  CHECK(told(FileChange::create, "new/deeper/file"));
  CHECK(host.run(shell("echo 3 >>'" + served.at("new/deeper/file") + "'")).code() == 0);
  CHECK(told(FileChange::write, "new/deeper/file"));
  CHECK(host.run(shell("mv '" + served.at("new") + "' '" + served.at("moved") + "'")).code() == 0);
  // It is watched where it is now once this is told.
  CHECK(told(FileChange::create, "moved/deeper/file"));
  CHECK(host.run(shell("echo 4 >>'" + served.at("moved/deeper/file") + "'")).code() == 0);
  CHECK(told(FileChange::write, "moved/deeper/file"));
  host.client.leave(id);

  const auto one = *host.client.file(FrameType::file_watch, about("old"));
  REQUIRE(host.until([&] { return !host.of(one).changes.empty(); }));
  REQUIRE(::rmdir(served.at("old").c_str()) == 0);
  CHECK(host.wait(one).file_end);
  CHECK(host.of(one).changes.back().change == FileChange::remove);
}

TEST_CASE("G a large directory that is new is told in pieces, as credit goes", "[cases.G_watch]") {
  constexpr std::size_t kFiles = 50000;
  Served served;
  Host& host = served.host();
  REQUIRE(::mkdir(served.folder.file("large").c_str(), 0755) == 0);
  const std::string name = std::string(240, 'n');
  const std::string first = served.folder.file("large/") + name;
  write_text(first, "");
  for (std::size_t i = 1; i < kFiles; ++i)
    REQUIRE(::link(first.c_str(), (first + std::to_string(i)).c_str()) == 0);

  host.auto_grant = false;
  wire::FileRequest request = about(".");
  request.recursive = true;
  request.window = 100;
  const auto id = *host.client.file(FrameType::file_watch, request);
  REQUIRE(host.until([&] { return !host.of(id).changes.empty(); }));
  const auto before = resident_kib(served.guest->pid());
  REQUIRE(::rename(served.folder.file("large").c_str(), served.at("new").c_str()) == 0);
  REQUIRE(host.until([&] { return host.of(id).changes.size() == 2; }));
  // Each takes a turn, and the watch has one in each.
  for (int i = 0; i < 10; ++i)
    CHECK(served.ask(FrameType::file_stat, ".").files.size() == 1);
  CHECK(resident_kib(served.guest->pid()) < before + 8 * 1024);
  host.client.grant(id, 1 << 30);
  CHECK(host.until([&] { return host.of(id).changes.size() >= kFiles + 2; }));
  const auto& all = host.of(id).changes;
  CHECK(std::all_of(all.begin() + 1, all.end(),
                    [](const wire::FileEvent& e) { return e.change == FileChange::create; }));
}

TEST_CASE("G what a watcher has no credit for is told as an overflow at the end of patience",
          "[cases.G_watch]") {
  Served served;
  Host& host = served.host();
  host.auto_grant = false;
  wire::FileRequest request = about(".");
  request.window = 100;
  const auto id = *host.client.file(FrameType::file_watch, request);
  REQUIRE(host.until([&] { return !host.of(id).changes.empty(); }));
  std::string most = contents("/proc/sys/fs/inotify/max_queued_events");
  const int events = std::atoi(most.c_str());
  if (events <= 0 || events > 100000) {
    WARN("SKIPPED: the kernel keeps too many events");
    return;
  }
  CHECK(host.run(shell("cd '" + served.root + "' && seq " + std::to_string(events + 100) +
                       " | xargs touch"))
            .code() == 0);
  CHECK(host.of(id).changes.size() <= request.window / 6);
  host.client.grant(id, 1 << 30);
  CHECK(host.until([&] {
    const auto& all = host.of(id).changes;
    return std::any_of(all.begin(), all.end(),
                       [](const wire::FileEvent& e) { return e.change == FileChange::overflow; });
  }));
}

TEST_CASE("G a path is what it is also where openat2 is refused", "[cases.G_links]") {
  BlockedCalls blocked;
  blocked.error_number = GENERATE(ENOSYS, EPERM);
  auto guest = Guest::filtered(blocked);
  if (!guest) {
    WARN("SKIPPED: system calls cannot be filtered here");
    return;
  }
  Host& host = guest->host();  // its root is where this test runs
  const TempFolder outside;
  const std::string link = "sandforge-files-" + std::to_string(::getpid());
  REQUIRE(::symlink(outside.path().c_str(), link.c_str()) == 0);
  const auto read = host.client.file(FrameType::file_list, about(link));
  CHECK(code(host.wait(*read)) == ErrorCode::outside);
  const auto gone = host.client.file(FrameType::file_remove, about("./" + link));
  CHECK(host.wait(*gone).file_end);
  const auto moved = host.client.file(FrameType::file_stat, about(link));
  CHECK(code(host.wait(*moved)) == ErrorCode::not_found);
}

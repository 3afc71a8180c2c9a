// What is said of files between a host and a guest.
#include "sandforge/wire/guest/files.hpp"

#include <catch2/catch.hpp>

using namespace sandforge::wire::guest;

TEST_CASE("requests for files are read as they were written, and no longer or shorter ones") {
  FileRequest request;
  request.path = "a\n\xff";
  request.target = "b";
  request.mode = 0640;
  request.depth = 3;
  request.offset = 1ULL << 40;
  request.length = 7;
  request.window = 9;
  request.parents = request.replace = request.tree = request.recursive = true;
  std::string bytes;
  request.encode(bytes);
  FileRequest read;
  REQUIRE(read.decode(bytes));
  CHECK(read.path == request.path);
  CHECK(read.target == "b");
  CHECK(read.mode == 0640);
  CHECK(read.depth == 3);
  CHECK(read.offset == request.offset);
  CHECK(read.length == 7);
  CHECK(read.window == 9);
  CHECK((read.parents && read.replace && read.tree && read.recursive));
  CHECK(read.check().empty());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(FileRequest().decode(std::string_view(bytes).substr(0, size)));
  }
  CHECK_FALSE(FileRequest().decode(bytes + "x"));
}

TEST_CASE("a path that no file can have is not asked for") {
  FileRequest request;
  CHECK_FALSE(request.check().empty());
  request.path = std::string("a\0b", 3);
  CHECK_FALSE(request.check().empty());
  request.path = std::string(kMaxFilePath + 1, 'a');
  CHECK_FALSE(request.check().empty());
  request.path = "a";
  CHECK(request.check().empty());
}

TEST_CASE("entries and events are read as they were written") {
  FileEntries entries;
  entries.entries.resize(2);
  entries.entries[0].path = "f";
  entries.entries[0].kind = FileKind::regular;
  entries.entries[0].mode = 0644;
  entries.entries[0].size = 5;
  entries.entries[0].modified_ns = -1;
  entries.entries[1].path = "l";
  entries.entries[1].kind = FileKind::symlink;
  entries.entries[1].link_target = "";
  std::string bytes;
  entries.encode(bytes);
  FileEntries read;
  REQUIRE(read.decode(bytes));
  REQUIRE(read.entries.size() == 2);
  CHECK(read.entries[0].path == "f");
  CHECK(read.entries[0].kind == FileKind::regular);
  CHECK(read.entries[0].mode == 0644);
  CHECK(read.entries[0].size == 5);
  CHECK(read.entries[0].modified_ns == -1);
  CHECK_FALSE(read.entries[0].link_target);
  CHECK(read.entries[1].link_target == "");
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    CAPTURE(size);
    FileEntries cut;
    CHECK((!cut.decode(std::string_view(bytes).substr(0, size)) || cut.entries.size() < 2));
  }

  std::string event;
  FileEvent(FileChange::rename, "p").encode(event);
  FileEvent told;
  REQUIRE(told.decode(event));
  CHECK(told.change == FileChange::rename);
  CHECK(told.path == "p");
}

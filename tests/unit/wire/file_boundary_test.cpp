// Files of a guest in the terms of the boundary.
#include "sandforge/wire/guest/file_boundary.hpp"

#include <catch2/catch.hpp>

using namespace sandforge::wire::guest;

namespace {

std::string text(const sf_bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.ptr), bytes.len};
}

}  // namespace

TEST_CASE("an entry crosses with permission bits alone, and a link with where it leads") {
  FileEntry entry;
  entry.path = "a\xff";
  entry.kind = FileKind::regular;
  entry.mode = 0100644;
  entry.size = 3;
  entry.modified_ns = 4;
  const sf_file_info plain = to_abi(entry);
  CHECK(plain.struct_size == sizeof plain);
  CHECK(text(plain.path) == "a\xff");
  CHECK(plain.kind == SF_FILE_REGULAR);
  CHECK(plain.mode == 0644);
  CHECK(plain.size == 3);
  CHECK(plain.modified_at == 4);
  CHECK(plain.link_target.ptr == nullptr);
  entry.kind = FileKind::symlink;
  entry.link_target = "";
  const sf_file_info link = to_abi(entry);
  CHECK(link.kind == SF_FILE_SYMLINK);
  CHECK(link.link_target.ptr != nullptr);
  CHECK(link.link_target.len == 0);
}

TEST_CASE("a change is a message, and a path that is no text is in it as it is, too") {
  CHECK(message_of(FileEvent(FileChange::create, "a\"b")) == R"({"event":"create","path":"a\"b"})");
  CHECK(message_of(FileEvent(FileChange::remove, "\xff")) ==
        "{\"event\":\"remove\",\"path\":\"\xef\xbf\xbd\",\"pathBytes\":\"/w==\"}");
  std::string all;
  for (int i = 0; i <= static_cast<int>(FileChange::overflow); ++i)
    all += std::string(name_of(static_cast<FileChange>(i))) + " ";
  CHECK(all == "start create write remove rename attribute overflow ");
}

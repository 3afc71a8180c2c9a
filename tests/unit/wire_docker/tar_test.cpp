#include "sandforge/wire/docker/tar.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace sandforge::wire::docker;

namespace {

TarEntry file(std::string path, std::uint64_t size) {
  TarEntry entry;
  entry.path = std::move(path);
  entry.size = size;
  return entry;
}

std::string packed(const TarEntry& entry, const std::string& content = {}) {
  return TarWriter::header(entry) + content + TarWriter::padding(content.size());
}

// Everything that a reader tells, one word each.
std::vector<std::string> read(std::string_view bytes, std::size_t piece,
                              const TarLimits& limits = {}) {
  TarReader reader(limits);
  std::vector<std::string> out;
  std::string content;
  const auto told = [&] {
    if (!content.empty()) out.push_back("=" + std::exchange(content, {}));
  };
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    for (;;) {
      const auto event = reader.next(part);
      if (event == TarReader::Event::more) break;
      if (event == TarReader::Event::data) {
        content += reader.data();
        continue;
      }
      told();
      if (event == TarReader::Event::failed) {
        out.push_back("failed: " + reader.error());
        return out;
      }
      if (event == TarReader::Event::end) {
        out.emplace_back("end");
        break;
      }
      const TarEntry& entry = reader.entry();
      static const char* const kTypes[] = {"file", "dir", "symlink", "hardlink", "other"};
      out.push_back(std::string(kTypes[static_cast<int>(entry.type)]) + " " + entry.path +
                    (entry.link_target.empty() ? "" : " -> " + entry.link_target));
    }
  }
  told();
  return out;
}

std::string first_of(const std::string& bytes, const TarLimits& limits = {}) {
  const auto events = read(bytes, bytes.size(), limits);
  return events.empty() ? "nothing" : events.front();
}

// The header of a file, with bytes of it replaced and its sum made right.
std::string patched(std::string header, std::size_t at, std::string_view with) {
  header.replace(at, with.size(), with);
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i)
    sum += static_cast<unsigned char>(header[i]);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  header.replace(148, 7, std::string(digits, 7));
  return header;
}

}  // namespace

TEST_CASE("what is written is read again, wherever it is cut") {
  TarEntry folder = file("dir", 0);
  folder.type = TarType::directory;
  TarEntry link = file("dir/link", 0);
  link.type = TarType::symlink;
  link.link_target = std::string(150, 't');
  TarEntry hard = file("hard", 0);
  hard.type = TarType::hardlink;
  hard.link_target = "dir/file";
  const std::string deep = std::string(120, 'a') + "/" + std::string(120, 'b');
  const std::string bytes = packed(folder) + packed(file("dir/file", 5), "hello") + packed(link) +
                            packed(hard) + packed(file(deep, 1), "x") + packed(file("empty", 0)) +
                            TarWriter::finish();
  CHECK(bytes.size() % 512 == 0);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{512}, bytes.size()})
    CHECK((read(bytes, piece) ==
           std::vector<std::string>{
               "dir dir", "file dir/file", "=hello", "symlink dir/link -> " + link.link_target,
               "hardlink hard -> dir/file", "file " + deep, "=x", "file empty", "end"}));
}

TEST_CASE("mode, owner and time are kept") {
  TarEntry entry = file("f", 0);
  entry.mode = 0751;
  entry.uid = 1000;
  entry.gid = 50;
  entry.mtime = 1'700'000'000;
  TarReader reader;
  const std::string bytes = packed(entry);
  std::string_view rest = bytes;
  REQUIRE(reader.next(rest) == TarReader::Event::entry);
  CHECK(reader.entry().mode == 0751);
  CHECK(reader.entry().uid == 1000);
  CHECK(reader.entry().gid == 50);
  CHECK(reader.entry().mtime == 1'700'000'000);
}

TEST_CASE("a size of more than eight gibibytes") {
  TarReader reader;
  const std::string bytes = TarWriter::header(file("f", std::uint64_t{1} << 34));
  std::string_view rest = bytes;
  REQUIRE(reader.next(rest) == TarReader::Event::entry);
  CHECK(reader.entry().size == std::uint64_t{1} << 34);
}

TEST_CASE("what cannot be written is refused") {
  for (const char* path : {"", "/a", "../a", "a/../b", "."})
    CHECK_THROWS_AS(TarWriter::header(file(path, 0)), std::invalid_argument);
  TarEntry device = file("d", 0);
  device.type = TarType::other;
  CHECK_THROWS_AS(TarWriter::header(device), std::invalid_argument);
}

TEST_CASE("paths and links that leave the archive end it") {
  const std::string good = TarWriter::header(file("aaaaaaaa", 0));
  CHECK(first_of(patched(good, 0, "../aaaaa")) ==
        "failed: a path that leaves the archive: ../aaaaa");
  CHECK(first_of(patched(good, 0, "/etc/aaa")) ==
        "failed: a path that leaves the archive: /etc/aaa");
  CHECK(first_of(patched(good, 0, "./aa//./")) == "dir aa");
  CHECK(first_of(patched(patched(good, 156, "1"), 157, "../../x")) ==
        "failed: a link that leaves the archive: ../../x");
  CHECK(first_of(patched(patched(good, 156, "2"), 157, "../../x")) ==
        "symlink aaaaaaaa -> ../../x");
}

TEST_CASE("where a symbolic link leads") {
  CHECK(stays_inside("a/b", "c"));
  CHECK(stays_inside("a/b", "../c"));
  CHECK_FALSE(stays_inside("a/b", "../../c"));
  CHECK_FALSE(stays_inside("b", ".."));
  CHECK_FALSE(stays_inside("a", "/etc"));
  CHECK(stays_inside("a/b", "c/../../d"));
  CHECK_FALSE(stays_inside("a/b", "c/../../../a"));
}

TEST_CASE("devices, pipes and what is unknown are told as such") {
  const std::string good = TarWriter::header(file("f", 0));
  for (const char* type : {"3", "4", "6", "Z", "S"})
    CHECK(first_of(patched(good, 156, type)) == "other f");
}

TEST_CASE("headers that are wrong end the archive") {
  std::string bytes = TarWriter::header(file("f", 3));
  bytes[0] = 'g';
  CHECK(first_of(bytes) == "failed: a header whose sum is wrong");
  const std::string good = TarWriter::header(file("f", 3));
  CHECK(first_of(patched(good, 124, "0000000000x")) ==
        "failed: a header with a number that is none");
  CHECK(first_of(patched(good, 124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")) ==
        "failed: a header with a number that is none");
  CHECK(first_of(patched(good, 124,
                         std::string("\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12))) ==
        "failed: a header with a number that is none");
}

TEST_CASE("an archive is held to its limits") {
  TarLimits limits;
  limits.bytes = 10;
  CHECK(first_of(packed(file("f", 11)), limits) == "failed: more content than is allowed");
  limits = {};
  limits.entries = 1;
  const std::string two = packed(file("a", 0)) + packed(file("b", 0));
  CHECK(read(two, two.size(), limits).back() == "failed: too many entries");
  limits = {};
  limits.path_bytes = 3;
  CHECK(first_of(packed(file("long", 0)), limits) == "failed: a path that is too long");
  const std::string meta = patched(TarWriter::header(file("f", 1 << 20)), 156, "x");
  CHECK(first_of(meta) == "failed: a header of more than 64 KiB");
  const std::string bad =
      patched(TarWriter::header(file("f", 12)), 156, "x") + "12 path=abcd" + std::string(500, '\0');
  CHECK(first_of(bad) == "failed: a pax header that is none");
}

TEST_CASE("long names of the GNU form") {
  const std::string name(140, 'n');
  const std::string bytes = patched(TarWriter::header(file("f", name.size())), 156, "L") + name +
                            TarWriter::padding(name.size()) + packed(file("cut", 0));
  CHECK(first_of(bytes) == "file " + name);
}

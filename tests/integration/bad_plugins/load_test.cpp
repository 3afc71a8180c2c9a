// Plugin files that are bad, or whose code is before any provider is open: one clear report each,
// with the path, the stage, the loader's text and a hint; the plugin beside them works.
#include <algorithm>
#include <cstddef>
#include <functional>

#include <elf.h>
#include <sys/stat.h>
#include <catch2/catch.hpp>

#include "test_paths.hpp"
#include "unit/loader/fixture_path.hpp"
#include "world.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

// Makes the file in a folder and says where it is.
using Make = std::function<std::filesystem::path(const TempDir&)>;

std::string attempt(Isolation isolation, const Make& make, const std::string& sha256,
                    Limits limits = {}) {
  const TempDir dir;
  World world(isolation, make(dir), sha256, limits);
  std::string out = world.report();
  for (const std::string& line : world.told())
    out += line + "\n";
  return out;
}

class Table {
 public:
  explicit Table(std::string golden) : golden_(std::move(golden)) {}
  ~Table() { check_golden(golden_, text_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void add(const std::string& name, const Make& make, const std::string& sha256 = {},
           Limits limits = {}) {
    CAPTURE(name);
    const std::string here = attempt(Isolation::in_line, make, sha256, limits);
    const std::string there = attempt(Isolation::process, make, sha256, limits);
    text_ += name + "\n" + (here == there ? here : here + "in a process:\n" + there) + "\n";
  }
  // For code that takes its process with it.
  void add_in_a_process(const std::string& name, const Make& make, Limits limits = {}) {
    CAPTURE(name);
    text_ += name + "\n" + attempt(Isolation::process, make, {}, limits) + "\n";
  }

 private:
  const std::string golden_;
  std::string text_;
};

// A copy of the plugin with some of its bytes changed.
Make changed(const std::function<void(std::string& bytes)>& change) {
  return [change](const TempDir& dir) {
    std::string bytes = read_file(BAD_PLUGIN);
    change(bytes);
    return dir.write("bad.so", bytes);
  };
}
template <class T>
Make with_header(std::size_t offset, T value) {
  return changed([=](std::string& bytes) { std::memcpy(&bytes[offset], &value, sizeof value); });
}
// Of its manifest; the new text is not longer.
Make with_manifest(const std::string& from, const std::string& to) {
  return changed([=](std::string& bytes) {
    const auto at = bytes.find(from);
    if (at == std::string::npos || to.size() > from.size()) throw std::logic_error(from);
    bytes.replace(at, from.size(), to + std::string(from.size() - to.size(), ' '));
  });
}
Make with_content(const std::string& content) {
  return [=](const TempDir& dir) { return dir.write("bad.so", content); };
}
// Says to the plugin what it is to do.
Make named(const std::string& fault) {
  return [=](const TempDir& dir) { return dir.copy(BAD_PLUGIN, fault + ".so"); };
}
Make like(const std::string& name) {
  return [=](const TempDir& dir) { return dir.copy(fixture(name), name + ".so"); };
}
Make with_mode(unsigned file, unsigned folder) {
  return [=](const TempDir& dir) {
    const auto out = dir.copy(BAD_PLUGIN, "bad.so");
    std::filesystem::permissions(out, std::filesystem::perms(file));
    std::filesystem::permissions(dir.path(), std::filesystem::perms(folder));
    return out;
  };
}

}  // namespace

TEST_CASE("bad plugins: files that are none, or not for this machine", "[cases.F07]") {
  Table table("files");
  table.add("absent", [](const TempDir& dir) { return dir / "bad.so"; });
  table.add("a folder", [](const TempDir& dir) {
    std::filesystem::create_directory(dir / "bad.so");
    return dir / "bad.so";
  });
  table.add("a pipe", [](const TempDir& dir) {
    REQUIRE(::mkfifo((dir / "bad.so").c_str(), 0600) == 0);
    return dir / "bad.so";
  });
  table.add("empty", with_content(""));
  table.add("text", with_content("hello"));
  table.add("cut", changed([](std::string& bytes) { bytes.resize(bytes.size() / 2); }));
  table.add("other magic", with_header(0, 'x'));
#if defined(__x86_64__)
  table.add("other machine", with_header(offsetof(Elf64_Ehdr, e_machine), Elf64_Half{EM_AARCH64}));
#endif
  table.add("a program", with_header(offsetof(Elf64_Ehdr, e_type), Elf64_Half{ET_EXEC}));
  table.add("32 bits", with_header(EI_CLASS, char{ELFCLASS32}));
}

TEST_CASE("bad plugins: files that are not to be trusted", "[cases.F07]") {
  Table table("trust");
  table.add("writable by all", with_mode(0666, 0700));
  table.add("in a folder that is writable by all", with_mode(0644, 0777));
  table.add("pinned to other bytes", named("bad"), std::string(64, '0'));
  table.add("pinned to no digest", named("bad"), "0123");
}

TEST_CASE("bad plugins: manifests", "[cases.F07]") {
  Table table("manifests");
  table.add("none", like("no_manifest"));
  table.add("damaged", with_manifest("{\n  \"manifest\"", "}\n  \"manifest\""));
  table.add("other keys", like("bad_manifest"));
  table.add("newer major", with_manifest("\"major\": 1", "\"major\": 2"));
  table.add("older major", with_manifest("\"major\": 1", "\"major\": 0"));
  table.add("options schema", with_manifest("\"properties\": {", "\"propertees\": {"));
  table.add("provider of another plugin",
            with_manifest("\"name\": \"bad\",\n      \"optionsSchema\"",
                          "\"name\": \"minimal-c\",\"optionsSchema\""));
}

TEST_CASE("bad plugins: what the dynamic loader refuses", "[cases.F07]") {
  Table table("linking");
  table.add("no entry", like("no_entry"));
  table.add("undefined symbol", like("undefined_symbol"));
  table.add("missing dependency", like("missing_dependency"));
}

TEST_CASE("bad plugins: entry and init", "[cases.F07][cases.F08]") {
  Table table("entry");
  for (const char* fault :
       {"throw-entry", "throw-odd-entry", "null-entry", "noise-entry", "other-code", "short-table",
        "null-init", "null-open", "throw-init", "throw-odd-init", "refuse-init"})
    table.add(fault, named(fault));
}

TEST_CASE("bad plugins: a provider that is never described", "[cases.F07][cases.F08]") {
  Table table("never_described");
  Limits limits;
  limits.call = std::chrono::milliseconds(500);
  table.add("never-describe", named("never-describe"), {}, limits);
}

TEST_CASE("bad plugins: the end of their process before it is ready", "[cases.F07][cases.F08]") {
  Table table("early_deaths");
  for (const char* fault : {"kill-static", "throw-static", "kill-entry", "kill-init"})
    table.add_in_a_process(fault, named(fault));
  // However short, it is not ready before.
  Limits limits;
  limits.ready = std::chrono::milliseconds(500);
  for (const char* fault : {"loop-entry", "loop-init"})
    table.add_in_a_process(fault, named(fault), limits);
}

TEST_CASE("bad plugins: an entry that answers no address", "[cases.F07][cases.F08]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("SKIPPED: a sanitizer ends it in its own way");
#else
  Table table("no_address");
  table.add_in_a_process("rubbish-entry", named("rubbish-entry"));
#endif
}

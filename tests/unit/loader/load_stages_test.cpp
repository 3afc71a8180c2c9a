// Each way in which a plugin file can be bad: one clear report with path, stage, reason and hint,
// and the plugins beside it work.
#include <cstring>
#include <future>
#include <map>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "sandforge/registry.hpp"
#include "support/temp_dir.hpp"
#include "unit/loader/fixture_path.hpp"

using namespace sandforge;
using test::fixture;
using test::TempDir;

namespace {

template <class T>
void poke(std::string& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

// What the scan, and if it is content the load, says of one path.
LoadAttempt attempt(const std::filesystem::path& path, const std::string& sha256 = {}) {
  PluginSearchPath search;
  search.add(path, "a test", sha256);
  PluginLoader::Options options;
  options.check_options_schema = check_options_schema;
  PluginLoader loader(options);
  auto scan = loader.scan(search);
  REQUIRE(scan.report.attempts.size() == 1);
  return scan.files.empty() ? scan.report.attempts[0] : loader.load(scan.files[0]).attempt;
}

// As people read it, without the line that every report begins with.
std::string message_of(const LoadAttempt& attempt, const std::filesystem::path& dir) {
  LoadReport report;
  report.attempts.push_back(attempt);
  std::string text = report.to_text();
  text = text.substr(text.find("refused: ") + 9);
  for (auto at = text.find(dir.string()); at != std::string::npos; at = text.find(dir.string()))
    text.replace(at, dir.string().size(), "DIR");
  return text;
}

std::string copy_with(const std::string& name, std::size_t offset, std::uint16_t value) {
  std::string bytes = test::read_file(fixture(name));
  poke(bytes, offset, value);
  return bytes;
}

}  // namespace

TEST_CASE("load stages: the whole message of files that are no plugin of this machine") {
  const TempDir dir;
  const auto check = [&](const std::filesystem::path& path, const std::string& rest) {
    CHECK(message_of(attempt(path), dir.path()) ==
          "DIR/" + path.filename().string() + "\n  from: a test\n" + rest);
  };
  check(dir / "absent.so",
        "  stage: not_found\n  why: there is no such file\n"
        "  hint: check the path, or install the plugin\n");
  check(dir.write("empty.so", ""),
        "  stage: truncated\n  why: is empty\n  hint: copy or install the file again\n");
  check(dir.write("text.so", "hello"),
        "  stage: not_elf\n  why: is no ELF file\n"
        "  hint: a plugin is a shared library; helper files must not end in .so\n");
  REQUIRE(::mkfifo((dir / "pipe.so").c_str(), 0600) == 0);
  check(dir / "pipe.so",
        "  stage: not_regular\n  why: is no regular file\n"
        "  hint: name the shared library itself\n");
  const std::string good = test::read_file(fixture("good_b"));
  check(dir.write("cut.so", good.substr(0, good.size() / 2)),
        "  stage: truncated\n  why: ends before its section headers\n"
        "  hint: copy or install the file again\n");
#if defined(__x86_64__)
  check(dir.write("arm.so", copy_with("good_b", offsetof(Elf64_Ehdr, e_machine), EM_AARCH64)),
        "  stage: wrong_architecture\n  why: is built for aarch64, this program for x86-64\n"
        "  hint: install the build of this plugin for this machine\n");
#endif
  check(dir.write("program.so", copy_with("good_b", offsetof(Elf64_Ehdr, e_type), ET_EXEC)),
        "  stage: not_elf\n  why: is an ELF file of type 2, not a shared library\n"
        "  hint: a plugin is a shared library; helper files must not end in .so\n");
}

TEST_CASE("load stages: the whole message of files that are not to be trusted") {
  const TempDir dir;
  const auto file = dir.copy(fixture("good_b"), "b.so");
  const std::string safe =
      "  hint: chmod go-w the file and its folder, let this user or root own them, or pin the "
      "plugin to its sha256\n";
  std::filesystem::permissions(file, std::filesystem::perms(0666));
  CHECK(message_of(attempt(file), dir.path()) ==
        "DIR/b.so\n  from: a test\n  stage: unsafe_permissions\n"
        "  why: the file is writable by every user (mode 0666)\n" +
            safe);
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0777));
  CHECK(message_of(attempt(file), dir.path()) ==
        "DIR/b.so\n  from: a test\n  stage: unsafe_permissions\n"
        "  why: its folder is writable by every user (mode 0777)\n" +
            safe);
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0700));
  CHECK(message_of(attempt(file, std::string(64, '0')), dir.path()) ==
        "DIR/b.so\n  from: a test\n  stage: hash_mismatch\n"
        "  why: its bytes are not the ones that it is pinned to\n"
        "  hint: pin the new digest if the change is meant\n");
  CHECK(message_of(attempt(file, "0123"), dir.path()) ==
        "DIR/b.so\n  from: a test\n  stage: bad_pin\n"
        "  why: its sha256 is not 64 hexadecimal digits\n"
        "  hint: sha256sum prints the digest of a file\n");
  CHECK(attempt(file, *file_sha256(file)).stage == LoadStage::loaded);
}

TEST_CASE("load stages: a file that may not be read") {
  if (::geteuid() == 0) {
    WARN("SKIPPED: root may read every file");
    return;
  }
  const TempDir dir;
  const auto file = dir.copy(fixture("good_b"), "b.so");
  std::filesystem::permissions(file, std::filesystem::perms(0));
  CHECK(attempt(file).stage == LoadStage::not_readable);
}

TEST_CASE("load stages: an exception of the entry or of init is its failure") {
  const auto result = attempt(fixture("init_throws"));
  CHECK(result.stage == LoadStage::init_failed);
  CHECK_THAT(result.message, Catch::Contains("boom in init"));
  const auto entry = attempt(fixture("entry_throws"));
  CHECK(entry.stage == LoadStage::init_failed);
  CHECK(entry.message == "its entry let an exception out: boom in entry");
  CHECK(entry.hint == "ask the author of the plugin for a corrected build");
}

TEST_CASE("load stages: all bad plugins at once, and the two good ones work") {
  const std::map<std::string, std::string> expected = {
      {"twin_of_a", "duplicate_provider"},
      {"no_manifest", "no_manifest"},
      {"bad_manifest", "manifest_invalid"},
      {"other_major", "abi_major"},
      {"bad_schema", "schema_invalid"},
      {"code_major", "abi_major"},
      {"no_entry", "no_entry"},
      {"null_entry", "missing_member"},
      {"short_table", "missing_member"},
      {"null_open", "missing_member"},
      {"init_fails", "init_failed"},
      {"init_throws", "init_failed"},
      {"undefined_symbol", "undefined_symbol"},
      {"missing_dependency", "missing_dependency"}};
  Runtime runtime;
  ProviderRegistry::Options options;
  options.check_options = check_options_schema;
  ProviderRegistry registry(runtime, options);
  PluginSearchPath search;
  search.add(fixture("good_a"), "a test");
  for (const auto& [name, stage] : expected)
    search.add(fixture(name), "a test");
  search.add(fixture("good_b"), "a test");
  registry.scan(search);
  const auto report = registry.load_all();
  CHECK(report.refused() == expected.size());

  std::map<std::string, std::string> stages;
  for (const LoadAttempt& entry : report.attempts) {
    if (entry.usable()) continue;
    const std::string name = entry.path.stem().string();
    CAPTURE(name);
    stages[name] = to_string(entry.stage);
    CHECK(entry.path == fixture(name));
    CHECK(entry.origin == "a test");
    CHECK_FALSE(entry.message.empty());
    CHECK_FALSE(entry.hint.empty());
    const bool loader_spoke = entry.stage == LoadStage::undefined_symbol ||
                              entry.stage == LoadStage::missing_dependency ||
                              entry.stage == LoadStage::no_entry;
    CHECK(entry.loader_text.empty() != loader_spoke);
    const Error error = entry.to_error();
    CHECK(error.details.find("path")->as_string() == fixture(name).string());
    CHECK(error.details.find("hint")->as_string() == entry.hint);
  }
  CHECK(stages == expected);

  for (const char* name : {"fixture-good-a", "fixture-good-b"}) {
    const auto provider = registry.open(name);
    const auto description = await_result<Description>([&](Handler<Description> handler) {
      provider->lane().post([provider, handler = std::move(handler)]() mutable {
        provider->describe(std::move(handler));
      });
    });
    CHECK(description.features == std::vector<std::string>{"spawn.stdin"});
  }
}

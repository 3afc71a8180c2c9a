#include "sandforge/plugin_loader.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "plugin/library.hpp"
#include "plugin/plugin.hpp"
#include "sandforge/registry.hpp"
#include "support/temp_dir.hpp"
#include "unit/loader/fixture_path.hpp"

using namespace sandforge;
using test::fixture;
using test::TempDir;

namespace {

PluginLoader::Options options() {
  PluginLoader::Options out;
  out.services = std::make_shared<HostServices>();
  out.check_options_schema = check_options_schema;
  return out;
}

// Scans one path and loads what it finds.
LoadAttempt attempt(const std::filesystem::path& path, const std::string& sha256 = {}) {
  PluginSearchPath search;
  search.add(path, "a test", sha256);
  PluginLoader loader(options());
  auto scan = loader.scan(search);
  REQUIRE(scan.report.attempts.size() == 1);
  if (scan.files.empty()) return scan.report.attempts[0];
  auto loaded = loader.load(scan.files[0]);
  CHECK((loaded.plugin != nullptr) == loaded.attempt.usable());
  return loaded.attempt;
}

std::string text_of(const LoadAttempt& attempt) {
  LoadReport report;
  report.attempts.push_back(attempt);
  return report.to_text();
}

}  // namespace

TEST_CASE("load: a good plugin") {
  const auto result = attempt(fixture("good_a"));
  CHECK(result.stage == LoadStage::loaded);
  CHECK(result.plugin == "good-a");
  CHECK(result.version == "1.2.3");
  CHECK(result.providers == std::vector<std::string>{"fixture-good-a"});
  CHECK(text_of(result) == "plugins: 1 usable, 0 refused\n\nloaded: " + fixture("good_a").string() +
                               "\n  plugin: good-a 1.2.3, providers: fixture-good-a\n"
                               "  from: a test\n"
                               "  runs: inside this process\n");
}

TEST_CASE("scan: the path of a plugin is that of its file, whatever leads there") {
  TempDir folder;
  const auto found = [](const std::filesystem::path& path) {
    PluginSearchPath search;
    search.add(path, "a test");
    const auto scan = PluginLoader(options()).scan(search);
    return scan.files.empty() ? scan.report.to_text() : scan.files[0].path.string();
  };
  // The kernel says " (deleted)" of a file that is gone; here it is a name.
  for (const char* name : {"plugin.so", "plugin (deleted)"}) {
    const auto file = folder.copy(fixture("good_a"), name);
    const std::string link = std::string(name) + ".link";
    std::filesystem::create_symlink(name, folder / link);
    CHECK(found(file) == file.string());
    CHECK(found(folder / link) == file.string());
    CHECK(found(folder / "." / link) == file.string());
  }
}

TEST_CASE("load: a second load answers the same plugin") {
  PluginSearchPath search;
  search.add(fixture("good_a"), "a test");
  PluginLoader loader(options());
  const auto scan = loader.scan(search);
  REQUIRE(scan.files.size() == 1);
  const auto first = loader.load(scan.files[0]);
  const auto second = loader.load(scan.files[0]);
  REQUIRE(first.plugin != nullptr);
  CHECK(first.plugin == second.plugin);
  PluginLoader other(options());
  CHECK(other.load(scan.files[0]).plugin == first.plugin);
}

TEST_CASE("load: files that are none", "[cases.F07]") {
  const TempDir dir;
  CHECK(attempt(dir / "absent.so").stage == LoadStage::not_found);
  CHECK(attempt(dir.write("empty.so", "")).stage == LoadStage::truncated);
  CHECK(attempt(dir.write("text.so", "hello")).stage == LoadStage::not_elf);
  CHECK(attempt("/dev/null").stage == LoadStage::not_regular);
  const auto good = test::read_file(fixture("good_a"));
  CHECK(attempt(dir.write("half.so", good.substr(0, good.size() / 2))).stage ==
        LoadStage::truncated);
  REQUIRE(::mkfifo((dir / "pipe.so").c_str(), 0600) == 0);
  CHECK(attempt(dir / "pipe.so").stage == LoadStage::not_regular);
}

TEST_CASE("load: code that is not as the manifest says") {
  CHECK(attempt(fixture("bad_schema")).stage == LoadStage::schema_invalid);
  CHECK(attempt(fixture("code_major")).stage == LoadStage::abi_major);
  CHECK(attempt(fixture("null_entry")).stage == LoadStage::missing_member);
  const auto entry = attempt(fixture("no_entry"));
  CHECK(entry.stage == LoadStage::no_entry);
  CHECK(entry.message == "does not export sandforge_plugin_entry_v1");
  CHECK(entry.loader_text.find("undefined symbol: sandforge_plugin_entry_v1") != std::string::npos);
  const auto shorter = attempt(fixture("short_table"));
  CHECK(shorter.stage == LoadStage::missing_member);
  CHECK(shorter.message == "its table of functions lacks open");
  CHECK(attempt(fixture("null_open")).message == "its table of functions lacks open");
}

TEST_CASE("load: a failed init is not run twice") {
  const auto first = attempt(fixture("init_fails"));
  const auto second = attempt(fixture("init_fails"));
  CHECK(first.stage == LoadStage::init_failed);
  CHECK(to_json(first) == to_json(second));
  const Error error = first.to_error();
  CHECK(error.code == Status::crashed);
  CHECK(error.reason == "plugin.init_failed");
  CHECK(error.details.find("reason")->as_string() == "mood");
  CHECK(error.details.find("code")->as_string() == "UNAVAILABLE");
  CHECK(error.details.find("path")->as_string() == fixture("init_fails").string());
}

TEST_CASE("load: what others may write is refused", "[cases.F07]") {
  const TempDir dir;
  const auto file = dir.copy(fixture("good_b"), "b.so");
  std::filesystem::permissions(file, std::filesystem::perms(0666));
  const auto writable = attempt(file);
  CHECK(writable.stage == LoadStage::unsafe_permissions);
  CHECK(writable.message == "the file is writable by every user (mode 0666)");
  CHECK(writable.to_error().code == Status::forbidden);
  std::filesystem::permissions(file, std::filesystem::perms(0755));
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0777));
  const auto folder = attempt(file);
  CHECK(folder.stage == LoadStage::unsafe_permissions);
  CHECK(folder.message == "its folder is writable by every user (mode 0777)");
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0700));
  CHECK(attempt(file).stage == LoadStage::loaded);
}

TEST_CASE("load: a file of another user is refused") {
  if (::geteuid() != 0) {
    WARN("SKIPPED: only root can give a file away");
    return;
  }
  const TempDir dir;
  const auto file = dir.copy(fixture("good_b"), "b.so");
  REQUIRE(::chown(file.c_str(), 12345, 0) == 0);
  const auto result = attempt(file);
  CHECK(result.stage == LoadStage::unsafe_permissions);
  CHECK(result.message == "the file belongs to user 12345");
}

TEST_CASE("load: a file that is replaced after it was loaded") {
  const TempDir dir;
  const auto file = dir.copy(fixture("good_b"), "b.so");
  REQUIRE(attempt(file).stage == LoadStage::loaded);
  const auto fresh = dir.copy(fixture("good_a"), "new.so");
  std::filesystem::rename(fresh, file);
  const auto result = attempt(file);
  CHECK(result.stage == LoadStage::changed);
  CHECK(result.hint == "restart this program");
}

TEST_CASE("scan: bad plugins do not hinder the others, and each is reported", "[cases.F07]") {
  const TempDir dir;
  for (const char* name : {"good_a", "good_b", "twin_of_a", "no_manifest", "other_major"})
    dir.copy(fixture(name), std::string(name) + ".so");
  dir.write("helper", "no plugin");
  dir.write("text.so", "text");
  std::filesystem::create_directory(dir / "folder.so");
  PluginSearchPath search;
  search.add(dir.path(), "a test");
  search.add_list((dir / "nowhere").string() + "::" + dir.path().string(), "SANDFORGE_PLUGIN_PATH");
  const PluginLoader loader(options());
  const auto scan = loader.scan(search);
  REQUIRE(scan.files.size() == 2);
  CHECK(scan.files[0].manifest.name == "good-a");
  CHECK(scan.files[1].manifest.name == "good-b");
  std::map<std::string, std::string> stages;
  for (const auto& entry : scan.report.attempts)
    stages[entry.path.filename().string()] = to_string(entry.stage);
  CHECK(stages == std::map<std::string, std::string>{{"folder.so", "not_regular"},
                                                     {"good_a.so", "found"},
                                                     {"good_b.so", "found"},
                                                     {"no_manifest.so", "no_manifest"},
                                                     {"nowhere", "not_found"},
                                                     {"other_major.so", "abi_major"},
                                                     {"text.so", "not_elf"},
                                                     {"twin_of_a.so", "duplicate_provider"}});
  CHECK(scan.report.refused() == 6);
  const auto document = to_json(scan.report);
  CHECK(document.find("usable")->as_integer() == 2);
  CHECK(document.find("candidates")->as_array().size() == 8);
}

TEST_CASE("scan: a provider that is taken is refused with its owner", "[cases.F07]") {
  PluginSearchPath search;
  search.add(fixture("good_a"), "a test");
  const PluginLoader loader(options());
  const auto scan = loader.scan(search, {{{"fixture-good-a", "this program"}}, {}});
  REQUIRE(scan.report.attempts.size() == 1);
  CHECK(scan.report.attempts[0].stage == LoadStage::duplicate_provider);
  CHECK(scan.report.attempts[0].message ==
        "declares the provider fixture-good-a, which this program has already");
}

TEST_CASE("scan: a name is one plugin's, whatever providers it declares") {
  // Grants, secrets, state and folders go by it.
  PluginSearchPath search;
  search.add(fixture("good_a"), "a test");
  search.add(fixture("name_of_a"), "a test");
  const PluginLoader loader(options());
  const auto scan = loader.scan(search);
  CHECK(scan.files.size() == 1);
  REQUIRE(scan.report.attempts.size() == 2);
  const LoadAttempt& second = scan.report.attempts[1];
  CHECK(to_string(second.stage) == "duplicate_plugin");
  CHECK(second.message ==
        "calls itself good-a, as " + fixture("good_a").string() + " does already");
  CHECK(second.hint == "remove one of the two, or put the wanted one first in the search path");
  CHECK(second.to_error().code == Status::already_exists);
}

TEST_CASE("scan: folders without plugins are noted") {
  const TempDir dir;
  PluginSearchPath search;
  search.add(dir.path(), "configuration");
  search.add(dir.path(), "configuration", std::string(64, '0'));
  search.add_install_folder();
  const PluginLoader loader(options());
  const auto scan = loader.scan(search);
  CHECK(scan.report.attempts.empty());
  REQUIRE(scan.report.notes.size() == 2);
  CHECK(scan.report.to_text() ==
        "plugins: 0 usable, 0 refused\nlooked in " + dir.path().string() +
            " (from: configuration): has no plugins\nlooked in " + dir.path().string() +
            " (from: configuration): is a folder: only a file can be pinned to a sha256\n");
  CHECK(search.entries().back().path.filename() == "plugins");
}

TEST_CASE("load stages: each has its own name and its error a code") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kLoadStages; ++i) {
    LoadAttempt entry;
    entry.stage = static_cast<LoadStage>(i);
    names.insert(to_string(entry.stage));
    CHECK(entry.to_error().reason == "plugin." + std::string(to_string(entry.stage)));
    CHECK(entry.to_error().code != Status::ok);
  }
  CHECK(names.size() == kLoadStages);
}

TEST_CASE("dynamic loader: its words are understood") {
  std::string culprit;
  CHECK(plugin::classify("/x/p.so: cannot open shared object file: No such file or directory",
                         "/x/p.so", culprit) == LoadStage::load_failed);
  CHECK(plugin::classify("/lib/libc.so.6: version `GLIBC_2.99' not found (required by /x/p.so)",
                         "/x/p.so", culprit) == LoadStage::missing_dependency);
  CHECK(culprit == "GLIBC_2.99");
  CHECK(plugin::classify("/x/p.so: undefined symbol: f, version V1", "/x/p.so", culprit) ==
        LoadStage::undefined_symbol);
  CHECK(culprit == "f");
  CHECK(plugin::classify("/x/p.so: cannot allocate memory in static TLS block", "/x/p.so",
                         culprit) == LoadStage::load_failed);
}

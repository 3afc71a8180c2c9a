// F07 and F09: files that are no good plugins, made of the one that is judged; each is refused with
// one clear report, and the others still load.
#include <fstream>
#include <sstream>

#include "procedure.hpp"
#include "sandforge/plugin_loader.hpp"

namespace sandforge::conformance {
namespace {

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

fs::path write_file(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  fs::permissions(path, fs::perms(0755));
  return path;
}

// Replaces the first occurrence by something of the same length; false when it is not there.
bool patch(std::string& content, const std::string& from, const std::string& to) {
  const auto at = content.find(from);
  if (at == std::string::npos || from.size() != to.size()) return false;
  content.replace(at, from.size(), to);
  return true;
}

LoadAttempt attempt(const fs::path& path) {
  PluginSearchPath search;
  search.add(path, "conformance");
  PluginLoader loader{PluginLoader::Options()};
  const auto scan = loader.scan(search);
  if (scan.files.empty()) {
    REQUIRE(scan.report.attempts.size() == 1);
    return scan.report.attempts.front();
  }
  return loader.load(scan.files.front()).attempt;
}

void refused(const fs::path& path, LoadStage stage) {
  const auto result = attempt(path);
  CAPTURE(path.filename().string());
  CAPTURE(result.message);
  CHECK(to_string(result.stage) == to_string(stage));
  CHECK(result.path.filename() == path.filename());
  CHECK_FALSE(result.message.empty());
  CHECK(result.to_error().reason == "plugin." + std::string(to_string(stage)));
}

void refused_files(Host& host) {
  const auto folder = host.scratch();
  const auto good = content_of(host.setting().subject.plugin);
  REQUIRE(good.size() > 1000);
  refused(folder / "absent.so", LoadStage::not_found);
  refused("/dev/null", LoadStage::not_regular);
  fs::create_directory(folder / "folder.so");
  refused(write_file(folder / "empty.so", ""), LoadStage::truncated);
  refused(write_file(folder / "text.so", "hello, I am no plugin\n"), LoadStage::not_elf);
  refused(write_file(folder / "half.so", good.substr(0, good.size() / 2)), LoadStage::truncated);

  auto other = good;
  other[18] = static_cast<char>(other[18] == 40 ? 62 : 40);  // e_machine: ARM
  refused(write_file(folder / "machine.so", other), LoadStage::wrong_architecture);

  auto unnamed = good;
  REQUIRE(patch(unnamed, ".sandforge.manifest", ".sandforge.mannfest"));
  refused(write_file(folder / "no_manifest.so", unnamed), LoadStage::no_manifest);

  auto needy = good;
  if (patch(needy, std::string("libc.so.6", 10), std::string("libq.so.6", 10))) {
    const auto missing = attempt(write_file(folder / "needy.so", needy));
    CHECK(to_string(missing.stage) == to_string(LoadStage::missing_dependency));
    CHECK(missing.loader_text.find("libq.so.6") != std::string::npos);
    CHECK_FALSE(missing.hint.empty());
  }

  const auto open = write_file(folder / "open.so", good);
  fs::permissions(open, fs::perms(0777));
  refused(open, LoadStage::unsafe_permissions);
}

void others_still_load(Host& host) {
  const auto folder = host.scratch() / "plugins";
  fs::create_directories(folder);
  fs::permissions(folder, fs::perms(0755));
  const auto good = content_of(host.setting().subject.plugin);
  write_file(folder / "a_text.so", "hello");
  write_file(folder / "b_good.so", good);
  write_file(folder / "c_twin.so", good);
  PluginSearchPath search;
  search.add(folder, "conformance");
  const auto scan = PluginLoader(PluginLoader::Options()).scan(search);
  REQUIRE(scan.files.size() == 1);
  CHECK(scan.files.front().path.filename().string() == "b_good.so");
  REQUIRE(scan.report.attempts.size() == 3);
  CHECK(to_string(scan.report.attempts[0].stage) == to_string(LoadStage::not_elf));
  CHECK(to_string(scan.report.attempts[2].stage) == to_string(LoadStage::duplicate_provider));
  CHECK(scan.report.attempts[2].message.find(host.provider_name()) != std::string::npos);
}

void loads(Host& host) {
  host.provider();
  const auto info = host.registry().find(host.provider_name());
  REQUIRE(info.has_value());
  CHECK(info->loaded);
  CHECK(host.registry().report().refused() == 0);
  CHECK(host.make()->exec({"true"}).success);
}

}  // namespace

void add_plugin_files(Procedures& to) {
  to["plugin_files.refused"] = refused_files;
  to["plugin_files.others_still_load"] = others_still_load;
  to["plugin_files.loads"] = loads;
}

}  // namespace sandforge::conformance

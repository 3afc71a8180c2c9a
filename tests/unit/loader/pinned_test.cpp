#include "plugin/pinned.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <catch2/catch.hpp>
#include <cerrno>

#include "plugin/inspect.hpp"
#include "plugin/library.hpp"
#include "plugin/plugin.hpp"
#include "sandforge/plugin_loader.hpp"
#include "support/temp_dir.hpp"
#include "unit/loader/fixture_path.hpp"

using namespace sandforge;
using test::fixture;
using test::TempDir;

namespace {

std::string digest(const std::filesystem::path& path) {
  auto hex = file_sha256(path);
  REQUIRE(hex.ok());
  return *hex;
}

PluginLoader::Loaded load(PluginLoader& loader, const std::filesystem::path& path,
                          const std::string& sha256) {
  PluginSearchPath search;
  search.add(path, "a test", sha256);
  auto scan = loader.scan(search);
  REQUIRE(scan.report.attempts.size() == 1);
  if (!scan.files.empty()) return loader.load(scan.files[0]);
  PluginLoader::Loaded out;
  out.attempt = scan.report.attempts[0];
  return out;
}

}  // namespace

TEST_CASE("pin: the digest is that of the file") {
  const TempDir dir;
  const auto file = dir.write("abc", "abc");
  CHECK(digest(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const auto absent = file_sha256(dir / "absent");
  REQUIRE_FALSE(absent.ok());
  CHECK(absent.error().code == Status::not_found);
  const auto impossible = file_sha256(dir / std::string(300, 'x'));
  REQUIRE_FALSE(impossible.ok());
  CHECK(impossible.error().code == Status::unavailable);
  CHECK(impossible.error().message.find("File name too long") != std::string::npos);
}

TEST_CASE("pin: two pinned plugins in a row are two plugins") {
  PluginLoader loader{PluginLoader::Options()};
  const auto a = load(loader, fixture("good_a"), digest(fixture("good_a")));
  const auto b = load(loader, fixture("good_b"), "sha256:" + digest(fixture("good_b")));
  REQUIRE(a.plugin != nullptr);
  REQUIRE(b.plugin != nullptr);
  CHECK(a.plugin != b.plugin);
  CHECK(a.plugin->api != b.plugin->api);
  CHECK(a.plugin->manifest.name == "good-a");
  CHECK(b.plugin->manifest.name == "good-b");
  // The same bytes again are the same plugin, under any name.
  const TempDir dir;
  const auto again = load(loader, dir.copy(fixture("good_a"), "x.so"), digest(fixture("good_a")));
  CHECK(again.plugin == a.plugin);
}

TEST_CASE("pin: other bytes are refused") {
  PluginLoader loader{PluginLoader::Options()};
  const auto result = load(loader, fixture("good_a"), std::string(64, 'A'));
  CHECK(result.attempt.stage == LoadStage::hash_mismatch);
  CHECK(result.attempt.details.find("expected")->as_string() == std::string(64, 'a'));
  CHECK(result.attempt.details.find("actual")->as_string() == digest(fixture("good_a")));
  CHECK(load(loader, fixture("good_a"), "12").attempt.stage == LoadStage::bad_pin);
}

TEST_CASE("pin: a pinned file may be writable by others, its bytes count") {
  const TempDir dir;
  const auto file = dir.copy(fixture("good_b"), "open.so");
  std::filesystem::permissions(file, std::filesystem::perms(0666));
  PluginLoader loader{PluginLoader::Options()};
  CHECK(load(loader, file, digest(file)).attempt.stage == LoadStage::loaded);
}

TEST_CASE("pin: a file that is swapped after the scan is refused") {
  const TempDir dir;
  const auto file = dir.copy(fixture("good_a"), "p.so");
  PluginSearchPath search;
  search.add(file, "a test", digest(file));
  PluginLoader loader{PluginLoader::Options()};
  const auto scan = loader.scan(search);
  REQUIRE(scan.files.size() == 1);
  std::filesystem::rename(dir.copy(fixture("init_fails"), "evil.so"), file);
  CHECK(loader.load(scan.files[0]).attempt.stage == LoadStage::hash_mismatch);
}

TEST_CASE("pin: a file that is swapped between the check and the load changes nothing") {
  const TempDir dir;
  const auto file = dir.copy(fixture("good_a"), "p.so");
  auto checked = plugin::inspect(file, "a test", digest(file));
  REQUIRE(checked.attempt.usable());
  // Both ways to swap: another file under the name, other bytes in the file.
  {
    const posix::Fd open(::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    const std::string evil = test::read_file(fixture("null_entry"));
    REQUIRE(::write(open.get(), evil.data(), evil.size()) == static_cast<ssize_t>(evil.size()));
  }
  std::filesystem::rename(dir.copy(fixture("null_entry"), "evil.so"), file);
  auto path = plugin::DescriptorPath::make(std::move(checked.file));
  REQUIRE(path.ok());
  const auto library = plugin::load_library(path->str());
  REQUIRE(library.stage == LoadStage::loaded);
  CHECK(library.entry() != nullptr);
  path->keep();
}

TEST_CASE("pin: the copy cannot be written, grown or shrunk") {
  const posix::Fd file(::open(fixture("good_a").c_str(), O_RDONLY | O_CLOEXEC));
  const auto copy = plugin::copy_sealed(file.get());
  REQUIRE(copy.ok());
  CHECK(::write(copy->get(), "x", 1) < 0);
  CHECK(errno == EPERM);
  CHECK(::ftruncate(copy->get(), 0) != 0);
  CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, copy->get(), 0) == MAP_FAILED);
  const auto hex = plugin::sha256_of(copy->get());
  REQUIRE(hex.ok());
  CHECK(*hex == digest(fixture("good_a")));
}

TEST_CASE("pin: a descriptor number is not used again while something is loaded by it") {
  const auto open_path = [] {
    return plugin::DescriptorPath::make(
        posix::Fd(::open(fixture("good_a").c_str(), O_RDONLY | O_CLOEXEC)));
  };
  auto first = open_path();
  REQUIRE(first.ok());
  const std::string name = first->str();
  const posix::Fd kept(first->get());
  first->keep();
  const auto second = open_path();
  REQUIRE(second.ok());
  CHECK(second->str() != name);
}

TEST_CASE("pin: digests in their different spellings") {
  const std::string hex(64, 'a');
  CHECK(plugin::normal_sha256(hex) == hex);
  CHECK(plugin::normal_sha256("sha256:" + std::string(64, 'A')) == hex);
  CHECK(plugin::normal_sha256("") == "");
  CHECK(plugin::normal_sha256(std::string(63, 'a')) == "");
  CHECK(plugin::normal_sha256(std::string(64, 'g')) == "");
}

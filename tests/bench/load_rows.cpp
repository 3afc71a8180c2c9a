// Loading a plugin against the dynamic loader alone, and scanning one without loading it.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "micro.hpp"
#include "sandforge/plugin_loader.hpp"
#include "sandforge/registry.hpp"
#include "test_paths.hpp"

namespace sandforge::bench {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const char* file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  if (!in || !out) throw std::runtime_error("a plugin cannot be read");
  return std::move(out).str();
}

// A process loads a file once, and one provider of a name, so that each turn takes a copy with a
// provider of its own.
class Copies {
 public:
  const fs::path& folder() const { return folder_.path(); }
  std::string next() {
    const std::string serial = std::to_string(++serial_);
    if (serial.size() > kDigits) throw std::runtime_error("too many copies");
    const std::string name = kStem + std::string(kDigits - serial.size(), '0') + serial;
    for (std::size_t at = 0; (at = bytes_.find(name_, at)) != std::string::npos; at += name.size())
      bytes_.replace(at, name.size(), name);
    name_ = name;
    const fs::path path = folder_.path() / (serial + ".so");
    std::ofstream out(path, std::ios::binary);
    out << bytes_;
    out.close();
    if (!out) throw std::runtime_error(path.string() + " cannot be written");
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }

 private:
  static constexpr std::size_t kDigits = 3;
  static constexpr const char* kStem = "plain-";
  Folder folder_;
  std::string bytes_ = bytes_of(SANDFORGE_BENCH_PLAIN_PLUGIN);
  std::string name_ = "plain-000";
  int serial_ = 0;
};

PluginFile find(const PluginLoader& loader, const std::string& file) {
  PluginSearchPath path;
  path.add(file, "bench");
  auto scan = loader.scan(path);
  if (scan.files.size() != 1) throw std::runtime_error(scan.report.to_text());
  return std::move(scan.files.front());
}

Row load_row(const Scale& scale) {
  Copies copies;
  PluginLoader::Options options;
  options.check_options_schema = check_options_schema;
  PluginLoader loader(std::move(options));
  const auto ours = [&] {
    const PluginFile file = find(loader, copies.next());
    return 1e6 * timed([&] {
             if (loader.load(file).plugin == nullptr) throw std::runtime_error("not loaded");
           });
  };
  const auto theirs = [&] {
    const std::string file = copies.next();
    return 1e6 * timed([&] {
             if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == nullptr)
               throw std::runtime_error(::dlerror());
           });
  };
  interleave(3, ours, theirs);
  const Pair pair = interleave(scale.of(60, 10), ours, theirs);
  return {"load.plugin", "load and initialise a plugin against dlopen of the same file",
          "us",          pair.subject,
          pair.peer,     Goal::at_most(60, Figure::difference)};
}

// A host with very many plugins: found in one folder, read, loaded and initialised.
Row many_row(const Scale& scale) {
  const int count = scale.of(500, 50);
  Copies ours;
  Copies theirs;
  std::vector<std::string> files;
  for (int i = 0; i < count; ++i) {
    ours.next();
    files.push_back(theirs.next());
  }
  PluginLoader::Options options;
  options.check_options_schema = check_options_schema;
  PluginLoader loader(std::move(options));
  PluginSearchPath path;
  path.add(ours.folder(), "bench");
  const double loaded = timed([&] {
    const auto scan = loader.scan(path);
    if (scan.files.size() != files.size()) throw std::runtime_error(scan.report.to_text());
    for (const auto& file : scan.files)
      if (loader.load(file).plugin == nullptr) throw std::runtime_error("not loaded");
  });
  const double opened = timed([&] {
    for (const auto& file : files)
      if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == nullptr)
        throw std::runtime_error(::dlerror());
  });
  return {"load.many",
          "scan and load each of many plugins against dlopen of as many files",
          "us",
          1e6 * loaded / count,
          1e6 * opened / count,
          Goal::at_most(70, Figure::difference)};
}

// The least that reading anything out of a file takes.
void look_at(const char* file) {
  const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
  std::array<std::byte, 64> header;
  struct stat status {};
  const bool good =
      fd >= 0 && ::fstat(fd, &status) == 0 &&
      ::pread(fd, header.data(), header.size(), 0) == static_cast<ssize_t>(header.size());
  if (fd >= 0) ::close(fd);
  if (!good) throw std::runtime_error("a plugin cannot be read");
}

Row scan_row(const Scale& scale) {
  const PluginLoader loader{PluginLoader::Options()};
  PluginSearchPath path;
  path.add(SANDFORGE_BENCH_PLAIN_PLUGIN, "bench");
  const Pair pair = compare(
      scale,
      [&](benchmark::State& state) {
        for (auto _ : state)
          if (loader.scan(path).files.size() != 1) state.SkipWithError("not found");
      },
      [&](benchmark::State& state) {
        for (auto _ : state)
          look_at(SANDFORGE_BENCH_PLAIN_PLUGIN);
      });
  return {"load.scan",
          "scan a plugin without loading it against open, stat, read, close",
          "us",
          pair.subject / 1e3,
          pair.peer / 1e3,
          Goal::at_most(10, Figure::subject)};
}

}  // namespace

std::vector<Row> load_rows(const Scale& scale) {
  return {load_row(scale), many_row(scale), scan_row(scale)};
}

}  // namespace sandforge::bench

// A folder of one test, removed with everything in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace sandforge::test {

// Made below $TMPDIR, else /tmp; its path has no symbolic link in it.
class TempDir {
 public:
  TempDir() {
    const char* base = std::getenv("TMPDIR");
    std::string name = std::string(base != nullptr ? base : "/tmp") + "/sandforge-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = std::filesystem::canonical(name);
  }
  ~TempDir() {
    std::error_code ignored;  // a test that has failed already must not fail again here
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::string& str() const { return path_.native(); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }
  // A copy of a file, so that a test can change it.
  std::filesystem::path copy(const std::filesystem::path& from, const std::string& name) const {
    std::filesystem::copy_file(from, path_ / name);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// What there is of it: of a file below /proc whose process has just ended, nothing.
inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace sandforge::test

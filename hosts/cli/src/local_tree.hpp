// Files of this machine that a copy reads and writes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/posix/beneath.hpp"

namespace sandforge::cli {

// The bits of a mode that a copy keeps: none that lend somebody's rights.
inline constexpr std::uint32_t kCopiedMode = 0777;

// A folder in which files take their place, whatever their names are and whatever links lie there
// already: nothing outside of it is written. Throws the Error.
class Destination {
 public:
  // Of a folder that is there.
  explicit Destination(const std::string& folder);

  // A file that is written, and in its place once it was kept; else nothing is left of it.
  class File {
   public:
    File(posix::Fd folder, std::string name, std::string shown);
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    void write(std::string_view bytes);
    void keep(std::uint32_t mode);

   private:
    void fail(const char* what) const;

    const posix::Fd folder_;
    const std::string name_;
    const std::string shown_;
    std::string temporary_;  // empty: kept
    posix::Fd file_;
  };
  File file(const std::string& way) const;
  // What is there already is fine, when it is a directory.
  void make_directory(const std::string& way) const;
  void set_mode(const std::string& way, std::uint32_t mode) const;

 private:
  posix::Fd parent(const std::string& way, std::string& name) const;

  const std::string shown_;
  posix::Beneath folder_;
};

struct LocalEntry {
  std::string way;  // from the folder that was asked for
  bool directory = false;
  std::uint32_t mode = 0;
};
// All below a folder, a directory before what is in it. `skipped` is told of links and what else is
// neither a file nor a directory. Throws the Error.
std::vector<LocalEntry> local_tree(const std::string& folder,
                                   const std::function<void(const std::string& path)>& skipped);

// Whether a way that somebody else named stays below where it starts.
bool stays_below(std::string_view way);

}  // namespace sandforge::cli

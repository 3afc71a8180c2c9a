// Copies a folder with all that is in it. Blocking: for pool threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "paths.hpp"

namespace sandforge::local {

// What a copy lacks, and one example of it.
struct Lacking {
  std::uint64_t count = 0;
  std::string example;  // relative to the copied folder

  void note(const std::string& path) {
    if (count++ == 0) example = path;
  }
};

struct CopyReport {
  std::uint64_t bytes = 0;  // of regular files, as long as they are
  Lacking special;          // sockets, pipes, devices: left out
  Lacking foreign;          // folders of other file systems: copied empty
  Lacking unsettled;        // files that changed whenever they were copied

  std::vector<std::string> warnings() const;  // for a person
};

// Copies what is in `from` into the empty folder `to`. No link is followed, on either side. Modes,
// times, symlinks, hard links among the copied files, and holes are kept; owners where this process
// may set them; extended attributes are not. A file is copied again when it changed meanwhile, so
// that each is as it was at one moment; between files there is no such promise. What vanishes
// meanwhile is left out. Fails with SF_CANCELLED once the flag is set.
std::optional<Failure> copy_tree(int from, int to, const std::atomic<bool>& cancelled,
                                 CopyReport& report);

// That a flag was set.
Failure copy_cancelled();

}  // namespace sandforge::local

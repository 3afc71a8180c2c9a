// What getdents64(2) writes: folders are listed by it where nothing may be allocated.
#pragma once

#include <cstdint>

namespace sandforge::posix {

struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;  // of this entry, up to the next one
  unsigned char type;
  char name[1];
};

}  // namespace sandforge::posix

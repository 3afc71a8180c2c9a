// What file operations carry, as messages.hpp. Paths are bytes without NUL. An absolute one must
// lie beneath the folder that the guest serves files of, a relative one starts at its root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandforge::wire::guest {

inline constexpr std::uint64_t kToEnd = UINT64_MAX;
inline constexpr std::size_t kMaxFilePath = 4096;
// A longer list is refused as too_large, so that nobody has to hold it.
inline constexpr std::size_t kMaxListedFiles = 1U << 18;
inline constexpr std::size_t kMaxListedBytes = std::size_t{64} << 20;  // as it is sent

// One for all operations; each uses its part.
struct FileRequest {
  std::string path;
  std::string target;             // move: where to
  std::uint32_t mode = 0;         // write, make directory; 0: 0644 or the old file's, 0755
  std::uint32_t depth = 1;        // list: 1 is the directory's own entries
  std::uint64_t offset = 0;       // read
  std::uint64_t length = kToEnd;  // read
  std::uint64_t window = 0;       // read, watch: bytes that may be sent before the first credit
  bool parents = false;           // write, make directory: with the directories on the way
  bool replace = false;           // move: also onto something
  bool tree = false;              // remove: with all that is in it
  bool recursive = false;         // watch
  FileRequest() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
  // Empty when the request may be sent, else what is wrong with it.
  std::string check() const;
};

enum class FileKind : std::uint8_t { other = 0, regular = 1, directory = 2, symlink = 3 };

struct FileEntry {
  std::string path;  // that of the request, with the way from there behind it
  FileKind kind = FileKind::other;
  std::uint32_t mode = 0;  // permission bits
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;  // since the Unix epoch
  std::optional<std::string> link_target;
  FileEntry() {}
};

struct FileEntries {
  std::vector<FileEntry> entries;
  FileEntries() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

enum class FileChange : std::uint8_t {
  start = 0,   // all is watched from now on; the first one
  create = 1,  // also what was moved here
  write = 2,   // its bytes changed
  remove = 3,
  rename = 4,     // it was moved from here
  attribute = 5,  // its mode, owner or times changed
  overflow = 6,   // others happened that are not told
};

// A piece of a file's way to its watcher: each uses up its payload's size of credit.
struct FileEvent {
  FileChange change = FileChange::start;
  std::string path;
  FileEvent() {}
  FileEvent(FileChange c, std::string p) : change(c), path(std::move(p)) {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

}  // namespace sandforge::wire::guest

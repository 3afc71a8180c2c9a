// Archives as an engine takes and gives them: POSIX ustar with pax headers for what does not fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandforge::wire::docker {

enum class TarType : std::uint8_t { file, directory, symlink, hardlink, other };

struct TarEntry {
  std::string path;  // relative, without "." and ".."; empty: the root of the archive
  TarType type = TarType::file;
  std::uint32_t mode = 0644;  // 07777 at most
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;   // of a file
  std::int64_t mtime = 0;   // seconds since the Unix epoch
  std::string link_target;  // of a link, as it stands there
};

/*
 * Writes an archive piece by piece: for each entry header(), then exactly its size in bytes, then
 * padding(); finish() at the end. Paths of any length, sizes up to 2^63.
 */
class TarWriter {
 public:
  // Throws std::invalid_argument on a path that is empty, absolute or leaves the archive, a NUL,
  // and a type that is no file, directory or link.
  static std::string header(const TarEntry& entry);
  static std::string padding(std::uint64_t size);
  static std::string finish();
};

// What an archive may ask of this process. Content is never stored by the reader.
struct TarLimits {
  std::uint64_t entries = 1'000'000;
  std::uint64_t bytes = std::uint64_t{1} << 40;  // of all contents together
  std::size_t path_bytes = 4096;
};

/*
 * Reads an archive that arrives in pieces of any size. A path that is absolute or leaves the
 * archive, a hard link that does, a header whose sum is wrong and a size out of bounds end it with
 * an error. A symbolic link is told as it is: stays_inside() says where it leads. Devices, pipes
 * and whatever is unknown are `other`: not to be made.
 */
class TarReader {
 public:
  explicit TarReader(const TarLimits& limits = {}) : limits_(limits) {}

  enum class Event : std::uint8_t { more, entry, data, end, failed };
  // The next event at the front of bytes, which are used up to behind it. `more`: all are used.
  Event next(std::string_view& bytes);

  const TarEntry& entry() const noexcept { return entry_; }     // since its event
  std::string_view data() const noexcept { return data_; }      // of a data event
  const std::string& error() const noexcept { return error_; }  // once it failed

 private:
  enum class State : std::uint8_t { header, content, meta, padding, end, failed };
  Event fail(std::string why);
  Event take_header();
  Event take_meta();
  Event announce(char type);
  bool read_pax(std::string_view text);

  const TarLimits limits_;
  State state_ = State::header;
  std::string block_;  // the header that is being read, or a long name
  std::uint64_t left_ = 0;
  std::uint64_t padding_ = 0;
  char meta_ = 0;
  bool zero_seen_ = false;
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_ = 0;
  std::optional<std::string> long_path_, long_link_;
  std::optional<std::uint64_t> long_size_;
  TarEntry entry_;
  std::string_view data_;
  std::string error_;
};

// A path of an archive made plain: without "." and doubled slashes. Absent: it is absolute, leaves
// the archive, or holds a NUL.
std::optional<std::string> plain_path(std::string_view path);
// Whether a symbolic link at path leads to a place inside the archive.
bool stays_inside(std::string_view path, std::string_view target);

}  // namespace sandforge::wire::docker

// The file system of a sandbox, as a capability.
#pragma once

#include <sandforge/ext/files.h>

#include "sandbox_base.hpp"

namespace sandforge::plugin {

enum class FileKind : std::uint32_t {
  other = SF_FILE_OTHER,
  regular = SF_FILE_REGULAR,
  directory = SF_FILE_DIRECTORY,
  symlink = SF_FILE_SYMLINK
};

// Paths are bytes.
class FileInfo {
 public:
  FileInfo() {}
  std::string path;
  FileKind kind = FileKind::other;
  std::uint32_t mode = 0;  // permission bits
  std::uint64_t size = 0;
  std::int64_t modified_at = 0;
  std::optional<std::string> link_target;
};

/*
 * Code::not_found: no such file; Code::conflict: the machine is stopped, and nothing happened. The
 * functions with an Io fill or empty it and return at the end; their time limit is the stop of the
 * Io.
 */
template <class Style>
class BasicFiles {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  virtual ~BasicFiles() = default;

  virtual Result<FileInfo> stat(std::string path, StopToken stop) = 0;
  // Entries of a directory, to a depth (1: its own).
  virtual Result<std::vector<FileInfo>> list(std::string path, std::uint32_t depth,
                                             StopToken stop) = 0;
  // length absent: to the end.
  virtual Result<void> read(std::string path, std::uint64_t offset,
                            std::optional<std::uint64_t> length, Io& io) = 0;
  // Reads io to the end of its input, then replaces the file in one step; a stop leaves the old
  // one. mode 0: 0644, or the old file's.
  virtual Result<void> write(std::string path, std::uint32_t mode, bool create_parents, Io& io) = 0;
  virtual Result<void> make_directory(std::string path, std::uint32_t mode, bool create_parents,
                                      StopToken stop) = 0;
  virtual Result<void> move(std::string from, std::string to, bool replace, StopToken stop) = 0;
  virtual Result<void> remove(std::string path, bool tree, StopToken stop) = 0;

  virtual bool can_watch() const { return false; }
  // Messages {"event","path"}, with SF_DATA_TEXT | SF_DATA_END, until stopped; the first one with
  // the event "start", once what changes from then on is told.
  virtual Result<void> watch(std::string, bool /*recursive*/, Io&) {
    throw Error(Code::unsupported, "cannot watch");
  }
  virtual bool can_archive() const { return false; }
  // A tar archive of a tree, out or in.
  virtual Result<void> archive_read(std::string, Io&) {
    throw Error(Code::unsupported, "cannot archive");
  }
  virtual Result<void> archive_write(std::string, Io&) {
    throw Error(Code::unsupported, "cannot unpack");
  }
};

}  // namespace sandforge::plugin

#include "impl/files_table.hpp"

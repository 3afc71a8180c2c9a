#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "connection.hpp"
#include "files.hpp"

namespace sandforge::guest {
namespace {

constexpr int kStepRemovals = 128;
constexpr std::size_t kOpen = 32;

struct CloseFolder {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

// Depth first. What lies deeper than the folders that may be open is first moved up, right below
// the one that is removed.
class RemoveTask final : public FileTask {
 public:
  RemoveTask(Connection& connection, std::uint64_t channel, posix::Fd folder, std::string name,
             std::string shown)
      : FileTask(connection, channel), folder_(std::move(folder)), shown_(std::move(shown)) {
    top_ = std::move(name);
  }

  Step step() override {
    if (levels_.empty() && !enter(folder_.get(), top_)) {
      if (errno == ENOENT) return end();
      return fail(errno, "cannot remove", shown_);
    }
    for (int budget = kStepRemovals; budget > 0; --budget) {
      errno = 0;
      Level& level = levels_.back();
      const dirent* found = ::readdir(level.dir.get());
      if (!found && errno != 0) return fail(errno, "cannot remove", shown_);
      if (!found) {
        if (!leave()) return fail(errno, "cannot remove", shown_);
        if (levels_.empty()) return end();
        continue;
      }
      const std::string name = found->d_name;
      if (name == "." || name == "..") continue;
      if (!remove(name)) return fail(errno, "cannot remove", shown_ + "/…/" + name);
    }
    return Step::more;
  }

 private:
  struct Level {
    std::unique_ptr<DIR, CloseFolder> dir;
    std::string name;
    bool changed = false;  // since it was read from its beginning
  };

  bool enter(int folder, const std::string& name) {
    posix::Fd fd(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return false;
    Level level;
    level.dir.reset(::fdopendir(fd.get()));
    if (!level.dir) return false;
    static_cast<void>(fd.release());
    level.name = name;
    levels_.push_back(std::move(level));
    return true;
  }

  // What is entered goes when it is empty.
  bool remove(const std::string& name) {
    Level& level = levels_.back();
    const int fd = ::dirfd(level.dir.get());
    if (::unlinkat(fd, name.c_str(), 0) == 0 || errno == ENOENT) {
      level.changed = true;
      return true;
    }
    if (errno != EISDIR && errno != EPERM) return false;
    const int error = errno;
    if (::unlinkat(fd, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
      level.changed = true;
      return true;
    }
    if (errno == ENOTDIR) errno = error;
    if (errno != ENOTEMPTY && errno != EEXIST) return false;
    if (levels_.size() < kOpen) return enter(fd, name) || errno == ENOENT;
    if (!move_up(fd, name)) return false;
    level.changed = levels_.front().changed = true;
    return true;
  }

  // A removal that was left half done may have used some of the names.
  bool move_up(int fd, const std::string& name) {
    for (;;) {
      const std::string free_name = ".sandforge-removed-" + std::to_string(++moved_);
      if (::renameat(fd, name.c_str(), ::dirfd(levels_.front().dir.get()), free_name.c_str()) == 0)
        return true;
      if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) return false;
    }
  }

  // The last one is read to its end: it goes, or is read again where something was added or a file
  // system left something out.
  bool leave() {
    Level& level = levels_.back();
    const int above =
        levels_.size() > 1 ? ::dirfd(levels_[levels_.size() - 2].dir.get()) : folder_.get();
    if (::unlinkat(above, level.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
      levels_.pop_back();
      if (!levels_.empty()) levels_.back().changed = true;
      return true;
    }
    if ((errno != ENOTEMPTY && errno != EEXIST) || !std::exchange(level.changed, false))
      return false;
    ::rewinddir(level.dir.get());
    return true;
  }

  const posix::Fd folder_;
  std::string top_;
  const std::string shown_;
  std::vector<Level> levels_;
  std::uint64_t moved_ = 0;
};

}  // namespace

std::shared_ptr<FileTask> remove_tree(Connection& connection, std::uint64_t channel,
                                      posix::Fd folder, std::string name, std::string shown) {
  return std::make_shared<RemoveTask>(connection, channel, std::move(folder), std::move(name),
                                      std::move(shown));
}

}  // namespace sandforge::guest

#include <dirent.h>
#include <fcntl.h>
#include <cerrno>
#include <deque>
#include <memory>
#include <utility>

#include "connection.hpp"
#include "files.hpp"

namespace sandforge::guest {
namespace {

constexpr int kStepEntries = 256;
constexpr std::size_t kPieceSize = 48 * 1024;

struct CloseDirectory {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

// Directory by directory, one of them open at a time: a tree of any depth costs its names only.
class ListTask final : public FileTask {
 public:
  ListTask(Connection& connection, std::uint64_t channel, posix::Beneath root, std::string path,
           std::string shown, std::uint32_t depth)
      : FileTask(connection, channel),
        root_(std::move(root)),
        path_(std::move(path)),
        shown_(std::move(shown)),
        depth_(depth) {
    waiting_.push_back({std::string(), 1});
  }

  Step step() override {
    for (int budget = kStepEntries; budget > 0; --budget) {
      if (!open_ && !waiting_.empty()) {
        if (!open_next()) return Step::ended;
        continue;
      }
      if (!open_) return tell(false);
      errno = 0;
      const dirent* found = ::readdir(open_.get());
      if (!found && errno != 0) return fail(errno, "cannot list", below(shown_, here_.way));
      if (!found) {
        open_.reset();
        continue;
      }
      const std::string name = found->d_name;
      if (name == "." || name == "..") continue;
      if (!add(name)) return Step::ended;
      if (size_ >= kPieceSize) return tell(true);
    }
    return reply_.entries.empty() ? Step::more : tell(true);
  }

 private:
  struct Directory {
    std::string way;  // from the listed one
    std::uint32_t depth = 0;
  };

  // False: that was told.
  bool open_next() {
    here_ = std::move(waiting_.front());
    waiting_.pop_front();
    const bool top = here_.way.empty();
    const int flags = O_RDONLY | O_DIRECTORY | (top ? 0 : O_NOFOLLOW);
    posix::Fd fd = root_.at(top ? path_ : path_ + "/" + here_.way, flags);
    if (fd) {
      open_.reset(::fdopendir(fd.get()));
      if (open_) static_cast<void>(fd.release());
    }
    // It was removed, or something else took its place, since it was seen.
    if (open_ || (!top && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))) return true;
    fail(errno, "cannot list", below(shown_, here_.way));
    return false;
  }

  bool add(const std::string& name) {
    const std::string way = here_.way.empty() ? name : here_.way + "/" + name;
    wire::FileEntry entry;
    if (!describe_file(::dirfd(open_.get()), name, below(shown_, way), entry)) {
      if (errno == ENOENT || errno == EINVAL) return true;  // gone, or no longer a link
      fail(errno, "cannot look at", below(shown_, way));
      return false;
    }
    if (++count_ > wire::kMaxListedFiles) {
      refuse(wire::ErrorCode::too_large, "there are too many files to list below " + shown_);
      return false;
    }
    if (entry.kind == wire::FileKind::directory && here_.depth < depth_)
      waiting_.push_back({way, here_.depth + 1});
    const std::size_t bytes =
        entry.path.size() + 64 + (entry.link_target ? entry.link_target->size() : 0);
    size_ += bytes;
    total_ += bytes;
    if (total_ > wire::kMaxListedBytes) {
      refuse(wire::ErrorCode::too_large, "there is too much to list below " + shown_);
      return false;
    }
    reply_.entries.push_back(std::move(entry));
    return true;
  }

  Step tell(bool more) {
    std::string payload;
    reply_.encode(payload);
    connection().send(wire::FrameType::file_entries, channel(), more ? 1 : 0, payload);
    reply_.entries.clear();
    size_ = 0;
    return more ? Step::more : Step::ended;
  }

  const posix::Beneath root_;
  const std::string path_;
  const std::string shown_;
  const std::uint32_t depth_;
  std::deque<Directory> waiting_;
  Directory here_;
  std::unique_ptr<DIR, CloseDirectory> open_;
  wire::FileEntries reply_;
  std::size_t size_ = 0;
  std::size_t count_ = 0;
  std::size_t total_ = 0;  // bytes, somewhat more than are sent
};

}  // namespace

std::shared_ptr<FileTask> list_files(Connection& connection, std::uint64_t channel,
                                     posix::Beneath root, std::string path, std::string shown,
                                     std::uint32_t depth) {
  return std::make_shared<ListTask>(connection, channel, std::move(root), std::move(path),
                                    std::move(shown), depth);
}

}  // namespace sandforge::guest

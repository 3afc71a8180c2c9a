// Changes of a file, or of a directory and all that is below it.
#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>

#include "connection.hpp"
#include "files.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

using wire::FileChange;

constexpr std::uint32_t kChanges = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM |
                                   IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK;
constexpr int kScanEntries = 256;
constexpr std::size_t kDirectories = 65536;  // of one watch
constexpr std::size_t kPending = 4096;

struct CloseListing {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

// While nothing may be sent, nothing is read either, no event and no directory: what the kernel
// cannot keep then is an overflow, which is told.
class WatchTask final : public FileTask, public Source {
 public:
  WatchTask(Connection& connection, std::uint64_t channel, posix::Beneath root, std::string path,
            std::string shown, const wire::FileRequest& request)
      : FileTask(connection, channel),
        root_(std::move(root)),
        path_(std::move(path)),
        shown_(std::move(shown)),
        recursive_(request.recursive),
        credit_(request.window),
        events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}
  ~WatchTask() override {
    if (events_) connection().loop().forget(events_.get());
  }

  // False: that was told.
  bool start() {
    if (!events_ || !connection().loop().watch(events_.get(), EPOLLIN, *this)) {
      fail(errno, "cannot watch", shown_);
      return false;
    }
    const int added = add(std::string(), true);
    if (added != 0) {
      fail(added, "cannot watch", shown_);
      return false;
    }
    wake();
    return true;
  }

  void on_ready(std::uint32_t) override {
    if (ended()) return;
    readable_ = true;
    wake();
  }

  void add_credit(std::uint64_t bytes) override {
    credit_ += std::min(bytes, UINT64_MAX - credit_);
    wake();
  }

  Step step() override {
    if (!send_pending()) return Step::wait;
    for (int i = 0; i < kScanEntries && !scanned() && pending_.size() < kPending; ++i) {
      const int error = scan_next();
      if (error != 0) return fail(error, "cannot watch", below(shown_, way_of_error_));
    }
    if (scanned() && !std::exchange(started_, true)) tell(FileChange::start, std::string());
    if (!send_pending()) return Step::wait;
    if (!scanned()) return Step::more;
    if (over_) return end();
    if (!readable_) return Step::wait;
    read_events();
    if (!send_pending()) return Step::wait;
    if (scanned() && over_) return end();
    return readable_ || !scanned() ? Step::more : Step::wait;
  }

 private:
  struct Scan {
    std::string way;
    bool told = false;  // what is found there was created
  };

  // 0, or why not. told: what is found there is told as created.
  int add(const std::string& way, bool top, bool told = false) {
    const int flags = top ? O_PATH : O_PATH | O_NOFOLLOW | O_DIRECTORY;
    const posix::Fd fd = root_.at(top ? path_ : path_ + "/" + way, flags);
    struct stat st = {};
    if (!fd || ::fstat(fd.get(), &st) != 0) return errno;
    if (watches_.size() >= kDirectories) return ENOSPC;
    const std::string self = "/proc/self/fd/" + std::to_string(fd.get());
    const int watch = ::inotify_add_watch(events_.get(), self.c_str(), kChanges);
    if (watch < 0) return errno == ENOENT ? EOPNOTSUPP : errno;  // there is no /proc
    watches_[watch] = way;
    if (recursive_ && S_ISDIR(st.st_mode)) scan_.push_back({way, told});
    return 0;
  }

  bool scanned() const { return !listing_ && scan_.empty(); }

  // One entry, or the next directory, which may be gone by now, or something else; the kernel tells
  // that.
  int scan_next() {
    if (!listing_) return open_next();
    errno = 0;
    const dirent* found = ::readdir(listing_.get());
    if (!found) {
      const int error = errno;
      listing_.reset();
      return error == 0 ? 0 : blame(here_.way, error);
    }
    const std::string name = found->d_name;
    if (name == "." || name == "..") return 0;
    const std::string way = here_.way.empty() ? name : here_.way + "/" + name;
    if (here_.told) tell(FileChange::create, way);
    struct stat st = {};
    if (::fstatat(::dirfd(listing_.get()), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(st.st_mode))
      return 0;
    const int error = add(way, false, here_.told);
    return error == 0 || is_gone(error) ? 0 : blame(way, error);
  }

  int open_next() {
    here_ = std::move(scan_.front());
    scan_.pop_front();
    const bool top = here_.way.empty();
    const int flags = O_RDONLY | O_DIRECTORY | (top ? 0 : O_NOFOLLOW);
    posix::Fd fd = root_.at(top ? path_ : path_ + "/" + here_.way, flags);
    listing_.reset(fd ? ::fdopendir(fd.get()) : nullptr);
    if (!listing_) return is_gone(errno) ? 0 : blame(here_.way, errno);
    static_cast<void>(fd.release());
    return 0;
  }

  static bool is_gone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }
  int blame(const std::string& way, int error) {
    way_of_error_ = way;
    return error;
  }

  void tell(FileChange change, const std::string& way) {
    pending_.emplace_back(change, below(shown_, way));
  }

  // False: some are left.
  bool send_pending() {
    while (!pending_.empty()) {
      std::string payload;
      pending_.front().encode(payload);
      if (payload.size() > credit_) return false;
      credit_ -= payload.size();
      connection().send(wire::FrameType::file_event, channel(), 0, payload);
      pending_.pop_front();
    }
    return true;
  }

  void read_events() {
    alignas(struct inotify_event) char buffer[4096];
    const ssize_t n = ::read(events_.get(), buffer, sizeof buffer);
    if (n <= 0) {
      readable_ = n < 0 && errno == EINTR;
      return;
    }
    for (ssize_t at = 0; at < n;) {
      const auto* event = reinterpret_cast<const struct inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      happened(*event);
    }
  }

  void happened(const struct inotify_event& event) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      tell(FileChange::overflow, std::string());
      // Directories among what was not told are watched, too.
      if (recursive_) scan_.push_back({std::string(), false});
      return;
    }
    const auto found = watches_.find(event.wd);
    if (found == watches_.end()) return;
    const std::string folder = found->second;
    if ((event.mask & IN_IGNORED) != 0) {
      watches_.erase(found);
      return;
    }
    const bool self = event.len == 0;
    // What happens to a directory below is told by the one above.
    if (self && !folder.empty()) return;
    const std::string name = self ? std::string() : std::string(event.name);
    const std::string way = folder.empty() || self ? folder + name : folder + "/" + name;
    const bool directory = (event.mask & IN_ISDIR) != 0;
    if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
      tell(FileChange::create, way);
      // What was made in it before it was watched.
      if (directory && recursive_) follow(way);
    } else if ((event.mask & IN_MOVED_FROM) != 0) {
      tell(FileChange::rename, way);
      if (directory) forget(way);
    } else if ((event.mask & IN_DELETE) != 0) {
      tell(FileChange::remove, way);
    } else if ((event.mask & IN_MODIFY) != 0) {
      tell(FileChange::write, way);
    } else if ((event.mask & IN_ATTRIB) != 0) {
      tell(FileChange::attribute, way);
    } else if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
      tell((event.mask & IN_DELETE_SELF) != 0 ? FileChange::remove : FileChange::rename, way);
      over_ = true;
    }
  }

  void follow(const std::string& way) {
    const int error = add(way, false, true);
    if (error != 0 && !is_gone(error)) {
      // No room for another watch: whoever watches must know that it is not complete.
      tell(FileChange::overflow, way);
    }
  }

  void forget(const std::string& way) {
    const std::string inside = way + "/";
    for (auto it = watches_.begin(); it != watches_.end();) {
      if (it->second == way || it->second.compare(0, inside.size(), inside) == 0) {
        ::inotify_rm_watch(events_.get(), it->first);
        it = watches_.erase(it);
      } else {
        ++it;
      }
    }
  }

  const posix::Beneath root_;
  const std::string path_;
  const std::string shown_;
  const bool recursive_;
  std::uint64_t credit_;
  const posix::Fd events_;
  std::unordered_map<int, std::string> watches_;  // the way to each
  std::deque<Scan> scan_;                         // directories to look into
  Scan here_;                                     // the one that is read
  std::unique_ptr<DIR, CloseListing> listing_;
  std::deque<wire::FileEvent> pending_;
  std::string way_of_error_;
  bool started_ = false;
  bool readable_ = true;
  bool over_ = false;  // what was watched is gone
};

}  // namespace

std::shared_ptr<FileTask> watch_files(Connection& connection, std::uint64_t channel,
                                      posix::Beneath root, std::string path, std::string shown,
                                      const wire::FileRequest& request) {
  auto task = std::make_shared<WatchTask>(connection, channel, std::move(root), std::move(path),
                                          std::move(shown), request);
  return task->start() ? task : nullptr;
}

}  // namespace sandforge::guest

#include "folder_watch.hpp"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <utility>

namespace sandforge::guest {
namespace {

constexpr std::int64_t kSettleMs = 500;  // who moves it may put it back
constexpr std::int64_t kLookMs = 2000;   // where nobody tells of changes

std::string path_of(int folder) {
  char buffer[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(folder);
  const ssize_t n = ::readlink(link.c_str(), buffer, sizeof buffer);
  const bool whole = n > 0 && n < static_cast<ssize_t>(sizeof buffer) && buffer[0] == '/';
  return whole ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

FolderWatch::FolderWatch(EventLoop& loop, int folder, std::function<void()> gone)
    : loop_(loop), folder_(folder), gone_(std::move(gone)), path_(path_of(folder)) {
  if (!watch()) {
    events_.reset();
    look_at(loop_.now() + kLookMs);
  }
}

FolderWatch::~FolderWatch() {
  loop_.cancel(timer_);
}

// The folder itself and the one around it tell of names that go, every one on the way of its move.
bool FolderWatch::watch() {
  if (path_.empty()) return false;
  events_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!events_ || !loop_.watch(events_.get(), EPOLLIN, *this)) return false;
  int level = 0;
  for (auto end = path_.size(); end != 0 && end != std::string::npos;
       end = path_.rfind('/', end - 1), ++level) {
    const std::uint32_t names = level < 2 ? IN_DELETE | IN_MOVED_FROM : 0;
    const bool watched =
        ::inotify_add_watch(events_.get(), path_.substr(0, end).c_str(),
                            IN_ONLYDIR | IN_MOVE_SELF | IN_DELETE_SELF | names) >= 0;
    if (!watched) return false;
  }
  return true;
}

FolderWatch::Place FolderWatch::look() const {
  struct stat ours = {}, found = {};
  if (::fstat(folder_, &ours) != 0) return Place::there;
  if (ours.st_nlink == 0) return Place::removed;
  if (path_.empty()) return Place::there;
  if (::lstat(path_.c_str(), &found) != 0)
    return errno == ENOENT || errno == ENOTDIR ? Place::elsewhere : Place::there;
  return found.st_dev == ours.st_dev && found.st_ino == ours.st_ino ? Place::there
                                                                    : Place::elsewhere;
}

void FolderWatch::look_at(std::int64_t when) {
  loop_.cancel(timer_);
  timer_ = loop_.at(when, [this] {
    timer_ = {};
    check();
  });
}

void FolderWatch::check() {
  if (!gone_) return;
  const Place place = look();
  if (place == Place::removed || (place == Place::elsewhere && missing_)) {
    loop_.cancel(timer_);
    return std::exchange(gone_, nullptr)();
  }
  missing_ = place == Place::elsewhere;
  if (missing_)
    look_at(loop_.now() + kSettleMs);
  else if (!events_)
    look_at(loop_.now() + kLookMs);
}

void FolderWatch::on_ready(std::uint32_t) {
  alignas(struct inotify_event) char buffer[4096];
  while (::read(events_.get(), buffer, sizeof buffer) > 0) {
  }
  // A second look is on its way already.
  if (!missing_) check();
}

}  // namespace sandforge::guest

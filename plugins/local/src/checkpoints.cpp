#include "checkpoints.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>

#include "sandforge/posix/system.hpp"
#include "sandforge/support/json.hpp"
#include "tree_copy.hpp"

namespace sandforge::local {
namespace {

constexpr char kStore[] = ".checkpoints";
constexpr char kFiles[] = "files";
constexpr char kAbout[] = "about.json";
constexpr std::string_view kAside = ".tmp-";
constexpr char kBefore[] = ".before-checkpoint";
constexpr int kLooks = 5000;
constexpr std::chrono::milliseconds kLookPause{2};
constexpr std::size_t kMaxAbout = 64U << 10;

using Result = std::optional<Failure>;

Failure not_found(const std::string& name) {
  return Failure{
      SF_NOT_FOUND, "local.no_checkpoint", "there is no checkpoint \"" + name + "\"", {}, 0, false};
}

// Empty: there is no root.
Result open_existing_root(const std::string& root, Descriptor& out) {
  out = Descriptor(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (out || errno == ENOENT || errno == ENOTDIR) return {};
  return system_failure(errno, "cannot open", root);
}

class Store {
 public:
  // Empty, and not made: there are no checkpoints.
  static Result open(const std::string& root, bool create, Store& out) {
    Descriptor top;
    if (auto failed = open_existing_root(root, top)) return failed;
    out.path_ = root + "/" + kStore;
    if (!top) return {};
    OpenedFolder store;
    auto failed = open_child(top.get(), kStore, out.path_, create, store);
    if (failed && !create && failed->error_number == ENOENT) return {};
    if (failed) return failed;
    out.fd_ = std::move(store.fd);
    return {};
  }

  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  int fd() const noexcept { return fd_.get(); }
  std::string shown(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const noexcept { return path_; }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(::openat(fd(), ".", kFolder)),
                                                     &::closedir);
    while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") out.push_back(name);
    }
    return out;
  }

  // Whether the name still leads to this folder.
  bool names_it(const std::string& name, const Descriptor& folder) const {
    struct stat here {
    }, there{};
    return ::fstat(folder.get(), &here) == 0 &&
           ::fstatat(fd(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           here.st_ino == there.st_ino && here.st_dev == there.st_dev;
  }

  // Removes what is aside. What somebody holds, or what the name leads to only since it was opened,
  // is left for the next use: it may be a checkpoint that has just lost its place to a new one.
  Result remove_aside(const std::string& name) const {
    const Descriptor folder(::openat(fd(), name.c_str(), kFolder));
    if (!folder && errno == ENOENT) return {};
    if (!folder) return system_failure(errno, "cannot open", shown(name));
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 || !names_it(name, folder)) return {};
    return remove_guest_folder(fd(), name);
  }

  // What cannot be removed takes room, and hinders nothing.
  void remove_leftovers(std::vector<std::string>& warnings) const {
    for (const auto& name : names())
      if (name.compare(0, kAside.size(), kAside) == 0) warn(remove_aside(name), warnings);
  }
  static void warn(const Result& failed, std::vector<std::string>& warnings) {
    if (failed)
      warnings.push_back("what is left of an earlier checkpoint stays: " + failed->message);
  }

 private:
  Descriptor fd_;
  std::string path_;
};

std::string aside_name() {
  return std::string(kAside) + posix::random_hex(8);
}

// A new folder beside the checkpoints, held until it has its place or is removed.
class Aside {
 public:
  explicit Aside(const Store& store) : store_(store) {}
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  // What stays behind is a leftover like that of a process that was killed.
  ~Aside() {
    if (fd_) static_cast<void>(remove());
  }

  Result make() {
    for (int tries = 0; tries < kLooks; ++tries) {
      name_ = aside_name();
      if (::mkdirat(store_.fd(), name_.c_str(), 0700) != 0) {
        if (errno == EEXIST) continue;
        return system_failure(errno, "cannot create", store_.shown(name_));
      }
      Descriptor folder(::openat(store_.fd(), name_.c_str(), kFolder));
      // Whoever removes leftovers may have been quicker.
      if (!folder || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 ||
          !store_.names_it(name_, folder))
        continue;
      if (::mkdirat(folder.get(), kFiles, 0700) != 0)
        return system_failure(errno, "cannot create", store_.shown(name_));
      fd_ = std::move(folder);
      files_ = Descriptor(::openat(fd_.get(), kFiles, kFolder));
      if (!files_) return system_failure(errno, "cannot open", store_.shown(name_));
      return {};
    }
    return Failure{SF_CONFLICT,
                   "local.checkpoints",
                   "cannot make a folder in " + store_.path(),
                   store_.path(),
                   0,
                   false};
  }

  int fd() const noexcept { return fd_.get(); }
  int files() const noexcept { return files_.get(); }
  const std::string& name() const noexcept { return name_; }

  // It has its place, or something else has taken its name here.
  void let_go() {
    files_ = Descriptor();
    fd_ = Descriptor();
  }
  Result remove() {
    files_ = Descriptor();
    const Descriptor held = std::move(fd_);
    return remove_guest_folder(store_.fd(), name_);
  }

 private:
  const Store& store_;
  std::string name_;
  Descriptor fd_;
  Descriptor files_;
};

std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Result write_about(int folder, const CheckpointInfo& info, const std::string& shown) {
  json::Object about;
  about.set("name", info.name);
  about.set("createdAt", info.created_at);
  about.set("bytes", info.bytes);
  const std::string text = json::write(about) + "\n";
  const Descriptor fd(
      ::openat(folder, kAbout, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return system_failure(errno, "cannot write", shown);
  for (std::size_t done = 0; done < text.size();) {
    const auto n = ::write(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return system_failure(errno, "cannot write", shown);
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return {};
}

// Nothing: it is damaged.
std::optional<CheckpointInfo> read_about(int folder) {
  const Descriptor fd(
      ::openat(folder, kAbout, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::string text(kMaxAbout, '\0');
  const auto n = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (n < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(n));
  const auto parsed = json::parse(text);
  if (!parsed || !parsed.value.is_object()) return std::nullopt;
  const auto* name = parsed.value.find("name");
  const auto* created = parsed.value.find("createdAt");
  const auto* bytes = parsed.value.find("bytes");
  if (name == nullptr || !name->is_string() || created == nullptr || !created->is_integer() ||
      bytes == nullptr || !bytes->is_integer())
    return std::nullopt;
  CheckpointInfo out;
  out.name = name->as_string();
  out.created_at = created->as_integer();
  out.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes->as_integer(), 0));
  return out;
}

// Held against its removal as long as the descriptor lives. Empty: there is none.
Result open_checkpoint(const Store& store, const std::string& name, Descriptor& out) {
  const std::string entry = encode_id(name);
  for (int tries = 0; tries < kLooks; ++tries) {
    Descriptor folder(::openat(store.fd(), entry.c_str(), kFolder));
    if (!folder && errno == ENOENT) return {};
    if (!folder) return system_failure(errno, "cannot open", store.shown(entry));
    if (::flock(folder.get(), LOCK_SH | LOCK_NB) != 0) {
      // Whoever made it has not let go yet, or it has lost its place and is being removed.
      std::this_thread::sleep_for(kLookPause);
      continue;
    }
    if (!store.names_it(entry, folder)) continue;
    out = std::move(folder);
    return {};
  }
  return Failure{SF_CONFLICT,
                 "local.checkpoint_busy",
                 "the checkpoint \"" + name + "\" is being changed",
                 {},
                 0,
                 false};
}

bool has_checkpoint(const Store& store, const std::optional<std::string>& name) {
  struct stat as {};
  return name && ::fstatat(store.fd(), encode_id(*name).c_str(), &as, AT_SYMLINK_NOFOLLOW) == 0;
}

// Puts what was made aside into its place. The one that had it is aside then.
Result give_place(const Store& store, Aside& made, const std::string& entry,
                  std::vector<std::string>& warnings) {
  for (int tries = 0; tries < kLooks; ++tries) {
    if (::renameat2(store.fd(), made.name().c_str(), store.fd(), entry.c_str(), 0) == 0) {
      made.let_go();
      return {};
    }
    if (errno != ENOTEMPTY && errno != EEXIST) break;
    if (::renameat2(store.fd(), made.name().c_str(), store.fd(), entry.c_str(), RENAME_EXCHANGE) ==
        0) {
      const std::string before = made.name();
      made.let_go();
      Store::warn(store.remove_aside(before), warnings);
      return {};
    }
    if (errno != ENOENT) break;  // else the one before was removed meanwhile
  }
  return system_failure(errno, "cannot replace", store.shown(entry));
}

bool beneath(const std::string& folder, const std::string& path) {
  return path.compare(0, folder.size(), folder) == 0 &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

bool works_elsewhere(const SessionPlace& place) {
  return !place.working_directory.empty() && !beneath(place.folder(), place.working_directory);
}

Failure elsewhere(const SessionPlace& place) {
  return Failure{SF_UNSUPPORTED,
                 "local.working_directory",
                 "the session works in " + place.working_directory +
                     ", and a checkpoint holds what is in its own folder, " + place.folder(),
                 place.working_directory,
                 0,
                 false};
}

bool is_empty(int folder, const std::string& name) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(
      ::fdopendir(::openat(folder, name.c_str(), kFolder)), &::closedir);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string_view found = entry->d_name;
    if (found != "." && found != "..") return false;
  }
  return entries != nullptr;
}

// The files that destroy kept make room, and nothing of ours removes them. They are not lost with a
// start that fails later on; the guest's folder says to the next one that this was done.
Result set_before_aside(const SessionPlace& place, int root, Booted& out) {
  Descriptor guest;
  if (auto failed = make_guest_folder(place, guest)) return failed;
  const std::string shown = place.root + "/" + kBefore;
  OpenedFolder kept;
  if (auto failed = open_child(root, kBefore, shown, true, kept)) return failed;
  std::string name = place.name;
  for (int n = 2;
       ::renameat2(root, place.name.c_str(), kept.fd.get(), name.c_str(), RENAME_NOREPLACE) != 0;
       ++n) {
    if (errno == ENOENT) return {};
    if (errno != EEXIST || n > kLooks) return system_failure(errno, "cannot move", place.folder());
    name = place.name + "~" + std::to_string(n);
  }
  out.warnings.push_back("the session's files from before this start are in " + shown + "/" + name +
                         " until somebody removes them");
  return {};
}

Result boot_from(const SessionPlace& place, int root, const Store& store, const std::string& name,
                 const CancelFlag& cancelled, bool& done, Booted& out) {
  Descriptor checkpoint;
  if (auto failed = open_checkpoint(store, name, checkpoint)) return failed;
  if (!checkpoint) return not_found(name);
  const Descriptor files(::openat(checkpoint.get(), kFiles, kFolder));
  if (!files) return system_failure(errno, "cannot open the files of the checkpoint", name);
  Aside made(store);
  if (auto failed = made.make()) return failed;
  CopyReport report;
  if (auto failed = copy_tree(files.get(), made.files(), cancelled, report)) return failed;
  for (auto& warning : report.warnings())
    out.warnings.push_back("of the checkpoint \"" + name + "\", " + warning);
  if (cancelled.load()) return copy_cancelled();
  if (!is_empty(root, place.name))
    if (auto failed = set_before_aside(place, root, out)) return failed;
  // Onto nothing, or onto an empty folder.
  done = ::renameat(made.fd(), kFiles, root, place.name.c_str()) == 0;
  // Another host has made the session meanwhile: this start finds it.
  if (!done && errno != ENOTEMPTY && errno != EEXIST)
    return system_failure(errno, "cannot put the checkpoint to", place.folder());
  return made.remove();
}

Result capture_into(const Store& store, Aside& made, int session, const std::string& name,
                    const CancelFlag& cancelled, CheckpointInfo& out) {
  out.name = name;
  out.created_at = now_ns();
  CopyReport report;
  if (auto failed = copy_tree(session, made.files(), cancelled, report)) return failed;
  out.bytes = report.bytes;
  for (auto& warning : report.warnings())
    out.warnings.push_back(std::move(warning));
  if (auto failed = write_about(made.fd(), out, store.shown(made.name()))) return failed;
  // On the disk before it has its name: the machine may fail, too.
  if (::syncfs(store.fd()) != 0) return system_failure(errno, "cannot write", store.path());
  if (cancelled.load()) return copy_cancelled();
  if (auto failed = give_place(store, made, encode_id(name), out.warnings)) return failed;
  if (::fsync(store.fd()) != 0) return system_failure(errno, "cannot write", store.path());
  return {};
}

}  // namespace

std::optional<Failure> capture(const SessionPlace& place, const std::string& name,
                               const CancelFlag& cancelled, CheckpointInfo& out) {
  if (works_elsewhere(place)) return elsewhere(place);
  Descriptor root;
  if (auto failed = open_existing_root(place.root, root)) return failed;
  OpenedFolder session;
  if (root)
    if (auto failed = open_child(root.get(), place.name, place.folder(), false, session);
        failed && failed->error_number != ENOENT)
      return failed;
  if (!session.fd)
    return Failure{SF_GONE, "sandbox.gone", "the session's folder no longer exists", {}, 0, false};
  for (int tries = 1;; ++tries) {
    Store store;
    Aside made(store);
    out.warnings.clear();
    auto failed = Store::open(place.root, true, store);
    if (!failed) {
      store.remove_leftovers(out.warnings);
      failed = made.make();
    }
    // Whoever removes the last checkpoint removes the folder of them all, also a new one before it
    // can be opened.
    if (failed && failed->error_number == ENOENT && tries < kLooks) continue;
    if (failed) return failed;
    return capture_into(store, made, session.fd.get(), name, cancelled, out);
  }
}

std::optional<Failure> list_checkpoints(const std::string& root, std::vector<CheckpointInfo>& out) {
  Store store;
  if (auto failed = Store::open(root, false, store)) return failed;
  if (!store) return {};
  for (const auto& entry : store.names()) {
    if (entry.front() == '.') continue;
    const Descriptor folder(::openat(store.fd(), entry.c_str(), kFolder));
    if (!folder && errno == ENOENT) continue;
    auto info = folder ? read_about(folder.get()) : std::nullopt;
    // One that is damaged can be seen, and removed, where its name tells itself.
    if (!info) info = CheckpointInfo{entry, 0, SF_NONE, {}};
    if (encode_id(info->name) == entry) out.push_back(*std::move(info));
  }
  std::sort(out.begin(), out.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    return a.created_at != b.created_at ? a.created_at > b.created_at : a.name < b.name;
  });
  return {};
}

std::optional<Failure> remove_checkpoint(const std::string& root, const std::string& name) {
  Store store;
  if (auto failed = Store::open(root, false, store)) return failed;
  if (!store) return {};
  std::vector<std::string> left;  // for the next capture or boot to tell
  store.remove_leftovers(left);
  const std::string aside = aside_name();
  const std::string entry = encode_id(name);
  if (::renameat(store.fd(), entry.c_str(), store.fd(), aside.c_str()) == 0) {
    if (auto failed = store.remove_aside(aside)) return failed;
  } else if (errno != ENOENT) {
    return system_failure(errno, "cannot remove", store.shown(entry));
  }
  // Nothing is left of the last one.
  if (::rmdir(store.path().c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST &&
      errno != ENOENT)
    return system_failure(errno, "cannot remove", store.path());
  return {};
}

std::optional<Failure> find_checkpoint(const std::string& root, const std::string& name) {
  Store store;
  if (auto failed = Store::open(root, false, store)) return failed;
  if (store && has_checkpoint(store, name)) return {};
  return not_found(name);
}

std::optional<Failure> boot(const SessionPlace& place, const BootNames& names,
                            const CancelFlag& cancelled, Booted& out) {
  if (works_elsewhere(place)) return names.wanted ? Result(elsewhere(place)) : Result();
  Store store;
  if (auto failed = Store::open(place.root, false, store)) return failed;
  Descriptor root, guest;
  if (auto failed = open_existing_root(place.root, root)) return failed;
  struct stat session {};
  const bool found =
      root && ::fstatat(root.get(), place.name.c_str(), &session, AT_SYMLINK_NOFOLLOW) == 0;
  if (found && !S_ISDIR(session.st_mode)) return {};  // for who opens it to refuse
  if (auto failed = open_guest_folder(place, guest)) return failed;
  if (found && guest) return {};
  const bool empty = !found || is_empty(root.get(), place.name);
  BootedFrom from = BootedFrom::nothing;
  std::string name;
  if (names.wanted) {
    from = BootedFrom::wanted;
    name = *names.wanted;
    if (!store) return not_found(name);
  } else if (!store) {
    return {};
  } else if (has_checkpoint(store, names.own)) {
    from = BootedFrom::own;
    name = *names.own;
  } else if (empty && has_checkpoint(store, names.seed)) {
    from = BootedFrom::seed;
    name = *names.seed;
  } else {
    return {};
  }
  store.remove_leftovers(out.warnings);
  bool done = false;
  if (auto failed = boot_from(place, root.get(), store, name, cancelled, done, out)) return failed;
  if (done) out.from = from;
  return {};
}

}  // namespace sandforge::local

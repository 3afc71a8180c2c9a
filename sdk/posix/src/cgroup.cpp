#include "sandforge/posix/cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "sandforge/posix/system.hpp"

namespace sandforge::posix {
namespace {

constexpr std::size_t kTextLimit = 1024 * 1024;
constexpr long kGroupFileSystem = 0x63677270;  // CGROUP2_SUPER_MAGIC
constexpr int kDepthLimit = 16;
constexpr int kPollMs = 2;

std::string_view next_word(std::string_view& line) {
  while (!line.empty() && line.front() == ' ')
    line.remove_prefix(1);
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool octal(char c) {
  return c >= '0' && c <= '7';
}

// mountinfo writes blanks, tabs, newlines and backslashes as \040 and so on.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
        octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Mount {
  std::string root;  // the group that lies at the mount point
  std::string point;
};

// proc_pid_mountinfo(5): ID PARENT DEVICE ROOT POINT OPTIONS [TAG…] - TYPE SOURCE OPTIONS
bool parse_group_mount(std::string_view line, Mount& out) {
  for (int skipped = 0; skipped < 3; ++skipped)
    next_word(line);
  out.root = unescaped(next_word(line));
  out.point = unescaped(next_word(line));
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line))
    if (word == "-") return next_word(line) == "cgroup2" && !out.point.empty();
  return false;
}

// Where `group` is seen through the mount; empty when it lies outside of it.
std::string seen_through(const Mount& mount, const std::string& group) {
  const std::string root = mount.root == "/" ? "" : mount.root;
  if (group.compare(0, root.size(), root) != 0) return std::string();
  const std::string rest = group.substr(root.size());
  if (!rest.empty() && rest.front() != '/') return std::string();
  return mount.point + (rest == "/" ? "" : rest);
}

bool has_parent_steps(std::string_view path) {
  return path.find("/..") != std::string_view::npos;
}

std::string group_of_caller(std::string_view groups) {
  while (!groups.empty()) {
    const std::string_view line = next_line(groups);
    if (line.substr(0, 3) == "0::") return std::string(line.substr(3));
  }
  return std::string();
}

template <class F>
void each_folder(int parent, F use) {
  const int copy = ::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!listing) {
    if (copy >= 0) ::close(copy);
    return;
  }
  while (const dirent* entry = ::readdir(listing))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') use(entry->d_name);
  ::closedir(listing);
}

// Groups below first; the kernel refuses those that still have a process.
bool remove_tree(int parent, const char* name, int depth) {
  if (depth < kDepthLimit) {
    const Fd folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (folder)
      each_folder(folder.get(),
                  [&](const char* below) { remove_tree(folder.get(), below, depth + 1); });
  }
  return ::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

}  // namespace

std::vector<std::string> own_group_folders_in(std::string_view mountinfo, std::string_view groups) {
  std::vector<std::pair<std::size_t, std::string>> found;
  const std::string group = group_of_caller(groups);
  if (group.empty() || has_parent_steps(group)) return {};
  while (!mountinfo.empty()) {
    Mount mount;
    if (!parse_group_mount(next_line(mountinfo), mount) || has_parent_steps(mount.root)) continue;
    std::string folder = seen_through(mount, group);
    if (!folder.empty()) found.emplace_back(mount.root.size(), std::move(folder));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> out;
  for (auto& [specific, folder] : found)
    out.push_back(std::move(folder));
  return out;
}

std::vector<std::string> own_group_folders() {
  std::string mountinfo, groups;
  if (!read_file("/proc/self/mountinfo", mountinfo, kTextLimit) ||
      !read_file("/proc/self/cgroup", groups, kTextLimit))
    return {};
  return own_group_folders_in(mountinfo, groups);
}

bool ControlGroup::write(const char* file, const char* text) const noexcept {
  return folder_ && write_file_at(folder_.get(), file, text);
}

const char* ControlGroup::name() const noexcept {
  return path_.c_str() + path_.rfind('/') + 1;
}

bool ControlGroup::make() noexcept {
  if (::mkdirat(parent_.get(), name(), 0755) != 0) return false;
  folder_.reset(::openat(parent_.get(), name(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return static_cast<bool>(folder_);
}

bool ControlGroup::enter() noexcept {
  // Whoever tidies up may have taken it, empty for a moment, for one that is not in use.
  inside_ = write("cgroup.procs", "0") ||
            (parent_ && errno == ENODEV && make() && write("cgroup.procs", "0"));
  return inside_;
}

bool ControlGroup::leave() noexcept {
  if (!inside_) return true;
  inside_ = !(parent_ && write_file_at(parent_.get(), "cgroup.procs", "0"));
  return !inside_;
}

bool ControlGroup::make_and_enter(const std::string& name) {
  const std::string full = std::string(kPrefix) + name;
  for (const std::string& folder : own_group_folders()) {
    Fd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct statfs kind = {};
    if (!parent || ::fstatfs(parent.get(), &kind) != 0 || kind.f_type != kGroupFileSystem) continue;
    // What is in use cannot be removed.
    each_folder(parent.get(), [&](const char* other) {
      if (std::string_view(other).substr(0, kPrefix.size()) == kPrefix)
        remove_tree(parent.get(), other, 0);
    });
    parent_ = std::move(parent);
    path_ = folder + "/" + full;
    // A kernel before 5.14 has no cgroup.kill.
    if (make() && Fd(::openat(folder_.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC)) && enter())
      return true;
    ::unlinkat(parent_.get(), full.c_str(), AT_REMOVEDIR);
    *this = ControlGroup();
  }
  return false;
}

bool ControlGroup::open(const std::string& path, const std::string& name) {
  const std::string full = "/" + std::string(kPrefix) + name;
  if (path.size() <= full.size() ||
      path.compare(path.size() - full.size(), full.size(), full) != 0 || has_parent_steps(path))
    return false;
  const std::string above = path.substr(0, path.size() - full.size());
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct statfs kind = {};
  if (!folder || ::fstatfs(folder.get(), &kind) != 0 || kind.f_type != kGroupFileSystem)
    return false;
  parent_.reset(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  folder_ = std::move(folder);
  path_ = path;
  return true;
}

bool ControlGroup::kill_others() noexcept {
  if (!leave()) return false;
  const bool killed = write("cgroup.kill", "1");
  enter();
  return killed;
}

bool ControlGroup::event_is(const char* line, std::int64_t limit_ms) const noexcept {
  const std::int64_t limit = monotonic_ms() + limit_ms;
  for (;;) {
    std::string text;
    if (!folder_ || !read_file_at(folder_.get(), "cgroup.events", text, 4096)) return false;
    if (text.find(line) != std::string::npos) return true;
    if (monotonic_ms() >= limit) return false;
    ::poll(nullptr, 0, kPollMs);
  }
}

bool ControlGroup::freeze_others(std::int64_t limit_ms) noexcept {
  if (!leave()) return false;
  if (write("cgroup.freeze", "1") && event_is("frozen 1", limit_ms)) return true;
  thaw();
  return false;
}

bool ControlGroup::thaw() noexcept {
  const bool thawed = write("cgroup.freeze", "0");
  return enter() && thawed;
}

bool ControlGroup::kill_and_wait(std::int64_t limit_ms) noexcept {
  return write("cgroup.kill", "1") && event_is("populated 0", limit_ms);
}

bool ControlGroup::contains_caller() const {
  for (const std::string& own : own_group_folders())
    if (own == path_ || own.compare(0, path_.size() + 1, path_ + "/") == 0) return true;
  return false;
}

bool ControlGroup::leave_and_remove() noexcept {
  if (!folder_ || !parent_ || !leave()) return false;
  return remove_tree(parent_.get(), name(), 0);
}

}  // namespace sandforge::posix

// A provider that serves the files of a folder, but for the one fault that its option names.
#include <sandforge/plugin/plugin.hpp>
#include <sandforge/support/hash.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

using namespace sandforge::plugin;
namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(const std::error_code& why, const std::string& path) {
  const std::errc code = static_cast<std::errc>(why.value());
  if (code == std::errc::no_such_file_or_directory) throw Error(Code::not_found, path);
  if (code == std::errc::file_exists) throw Error(Code::already_exists, path);
  throw Error(Code::invalid, path + ": " + why.message());
}

// Each call sees the folder as it is: nobody else changes it meanwhile, but for the suite's own
// commands.
class FolderFiles : public BasicFiles<Blocking> {
 public:
  FolderFiles(fs::path root, const std::string& fault) : root_(std::move(root)), fault_(fault) {}

  FileInfo stat(std::string path, StopToken) override { return describe(at(path, false), path); }
  std::vector<FileInfo> list(std::string path, std::uint32_t depth, StopToken) override {
    std::vector<FileInfo> out;
    add(at(path, true), path, depth, out);
    if (fault_ == "lists half" && out.size() > 1) out.resize(out.size() / 2);
    return out;
  }
  void read(std::string path, std::uint64_t offset, std::optional<std::uint64_t> length,
            Io& io) override {
    const fs::path file = at(path, true);
    if (fs::is_directory(file)) throw Error(Code::invalid, path + ": is a directory");
    std::ifstream in(file, std::ios::binary);
    if (!in) throw Error(Code::not_found, path);
    in.seekg(static_cast<std::streamoff>(offset));
    std::string piece;
    std::uint64_t left = length.value_or(UINT64_MAX);
    while (left > 0 && in) {
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, kPiece)));
      in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      piece.resize(static_cast<std::size_t>(in.gcount()));
      left -= piece.size();
      if (fault_ == "ends early" && offset + 2 * kPiece < fs::file_size(file)) left = 0;
      io.write(piece);
    }
  }
  void write(std::string path, std::uint32_t mode, bool create_parents, Io& io) override {
    const fs::path file = at(path, false);
    if (file.filename().string().size() > 255) throw Error(Code::invalid, "the name is too long");
    if (fs::is_directory(fs::symlink_status(file))) throw Error(Code::invalid, "a directory");
    if (create_parents) fs::create_directories(file.parent_path());
    if (!fs::is_directory(file.parent_path())) throw Error(Code::not_found, path);
    struct stat old = {};
    if (mode == 0)
      mode = ::lstat(file.c_str(), &old) == 0 && S_ISREG(old.st_mode) ? old.st_mode & 07777 : 0644;
    if (fault_ == "forgets modes") mode = 0644;
    const fs::path beside =
        fault_ == "writes in place" ? file : file.parent_path() / (".part" + next());
    try {
      std::ofstream out(beside, std::ios::binary | std::ios::trunc);
      while (const auto piece = io.read())
        out << piece->data << std::flush;
    } catch (...) {
      if (beside != file) fs::remove(beside);
      throw;
    }
    ::chmod(beside.c_str(), mode);
    if (beside != file) fs::rename(beside, file);
  }
  void make_directory(std::string path, std::uint32_t mode, bool create_parents,
                      StopToken) override {
    const fs::path folder = at(path, false);
    if (create_parents) fs::create_directories(folder.parent_path());
    if (::mkdir(folder.c_str(), mode == 0 ? 0755 : mode) == 0) return;
    const std::error_code why(errno, std::generic_category());
    if (!create_parents || !fs::is_directory(folder)) refuse(why, path);
  }
  void move(std::string from, std::string to, bool replace, StopToken) override {
    if (!replace && fault_ != "moves over what is there" &&
        fs::exists(fs::symlink_status(at(to, false))))
      throw Error(Code::already_exists, to);
    std::error_code why;
    fs::rename(at(from, false), at(to, false), why);
    if (why) refuse(why, from);
  }
  void remove(std::string path, bool tree, StopToken) override {
    const fs::path what = at(path, false);
    if (!fs::exists(fs::symlink_status(what))) throw Error(Code::not_found, path);
    std::error_code why;
    if (tree) {
      fs::remove_all(what, why);
    } else {
      fs::remove(what, why);
    }
    if (why) refuse(why, path);
  }

  bool can_watch() const override { return true; }
  // Looks again and again.
  void watch(std::string path, bool recursive, Io& io) override {
    const fs::path top = at(path, true);
    if (!fs::is_directory(top)) throw Error(Code::not_found, path);
    auto before = look(top, recursive);
    tell(io, "start", path);
    for (;;) {
      if (io.stop().wait_for(std::chrono::milliseconds(5))) throw Error(Code::cancelled, path);
      auto now = look(top, recursive);
      for (const auto& [name, what] : before)
        if (now.count(name) == 0)
          tell(io, inode_moved(what, now, before) ? "rename" : "remove", path + "/" + name);
      for (const auto& [name, what] : now) {
        const auto found = before.find(name);
        if (found == before.end()) tell(io, "create", path + "/" + name);
        if (found == before.end() || found->second.second != what.second)
          tell(io, "write", path + "/" + name);
      }
      before = std::move(now);
    }
  }

 private:
  static constexpr std::uint64_t kPiece = 64 * 1024;
  using Seen = std::map<std::string, std::pair<ino_t, std::int64_t>>;

  std::string next() { return std::to_string(++serial_); }

  // Nothing outside of the root.
  fs::path at(const std::string& path, bool follow) const {
    const fs::path full = path.front() == '/' ? fs::path(path) : root_ / path;
    if (fault_ == "follows links outside") return full;
    const fs::path parent = fs::weakly_canonical(follow ? full : full.parent_path());
    const fs::path found = follow ? parent : parent / full.filename();
    const auto inside = found.lexically_relative(fs::canonical(root_)).string();
    if (inside.empty() || inside.substr(0, 2) == "..") throw Error(Code::forbidden, path);
    return found;
  }

  static FileInfo describe(const fs::path& file, const std::string& shown) {
    struct stat st = {};
    if (::lstat(file.c_str(), &st) != 0) throw Error(Code::not_found, shown);
    FileInfo out;
    out.path = shown;
    out.kind = S_ISREG(st.st_mode)   ? FileKind::regular
               : S_ISDIR(st.st_mode) ? FileKind::directory
               : S_ISLNK(st.st_mode) ? FileKind::symlink
                                     : FileKind::other;
    out.mode = st.st_mode & 07777;
    out.size = static_cast<std::uint64_t>(st.st_size);
    out.modified_at = st.st_mtim.tv_sec * std::int64_t{1000000000} + st.st_mtim.tv_nsec;
    if (out.kind == FileKind::symlink) out.link_target = fs::read_symlink(file).string();
    return out;
  }
  void add(const fs::path& folder, const std::string& shown, std::uint32_t depth,
           std::vector<FileInfo>& out) const {
    if (!fs::is_directory(folder)) throw Error(Code::invalid, shown + ": no directory");
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (fault_ == "cleans names") std::replace(name.begin(), name.end(), '\n', ' ');
      out.push_back(describe(entry.path(), shown + "/" + name));
      if (out.back().kind == FileKind::directory && depth > 1)
        add(entry.path(), shown + "/" + name, depth - 1, out);
    }
  }
  Seen look(const fs::path& top, bool recursive) const {
    Seen out;
    std::error_code ignored;
    for (fs::recursive_directory_iterator it(top, ignored), end; it != end; it.increment(ignored)) {
      struct stat st = {};
      if (::lstat(it->path().c_str(), &st) != 0) continue;
      const bool below = it.depth() > 0;
      if (below && (!recursive || fault_ == "watches only the top")) continue;
      out[it->path().lexically_relative(top).string()] = {
          st.st_ino, st.st_mtim.tv_sec * std::int64_t{1000000000} + st.st_mtim.tv_nsec};
    }
    return out;
  }
  static bool inode_moved(const Seen::mapped_type& what, const Seen& now, const Seen& before) {
    return std::any_of(now.begin(), now.end(), [&](const auto& one) {
      return one.second.first == what.first && before.count(one.first) == 0;
    });
  }
  static void tell(Io& io, const std::string& event, const std::string& path) {
    io.write("{\"event\":\"" + event + "\",\"path\":\"" + path + "\"}", SF_CHANNEL_DATA,
             SF_DATA_TEXT | SF_DATA_END);
  }

  const fs::path root_;
  const std::string& fault_;
  std::atomic<int> serial_{0};
};

class FilesSandbox : public Sandbox {
 public:
  FilesSandbox(const std::string& root, std::string fault, const Context& context)
      : fault_(std::move(fault)),
        id_(sandforge::sha256_hex(context.session_id().value_or(""))),
        folder_(fs::path(root) / id_),
        files_(folder_, fault_) {}

  Started start(Starting& starting) override {
    const bool fresh = fs::create_directories(folder_);
    env_ = starting.env();
    return Started(fresh ? Outcome::created : Outcome::connected, id_, folder_.string());
  }
  void stop(StopToken) override {}
  void destroy(StopToken) override { fs::remove_all(folder_); }
  void spawn(Spawn& spawn) override {
    Command& command = spawn.command();
    command.cwd = (folder_ / command.cwd.value_or("")).string();
    command.env.insert(command.env.begin(), env_.begin(), env_.end());
    spawn.delegate();
  }
  BasicFiles<Blocking>* files() override { return &files_; }

 private:
  const std::string fault_;
  const std::string id_;
  const fs::path folder_;
  std::vector<EnvEntry> env_;
  FolderFiles files_;
};

class FilesFactory : public FactorySandbox {
 public:
  static constexpr const char* provider = "crooked-files";
  explicit FilesFactory(const Opening& opening)
      : root_(opening.options.string("root").value_or("")),
        fault_(opening.options.string("fault").value_or("")) {}
  std::vector<std::string> features() const override {
    return {"spawn.stdin",     "spawn.kill", "spawn.tree", "stderr.separate", "stderr.combined",
            "env.per_command", "env.unset",  "files",      "files.watch"};
  }
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<FilesSandbox>(root_, fault_, context);
  }

 private:
  const std::string root_;
  const std::string fault_;
};

}  // namespace
SANDFORGE_PLUGIN(FilesFactory)

// cp: between this machine and a session.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "harmless.hpp"
#include "local_tree.hpp"
#include "new_session.hpp"
#include "sandforge/files.hpp"

namespace sandforge::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = 256 * 1024;
constexpr std::uint32_t kDepth = 4096;

Error copy_error(Status code, std::string message, std::string reason = "copy.invalid") {
  return Error(code, std::move(message), std::move(reason));
}

std::string base_name(const std::string& path) {
  const auto end = path.find_last_not_of('/');
  if (end == std::string::npos) return {};
  const auto slash = path.rfind('/', end);
  const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1,
                                       end - (slash == std::string::npos ? 0 : slash + 1) + 1);
  return name == "." || name == ".." ? std::string() : name;
}

std::string joined(const std::string& folder, const std::string& name) {
  if (name.empty()) return folder;
  return folder.back() == '/' ? folder + name : folder + "/" + name;
}

// From a folder to what was listed of it; empty: that is not below it.
std::string way_from(const std::string& folder, const std::string& listed) {
  const std::string top = folder.back() == '/' ? folder : folder + "/";
  if (listed.compare(0, top.size(), top) == 0) return listed.substr(top.size());
  return folder == "." ? listed : std::string();
}

// Standard input, or a file: waits for bytes until the end is wanted.
class Input {
 public:
  Input(const std::string& path, std::stop_token stop)
      : path_(path), wake_(::eventfd(0, EFD_CLOEXEC)), stop_(std::move(stop)) {
    if (path != "-") {
      // Not waiting for somebody who writes to a pipe of that name.
      file_.reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
      if (!file_) fail();
    }
    on_stop_.emplace(stop_, [this] {
      const std::uint64_t one = 1;
      static_cast<void>(::write(wake_.get(), &one, sizeof one) == sizeof one);
    });
  }

  // None: the end.
  std::string read() {
    pollfd fds[] = {{descriptor(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    while (::poll(fds, 2, -1) < 0)
      if (errno != EINTR) fail();
    if (stop_.stop_requested())
      throw_error(copy_error(Status::cancelled, "the copy was interrupted", "copy.interrupted"));
    std::string bytes(kPiece, '\0');
    ssize_t n;
    do {
      n = ::read(descriptor(), bytes.data(), bytes.size());
    } while (n < 0 && errno == EINTR);
    if (n < 0) fail();
    bytes.resize(static_cast<std::size_t>(n));
    return bytes;
  }

  struct stat status() const {
    struct stat st = {};
    if (::fstat(descriptor(), &st) != 0) fail();
    return st;
  }

 private:
  int descriptor() const { return file_ ? file_.get() : 0; }
  [[noreturn]] void fail() const {
    const int number = errno;
    throw_error(copy_error(number == ENOENT ? Status::not_found : Status::invalid,
                           "cannot read " + path_ + ": " + std::strerror(number), "file.local"));
  }

  const std::string path_;
  posix::Fd file_, wake_;
  const std::stop_token stop_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

class Copy {
 public:
  Copy(App& app, const CopyArguments& arguments, const Session& session)
      : app_(app), arguments_(arguments), files_(session.sandbox()->files()) {}

  void run() {
    const bool up = arguments_.to.session.has_value();
    const std::string& from = arguments_.from.path;
    if (up && from == "-") {
      upload_input();
    } else {
      up ? upload() : download();
    }
  }

  json::Object report() const {
    json::Object out;
    out.set("files", count_);
    out.set("bytes", bytes_);
    json::Array skipped;
    for (const auto& path : skipped_)
      skipped.emplace_back(to_valid_utf8(path));
    out.set("skipped", std::move(skipped));
    return out;
  }

 private:
  std::stop_token stop() { return app_.interrupts().token(); }
  void check_interrupted() {
    if (stop().stop_requested())
      throw_error(copy_error(Status::cancelled, "the copy was interrupted", "copy.interrupted"));
  }
  void skip(const std::string& path) {
    skipped_.push_back(path);
    if (!app_.terminal().json())
      app_.terminal().warn("not copied, it is neither a file nor a directory: " +
                           harmless_text(path));
  }
  Error wants_tree(const std::string& path) const {
    return copy_error(Status::invalid, path + " is a directory: copy it with -r", "copy.directory");
  }

  // ---- To the session

  bool is_directory(const std::string& path) {
    try {
      // Also where a link leads there.
      return files_->stat(joined(path, ".")).kind == FileKind::directory;
    } catch (const Exception& failure) {
      const Status code = failure.error().code;
      if (code == Status::not_found || code == Status::invalid) return false;
      throw;
    }
  }
  // Inside it, where the target is a directory.
  std::string target_name(const std::string& to, const std::string& name) {
    const bool inside = to.back() == '/' || is_directory(to);
    return inside ? joined(to, name) : to;
  }

  // It has no name of its own.
  void upload_input() {
    const std::string& to = arguments_.to.path;
    if (to.back() == '/' || is_directory(to))
      throw_error(copy_error(Status::invalid, "standard input has no name, and " + to +
                                                  " is a directory: name " + "the file, as in " +
                                                  *arguments_.to.session + ":" +
                                                  joined(to, "NAME")));
    upload_file("-", to, 0);
  }

  void upload() {
    const std::string& from = arguments_.from.path;
    struct stat st = {};
    if (::stat(from.c_str(), &st) != 0)
      throw_error(copy_error(errno == ENOENT ? Status::not_found : Status::invalid,
                             "cannot read " + from + ": " + std::strerror(errno), "file.local"));
    const std::string to = target_name(arguments_.to.path, base_name(from));
    if (!S_ISDIR(st.st_mode)) {
      complete_ = upload_file(from, to, st.st_mode & kCopiedMode);
      return;
    }
    if (!arguments_.tree) throw_error(wants_tree(from));
    make_directory(to, st.st_mode & kCopiedMode);
    for (const auto& entry : local_tree(from, [this](const std::string& path) { skip(path); })) {
      check_interrupted();
      if (entry.directory) {
        make_directory(joined(to, entry.way), entry.mode);
      } else {
        upload_file(joined(from, entry.way), joined(to, entry.way), entry.mode);
      }
    }
  }

  // Its owner may write: what is in it comes afterwards.
  void make_directory(const std::string& path, std::uint32_t mode) {
    MakeDirectoryOptions options;
    options.mode = mode | 0700;
    options.create_parents = true;
    files_->make_directory(path, options);
  }

  // False: it was skipped.
  bool upload_file(const std::string& from, const std::string& to, std::uint32_t mode) {
    Input input(from, stop());
    if (from != "-" && !S_ISREG(input.status().st_mode)) {
      skip(from);
      return false;
    }
    WriteOptions options;
    options.mode = mode;
    const auto writer = files_->create(to, options);
    const std::stop_callback end(stop(), [&] { writer->cancel(); });
    for (std::string bytes; !(bytes = input.read()).empty();) {
      bytes_ += bytes.size();
      writer->write(std::move(bytes));
    }
    writer->commit();
    ++count_;
    return true;
  }

  // ---- From the session

  void download() {
    const std::string& from = arguments_.from.path;
    const std::string& to = arguments_.to.path;
    if (to == "-") return print_file(from);
    const auto info = files_->stat(from);
    const bool tree =
        info.kind == FileKind::directory || (info.kind == FileKind::symlink && is_directory(from));
    if (tree && !arguments_.tree) throw_error(wants_tree(from));
    // A link is followed: opening it says what it leads to.
    if (!tree && info.kind != FileKind::regular && info.kind != FileKind::symlink) {
      complete_ = false;
      return skip(from);
    }
    std::error_code ignored;
    const bool inside = to.back() == '/' || fs::is_directory(to, ignored);
    const std::string name = base_name(from);
    if (!tree) {
      const fs::path target = inside ? fs::path(joined(to, name)) : fs::path(to);
      const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
      const Destination destination(folder);
      return download_file(from, destination, target.filename().string(), info);
    }
    const std::string folder = inside ? joined(to, name) : to;
    std::error_code why;
    fs::create_directory(folder, why);
    if (why)
      throw_error(copy_error(Status::invalid, "cannot make " + folder + ": " + why.message(),
                             "file.local"));
    download_tree(from, Destination(folder));
  }

  void download_tree(const std::string& from, const Destination& destination) {
    std::vector<std::pair<std::string, std::uint32_t>> directories;
    for (const auto& entry : files_->list(from, kDepth)) {
      check_interrupted();
      const std::string way = way_from(from, entry.path);
      if (!stays_below(way))
        throw_error(copy_error(Status::crashed,
                               "the provider listed a path that is not below " + from + ": " +
                                   to_valid_utf8(entry.path),
                               "copy.path"));
      if (entry.kind == FileKind::directory) {
        destination.make_directory(way);
        directories.emplace_back(way, entry.mode);
      } else if (entry.kind == FileKind::regular) {
        download_file(entry.path, destination, way, entry);
      } else {
        skip(entry.path);
      }
    }
    // Last: one that nobody may write to has its files by now.
    for (auto it = directories.rbegin(); it != directories.rend(); ++it)
      destination.set_mode(it->first, it->second);
  }

  void download_file(const std::string& from, const Destination& destination,
                     const std::string& way, const FileInfo& info) {
    auto file = destination.file(way);
    each_piece(from, [&](std::string_view bytes) { file.write(bytes); });
    file.keep(info.kind == FileKind::symlink ? 0644 : info.mode);
  }

  void print_file(const std::string& from) {
    each_piece(from, [&](std::string_view bytes) {
      if (app_.terminal().pass_on(1, bytes)) return;
      output_ = app_.terminal().exit_code_after(false);
      throw_error(copy_error(Status::cancelled, "nobody reads the file", "copy.output"));
    });
  }

  void each_piece(const std::string& from, const std::function<void(std::string_view)>& use) {
    const auto reader = files_->open(from);
    const std::stop_callback end(stop(), [&] { reader->cancel(); });
    for (std::string bytes; !(bytes = reader->read()).empty();) {
      bytes_ += bytes.size();
      use(bytes);
    }
    check_interrupted();
    ++count_;
  }

  App& app_;
  const CopyArguments& arguments_;
  const std::shared_ptr<Files> files_;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::string> skipped_;
  bool complete_ = true;  // what was named was copied

 public:
  bool complete() const noexcept { return complete_; }
  int output() const noexcept { return output_; }

 private:
  int output_ = kOk;  // of standard output that cannot be written
};

}  // namespace

int copy_command(App& app, const CopyArguments& arguments) {
  const auto& name = arguments.to.session ? *arguments.to.session : arguments.from.session.value();
  const auto session = app.manager(setup_options(app, {})).attach(SessionId(name));
  start_session(app, *session);
  Copy copy(app, arguments, *session);
  try {
    copy.run();
  } catch (const Exception&) {
    if (copy.output() != kOk) return copy.output();
    throw;
  }
  const int code = copy.complete() ? kOk : kProblems;
  if (!app.terminal().json() || arguments.to.path == "-") return code;
  json::Object out;
  out.set("session", session->id().str());
  const json::Object report = copy.report();
  for (const auto& [key, value] : report)
    out.set(key, value);
  const int printed = app.terminal().exit_code_after(app.terminal().print_json(out));
  return printed == kOk ? code : printed;
}

}  // namespace sandforge::cli

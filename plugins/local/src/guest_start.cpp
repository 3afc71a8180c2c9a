#include "guest_start.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "silent_guest.hpp"

namespace sandforge::local {
namespace {

constexpr const char* kGuestFolder = ".sandforge";
constexpr const char* kInstance = "guest.instance";  // there as long as a guest has not ended
constexpr int kConnectTries = 500;
constexpr std::chrono::milliseconds kConnectPause{10};
constexpr int kFolderTries = 100;

// The path of a file in an open folder, short enough for a socket address.
std::string in_folder(const Descriptor& folder, const char* name) {
  return "/proc/self/fd/" + std::to_string(folder.get()) + "/" + name;
}

// A connected socket, or empty. It does not wait for a listener that accepts nobody: busy then.
Descriptor connect_socket(const Descriptor& folder, bool& busy) {
  busy = false;
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = in_folder(folder, kGuestSocket);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    busy = errno == EAGAIN;
    if (errno != EINTR) return Descriptor();
  }
  return fd;
}

class SpawnActions {
 public:
  SpawnActions() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnActions() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// What lies in a pipe now. A guest in the background may hold its other end.
std::string read_available(int fd) {
  char buffer[1024];
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const auto n = ::read(fd, buffer, sizeof buffer);
  return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
}

// Another guest holds the folder: it listens already, or will soon.
constexpr int kExitTaken = 3;

// Runs the guest, which goes into the background once its socket listens. Not started: another one
// is about to listen.
std::optional<Failure> start_guest(const SessionPlace& place, const Descriptor& folder,
                                   bool& started) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0)
    return system_failure(errno, "cannot make a pipe for", place.guest_program);
  Descriptor errors_read(pipe_fds[0]);
  Descriptor errors_write(pipe_fds[1]);

  SpawnActions spawn;
  ::posix_spawn_file_actions_addopen(spawn.actions(), 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(spawn.actions(), 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(spawn.actions(), errors_write.get(), 2);
  ::posix_spawn_file_actions_addfchdir_np(spawn.actions(), folder.get());
  ::posix_spawn_file_actions_addclosefrom_np(spawn.actions(), 3);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(spawn.attributes(), &signals);
  ::sigfillset(&signals);
  ::posix_spawnattr_setsigdefault(spawn.attributes(), &signals);
  ::posix_spawnattr_setflags(spawn.attributes(),
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);

  std::vector<std::string> words = guest_arguments(place);
  words.insert(words.begin(), place.guest_program);
  std::vector<char*> argv;
  for (auto& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  char* environment[] = {nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, place.guest_program.c_str(), spawn.actions(),
                                  spawn.attributes(), argv.data(), environment);
  if (error != 0) return system_failure(error, "cannot run", place.guest_program);
  errors_write = Descriptor();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  started = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (started || (WIFEXITED(status) && WEXITSTATUS(status) == kExitTaken)) return std::nullopt;
  std::string text = read_available(errors_read.get());
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return Failure{SF_INTERNAL,
                 "local.guest_failed",
                 "the session's guest did not start: " + text,
                 place.guest_program,
                 0,
                 false};
}

// The folder of the session's guest. Empty out: not there, and not to be made.
std::optional<Failure> guest_folder_below(const SessionPlace& place, int root, bool create,
                                          Descriptor& out) {
  const std::string& name = place.name;
  const std::string guests_path = place.root + "/" + kGuestFolder;
  for (int tries = 1;; ++tries) {
    OpenedFolder guests, own;
    auto failure = open_child(root, kGuestFolder, guests_path, create, guests);
    if (!failure)
      failure = open_child(guests.fd.get(), name, guests_path + "/" + name, create, own);
    if (!failure) {
      out = std::move(own.fd);
      return std::nullopt;
    }
    const int error = failure->error_number;
    // Nobody can have a guest in what is no folder.
    if (!create && (error == ENOENT || error == ENOTDIR || error == ELOOP)) return std::nullopt;
    if (error != ENOENT) return failure;
    // Whoever destroys the last session removes the folder of the guests.
    if (tries == kFolderTries) return failure;
  }
}

// Makes the folders that are missing and opens the guest's. Empty out: not there, and not to be
// made.
std::optional<Failure> open_folders(const SessionPlace& place, bool create,
                                    Descriptor& guest_folder, bool& created) {
  Descriptor root;
  if (create) {
    if (auto failure = open_root(place.root, root)) return failure;
    OpenedFolder session;
    if (auto failure = open_child(root.get(), place.name, place.folder(), true, session))
      return failure;
    created = session.created;
    // It may lie anywhere, and be a symlink: the caller chose it.
    Descriptor commands;
    if (!place.working_directory.empty())
      if (auto failure = open_root(place.working_directory, commands)) return failure;
  } else {
    root = Descriptor(::open(place.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root)
      return errno == ENOENT || errno == ENOTDIR
                 ? std::nullopt
                 : std::optional(system_failure(errno, "cannot open", place.root));
  }
  return guest_folder_below(place, root.get(), create, guest_folder);
}

}  // namespace

std::vector<std::string> guest_arguments(const SessionPlace& place) {
  std::vector<std::string> out = {"serve",      "--daemon", "--socket",
                                  kGuestSocket, "--root",   place.commands_folder()};
  if (!place.working_directory.empty()) out.emplace_back("--files-link");
  return out;
}

std::optional<Failure> open_guest_folder(const SessionPlace& place, Descriptor& out) {
  bool created = false;
  return open_folders(place, false, out, created);
}

std::optional<Failure> make_guest_folder(const SessionPlace& place, Descriptor& out) {
  Descriptor root;
  if (auto failure = open_root(place.root, root)) return failure;
  return guest_folder_below(place, root.get(), true, out);
}

std::string guest_folder(const SessionPlace& place) {
  return place.root + "/" + kGuestFolder + "/" + place.name;
}

std::optional<Failure> connect_guest(const SessionPlace& place, Guest wanted,
                                     GuestConnection& out) {
  Descriptor folder;
  if (auto failure = open_folders(place, wanted == Guest::running, folder, out.folder_created))
    return failure;
  if (!folder) return std::nullopt;
  bool busy = false;
  out.socket = connect_socket(folder, busy);
  if (out.socket || (wanted == Guest::if_running && !busy)) return std::nullopt;
  const bool killed = ::faccessat(folder.get(), kInstance, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  if (wanted == Guest::to_end && !busy && !killed) return std::nullopt;

  // The guest itself makes sure that there is one: of two that start, one finds the folder taken.
  for (int tries = 0; tries < kConnectTries; ++tries) {
    if (!out.guest_started && !busy) {
      if (auto failure = start_guest(place, folder, out.guest_started)) return failure;
    }
    out.socket = connect_socket(folder, busy);
    if (out.socket) return std::nullopt;
    if (wanted == Guest::if_running && !busy) return std::nullopt;
    std::this_thread::sleep_for(kConnectPause);
  }
  return silent_guest(place);
}

std::optional<Failure> remove_guest(const SessionPlace& place) {
  const std::string guests_path = place.root + "/" + kGuestFolder;
  const Descriptor root(
      ::open(guests_path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return system_failure(errno, "cannot open", guests_path);
  }
  if (auto failure = remove_guest_folder(root.get(), place.name)) return failure;
  // Nothing is left of the last session but its own folder.
  if (::rmdir(guests_path.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
    return system_failure(errno, "cannot remove", guests_path);
  return std::nullopt;
}

bool folder_exists(const SessionPlace& place) {
  struct stat st {};
  const bool found = place.working_directory.empty()
                         ? ::lstat(place.folder().c_str(), &st) == 0
                         : ::stat(place.working_directory.c_str(), &st) == 0;
  return found && S_ISDIR(st.st_mode);
}

}  // namespace sandforge::local

#include "listener.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr int kBacklog = 64;
constexpr std::int64_t kRetryMs = 100;

// The address goes through the descriptor of the folder where the path itself is too long.
bool make_address(const std::string& path, int folder, const std::string& name,
                  struct sockaddr_un& out) {
  out = {};
  out.sun_family = AF_UNIX;
  std::string text = path;
  if (text.size() >= sizeof out.sun_path)
    text = "/proc/self/fd/" + std::to_string(folder) + "/" + name;
  if (text.size() >= sizeof out.sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(out.sun_path, text.c_str(), text.size() + 1);
  return true;
}

void split(const std::string& path, std::string& folder, std::string& name) {
  const std::size_t slash = path.rfind('/');
  folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  name = slash == std::string::npos ? path : path.substr(slash + 1);
}

bool trusted(int socket) {
  struct ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

}  // namespace

Listener::~Listener() {
  supervisor_.loop().cancel(retry_);
  if (!socket_) return;
  ::unlinkat(folder_.get(), name_.c_str(), 0);
  instance_file().remove();
  if (made_folder_) ::rmdir(folder_path_.c_str());
}

InstanceFile Listener::instance_file() const {
  return InstanceFile(folder_.get(), name_ + ".instance");
}

bool Listener::take_over(std::string& why) {
  const InstanceFile file = instance_file();
  const Left left = file.left();
  if (!left.instance.empty() && !end_leftovers(left)) {
    why = folder_path_ + ": the processes of a guest that was killed do not end";
    return false;
  }
  supervisor_.make_group();
  if (file.write({supervisor_.instance(), supervisor_.group_path()})) return true;
  why = folder_path_ + "/" + name_ + ".instance: " + std::strerror(errno);
  return false;
}

bool Listener::open_folder(const std::string& path, std::string& why) {
  split(path, folder_path_, name_);
  if (::mkdir(folder_path_.c_str(), 0700) == 0)
    made_folder_ = true;
  else if (errno != EEXIST) {
    why = folder_path_ + ": " + std::strerror(errno);
    return false;
  }
  folder_.reset(::open(folder_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat st = {};
  if (!folder_ || ::fstat(folder_.get(), &st) != 0) {
    why = folder_path_ + ": " + std::strerror(errno);
    return false;
  }
  if (st.st_uid != ::geteuid() || (st.st_mode & 077) != 0) {
    why = folder_path_ + ": must belong to the user of the guest and be closed to others (0700)";
    return false;
  }
  return true;
}

ListenResult Listener::start(const std::string& path, std::string& why) {
  if (!open_folder(path, why)) return ListenResult::failed;
  if (::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return ListenResult::taken;
    why = folder_path_ + ": " + std::strerror(errno);
    return ListenResult::failed;
  }
  if (!take_over(why)) return ListenResult::failed;
  struct sockaddr_un address;
  posix::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool made = socket && make_address(path, folder_.get(), name_, address);
  // We hold the lock, so whatever lies there is left over.
  if (made) make_way(folder_.get(), name_);
  const mode_t mask = ::umask(0177);
  const bool bound = made && ::bind(socket.get(), reinterpret_cast<struct sockaddr*>(&address),
                                    sizeof address) == 0;
  const int bind_error = errno;
  ::umask(mask);
  if (!bound) {
    why = path + ": " + std::strerror(bind_error);
    // Nothing of ours runs: nobody is to look for it.
    instance_file().remove();
    return ListenResult::failed;
  }
  socket_ = std::move(socket);
  if (::listen(socket_.get(), kBacklog) != 0 ||
      !supervisor_.loop().watch(socket_.get(), EPOLLIN, *this)) {
    why = path + ": " + std::strerror(errno);
    return ListenResult::failed;
  }
  watch_.emplace(supervisor_.loop(), folder_.get(), [this] {
    supervisor_.stop_all(nullptr, 0, supervisor_.options().grace_ms, true);
  });
  return ListenResult::listening;
}

void Listener::on_ready(std::uint32_t) {
  supervisor_.loop().cancel(retry_);
  for (;;) {
    posix::Fd accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // No further edge comes for whoever waits already.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        retry_ = supervisor_.loop().at(supervisor_.loop().now() + kRetryMs, [this] {
          retry_ = {};
          on_ready(0);
        });
      return;
    }
    if (!trusted(accepted.get()))
      std::fprintf(stderr, "sandforge-guest: refused a connection of another user\n");
    else if (!supervisor_.add_connection(std::move(accepted)))
      std::fprintf(stderr, "sandforge-guest: refused a connection: there are too many\n");
  }
}

posix::Fd connect_to(const std::string& path) {
  std::string folder_path, name;
  split(path, folder_path, name);
  const posix::Fd folder(::open(folder_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  posix::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct sockaddr_un address;
  if (!folder || !socket || !make_address(path, folder.get(), name, address) ||
      ::connect(socket.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof address) != 0)
    socket.reset();
  return socket;
}

}  // namespace sandforge::guest

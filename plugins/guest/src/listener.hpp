// The socket that hosts connect to.
#pragma once

#include <optional>
#include <string>

#include "folder_watch.hpp"
#include "leftovers.hpp"
#include "loop.hpp"

namespace sandforge::guest {

class Supervisor;

enum class ListenResult { listening, taken, failed };

class Listener final : public Source {
 public:
  explicit Listener(Supervisor& supervisor) : supervisor_(supervisor) {}
  ~Listener() override;

  // The folder of `path` must be ours and closed to others; it is made when it is missing. A
  // socket that nobody serves any more is replaced, and what its guest left running is ended: who
  // that was lies beside it, in NAME.instance. Once the folder is no longer there, all that we run
  // is ended, and we end.
  ListenResult start(const std::string& path, std::string& why);
  void on_ready(std::uint32_t events) override;

 private:
  bool open_folder(const std::string& path, std::string& why);
  bool take_over(std::string& why);
  InstanceFile instance_file() const;

  Supervisor& supervisor_;
  posix::Fd folder_;  // locked for as long as we serve
  std::string folder_path_;
  std::string name_;
  bool made_folder_ = false;
  posix::Fd socket_;
  EventLoop::Timer retry_{};
  std::optional<FolderWatch> watch_;
};

// Connects to such a socket; paths of any length work.
posix::Fd connect_to(const std::string& path);

}  // namespace sandforge::guest

// Whether the folder of the guest's socket is still where hosts look for it.
#pragma once

#include <functional>
#include <string>

#include "loop.hpp"

namespace sandforge::guest {

// Looks when something in the folder, or a folder on the way to it, is removed or moved; where the
// kernel tells nothing of that, now and then. What runs in the session may do it, or anybody: no
// host finds the guest any more.
class FolderWatch final : public Source {
 public:
  // gone: called once. The folder stays open.
  FolderWatch(EventLoop& loop, int folder, std::function<void()> gone);
  ~FolderWatch() override;

  void on_ready(std::uint32_t events) override;

 private:
  enum class Place { there, elsewhere, removed };
  Place look() const;
  bool watch();
  void check();
  void look_at(std::int64_t when);

  EventLoop& loop_;
  const int folder_;
  std::function<void()> gone_;
  std::string path_;  // absolute; empty: not known
  posix::Fd events_;
  bool missing_ = false;  // it was elsewhere at the last look
  EventLoop::Timer timer_{};
};

}  // namespace sandforge::guest

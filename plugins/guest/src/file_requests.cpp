// The file operations of a connection, and their turns.
#include <utility>

#include "connection.hpp"
#include "files.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kFileLimit = 256;  // under way, of one connection
// Of answers that wait. Files wait for them, so that the output of commands has its turn.
constexpr std::size_t kFilePause = 512 * 1024;

}  // namespace

EventLoop& Connection::loop() noexcept {
  return supervisor_.loop();
}

bool Connection::file_request(const wire::FrameView& f) {
  const std::uint64_t channel = f.header.channel;
  wire::FileRequest request;
  if (!request.decode(f.payload)) return broken("malformed request about a file");
  const std::string wrong = request.check();
  if (!wrong.empty()) {
    send_error(channel, wire::ErrorCode::invalid, wrong);
    return true;
  }
  if (files_.size() >= kFileLimit) {
    send_error(channel, wire::ErrorCode::limit, "there are too many file operations under way");
    return true;
  }
  const auto operation = static_cast<wire::FrameType>(f.header.type);
  auto task = serve_file(supervisor_.options(), *this, channel, operation, request);
  if (!task) return true;
  files_.emplace(channel, task);
  file_wakes(*task);
  return true;
}

bool Connection::file_channel_frame(FileTask& task, const wire::FrameView& f) {
  const std::uint64_t channel = f.header.channel;
  switch (static_cast<wire::FrameType>(f.header.type)) {
    case wire::FrameType::credit:
      task.add_credit(f.header.value);
      return true;
    case wire::FrameType::file_data:
      if (!task.data(f.payload)) return broken("more bytes of a file than were granted");
      break;
    case wire::FrameType::file_commit:
      if (!task.commit()) return broken("an end of what is not written");
      break;
    default:
      return broken("a frame that is of no use to a file");
  }
  if (task.ended()) drop_file(channel);
  return true;
}

void Connection::file_wakes(FileTask& task) {
  const auto found = files_.find(task.channel());
  if (found == files_.end() || std::exchange(task.queued, true)) return;
  file_turns_.push_back(found->second);
  files_later();
}

void Connection::files_later() {
  if (closed_ || std::exchange(file_turn_queued_, true)) return;
  supervisor_.loop().later([this] {
    file_turn_queued_ = false;
    run_files();
  });
}

// One step of each.
void Connection::run_files() {
  for (std::size_t n = file_turns_.size(); n > 0 && !closed_; --n) {
    // They go on when the socket has taken what waits.
    if (out_.size() - out_begin_ > kFilePause) return;
    const auto task = file_turns_.front().lock();
    file_turns_.pop_front();
    if (!task || task->ended()) continue;
    task->queued = false;
    switch (task->step()) {
      case FileTask::Step::more:
        file_wakes(*task);
        break;
      case FileTask::Step::ended:
        drop_file(task->channel());
        break;
      case FileTask::Step::wait:
        break;
    }
  }
  if (!file_turns_.empty()) files_later();
}

// It may be in use up the stack, and an event of it on its way.
void Connection::drop_file(std::uint64_t channel) {
  const auto found = files_.find(channel);
  if (found == files_.end()) return;
  found->second->drop();
  supervisor_.touch();
  supervisor_.bury(std::move(found->second));
  files_.erase(found);
}

void Connection::drop_files() {
  file_turns_.clear();
  while (!files_.empty())
    drop_file(files_.begin()->first);
}

}  // namespace sandforge::guest

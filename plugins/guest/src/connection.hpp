// One host: frames in, frames out.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attachment.hpp"
#include "file_task.hpp"
#include "loop.hpp"
#include "sandforge/wire/guest/frame.hpp"
#include "sandforge/wire/guest/messages.hpp"

namespace sandforge::guest {

namespace wire = sandforge::wire::guest;
class Supervisor;

class Connection final : public Source {
 public:
  Connection(Supervisor& supervisor, posix::Fd socket);
  ~Connection() override;

  bool start();
  void on_ready(std::uint32_t events) override;
  bool closed() const noexcept { return closed_; }
  void close(const char* reason);

  // Queues a frame; it leaves at the end of the turn.
  void send(wire::FrameType type, std::uint64_t channel, std::uint64_t value = 0,
            std::string_view payload = {});
  template <class M>
  void send_message(wire::FrameType type, std::uint64_t channel, const M& message) {
    std::string payload;
    message.encode(payload);
    send(type, channel, 0, payload);
  }
  // The same for what may wait a moment for company: for a short command this saves the host one
  // wake-up.
  void send_lazily(wire::FrameType type, std::uint64_t channel, std::string_view payload);
  void send_error(std::uint64_t channel, wire::ErrorCode code, std::string message,
                  int error_number = 0);

  // The channel has output to send.
  void wants_output(Attachment& a);
  void flush();
  // The channel sends nothing any more.
  void drop(Attachment& a);
  // Every open channel, for when the connection is lost.
  std::vector<Attachment*> attachments() const;

  bool has_channels() const noexcept { return !channels_.empty() || !files_.empty(); }

  // The file operation has something to do: its step comes in its turn.
  void file_wakes(FileTask& task);
  EventLoop& loop() noexcept;

 private:
  void read_input();
  bool parse_input();
  bool frame(const wire::FrameView& f);
  bool request(const wire::FrameView& f);
  bool channel_frame(const wire::FrameView& f);
  bool spawn(const wire::FrameView& f);
  bool attach(const wire::FrameView& f);
  bool too_many_channels(std::uint64_t channel);
  bool target_request(const wire::FrameView& f);
  bool file_request(const wire::FrameView& f);
  bool file_channel_frame(FileTask& task, const wire::FrameView& f);
  void files_later();
  void run_files();
  void drop_file(std::uint64_t channel);
  void drop_files();
  bool broken(const char* reason);
  bool congested();
  void resume();
  void flush_later();
  bool flush_queued();
  void socket_full();
  bool send_batch(Attachment& a);
  void check_silence();

  Supervisor& supervisor_;
  posix::Fd socket_;
  bool readable_ = false;
  bool hung_up_ = false;
  bool writable_ = true;
  bool closed_ = false;
  bool greeted_ = false;
  bool flush_queued_ = false;
  bool read_queued_ = false;
  bool parse_left_ = false;  // frames are waiting in in_
  bool paused_ = false;      // reads no requests until the host has read its answers
  int spawns_left_ = 0;      // of this turn

  std::vector<char> in_;
  std::size_t in_begin_ = 0, in_end_ = 0;
  wire::Assembler assembler_;
  std::uint64_t last_channel_ = 0;

  std::string out_;  // frames, and the rest of a frame of output that was cut
  std::size_t out_begin_ = 0;
  std::deque<Attachment*> turns_;
  std::map<std::uint64_t, std::unique_ptr<Attachment>> channels_;

  std::map<std::uint64_t, std::shared_ptr<FileTask>> files_;
  std::deque<std::weak_ptr<FileTask>> file_turns_;
  bool file_turn_queued_ = false;

  bool heard_ = true;
  int silent_ = 0;
  EventLoop::Timer ping_{};
  EventLoop::Timer lazy_{};
};

}  // namespace sandforge::guest

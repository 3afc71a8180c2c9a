// One command: its leader, its pipes, its retained output, who watches it, and how it is ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attachment.hpp"
#include "loop.hpp"
#include "sandforge/posix/drain.hpp"
#include "sandforge/posix/log.hpp"
#include "sandforge/posix/tree.hpp"
#include "sandforge/wire/guest/messages.hpp"

namespace sandforge::guest {

namespace wire = sandforge::wire::guest;
class Supervisor;

class Process {
 public:
  Process(Supervisor& supervisor, std::uint64_t id, wire::SpawnRequest request);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Runs it. False, with the reason, when nothing was started.
  bool start(wire::ErrorInfo& error);

  std::uint64_t id() const noexcept { return id_; }
  pid_t pid() const noexcept { return pid_; }
  const wire::SpawnRequest& request() const noexcept { return request_; }
  bool running() const noexcept { return !exited_; }  // the leader
  bool over() const noexcept { return over_; }
  bool ending() const noexcept { return ending_; }
  bool attached() const noexcept { return !attachments_.empty(); }
  const posix::OutputLog& log() const noexcept { return log_; }
  // At most `shown` bytes of its command line.
  wire::ProcessInfo info(std::size_t shown) const;
  wire::Started started(bool existing) const;

  // Channels. -----------------------------------------------------------------------------------
  void attach(Attachment& a, wire::Cursor from);
  // The channel, about to be attached, feeds the standard input from now on.
  void take_stdin(Attachment& a);
  void detach(Attachment& a);
  void add_credit(Attachment& a, std::uint64_t bytes);
  void delivered(Attachment& a);  // the connection sent some of what it had
  void acknowledge(wire::Cursor stored);
  bool stdin_data(Attachment& a, std::string_view bytes);  // false: more than was granted
  void stdin_close(Attachment& a);
  void resize(std::uint16_t cols, std::uint16_t rows);

  // Ends. ---------------------------------------------------------------------------------------
  void leader_exited(int wait_status);
  // Terminates the tree, kills it after the grace, and tells the supervisor when it is empty.
  void end_tree(std::int64_t grace_ms);
  bool signal(int number, wire::SignalScope scope);
  // Members that were found while it is being ended.
  const std::vector<posix::Member>& seen() const noexcept { return seen_; }
  void remember(const posix::Member& member) { seen_.push_back(member); }
  // What find_members looks for.
  posix::TreeIdentity tree() const;
  // Its session number now belongs to somebody else.
  void forget_session() noexcept { session_ = 0; }
  pid_t session() const noexcept { return session_; }
  bool background() const noexcept { return strays_ > 0; }
  void stray_found() noexcept { ++strays_; }
  void stray_gone() noexcept { --strays_; }
  void look_at_tree();  // a process of it ended: see whether that was the last

 private:
  struct Output final : Source {
    Process* process = nullptr;
    posix::Fd fd;
    int stream = 0;
    bool readable = false;
    bool hung_up = false;
    bool enlarged = false;
    void on_ready(std::uint32_t events) override;
  };
  struct Input final : Source {
    Process* process = nullptr;
    posix::Fd fd;
    bool terminal = false;
    std::string buffer;
    std::size_t begin = 0;
    std::uint64_t credit = 0;   // granted and not used by the host
    std::uint64_t written = 0;  // by us since the last grant
    bool close_wanted = false;
    void on_ready(std::uint32_t events) override;
  };

  bool open_streams(posix::Fd child[3], wire::ErrorInfo& error);
  std::vector<std::string> environment() const;
  std::string directory() const;
  void forget_request();

  void pump();
  void pump_later();
  bool read_some(Output& out, std::size_t& budget);
  bool at_end_of_file(const Output& out) const;
  void close_output(Output& out);
  std::uint64_t allowance() const;  // how much may be read for those who hold back
  posix::OutputLog::Position keep_from() const;
  void offer();
  void watch_credit();
  void check_over();
  void arm_drain();
  void finish();
  void bound(Attachment& a) const;
  void tell_exit(Attachment& a);
  bool end_channel(Attachment& a);

  Attachment* stdin_owner();
  void write_input();
  void close_input(int error_number);
  void grant_input();

  void deadline_passed();
  void terminate(const posix::Member& member);
  void terminate_tree();
  void terminate_orphans();
  void tree_step();
  void tree_ended();

  Supervisor& supervisor_;
  const std::uint64_t id_;
  wire::SpawnRequest request_;  // without arguments and environment once it runs
  std::string command_;         // the beginning of its command line
  pid_t pid_ = -1;
  pid_t session_ = 0;
  std::int64_t started_ns_ = 0;
  std::int64_t started_unix_ms_ = 0;

  Output outputs_[2];
  Input input_;
  posix::OutputLog log_;
  std::vector<Attachment*> attachments_;
  bool held_ = false;  // something was readable and might not be read
  bool pump_queued_ = false;

  bool exited_ = false;
  wire::Exit exit_;
  posix::DrainRule drain_;
  bool over_ = false;
  EventLoop::Timer deadline_{};
  EventLoop::Timer settle_timer_{};
  EventLoop::Timer drain_timer_{};

  bool ending_ = false;
  bool killing_ = false;
  std::int64_t kill_at_ = 0;
  std::int64_t step_ms_ = 0;
  posix::QuietLooks quiet_;
  EventLoop::Timer tree_timer_{};
  bool tree_step_queued_ = false;
  int strays_ = 0;
  std::vector<posix::Member> seen_;  // while it is being ended
};

}  // namespace sandforge::guest

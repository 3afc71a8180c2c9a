// Starts the supervisor, talks to it through GuestClient, and keeps what each channel saw.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "blocked_calls.hpp"
#include "sandforge/posix/fd.hpp"
#include "sandforge/wire/guest/client.hpp"

namespace guest_test {

namespace wire = sandforge::wire::guest;
using sandforge::posix::Fd;

// Generous: the machines that run this may be slow and busy.
inline constexpr std::chrono::seconds kPatience{60};

// A folder of its own under TMPDIR, removed with all that is in it.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

bool exists(const std::string& path);
std::string contents(const std::string& path);
// Memory of a process that is in use, in KiB; -1 when it is gone.
std::int64_t resident_kib(pid_t pid);
void write_text(const std::string& path, const std::string& text);

std::vector<std::string> lines_of(const std::string& text);

// Whether a living process has this command line, its arguments joined by spaces.
bool runs(const std::string& command_line);
// The number of one such process; 0: none.
pid_t find_process(const std::string& command_line);

// A sleep that is long, and whose command line no other test uses.
std::string long_sleep();

// Whether `condition` comes true in time.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds limit = kPatience);

std::int64_t now_ms();

// What one channel saw.
struct Seen {
  std::optional<wire::Started> started;
  std::string out, err;
  std::string mixed;  // both, as they came
  std::size_t chunks[2] = {0, 0};
  std::uint64_t gap[2] = {0, 0};
  std::optional<wire::Exit> exit;
  std::optional<wire::End> end;
  std::optional<wire::ErrorInfo> error;
  std::optional<int> stdin_closed;
  std::optional<std::uint64_t> done;
  std::optional<wire::ListReply> list;
  std::optional<wire::InfoReply> info;
  std::optional<wire::EnvReply> environment;
  std::vector<wire::FileEntry> files;
  std::size_t file_pieces = 0;
  std::vector<wire::FileEvent> changes;
  std::optional<std::uint64_t> file_end;  // also of a list: how many
  std::optional<bool> lost;               // may have started
  bool over() const {
    return end || error || done || list || info || environment || file_end || lost;
  }
  // 0 to 255, 128 + n for a signal, -1 while it runs.
  int code() const;
};

// One connection.
class Host : public wire::ClientEvents {
 public:
  // A socket that is connected to a guest.
  explicit Host(Fd socket, wire::ClientOptions options = wire::ClientOptions());

  wire::GuestClient client;
  std::map<wire::ChannelId, Seen> seen;
  std::optional<wire::HelloReply> hello;
  bool auto_grant = true;   // gives credit back as output comes
  bool keep_output = true;  // else only counts it
  std::uint64_t counted = 0;
  std::function<void(wire::ChannelId, std::string_view)> output_hook;

  Seen& of(wire::ChannelId id) { return seen[id]; }
  // Moves bytes until `done` says so. False when it took longer than `limit`.
  bool until(const std::function<bool()>& done, std::chrono::milliseconds limit = kPatience);
  // Moves bytes for a while, for what must not happen.
  void settle(std::chrono::milliseconds time);
  // Until the channel is over.
  Seen& wait(wire::ChannelId id, std::chrono::milliseconds limit = kPatience);
  wire::ChannelId spawn(const wire::SpawnRequest& request);
  // Until the channel is over.
  Seen& run(const wire::SpawnRequest& request);
  void cut();  // closes the socket

 private:
  void on_hello(const wire::HelloReply& h) override { hello = h; }
  void on_started(wire::ChannelId, const wire::Started&) override;
  void on_output(wire::ChannelId, wire::StreamId, std::uint64_t, std::string_view) override;
  void on_gap(wire::ChannelId, wire::StreamId, std::uint64_t, std::uint64_t) override;
  void on_stdin_closed(wire::ChannelId, int) override;
  void on_exited(wire::ChannelId, const wire::Exit&) override;
  void on_end(wire::ChannelId, const wire::End&) override;
  void on_done(wire::ChannelId, std::uint64_t) override;
  void on_list(wire::ChannelId, const wire::ListReply&) override;
  void on_info(wire::ChannelId, const wire::InfoReply&) override;
  void on_environment(wire::ChannelId, const wire::EnvReply&) override;
  void on_file_entries(wire::ChannelId, const wire::FileEntries&, bool more) override;
  void on_file_bytes(wire::ChannelId, std::string_view) override;
  void on_file_event(wire::ChannelId, const wire::FileEvent&) override;
  void on_file_end(wire::ChannelId, std::uint64_t) override;
  void on_error(wire::ChannelId, const wire::ErrorInfo&) override;
  void on_lost(wire::ChannelId, bool) override;
  bool step(std::chrono::milliseconds wait);

  Fd socket_;
};

// The program itself. Ended and reaped at the end.
class Guest {
 public:
  // `serve --fd`; `host` is connected to it.
  explicit Guest(std::vector<std::string> options = {});
  // `serve --socket`; returns once it takes connections.
  static Guest listening(const std::string& socket, std::vector<std::string> options = {});
  // As the first, where calls are refused; nothing where that cannot be had.
  static std::optional<Guest> filtered(const BlockedCalls& blocked);
  // As the first, without a control group, and in a pid namespace in which many processes have
  // higher numbers than all that it starts; nothing where that cannot be had.
  static std::optional<Guest> crowded();
  Guest(Guest&& other) noexcept;
  ~Guest();

  Host& host() { return *host_; }
  pid_t pid() const { return pid_; }
  // Nothing while it runs.
  std::optional<int> exit_code(std::chrono::milliseconds wait = kPatience);

 private:
  struct Empty {};
  explicit Guest(Empty) {}

  std::unique_ptr<Host> host_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

// A connection to a listening guest.
Fd connect_socket(const std::string& path);

// Starts the guest program with any arguments, or with the words of another program before it.
// The descriptors stay the caller's.
pid_t start_program(std::vector<std::string> args, int stdin_fd, int stdout_fd,
                    std::vector<std::string> through = {});
// Its exit code, 128 + n for a signal; nothing when it takes longer.
std::optional<int> wait_program(pid_t pid, std::chrono::milliseconds wait = kPatience);

// Requests.
wire::SpawnRequest shell(const std::string& text);
wire::SpawnRequest argv(std::vector<std::string> args);

}  // namespace guest_test

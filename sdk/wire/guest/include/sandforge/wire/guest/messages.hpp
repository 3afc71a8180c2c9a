// What the frames of `frame.hpp` carry: requests of the host and answers of the guest.
//
// Each message has `encode` (appends the payload) and `decode` (false when anything is missing,
// too long, or left over; the target is then unspecified). Text fields are bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandforge::wire::guest {

enum class ChannelId : std::uint64_t {};  // issued by the host, for one connection
enum class ProcessId : std::uint64_t {};  // issued by the guest, for its whole life; 0: none

enum class StreamId : std::uint8_t { out = 0, err = 1 };
enum class StdinMode : std::uint8_t { null = 0, pipe = 1 };

// An offset in each of the two output streams, counted from the first byte that was written.
struct Cursor {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
  Cursor() {}
  Cursor(std::uint64_t o, std::uint64_t e) : out(o), err(e) {}
};

// No value means: unset, also where the guest's stored environment has the name.
struct EnvEntry {
  std::string name;
  std::optional<std::string> value;
  EnvEntry() {}
  EnvEntry(std::string n, std::optional<std::string> v) : name(std::move(n)), value(std::move(v)) {}
};

struct Tty {
  std::uint16_t cols = 80;
  std::uint16_t rows = 24;
  std::string term;  // TERM; empty: not set
  Tty() {}
};

struct Hello {
  std::uint16_t version = 1;
  std::string client;  // for logs only
  Hello() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

// Bits of HelloReply::features.
inline constexpr std::uint64_t kFeatureCgroup = 1;      // a control group ends what is left at once
inline constexpr std::uint64_t kFeatureUser = 2;        // may switch to any user
inline constexpr std::uint64_t kFeaturePty = 4;         // terminals can be opened
inline constexpr std::uint64_t kFeaturePidfd = 8;       // signals go through pidfds
inline constexpr std::uint64_t kFeatureSubreaper = 16;  // orphans come back to the guest

struct HelloReply {
  std::uint16_t version = 1;
  std::uint64_t features = 0;
  std::int32_t pid = 0;  // of the guest, as it sees itself
  std::string instance;  // 32 hex digits, another one for each guest that is started
  HelloReply() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

struct SpawnRequest {
  // 1 to 128 bytes. A guest runs a request id once: a second spawn with the same id attaches to
  // the process that the first one made, and Started::existing says so.
  std::string request_id;
  std::vector<std::string> argv;   // either this
  std::string shell_text;          // or this, for `/bin/sh -c`, when argv is empty
  bool stored_environment = true;  // start from what env_set stored, else from nothing
  std::vector<EnvEntry> env;
  std::string cwd;   // empty: the guest's root; a relative one starts there
  std::string user;  // empty: as the guest; else name, uid, name:group or uid:gid
  StdinMode stdin_mode = StdinMode::null;
  std::optional<Tty> tty;         // stdin and output are then one terminal, output is stdout
  bool combined = false;          // stderr goes into stdout, in the order of the writes
  bool detach = false;            // lives on when the connection is lost
  std::uint64_t timeout_ms = 0;   // 0: none; enforced by the guest, also without a host
  std::uint64_t grace_ms = 2000;  // between SIGTERM and SIGKILL
  std::uint64_t window = 0;       // bytes of output that may be sent before the first credit
  std::string tag;                // the caller's own, at most 1024 bytes, shown in lists
  SpawnRequest() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
  // Empty when the request may be sent, else what is wrong with it.
  std::string check() const;
};

struct AttachRequest {
  ProcessId process{};     // either this
  std::string request_id;  // or this, when process is 0
  Cursor from;             // first offsets wanted; what is gone by then is reported as a gap
  std::uint64_t window = 0;
  // True: the producer is held back while this channel has no credit. False: what does not fit
  // the log is dropped, and a gap is reported.
  bool hold_back = false;
  bool take_stdin = false;  // this channel writes the standard input from now on
  AttachRequest() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

// A process, named by a channel of this connection or by the id that the guest gave it.
struct Target {
  bool by_channel = false;
  std::uint64_t id = 0;
  Target() {}
  Target(ChannelId channel) : by_channel(true), id(static_cast<std::uint64_t>(channel)) {}
  Target(ProcessId process) : id(static_cast<std::uint64_t>(process)) {}
};

enum class SignalScope : std::uint8_t { leader = 0, group = 1, tree = 2 };

struct SignalRequest {
  Target target;
  std::int32_t signal = 0;
  SignalScope scope = SignalScope::group;
  SignalRequest() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

struct KillRequest {
  Target target;
  std::uint64_t grace_ms = 0;  // 0: SIGKILL at once
  KillRequest() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

struct StopAllRequest {
  std::uint64_t grace_ms = 2000;
  bool exit = false;  // the guest ends itself afterwards
  StopAllRequest() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

// Replaces or removes single names; `replace_all` first forgets every stored one.
struct EnvSetRequest {
  bool replace_all = false;
  std::vector<EnvEntry> entries;
  EnvSetRequest() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

struct EnvReply {
  std::vector<EnvEntry> entries;  // all with a value
  EnvReply() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

struct Started {
  ProcessId process{};
  std::int32_t pid = 0;   // in the guest's pid namespace
  bool existing = false;  // the request id was known: nothing was started now
  Started() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

// How the leader ended. Exactly one of code and signal is set.
struct Exit {
  std::optional<std::int32_t> code;
  std::optional<std::int32_t> signal;
  bool timed_out = false;      // the deadline of the request passed while it ran
  bool killed = false;         // the guest was ending it: kill, stop, lost connection, deadline
  bool out_of_memory = false;  // the kernel's OOM killer is known to have struck
  std::uint64_t duration_ns = 0;
  Exit() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

struct End {
  Cursor total;             // bytes written while the command lasted
  Cursor dropped;           // of those, not delivered to this channel
  bool pipes_held = false;  // something else still holds the output open
  bool background = false;  // processes of its tree live on
  End() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

enum class ErrorCode : std::uint16_t {
  invalid = 1,
  not_found = 2,       // no such process
  not_permitted = 3,   // user switch, signal
  not_executable = 4,  // exec failed for another reason than absence
  no_command = 5,      // the program does not exist
  no_directory = 6,    // cwd is missing, no directory, or closed to the user
  too_large = 7,       // arguments and environment exceed what the kernel takes
  limit = 8,           // processes, descriptors, memory
  conflict = 9,        // the request id was used, and its process was released
  unsupported = 10,
  stopping = 11,  // the guest is ending
  internal = 12,
  // Of file operations only; there not_found is a path, and too_large a name or a list.
  outside = 13,    // the path leads out of the folder that files are served of
  exists = 14,     // something is there already
  not_empty = 15,  // a folder that is not empty
};

struct ErrorInfo {
  ErrorCode code = ErrorCode::internal;
  std::int32_t error_number = 0;  // errno where a system call failed
  std::string message;            // names the path
  ErrorInfo() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

enum class ProcessState : std::uint8_t { running = 0, draining = 1, ended = 2 };

struct ProcessInfo {
  ProcessId process{};
  std::string request_id;
  std::string tag;
  std::string command;  // shell text, or argv joined by spaces; cut at 1024 bytes
  std::int32_t pid = 0;
  ProcessState state = ProcessState::running;
  bool detached = false;
  bool background = false;  // the leader has ended, processes of its tree live on
  std::optional<Exit> exit;
  std::int64_t started_unix_ms = 0;
  Cursor log_begin;  // oldest offsets that an attach can still deliver
  Cursor log_end;
  ProcessInfo() {}
  void encode(std::string& out) const;
};

struct ListReply {
  std::vector<ProcessInfo> processes;
  ListReply() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

struct InfoReply {
  std::uint64_t uptime_ms = 0;
  std::uint32_t running = 0;  // leaders alive
  std::uint32_t known = 0;    // records, ended ones included
  std::uint32_t connections = 0;
  std::uint64_t log_bytes = 0;
  std::uint64_t spawned = 0;  // since the guest started
  InfoReply() {}
  void encode(std::string& out) const;
  bool decode(std::string_view in);
};

}  // namespace sandforge::wire::guest

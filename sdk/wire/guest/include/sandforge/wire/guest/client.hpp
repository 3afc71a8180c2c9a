// The host's side of a connection to `sandforge-guest`, without any input or output of its own.
//
// The owner moves bytes: what it reads goes into `receive_buffer` and `received` (or `feed`), what
// `output` shows is written and then consumed. Events come out of `received`, `feed`, `lost` and
// `tick`, on the caller's thread, through ClientEvents. Requests may be made from inside an event;
// they only append to `output`. The client must not be destroyed from inside an event.
//
// The guest is an untrusted peer. A channel that the client did not open, output beyond the credit
// or out of order, a second end: each of them is a protocol error, after which `failed` says why,
// every open channel has been told `on_lost`, and nothing more is sent or accepted.
//
// Threads: one caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sandforge/wire/guest/files.hpp"
#include "sandforge/wire/guest/frame.hpp"
#include "sandforge/wire/guest/messages.hpp"

namespace sandforge::wire::guest {

// A process channel sees: on_started, then any of on_output, on_gap, on_stdin_credit,
// on_stdin_closed and on_exited, and last on_end; or on_error at any point before on_started, or
// on_lost at any point. A request channel sees one reply, or on_error, or on_lost. After its last
// event a channel is closed. Views hold during the call.
class ClientEvents {
 public:
  virtual ~ClientEvents() = default;

  virtual void on_hello(const HelloReply&) {}
  virtual void on_started(ChannelId, const Started&) {}
  // Offsets count from the first byte of the stream. Each byte uses up one unit of credit.
  virtual void on_output(ChannelId, StreamId, std::uint64_t /*offset*/, std::string_view) {}
  // Bytes from `offset` on that the guest no longer has. Before the on_output that follows them.
  virtual void on_gap(ChannelId, StreamId, std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
  // write_stdin would now accept more.
  virtual void on_stdin_credit(ChannelId) {}
  // The process closed its standard input, or ended: EPIPE, or 0.
  virtual void on_stdin_closed(ChannelId, int /*error_number*/) {}
  // The leader ended. Output may follow; on_end ends the channel.
  virtual void on_exited(ChannelId, const Exit&) {}
  virtual void on_end(ChannelId, const End&) {}

  // Reply to signal, kill (value 1: it was running, 0: it had ended before; told when the whole
  // tree is gone), release, env_set, stop_all (value: processes that were ended).
  virtual void on_done(ChannelId, std::uint64_t /*value*/) {}
  virtual void on_list(ChannelId, const ListReply&) {}
  virtual void on_info(ChannelId, const InfoReply&) {}
  virtual void on_environment(ChannelId, const EnvReply&) {}
  virtual void on_error(ChannelId, const ErrorInfo&) {}

  // Files: see file(). What was asked for by stat, one; by list, all in pieces: `more` follow, or
  // the channel is closed.
  virtual void on_file_entries(ChannelId, const FileEntries&, bool /*more*/) {}
  // In order, without gaps. Each byte uses up one unit of credit.
  virtual void on_file_bytes(ChannelId, std::string_view) {}
  virtual void on_file_credit(ChannelId) {}  // write_file would now accept more
  // FileEvent::encode's size of it uses up credit.
  virtual void on_file_event(ChannelId, const FileEvent&) {}
  // The last of read, write, make directory, move, remove and watch. bytes: of read, as many as
  // came; of write, as many as were sent.
  virtual void on_file_end(ChannelId, std::uint64_t /*bytes*/) {}

  // The connection ended with this channel open. `may_have_started` is false only when the last
  // byte of the request had not been consumed from `output`: a part of a request does nothing.
  virtual void on_lost(ChannelId, bool /*may_have_started*/) {}
};

struct ClientOptions {
  std::string client = "sandforge";
  std::uint64_t ping_interval_ms = 10000;  // of silence from the guest; 0: no pings
  std::uint64_t ping_timeout_ms = 20000;   // of silence after a ping; then the connection is lost
  std::size_t output_limit = 1024 * 1024;  // write_stdin accepts nothing while this much waits
  ClientOptions() {}
};

class GuestClient {
 public:
  // `events` must outlive the client. The hello is in `output` at once; requests may follow it
  // without waiting for the reply.
  explicit GuestClient(ClientEvents& events, ClientOptions options = ClientOptions());
  ~GuestClient();
  GuestClient(const GuestClient&) = delete;
  GuestClient& operator=(const GuestClient&) = delete;

  // Bytes in. ---------------------------------------------------------------------------------

  struct Buffer {
    char* data;
    std::size_t size;  // never 0
  };
  // Where the next bytes of the guest should be read to; at least 64 KiB. Not from an event.
  Buffer receive_buffer();
  // `size` bytes were put there. False when the connection failed. Not from an event.
  bool received(std::size_t size);
  // The same for bytes that lie elsewhere.
  bool feed(std::string_view bytes);
  // The transport ended or broke: tells every open channel. Idempotent.
  void lost(std::string_view reason);

  // Bytes out. --------------------------------------------------------------------------------

  // Waits to be written, oldest first; valid until the next call of anything but const members.
  std::string_view output() const noexcept;
  // The first `size` bytes of `output` were handed to the transport.
  void consume(std::size_t size);

  // Requests. Each of them opens a channel and answers its id. --------------------------------

  // Nothing, and the reason in *why, when SpawnRequest::check refuses it or the connection failed.
  std::optional<ChannelId> spawn(const SpawnRequest& request, std::string* why = nullptr);
  ChannelId attach(const AttachRequest& request);
  ChannelId signal(Target target, int signal, SignalScope scope = SignalScope::group);
  ChannelId kill(Target target, std::uint64_t grace_ms);  // the whole tree
  ChannelId release(Target target);
  ChannelId list();
  ChannelId info();
  ChannelId env_get();
  ChannelId env_set(const EnvSetRequest& request);
  ChannelId stop_all(const StopAllRequest& request);
  // One of the file operations, by its frame. Nothing, and the reason in *why, as of spawn.
  std::optional<ChannelId> file(FrameType operation, const FileRequest& request,
                                std::string* why = nullptr);

  // On an open process channel, grant and leave also on one of a file; no effect on any other.

  // How much of `bytes` was taken and copied: 0 without stdin credit. Nothing when there is no
  // standard input to write to: not asked for, closed, or the process has ended.
  std::optional<std::size_t> write_stdin(ChannelId channel, std::string_view bytes);
  // How much write_stdin would take now.
  std::size_t stdin_room(ChannelId channel) const noexcept;
  void close_stdin(ChannelId channel);  // end of file after what was taken
  void grant(ChannelId channel, std::uint64_t bytes);
  void acknowledge(ChannelId channel, Cursor stored);  // the guest may drop what lies before
  void resize(ChannelId channel, std::uint16_t cols, std::uint16_t rows);
  // Closes the channel without an event; the process goes on, a file operation ends: what was not
  // committed never happened.
  void leave(ChannelId channel);

  // On an open channel of file_write. As write_stdin and stdin_room.
  std::optional<std::size_t> write_file(ChannelId channel, std::string_view bytes);
  std::size_t file_room(ChannelId channel) const noexcept;
  void commit_file(ChannelId channel);  // no more follows: the file takes its place

  // State. ------------------------------------------------------------------------------------

  bool ready() const noexcept;   // the hello reply came
  bool failed() const noexcept;  // nothing more will happen
  const std::string& failure() const noexcept;
  bool open(ChannelId channel) const noexcept;
  std::size_t open_channels() const noexcept;

  // Keep-alive. `now_ms` is any steady clock. Sends pings, and calls `lost` when the guest stayed
  // silent too long; read what the transport holds before calling it. Returns when to call again.
  std::uint64_t tick(std::uint64_t now_ms);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sandforge::wire::guest

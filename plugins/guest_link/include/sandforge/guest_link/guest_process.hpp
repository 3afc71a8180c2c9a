// One process of a sandbox, as the host holds it.
#pragma once

#include <memory>
#include <optional>

#include "sandforge/abi.h"
#include "sandforge/ext/pty.h"
#include "sandforge/guest_link/guest_owner.hpp"

namespace sandforge::guest_link {

// Lives as long as the host's handle or the guest's channel, whichever is longer.
class GuestProcess final : public ChannelListener,
                           public std::enable_shared_from_this<GuestProcess> {
 private:
  struct ProcessObject {
    sf_process base;
    GuestProcess* owner;
  };

 public:
  // io and events are copied. `missing_root` tells at an error whether the sandbox itself is gone.
  GuestProcess(std::shared_ptr<GuestLink> link, const sf_stream_events& io,
               const sf_process_events& events, std::function<bool()> missing_root);

  // The handle for the host, valid until its release.
  sf_process* handle();
  // Before listen. grace_ms: from terminate to kill, when it is cancelled.
  void bind(guest::ChannelId channel, std::uint64_t window, std::uint64_t grace_ms) noexcept {
    channel_ = channel;
    credit_ = window;
    grace_ms_ = grace_ms;
  }
  // Whether the handle is that of one.
  static bool is(const sf_process* process) noexcept { return process->vtbl == &kProcess; }
  static GuestProcess& of(sf_process* self) noexcept {
    return *reinterpret_cast<ProcessObject*>(self)->owner;
  }
  const std::shared_ptr<GuestLink>& link() const noexcept { return link_; }
  guest::ChannelId channel() const noexcept { return channel_; }
  bool ended() const noexcept { return ended_; }

 private:
  struct StreamObject {
    sf_stream base;
    GuestProcess* owner;
  };
  static const sf_process_vtbl kProcess;
  static const sf_stream_vtbl kStream;
  static GuestProcess& of(sf_stream* self) noexcept {
    return *reinterpret_cast<StreamObject*>(self)->owner;
  }

  void host_grants(std::uint64_t bytes);
  void grant(std::uint64_t bytes);
  void pass_on_credit();
  sf_status write(std::string_view bytes, std::size_t* accepted, const sf_error_sink* err);
  sf_status shutdown(const sf_error_sink* err);
  void cancel();
  sf_status signal(int number, bool tree, sf_completion done, const sf_error_sink* err);
  void drop_handle();
  void on_lane(std::function<void()> work);
  void finish(const Failure* failure);
  sf_status no_input(const sf_error_sink* err) const;

  void on_started(const guest::Started&) override;
  void on_output(guest::StreamId, std::string_view) override;
  void on_stdin_credit() override;
  void on_stdin_closed() override { input_open_ = false; }
  void on_exited(const guest::Exit&) override;
  void on_end(const guest::End&) override;
  void on_error(const guest::ErrorInfo&) override;
  void on_lost(bool) override;

  std::shared_ptr<GuestLink> link_;
  sf_stream_events io_;
  sf_process_events events_;
  std::function<bool()> missing_root_;
  ProcessObject process_;
  StreamObject stream_;
  std::shared_ptr<GuestProcess> self_;  // while the host holds the handle
  guest::ChannelId channel_{};
  std::optional<guest::ProcessId> id_;  // once it has started
  std::uint64_t grace_ms_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t credit_ = 0;     // of the host, for what may still be delivered
  std::uint64_t ungranted_ = 0;  // granted, not yet passed on
  bool credit_queued_ = false;
  bool input_open_ = true;
  bool cancelled_ = false;
  bool pipes_held_ = false;  // at its end, by what it left in the background
  bool unheld_ = false;      // the host dropped its handle: nobody grants any more
  bool ended_ = false;
};

// Takes a command for the guest of a sandbox, whose connection is up.
sf_status spawn(GuestOwner& sandbox, const sf_command& command, const sf_stream_events& io,
                const sf_process_events& events, sf_process** process, const sf_error_sink* err);
// The host says how large a terminal is; of its own processes only.
const sf_pty_ext* pty_extension() noexcept;

// The failure that an answer of the guest stands for.
Failure from_guest(const guest::ErrorInfo& error);
// The connection ended before the answer came.
Failure guest_lost(bool may_have_started);
// There is no guest: the session is stopped, and nothing ran.
Failure guest_stopped();
Failure folder_gone();
Failure process_ended();

// A request whose only answer is an end.
class CompletionListener : public ChannelListener {
 public:
  CompletionListener(sf_completion done, bool ended_is_gone)
      : done_(done), ended_is_gone_(ended_is_gone) {}
  void on_done(std::uint64_t value) override;
  void on_error(const guest::ErrorInfo& error) override;
  void on_lost(bool may_have_started) override;

 private:
  sf_completion done_;
  bool ended_is_gone_;
};

// A request whose answer is an end, told to a function.
class ReplyListener final : public ChannelListener {
 public:
  explicit ReplyListener(std::function<void(const Failure*)> done) : done_(std::move(done)) {}
  void on_done(std::uint64_t) override { done_(nullptr); }
  void on_error(const guest::ErrorInfo& error) override;
  void on_lost(bool may_have_started) override;

 private:
  std::function<void(const Failure*)> done_;
};

}  // namespace sandforge::guest_link

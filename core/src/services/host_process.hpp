// One command of a plugin on the host's machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "plugin/plugin.hpp"
#include "sandforge/abi.h"
#include "services/guest_helper.hpp"

namespace sandforge::services {

// Works on two lanes: the helper's, where the connection is, and the plugin's, where events go and
// input comes from. Lives as long as the plugin's handle or the helper's channel, whichever is
// longer.
class HostProcess final : public HelperChannel, public std::enable_shared_from_this<HostProcess> {
 public:
  // What the plugin gave, copied. Absent functions are null.
  struct Events {
    sf_stream_events io;
    sf_process_events process;
  };

  HostProcess(plugin::Plugin& plugin, Lane lane, std::shared_ptr<GuestHelper> helper,
              guest::SpawnRequest request, const Events& events);

  // Begins; every event follows later. [any]
  void start();

  // As in sf_stream_vtbl and sf_process_vtbl.
  void grant(std::uint64_t bytes) noexcept;
  sf_status write(sf_bytes data, std::size_t* accepted, const sf_error_sink* err) noexcept;
  sf_status shutdown_write(const sf_error_sink* err) noexcept;
  void cancel() noexcept;
  sf_status signal(std::int32_t number, std::uint32_t scope, sf_completion done, sf_op** op,
                   const sf_error_sink* err);
  void released() noexcept;

 private:
  template <class F>
  void on_helper(F work);  // with this, on the helper's lane
  template <class F>
  void tell(F event);  // with this, on the plugin's lane

  // On the helper's lane.
  void run(const Error* error);
  void add_credit(std::uint64_t bytes);
  void end_tree();
  void drop_output();
  void pump_input();
  void close_input();
  void send_signal(std::int32_t number, bool tree, Handler<void> done);
  void finish(std::optional<Error> error);

  void on_started(const guest::Started&) override;
  void on_output(guest::StreamId, std::string_view) override;
  void on_stdin_credit() override;
  void on_stdin_closed() override { close_input(); }
  void on_exited(const guest::Exit&) override;
  void on_end(const guest::End&) override;
  void on_error(const guest::ErrorInfo&) override;
  void on_lost(const Error& error) override { finish(error); }
  void on_host_end() override;

  // On the plugin's lane.
  void deliver(std::uint32_t channel, const std::string& bytes);
  sf_status check_write(const char* what, const sf_error_sink* err);

  plugin::Plugin& plugin_;
  const Lane lane_;
  const std::shared_ptr<GuestHelper> helper_;
  const Events events_;
  const bool has_input_;

  // On the helper's lane.
  guest::SpawnRequest request_;
  std::optional<guest::ChannelId> channel_;
  guest::ProcessId id_{};
  std::uint64_t credit_;
  std::uint64_t dropped_ = 0;
  bool unheld_ = false;   // nobody grants any more
  bool stalled_ = false;  // the helper knows that input waits
  bool ended_ = false;

  // On the plugin's lane.
  std::uint64_t delivered_ = 0;
  std::uint64_t undelivered_ = 0;  // under way when the host ended
  bool done_ = false;

  std::atomic<bool> cancelled_{false};
  std::atomic<bool> muted_{false};  // the host ends: output goes nowhere

  std::mutex input_mutex_;
  std::string input_;            // taken from the plugin, not yet by the helper
  bool input_closed_ = false;    // by the process
  bool input_shut_ = false;      // by the plugin
  bool wants_writable_ = false;  // the last write was short
};

}  // namespace sandforge::services

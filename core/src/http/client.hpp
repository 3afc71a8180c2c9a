// The connections of one base address, and the requests that use them.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "http/connector.hpp"
#include "plugin/plugin.hpp"
#include "sandforge/runtime.hpp"

namespace sandforge::http {

class Exchange;

// Lives as long as the plugin's handle or its last request. Everything runs on the lane, but for
// cancel.
class Client final : public Pending, public std::enable_shared_from_this<Client> {
 public:
  static constexpr std::size_t kMaxWaiting = 4096;

  Client(plugin::Plugin& plugin, std::shared_ptr<Runtime> runtime, Lane lane,
         std::shared_ptr<const Dial> dial, std::size_t max_connections);

  plugin::Plugin& plugin() const noexcept { return plugin_; }
  const Lane& lane() const noexcept { return lane_; }
  const Dial& dial() const noexcept { return *dial_; }
  bool ended() const noexcept { return ended_ || runtime_->ended(); }
  bool crowded() const noexcept { return waiting_.size() >= kMaxWaiting; }

  // It gets a connection when its turn comes: Exchange::connect or Exchange::use. [lane]
  void begin(std::shared_ptr<Exchange> exchange);
  // For one whose connection was closed before a byte went out.
  void begin_again(std::shared_ptr<Exchange> exchange);
  std::shared_ptr<Connector> dial_up(bool tunnel, Connector::Done done);
  // It waits no more, or its connection is gone or was never made.
  void forget(const std::shared_ptr<Exchange>& exchange);
  void connection_gone();
  // It can be used again for as long.
  void give_back(std::shared_ptr<Connection> connection, std::chrono::seconds keep);
  // The plugin's handle is gone: nothing is kept for later requests.
  void released();

  // Ends all that runs. By the Runtime's end. [any]
  void cancel() noexcept override;

 private:
  struct Idle;
  void serve();
  void serve_later();
  bool reuse(const std::shared_ptr<Exchange>& exchange);
  bool make_room();
  void close_idle();
  void watch(const std::shared_ptr<Idle>& idle);
  void drop(std::shared_ptr<Idle> idle);

  plugin::Plugin& plugin_;
  const std::shared_ptr<Runtime> runtime_;
  const Lane lane_;
  const std::shared_ptr<const Dial> dial_;
  const std::size_t max_connections_;
  std::size_t count_ = 0;  // connections, also idle ones and those under way
  std::deque<std::shared_ptr<Exchange>> waiting_;
  std::set<std::shared_ptr<Exchange>> running_;
  std::vector<std::shared_ptr<Idle>> idle_;  // the one that was used last is the last
  bool serve_posted_ = false;
  bool released_ = false;
  bool ended_ = false;
};

}  // namespace sandforge::http

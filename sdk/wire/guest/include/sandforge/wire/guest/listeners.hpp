// Events of a client's channels, each for whoever listens on that channel.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sandforge/wire/guest/client.hpp"

namespace sandforge::wire::guest {

// As ClientEvents tells it, without the channel. A listener also hears of a lost connection, in
// whatever words its owner has for that.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_started(const Started&) {}
  virtual void on_output(StreamId, std::string_view) {}
  virtual void on_stdin_credit() {}
  virtual void on_stdin_closed() {}
  virtual void on_exited(const Exit&) {}
  virtual void on_end(const End&) {}
  virtual void on_done(std::uint64_t /*value*/) {}
  virtual void on_list(const ListReply&) {}
  virtual void on_environment(const EnvReply&) {}
  virtual void on_info(const InfoReply&) {}
  virtual void on_file_entries(const FileEntries&, bool /*more*/) {}
  virtual void on_file_bytes(std::string_view) {}
  virtual void on_file_credit() {}
  virtual void on_file_event(const FileEvent&) {}
  virtual void on_file_end() {}
  virtual void on_error(const ErrorInfo&) {}
};

// Who listens on which channel, until the channel's last event. Null: nobody wants to know. Derived
// classes tell of lost channels: L is a Listener with what they need for that. Listeners may come
// and go inside an event. Threads: as the client.
template <class L>
class Listeners : public ClientEvents {
 protected:
  void add(ChannelId channel, std::shared_ptr<L> to) { listeners_[channel] = std::move(to); }
  bool nobody_waits() const noexcept { return listeners_.empty(); }
  std::shared_ptr<L> listener(ChannelId channel) const {
    const auto it = listeners_.find(channel);
    return it == listeners_.end() ? nullptr : it->second;
  }
  // It hears nothing more.
  std::shared_ptr<L> take(ChannelId channel) {
    const auto it = listeners_.find(channel);
    if (it == listeners_.end()) return nullptr;
    auto out = std::move(it->second);
    listeners_.erase(it);
    return out;
  }
  void drop_all() noexcept { listeners_.clear(); }
  // Of those who listen now.
  template <class F>
  void each(F call) const {
    const auto all = listeners_;
    for (const auto& [channel, to] : all)
      if (to) call(*to);
  }

  void on_started(ChannelId channel, const Started& started) override {
    if (const auto to = listener(channel)) to->on_started(started);
  }
  void on_output(ChannelId channel, StreamId stream, std::uint64_t /*offset*/,
                 std::string_view bytes) override {
    if (const auto to = listener(channel)) to->on_output(stream, bytes);
  }
  void on_stdin_credit(ChannelId channel) override {
    if (const auto to = listener(channel)) to->on_stdin_credit();
  }
  void on_stdin_closed(ChannelId channel, int /*error_number*/) override {
    if (const auto to = listener(channel)) to->on_stdin_closed();
  }
  void on_exited(ChannelId channel, const Exit& exit) override {
    if (const auto to = listener(channel)) to->on_exited(exit);
  }
  void on_end(ChannelId channel, const End& end) override {
    if (const auto to = take(channel)) to->on_end(end);
  }
  void on_done(ChannelId channel, std::uint64_t value) override {
    if (const auto to = take(channel)) to->on_done(value);
  }
  void on_list(ChannelId channel, const ListReply& reply) override {
    if (const auto to = take(channel)) to->on_list(reply);
  }
  void on_environment(ChannelId channel, const EnvReply& reply) override {
    if (const auto to = take(channel)) to->on_environment(reply);
  }
  void on_info(ChannelId channel, const InfoReply& reply) override {
    if (const auto to = take(channel)) to->on_info(reply);
  }
  void on_file_entries(ChannelId channel, const FileEntries& entries, bool more) override {
    if (const auto to = more ? listener(channel) : take(channel))
      to->on_file_entries(entries, more);
  }
  void on_file_bytes(ChannelId channel, std::string_view bytes) override {
    if (const auto to = listener(channel)) to->on_file_bytes(bytes);
  }
  void on_file_credit(ChannelId channel) override {
    if (const auto to = listener(channel)) to->on_file_credit();
  }
  void on_file_event(ChannelId channel, const FileEvent& event) override {
    if (const auto to = listener(channel)) to->on_file_event(event);
  }
  void on_file_end(ChannelId channel, std::uint64_t /*bytes*/) override {
    if (const auto to = take(channel)) to->on_file_end();
  }
  void on_error(ChannelId channel, const ErrorInfo& error) override {
    if (const auto to = take(channel)) to->on_error(error);
  }

 private:
  std::unordered_map<ChannelId, std::shared_ptr<L>> listeners_;
};

}  // namespace sandforge::wire::guest

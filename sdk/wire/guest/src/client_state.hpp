// What a client knows of its connection and of the channels in it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandforge/wire/guest/client.hpp"

namespace sandforge::wire::guest {

inline constexpr std::size_t kReceiveSize = 4 * (kMaxPayload + kHeaderSize);
inline constexpr std::uint64_t kStdinCreditLimit = 64 * 1024 * 1024;
inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

inline std::uint64_t raw(ChannelId id) {
  return static_cast<std::uint64_t>(id);
}

template <class M>
std::string payload_of(const M& message) {
  std::string out;
  message.encode(out);
  return out;
}

struct Channel {
  FrameType request;          // what opened it
  std::uint64_t request_end;  // in the stream of all bytes out
  bool left = false;          // leave was called; frames still under way are ignored
  bool started = false;
  bool exited = false;
  bool stdin_open = false;
  std::uint64_t credit = 0;
  std::uint64_t stdin_credit = 0;
  std::uint64_t offset[2] = {0, 0};
  std::uint64_t listed = 0;  // entries of files
  std::uint64_t listed_bytes = 0;
  std::uint64_t moved = 0;      // bytes of a file
  std::uint64_t most = kToEnd;  // of them

  bool process() const { return request == FrameType::spawn || request == FrameType::attach; }
  bool file() const { return request >= FrameType::file_stat && request <= FrameType::file_watch; }
};

struct GuestClient::State {
  State(ClientEvents& e, ClientOptions o) : events(e), options(std::move(o)) {}

  ClientEvents& events;
  ClientOptions options;

  std::vector<char> in = std::vector<char>(kReceiveSize);
  std::size_t in_begin = 0, in_end = 0;
  Assembler assembler;

  std::string out;
  std::size_t out_begin = 0;
  std::uint64_t out_consumed = 0;

  std::map<std::uint64_t, Channel> channels;
  std::size_t left_channels = 0;
  std::uint64_t next_channel = 1;
  bool ready = false;
  bool failed = false;
  std::string failure;

  bool heard = true;  // since the last tick
  std::uint64_t heard_at = 0;
  std::optional<std::uint64_t> ping_at;
  std::uint64_t ping_token = 0;

  bool send(FrameType type, std::uint64_t channel, std::uint64_t value, std::string_view payload) {
    if (failed) return false;
    return append_message(out, type, channel, value, payload);
  }

  ChannelId open(FrameType type, std::string_view payload) {
    const std::uint64_t id = next_channel++;
    if (!send(type, id, 0, payload)) return ChannelId{0};
    Channel channel{};
    channel.request = type;
    channel.request_end = out_consumed + (out.size() - out_begin);
    channels.emplace(id, channel);
    return ChannelId{id};
  }

  Channel* find(ChannelId id) {
    const auto found = channels.find(raw(id));
    return found == channels.end() || found->second.left ? nullptr : &found->second;
  }
  const Channel* find(ChannelId id) const { return const_cast<State*>(this)->find(id); }

  bool fail(std::string_view reason) {
    if (failed) return false;
    failed = true;
    failure.assign(reason);
    out.clear();
    out_begin = 0;
    const auto open = std::exchange(channels, {});
    left_channels = 0;
    for (const auto& [id, channel] : open)
      if (!channel.left) events.on_lost(ChannelId{id}, out_consumed >= channel.request_end);
    return false;
  }

  template <class M>
  bool decode(const FrameView& frame, M& message) {
    return message.decode(frame.payload) || fail("the guest sent a malformed message");
  }

  bool frame(const FrameView& f);
  bool connection_frame(const FrameView& f);
  bool process_frame(ChannelId id, Channel& channel, const FrameView& f);
  bool reply_frame(ChannelId id, Channel& channel, const FrameView& f);
  bool output_frame(ChannelId id, Channel& channel, const FrameView& f);
  bool error_frame(ChannelId id, const FrameView& f);
  bool file_frame(ChannelId id, Channel& channel, const FrameView& f);
  bool file_bytes(ChannelId id, Channel& channel, const FrameView& f);
  bool file_entries(ChannelId id, Channel& channel, const FrameView& f);
  void leave(ChannelId id, Channel& channel);
  std::size_t room(std::uint64_t credit) const noexcept;
  std::size_t send_pieces(ChannelId id, FrameType type, std::string_view bytes);
};

}  // namespace sandforge::wire::guest

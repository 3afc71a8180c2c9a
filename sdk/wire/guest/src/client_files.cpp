// The client's side of file operations.
#include <algorithm>
#include <string>
#include <utility>

#include "client_state.hpp"

namespace sandforge::wire::guest {

bool GuestClient::State::file_bytes(ChannelId id, Channel& channel, const FrameView& f) {
  const std::uint64_t size = f.payload.size();
  if (size == 0 || f.header.flags != 0 || channel.request != FrameType::file_read ||
      f.header.value != channel.offset[0])
    return fail("the guest sent malformed bytes of a file");
  if (size > channel.credit || size > channel.most - channel.moved)
    return fail("the guest sent more of a file than was asked for");
  channel.credit -= size;
  channel.moved += size;
  channel.offset[0] += size;
  events.on_file_bytes(id, f.payload);
  return !failed;
}

bool GuestClient::State::file_entries(ChannelId id, Channel& channel, const FrameView& f) {
  const FrameType request = channel.request;
  if (request != FrameType::file_stat && request != FrameType::file_list)
    return fail("the guest answered another question");
  FileEntries entries;
  const bool more = f.header.value == 1;
  if (f.header.value > 1) return fail("the guest sent a malformed list of files");
  if (!decode(f, entries)) return false;
  channel.listed += entries.entries.size();
  const bool one = request == FrameType::file_stat;
  if (channel.listed > kMaxListedFiles || (one && (more || channel.listed != 1)) ||
      (more && entries.entries.empty()))
    return fail("the guest sent an impossible list of files");
  channel.listed_bytes += f.payload.size();
  if (channel.listed_bytes > kMaxListedBytes) {
    if (more)
      leave(id, channel);
    else
      channels.erase(raw(id));
    ErrorInfo error;
    error.code = ErrorCode::too_large;
    error.message = "the list of files has more than " + std::to_string(kMaxListedBytes) + " bytes";
    events.on_error(id, error);
    return !failed;
  }
  if (!more) channels.erase(raw(id));
  events.on_file_entries(id, entries, more);
  return !failed;
}

bool GuestClient::State::file_frame(ChannelId id, Channel& channel, const FrameView& f) {
  const FrameType request = channel.request;
  switch (static_cast<FrameType>(f.header.type)) {
    case FrameType::file_entries:
      return file_entries(id, channel, f);
    case FrameType::file_bytes:
      return file_bytes(id, channel, f);
    case FrameType::file_credit:
      if (request != FrameType::file_write ||
          f.header.value > kStdinCreditLimit - channel.stdin_credit)
        return fail("the guest granted too much input");
      channel.stdin_credit += f.header.value;
      if (channel.stdin_open) events.on_file_credit(id);
      return !failed;
    case FrameType::file_event: {
      FileEvent event;
      if (request != FrameType::file_watch || f.payload.size() > channel.credit)
        return fail("the guest sent more of a watch than was asked for");
      if (!decode(f, event)) return false;
      channel.credit -= f.payload.size();
      events.on_file_event(id, event);
      return !failed;
    }
    case FrameType::file_end: {
      const std::uint64_t moved = channel.moved;
      const bool early = request == FrameType::file_write && channel.stdin_open;
      if (request == FrameType::file_stat || request == FrameType::file_list || early ||
          f.header.value != moved)
        return fail("the guest ended a file operation at the wrong place");
      channels.erase(raw(id));
      events.on_file_end(id, moved);
      return !failed;
    }
    default:
      return fail("the guest sent an unknown frame");
  }
}

std::optional<ChannelId> GuestClient::file(FrameType operation, const FileRequest& request,
                                           std::string* why) {
  std::string wrong = state_->failed ? state_->failure : request.check();
  if (!wrong.empty()) {
    if (why) *why = std::move(wrong);
    return std::nullopt;
  }
  const ChannelId id = state_->open(operation, payload_of(request));
  Channel& channel = state_->channels.at(raw(id));
  channel.credit = request.window;
  channel.offset[0] = request.offset;
  channel.most = std::min(request.length, kNever - request.offset);
  channel.stdin_open = operation == FrameType::file_write;
  return id;
}

std::optional<std::size_t> GuestClient::write_file(ChannelId channel, std::string_view bytes) {
  Channel* c = state_->find(channel);
  if (!c || !c->file() || !c->stdin_open) return std::nullopt;
  const std::size_t size = std::min(bytes.size(), file_room(channel));
  c->stdin_credit -= size;
  c->moved += size;
  return state_->send_pieces(channel, FrameType::file_data, bytes.substr(0, size));
}

std::size_t GuestClient::file_room(ChannelId channel) const noexcept {
  const Channel* c = std::as_const(*state_).find(channel);
  return !c || !c->file() || !c->stdin_open ? 0 : state_->room(c->stdin_credit);
}

void GuestClient::commit_file(ChannelId channel) {
  Channel* c = state_->find(channel);
  if (!c || !c->file() || !std::exchange(c->stdin_open, false)) return;
  state_->send(FrameType::file_commit, raw(channel), 0, {});
}

}  // namespace sandforge::wire::guest

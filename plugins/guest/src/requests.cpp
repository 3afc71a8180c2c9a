// What a host asks for.
#include <unistd.h>

#include "connection.hpp"
#include "process.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kChannelLimit = 8192;  // of one connection

std::uint16_t u16(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[at]) |
                                    (static_cast<unsigned char>(bytes[at + 1]) << 8));
}

std::uint64_t u64(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;)
    value = (value << 8) | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// A grace that a host asks for may be any number.
std::int64_t bounded_ms(std::uint64_t ms) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 50;
  return static_cast<std::int64_t>(ms < kMax ? ms : kMax);
}

}  // namespace

bool Connection::frame(const wire::FrameView& f) {
  const auto type = static_cast<wire::FrameType>(f.header.type);
  if (!greeted_ && type != wire::FrameType::hello) return broken("the host did not greet");
  wire::FrameView message = f;
  if (type != wire::FrameType::stdin_data && type != wire::FrameType::file_data) {
    switch (assembler_.add(f, message)) {
      case wire::Assembler::Result::partial:
        return true;
      case wire::Assembler::Result::malformed:
        return broken("malformed message");
      case wire::Assembler::Result::complete:
        break;
    }
  }
  if (type != wire::FrameType::ping && type != wire::FrameType::pong) supervisor_.touch();
  switch (type) {
    case wire::FrameType::hello: {
      wire::Hello hello;
      if (greeted_ || !hello.decode(message.payload)) return broken("malformed greeting");
      greeted_ = true;
      wire::HelloReply reply;
      reply.version = wire::kVersion;
      reply.features = supervisor_.features();
      reply.pid = static_cast<std::int32_t>(::getpid());
      reply.instance = supervisor_.instance();
      send_message(wire::FrameType::hello_reply, 0, reply);
      return true;
    }
    case wire::FrameType::ping:
      send(wire::FrameType::guest_pong, 0, message.header.value);
      return true;
    case wire::FrameType::pong:
      return true;
    case wire::FrameType::stdin_data:
    case wire::FrameType::stdin_close:
    case wire::FrameType::credit:
    case wire::FrameType::ack:
    case wire::FrameType::resize:
    case wire::FrameType::leave:
    case wire::FrameType::file_data:
    case wire::FrameType::file_commit:
      return channel_frame(message);
    default:
      return request(message);
  }
}

bool Connection::channel_frame(const wire::FrameView& f) {
  if (f.header.channel == 0 || f.header.channel > last_channel_)
    return broken("a channel that was never opened");
  const auto type = static_cast<wire::FrameType>(f.header.type);
  const auto found = channels_.find(f.header.channel);
  Attachment* a = found == channels_.end() ? nullptr : found->second.get();
  const auto file = files_.find(f.header.channel);
  if (file != files_.end() && type != wire::FrameType::leave)
    return file_channel_frame(*file->second, f);
  if (type == wire::FrameType::leave) {
    if (a) {
      if (a->process) a->process->detach(*a);
      drop(*a);
    }
    drop_file(f.header.channel);
    send(wire::FrameType::done, f.header.channel);
    return true;
  }
  // Our end of the channel and what the host sent may have crossed.
  if (!a || !a->process) return true;
  switch (type) {
    case wire::FrameType::stdin_data:
      return a->process->stdin_data(*a, f.payload) || broken("more input than was granted");
    case wire::FrameType::stdin_close:
      a->process->stdin_close(*a);
      return true;
    case wire::FrameType::credit:
      a->process->add_credit(*a, f.header.value);
      return true;
    case wire::FrameType::ack:
      if (f.payload.size() != 16) return broken("malformed acknowledgement");
      a->process->acknowledge(wire::Cursor(u64(f.payload, 0), u64(f.payload, 8)));
      return true;
    case wire::FrameType::file_data:
    case wire::FrameType::file_commit:
      return broken("a file's bytes for a process");
    default:
      if (f.payload.size() != 4) return broken("malformed terminal size");
      a->process->resize(u16(f.payload, 0), u16(f.payload, 2));
      return true;
  }
}

bool Connection::request(const wire::FrameView& f) {
  if (f.header.channel <= last_channel_) return broken("a channel was used twice");
  last_channel_ = f.header.channel;
  const std::uint64_t channel = f.header.channel;
  switch (static_cast<wire::FrameType>(f.header.type)) {
    case wire::FrameType::spawn:
      return spawn(f);
    case wire::FrameType::attach:
      return attach(f);
    case wire::FrameType::signal:
    case wire::FrameType::kill:
    case wire::FrameType::release:
      return target_request(f);
    case wire::FrameType::list:
      supervisor_.list(*this, channel);
      return true;
    case wire::FrameType::info:
      supervisor_.info(*this, channel);
      return true;
    case wire::FrameType::env_get:
      send_message(wire::FrameType::env_reply, channel, supervisor_.get_environment());
      return true;
    case wire::FrameType::env_set: {
      wire::EnvSetRequest message;
      if (!message.decode(f.payload)) return broken("malformed environment");
      const std::string problem = supervisor_.set_environment(message);
      if (problem.empty())
        send(wire::FrameType::done, channel);
      else
        send_error(channel, wire::ErrorCode::invalid, problem);
      return true;
    }
    case wire::FrameType::stop_all: {
      wire::StopAllRequest message;
      if (!message.decode(f.payload)) return broken("malformed stop");
      supervisor_.stop_all(this, channel, bounded_ms(message.grace_ms), message.exit);
      return true;
    }
    case wire::FrameType::file_stat:
    case wire::FrameType::file_list:
    case wire::FrameType::file_read:
    case wire::FrameType::file_write:
    case wire::FrameType::file_make_directory:
    case wire::FrameType::file_move:
    case wire::FrameType::file_remove:
    case wire::FrameType::file_watch:
      return file_request(f);
    default:
      send_error(channel, wire::ErrorCode::unsupported, "the guest does not know this request");
      return true;
  }
}

bool Connection::too_many_channels(std::uint64_t channel) {
  if (channels_.size() < kChannelLimit) return false;
  send_error(channel, wire::ErrorCode::limit, "there are too many channels");
  return true;
}

bool Connection::spawn(const wire::FrameView& f) {
  wire::SpawnRequest message;
  if (!message.decode(f.payload)) return broken("malformed spawn");
  const std::string wrong = message.check();
  if (!wrong.empty()) {
    send_error(f.header.channel, wire::ErrorCode::invalid, wrong);
    return true;
  }
  if (too_many_channels(f.header.channel)) return true;
  auto a = std::make_unique<Attachment>();
  a->connection = this;
  a->channel = f.header.channel;
  a->credit = message.window;
  a->hold_back = true;
  a->owns_stdin = true;
  Attachment& attachment = *a;
  channels_.emplace(f.header.channel, std::move(a));
  --spawns_left_;
  supervisor_.spawn(attachment, std::move(message));
  return true;
}

bool Connection::attach(const wire::FrameView& f) {
  wire::AttachRequest message;
  if (!message.decode(f.payload)) return broken("malformed attach");
  if (too_many_channels(f.header.channel)) return true;
  auto a = std::make_unique<Attachment>();
  a->connection = this;
  a->channel = f.header.channel;
  a->credit = message.window;
  a->hold_back = message.hold_back;
  Attachment& attachment = *a;
  channels_.emplace(f.header.channel, std::move(a));
  supervisor_.attach(attachment, message);
  return true;
}

bool Connection::target_request(const wire::FrameView& f) {
  const auto type = static_cast<wire::FrameType>(f.header.type);
  wire::SignalRequest signal;
  wire::KillRequest kill;
  const bool read =
      type == wire::FrameType::signal ? signal.decode(f.payload) : kill.decode(f.payload);
  if (!read) return broken("malformed request");
  const wire::Target target = type == wire::FrameType::signal ? signal.target : kill.target;
  Process* process = nullptr;
  if (target.by_channel) {
    const auto found = channels_.find(target.id);
    if (found != channels_.end()) process = found->second->process;
  } else {
    process = supervisor_.find(target.id);
  }
  const std::uint64_t channel = f.header.channel;
  // A kill of what has ended and left its channel is answered, not refused.
  if (!process && type == wire::FrameType::kill && target.by_channel && target.id < channel) {
    send(wire::FrameType::done, channel);
    return true;
  }
  if (!process) {
    send_error(channel, wire::ErrorCode::not_found, "there is no such process");
    return true;
  }
  if (type == wire::FrameType::kill) {
    supervisor_.kill(*this, channel, *process, bounded_ms(kill.grace_ms));
  } else if (type == wire::FrameType::release) {
    supervisor_.release(*this, channel, *process);
  } else if (signal.signal < 0 || signal.signal > 64) {
    send_error(channel, wire::ErrorCode::invalid, "there is no such signal");
  } else {
    send(wire::FrameType::done, channel, process->signal(signal.signal, signal.scope) ? 1 : 0);
  }
  return true;
}

}  // namespace sandforge::guest

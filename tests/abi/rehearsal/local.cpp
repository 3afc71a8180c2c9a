// Local over the guest: one unix socket to a supervisor, handed to the host as a stream; commands
// and credits travel as frames. (A frame is type, length as 4 bytes big endian, payload.)
#include <sandforge/ext/host_executor.h>
#include <sandforge/ext/host_paths.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "skeleton.hpp"

namespace sandforge::rehearsal {
namespace {

std::string frame(char type, std::string_view payload) {
  std::string out(5, type);
  for (std::size_t i = 0; i < 4; ++i) {
    out[4 - i] = static_cast<char>(payload.size() >> (8 * i) & 0xFF);
  }
  return out.append(payload);
}

int connect_to_guest() {
  const auto* paths = service<sf_paths_service>(SF_SERVICE_PATHS);
  const std::string path = text(paths->get(host, SF_PATH_RUNTIME)) + "/guest.sock";
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (fd < 0 || path.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

// One command per connection here; the real one carries many.
class Guest : public WireProcess {
 public:
  using WireProcess::WireProcess;

  sf_status begin(const sf_command& command, const sf_error_sink* err) {
    const int fd = connect_to_guest();
    if (fd < 0) return refuse(err, SF_UNAVAILABLE, "the guest does not answer");
    const sf_stream_events io{
        sizeof io, this,
        [](void* c, std::uint32_t, std::uint32_t, sf_bytes data) noexcept {
          of(c).wire_data({reinterpret_cast<const char*>(data.ptr), data.len});
        },
        [](void* c) noexcept { of(c).flush(); },
        [](void* c, const sf_error*, const sf_stream_end*) noexcept {
          Guest& me = of(c);
          me.wire_->vtbl->release(std::exchange(me.wire_, nullptr));
          me.finish(me.exit_seen_ ? SF_OK : SF_TRANSPORT_LOST, "the guest is gone");
          me.drop();
        }};
    const auto* executor = service<sf_executor_service>(SF_SERVICE_EXECUTOR);
    const sf_status status =
        executor->adopt_descriptor(host, lane(), fd, 1 << 16, &io, &wire_, err);
    if (status != SF_OK) {
      ::close(fd);  // on an error it stays ours
      return status;
    }
    keep();
    std::string argv;
    for (std::size_t i = 0; i < command.argc; ++i)
      argv += text(command.argv[i]) + '\0';
    queue(frame('W', std::to_string(command.window)));
    queue(frame('S', argv));
    return SF_OK;
  }

 private:
  static Guest& of(void* ctx) { return *static_cast<Guest*>(ctx); }

  void wire_data(std::string_view data) {
    wire_->vtbl->grant(wire_, data.size());  // the guest counts the credit of the process itself
    pending_ += data;
    while (pending_.size() >= 5) {
      std::size_t size = 0;
      for (std::size_t i = 1; i < 5; ++i) {
        size = size << 8 | static_cast<unsigned char>(pending_[i]);
      }
      if (pending_.size() < 5 + size) return;
      const std::string payload = pending_.substr(5, size);
      const char type = pending_[0];
      pending_.erase(0, 5 + size);
      if (type == 'P') started(payload, std::stoll(payload));
      if (type == 'O') output(SF_CHANNEL_STDOUT, payload);
      if (type == 'E') output(SF_CHANNEL_STDERR, payload);
      if (type != 'X') continue;
      exit_seen_ = true;
      exited(std::stoi(payload));
      wire_->vtbl->shutdown_write(wire_, nullptr);
    }
  }

  void queue(std::string data) {
    outbox_ += data;
    flush();
  }
  void flush() {
    std::size_t accepted = 0;
    if (wire_ == nullptr || outbox_.empty()) return;
    if (wire_->vtbl->write(wire_, bytes(outbox_), 0, &accepted, nullptr) != SF_OK) return;
    outbox_.erase(0, accepted);
  }

  void consumed(std::uint64_t payload) override { queue(frame('G', std::to_string(payload))); }
  sf_status input(sf_bytes data, std::size_t* accepted) override {
    if (outbox_.size() > 65536) return SF_OK;
    *accepted = data.len;
    queue(frame('I', text(data)));
    return SF_OK;
  }
  void input_end() override { queue(frame('Z', "")); }
  sf_status signal(std::int32_t number) override {
    queue(frame('K', std::to_string(number)));
    return SF_OK;
  }
  void stop() override { signal(9); }

  sf_stream* wire_ = nullptr;
  std::string pending_;
  std::string outbox_;
  bool exit_seen_ = false;
};

class Session : public Machine {
 public:
  explicit Session(sf_lane* lane) : lane_(lane) {}
  sf_status spawn(const sf_command& command, const sf_stream_events& io,
                  const sf_process_events& events, sf_process** process,
                  const sf_error_sink* err) override {
    auto* guest = new Guest(lane_, command, io, events);
    const sf_status status = guest->begin(command, err);
    if (status == SF_OK) {
      *process = guest;  // nothing of it runs before this call has left the lane
    } else {
      delete guest;
    }
    return status;
  }

 private:
  sf_lane* lane_;
};

}  // namespace
}  // namespace sandforge::rehearsal

extern "C" SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY() noexcept {
  using namespace sandforge::rehearsal;
  return make_plugin([](sf_lane* lane) -> Machine* { return new Session(lane); });
}

// Platform over WebSocket: mint a lease, connect with its token as a subprotocol, send the command
// as text, read binary messages with a stream tag, and an exit message. (Exec lease protocol.)
#include "skeleton_http.hpp"

namespace sandforge::rehearsal {
namespace {

class Socket : public WireProcess {
 public:
  using WireProcess::WireProcess;

  bool begin(sf_http_client* control, sf_http_client* direct, const sf_command& command,
             const sf_error_sink* err) {
    command_ = text(command.argv[0]);
    return ShortCall::start(
        control, Request{"POST", "/v1/railway/projects/p/sandboxes/box-1/exec-lease", "{}"},
        [this, direct](std::uint32_t status, const std::string& body) {
          if (status == 410) return finish(SF_GONE, "the sandbox was destroyed");
          if (status != 200) return finish(SF_UNAVAILABLE, "no lease");
          connect(direct, value_of(body, "subprotocol") + "," + value_of(body, "jwt"));
        },
        err);
  }

 private:
  class Messages : public HttpCall {
   public:
    explicit Messages(Socket& process) : process_(process) { process_.keep(); }
    ~Messages() override { process_.drop(); }

   private:
    void on_response(const sf_http_response& r) override {
      opened_ = r.upgraded == 1 && text(r.subprotocol) == "railway-shell";
      if (!opened_) return stream()->vtbl->cancel(stream());
      process_.started(process_.command_, 0);
      process_.send();
    }
    void on_writable() override { process_.send(); }
    void on_data(std::uint32_t flags, std::string_view data) override {
      process_.message(flags, data);
    }
    void on_end(const sf_http_end& end) override { close_code_ = end.close_code; }
    void on_done(const sf_error*) override {
      process_.wire_ = nullptr;
      if (process_.exit_seen_) return process_.finish();
      process_.finish(SF_TRANSPORT_LOST, opened_ ? "closed with " + std::to_string(close_code_)
                                                 : "never opened: it may be sent again");
    }
    Socket& process_;
    bool opened_ = false;
    std::uint32_t close_code_ = 0;
  };

  void connect(sf_http_client* direct, std::string subprotocols) {
    Request r{"GET", "/ws/exec", "", SF_HTTP_WEBSOCKET | SF_HTTP_FRESH_CONNECTION};
    r.subprotocols = std::move(subprotocols);
    wire_ = new Messages(*this);
    outbox_ = {R"({"type":"init_exec","data":{"command":")" + command_ + "\"}}",
               R"({"type":"stdin_close"})"};
    if (wire_->send(direct, r, nullptr)) return;
    delete std::exchange(wire_, nullptr);
    finish(SF_UNAVAILABLE, "no connection");
  }

  // Text messages; one may be taken in pieces, its end counts with the last.
  void send() {
    while (wire_ != nullptr && !outbox_.empty()) {
      std::size_t accepted = 0;
      const sf_status status = wire_->stream()->vtbl->write(
          wire_->stream(), bytes(outbox_.front()), SF_DATA_TEXT | SF_DATA_END, &accepted, nullptr);
      if (status != SF_OK) return;
      outbox_.front().erase(0, accepted);
      if (!outbox_.front().empty()) return;
      outbox_.pop_front();
    }
  }

  // The first byte of a binary message is its tag, also when the message comes in pieces.
  void message(std::uint32_t flags, std::string_view data) {
    if ((flags & SF_DATA_BINARY) != 0) {
      if (begin_ && !data.empty()) {
        tag_ = data[0];
        data.remove_prefix(1);
        wire_->grant(1);
      }
      begin_ = (flags & SF_DATA_END) != 0;
      if (tag_ == 1) return output(SF_CHANNEL_STDOUT, data);
      if (tag_ == 3) return output(SF_CHANNEL_STDERR, data);
      return wire_->grant(data.size());
    }
    text_ += data;
    wire_->grant(data.size());
    if ((flags & SF_DATA_END) == 0) return;
    const std::string message = std::exchange(text_, {});
    if (value_of(message, "type") != "exit" || std::exchange(exit_seen_, true)) return;
    const std::string code = value_of(message, "exit_code");
    exited(code.empty() ? 0 : std::stoi(code));
    wire_->stream()->vtbl->shutdown_write(wire_->stream(), nullptr);  // close 1000
  }

  void consumed(std::uint64_t payload) override {
    if (wire_ != nullptr) wire_->grant(payload);
  }
  sf_status input(sf_bytes, std::size_t*) override { return SF_UNSUPPORTED; }
  void input_end() override {}
  void stop() override {
    if (wire_ != nullptr) wire_->stream()->vtbl->cancel(wire_->stream());
  }

  std::string command_;
  Messages* wire_ = nullptr;
  std::deque<std::string> outbox_;
  std::string text_;
  char tag_ = 0;
  bool begin_ = true;
  bool exit_seen_ = false;
};

class Leased : public Machine {
 public:
  explicit Leased(sf_lane* lane)
      : lane_(lane),
        control_(lane, "https://platform.test"),
        direct_(lane, "wss://ssh.test:2226") {}
  sf_status spawn(const sf_command& command, const sf_stream_events& io,
                  const sf_process_events& events, sf_process** process,
                  const sf_error_sink* err) override {
    auto* socket = new Socket(lane_, command, io, events);
    if (!socket->begin(control_.get(), direct_.get(), command, err)) {
      delete socket;
      return SF_UNAVAILABLE;
    }
    *process = socket;  // nothing of it runs before this call has left the lane
    return SF_OK;
  }

 private:
  sf_lane* lane_;
  Client control_;
  Client direct_;
};

}  // namespace
}  // namespace sandforge::rehearsal

extern "C" SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY() noexcept {
  using namespace sandforge::rehearsal;
  return make_plugin([](sf_lane* lane) -> Machine* { return new Leased(lane); });
}

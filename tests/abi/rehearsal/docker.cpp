// Docker over a hijacked exec: create the exec, upgrade its start to a raw connection, take frames
// apart, then ask for the exit code. (Docker Engine API, exec routes and attach framing.)
#include "skeleton_http.hpp"

namespace sandforge::rehearsal {
namespace {

constexpr std::size_t header_size = 8;

class Exec : public WireProcess {
 public:
  Exec(sf_lane* lane, sf_http_client* client, const sf_command& c, const sf_stream_events& io,
       const sf_process_events& events)
      : WireProcess(lane, c, io, events), client_(client) {}

  bool begin(const sf_command& command, const sf_error_sink* err) {
    std::string cmd;
    for (std::size_t i = 0; i < command.argc; ++i) {
      cmd += (i == 0 ? "\"" : ",\"") + text(command.argv[i]) + "\"";
    }
    Request create{"POST", "/containers/box-1/exec",
                   R"({"AttachStdout":true,"Cmd":[)" + cmd + "]}"};
    return ShortCall::start(
        client_, create,
        [this](std::uint32_t status, const std::string& body) {
          id_ = value_of(body, "Id");
          if (status != 201) return finish(SF_UNAVAILABLE, "exec was refused: " + body);
          attach();
        },
        err);
  }

 private:
  // The hijacked connection: raw frames one way, raw input the other.
  class Attached : public HttpCall {
   public:
    explicit Attached(Exec& exec) : exec_(exec) { exec_.keep(); }
    ~Attached() override { exec_.drop(); }

   private:
    void on_response(const sf_http_response& r) override {
      if (r.status != 101 && r.status != 200) return;
      upgraded_ = r.upgraded == 1;
      exec_.started(exec_.id_, 0);
      if (upgraded_) exec_.writable();
      if (upgraded_ && exec_.input_ended_) stream()->vtbl->shutdown_write(stream(), nullptr);
    }
    void on_writable() override { exec_.writable(); }
    void on_data(std::uint32_t, std::string_view data) override { exec_.frames(data); }
    void on_done(const sf_error* e) override {
      exec_.wire_ = nullptr;
      if (e != nullptr) return exec_.finish(SF_TRANSPORT_LOST, text(e->message));
      exec_.inspect();
    }
    Exec& exec_;
    bool upgraded_ = false;
  };

  void attach() {
    Request start{"POST", "/exec/" + id_ + "/start", R"({"Detach":false,"Tty":false})",
                  SF_HTTP_UPGRADE | SF_HTTP_FRESH_CONNECTION};
    start.headers = {{"Connection", "Upgrade"}, {"Upgrade", "tcp"}};
    wire_ = new Attached(*this);
    if (!wire_->send(client_, start, nullptr)) {
      delete std::exchange(wire_, nullptr);
      finish(SF_TRANSPORT_LOST, "exec start was refused");
    }
  }

  // Headers and payloads may be split anywhere. The wire's credit counts headers, the process's
  // does not: what is eaten here is granted at once, what waits is granted when it has left.
  void frames(std::string_view data) {
    while (!data.empty()) {
      if (left_ == 0) {
        const auto n = std::min(header_size - head_.size(), data.size());
        head_ += data.substr(0, n);
        data.remove_prefix(n);
        wire_->grant(n);
        if (head_.size() < header_size) return;
        for (std::size_t i = 4; i < header_size; ++i) {
          left_ = left_ << 8 | static_cast<unsigned char>(head_[i]);
        }
        channel_ = head_[0] == 2 ? SF_CHANNEL_STDERR : SF_CHANNEL_STDOUT;
        head_.clear();
        continue;
      }
      const auto n = std::min<std::size_t>(left_, data.size());
      left_ -= static_cast<std::uint32_t>(n);
      output(channel_, data.substr(0, n));
      data.remove_prefix(n);
    }
  }

  // ExitCode is null while it runs, which is not zero.
  void inspect() {
    const bool sent = ShortCall::start(
        client_, Request{"GET", "/exec/" + id_ + "/json", ""},
        [this](std::uint32_t status, const std::string& body) {
          const std::string code = value_of(body, "ExitCode");
          if (status == 200 && code != "null") exited(std::stoi(code));
          finish();
        },
        nullptr);
    if (!sent) finish(SF_TRANSPORT_LOST, "exec inspect was refused");
  }

  void consumed(std::uint64_t payload) override {
    if (wire_ != nullptr) wire_->grant(payload);
  }
  sf_status input(sf_bytes data, std::size_t* accepted) override {
    if (wire_ == nullptr) return SF_OK;  // none yet: on_writable follows
    return wire_->stream()->vtbl->write(wire_->stream(), data, 0, accepted, nullptr);
  }
  void input_end() override {
    input_ended_ = true;
    if (wire_ != nullptr) wire_->stream()->vtbl->shutdown_write(wire_->stream(), nullptr);
  }
  void stop() override {
    if (wire_ != nullptr) wire_->stream()->vtbl->cancel(wire_->stream());
  }

  sf_http_client* client_;
  Attached* wire_ = nullptr;
  std::string id_;
  std::string head_;
  std::uint32_t left_ = 0;
  std::uint32_t channel_ = SF_CHANNEL_STDOUT;
  bool input_ended_ = false;
};

class Container : public Machine {
 public:
  explicit Container(sf_lane* lane) : lane_(lane), client_(lane, "unix:///run/docker.sock") {}
  sf_status spawn(const sf_command& command, const sf_stream_events& io,
                  const sf_process_events& events, sf_process** process,
                  const sf_error_sink* err) override {
    auto* exec = new Exec(lane_, client_.get(), command, io, events);
    if (!exec->begin(command, err)) {
      delete exec;
      return SF_UNAVAILABLE;
    }
    *process = exec;  // nothing of it runs before this call has left the lane
    return SF_OK;
  }

 private:
  sf_lane* lane_;
  Client client_;
};

}  // namespace
}  // namespace sandforge::rehearsal

extern "C" SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY() noexcept {
  using namespace sandforge::rehearsal;
  return make_plugin([](sf_lane* lane) -> Machine* { return new Container(lane); });
}

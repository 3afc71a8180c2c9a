// E2B over Connect streams: one streaming call for the process, short calls for input and signals.
// (envd: process.Process, Connect protocol over HTTP/1.1 with JSON payloads.)
#include "skeleton_http.hpp"

namespace sandforge::rehearsal {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string decode_base64(std::string_view in) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : in) {
    const auto value = alphabet.find(c);
    if (value == std::string_view::npos) break;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

std::string envelope(std::string_view json) {
  std::string out(5, '\0');
  for (std::size_t i = 0; i < 4; ++i) {
    out[4 - i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  }
  return out.append(json);
}

class Started : public WireProcess {
 public:
  using WireProcess::WireProcess;

  bool begin(sf_http_client* client, const sf_command& command, const sf_error_sink* err) {
    client_ = client;
    Request start{"POST", "/process.Process/Start",
                  envelope(R"({"process":{"cmd":")" + text(command.argv[0]) + "\"}}"),
                  SF_HTTP_FRESH_CONNECTION};
    start.headers = {{"Content-Type", "application/connect+json"},
                     {"Connect-Protocol-Version", "1"}};
    wire_ = new Events(*this);
    if (wire_->send(client, start, err)) return true;
    delete std::exchange(wire_, nullptr);
    return false;
  }

 private:
  class Events : public HttpCall {
   public:
    explicit Events(Started& process) : process_(process) { process_.keep(); }
    ~Events() override { process_.drop(); }

   private:
    void on_data(std::uint32_t, std::string_view data) override { process_.wire_data(data); }
    void on_done(const sf_error* e) override {
      process_.wire_ = nullptr;
      // Without an end-of-stream envelope nothing says how it ended.
      if (e != nullptr || !process_.ended_) return process_.finish(SF_TRANSPORT_LOST, "cut short");
      process_.finish();
    }
    Started& process_;
  };

  // An envelope is at most as long as the wire's window, else nothing would ever move.
  void wire_data(std::string_view data) {
    pending_ += data;
    while (pending_.size() >= 5) {
      std::size_t size = 0;
      for (std::size_t i = 1; i < 5; ++i) {
        size = size << 8 | static_cast<unsigned char>(pending_[i]);
      }
      if (pending_.size() < 5 + size) return;
      const bool last = (pending_[0] & 2) != 0;
      const std::string json = pending_.substr(5, size);
      pending_.erase(0, 5 + size);
      if (last) {
        ended_ = true;
        if (json.find("error") != json.npos) finish(SF_UNAVAILABLE, value_of(json, "message"));
      } else {
        event(json);
      }
      // Base64 is longer than what it carries: the wire's credit is given back by envelope, once
      // its payload has left.
      owed_.emplace_back(waiting_, 5 + size);
      consumed(0);
    }
  }

  void event(const std::string& json) {
    const std::string out = decode_base64(value_of(json, "stdout"));
    const std::string err = decode_base64(value_of(json, "stderr"));
    waiting_ += out.size() + err.size();
    if (json.find("\"start\"") != json.npos) {
      pid_ = std::stoll(value_of(json, "pid"));
      started(std::to_string(pid_), pid_);
    }
    output(SF_CHANNEL_STDOUT, out);
    output(SF_CHANNEL_STDERR, err);
    if (json.find("\"end\"") == json.npos) return;
    const std::string code = value_of(json, "exitCode");
    exited(code.empty() ? 0 : std::stoi(code));  // zero is left out on the wire
  }

  void consumed(std::uint64_t payload) override {
    gone_ += payload;
    while (!owed_.empty() && owed_.front().first <= gone_) {
      if (wire_ != nullptr) wire_->grant(owed_.front().second);
      owed_.pop_front();
    }
  }

  bool unary(const std::string& method, const std::string& body) {
    Request r{"POST", "/process.Process/" + method, body};
    r.headers = {{"Content-Type", "application/json"}};
    return ShortCall::start(
        client_, r, [](std::uint32_t, const std::string&) {}, nullptr);
  }
  sf_status input(sf_bytes data, std::size_t* accepted) override {
    if (pid_ == 0) return SF_OK;
    *accepted = data.len;  // a provider would send it as base64 and wait for the answer
    return unary("SendInput", selector() + "}") ? SF_OK : SF_TRANSPORT_LOST;
  }
  void input_end() override { unary("CloseStdin", selector() + "}"); }
  sf_status signal(std::int32_t) override {
    return unary("SendSignal", selector() + R"(,"signal":"SIGNAL_SIGKILL"})") ? SF_OK
                                                                              : SF_TRANSPORT_LOST;
  }
  void stop() override {
    signal(9);
    if (wire_ != nullptr) wire_->stream()->vtbl->cancel(wire_->stream());
  }
  std::string selector() const { return R"({"process":{"pid":)" + std::to_string(pid_) + "}"; }

  sf_http_client* client_ = nullptr;
  Events* wire_ = nullptr;
  std::string pending_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> owed_;
  std::uint64_t waiting_ = 0;
  std::uint64_t gone_ = 0;
  std::int64_t pid_ = 0;
  bool ended_ = false;
};

class Envd : public Machine {
 public:
  explicit Envd(sf_lane* lane) : lane_(lane), client_(lane, "https://49983-box-1.e2b.app") {}
  sf_status spawn(const sf_command& command, const sf_stream_events& io,
                  const sf_process_events& events, sf_process** process,
                  const sf_error_sink* err) override {
    auto* started = new Started(lane_, command, io, events);
    if (!started->begin(client_.get(), command, err)) {
      delete started;
      return SF_UNAVAILABLE;
    }
    *process = started;  // nothing of it runs before this call has left the lane
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
  return make_plugin([](sf_lane* lane) -> Machine* { return new Envd(lane); });
}

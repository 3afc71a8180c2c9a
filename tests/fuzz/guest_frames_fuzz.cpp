// Arbitrary bytes of a guest: the client must neither crash nor break its own rules. Arbitrary
// payloads: every message decoder must survive, and what it accepts must encode to the same bytes.
//
// fuzz-libs: sandforge::wire
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "sandforge/wire/guest/client.hpp"

namespace {

using namespace sandforge::wire::guest;

void require(bool condition) {
  if (!condition) std::abort();
}

// Checks the order of events that client.hpp promises.
struct Judge : ClientEvents {
  GuestClient* client = nullptr;
  std::map<ChannelId, int> stage;  // 1 started, 2 exited, 3 over
  std::uint64_t credit = 0;
  static constexpr std::uint64_t kFileLength = 100000;
  ChannelId list{}, read{}, write{}, watch{};
  std::uint64_t file_credit = 0, watch_credit = 0, bytes = 0, listed = 0;

  void on_started(ChannelId id, const Started&) override { require(stage[id]++ == 0); }
  void on_output(ChannelId id, StreamId stream, std::uint64_t, std::string_view b) override {
    require(stage[id] == 1 || stage[id] == 2);
    require(stream == StreamId::out || stream == StreamId::err);
    require(!b.empty() && b.size() <= kMaxPayload && b.size() <= credit);
    credit -= b.size();
    if (b.size() % 2 == 0) {
      client->grant(id, b.size());
      credit += b.size();
    }
  }
  void on_exited(ChannelId id, const Exit& e) override {
    require(stage[id] == 1);
    stage[id] = 2;
    require(e.code.has_value() != e.signal.has_value());
  }
  void on_end(ChannelId id, const End&) override {
    require(stage[id] == 2);
    stage[id] = 3;
    require(!client->open(id));
  }
  void on_error(ChannelId id, const ErrorInfo&) override { over(id); }
  void on_lost(ChannelId id, bool) override { over(id); }
  void on_done(ChannelId id, std::uint64_t) override { over(id); }
  void on_list(ChannelId id, const ListReply&) override { over(id); }
  void on_file_entries(ChannelId id, const FileEntries& entries, bool more) override {
    listed += entries.entries.size();
    require(id == list && listed <= kMaxListedFiles);
    require(stage[id] != 3);
    if (!more) over(id);
  }
  void on_file_bytes(ChannelId id, std::string_view b) override {
    require(id == read && stage[id] != 3 && !b.empty() && b.size() <= file_credit);
    file_credit -= b.size();
    bytes += b.size();
    require(bytes <= kFileLength);
    if (b.size() % 2 == 0) {
      client->grant(id, b.size());
      file_credit += b.size();
    }
  }
  void on_file_credit(ChannelId id) override {
    require(id == write && stage[id] != 3);
    client->write_file(id, "some bytes");
  }
  void on_file_event(ChannelId id, const FileEvent& event) override {
    std::string payload;
    event.encode(payload);
    require(id == watch && stage[id] != 3 && payload.size() <= watch_credit);
    watch_credit -= payload.size();
  }
  void on_file_end(ChannelId id, std::uint64_t n) override {
    require(id != read || n == bytes);
    over(id);
  }
  void over(ChannelId id) {
    require(stage[id] != 3);
    stage[id] = 3;
  }
};

void fuzz_client(const std::string& bytes) {
  Judge judge;
  GuestClient client(judge);
  judge.client = &client;
  SpawnRequest r;
  r.request_id = "r";
  r.argv = {"x"};
  r.stdin_mode = StdinMode::pipe;
  r.window = judge.credit = 70000;
  const auto id = client.spawn(r);
  client.list();
  client.kill(*id, 0);
  // Channels 4 to 7.
  FileRequest file;
  file.path = "file";
  file.window = judge.file_credit = judge.watch_credit = 70000;
  file.length = Judge::kFileLength;
  judge.list = *client.file(FrameType::file_list, file);
  judge.read = *client.file(FrameType::file_read, file);
  judge.write = *client.file(FrameType::file_write, file);
  judge.watch = *client.file(FrameType::file_watch, file);
  std::string greeting, payload;
  HelloReply().encode(payload);
  append_message(greeting, FrameType::hello_reply, 0, 0, payload);
  client.feed(greeting);
  client.feed(bytes);
  client.write_stdin(*id, "input");
  client.write_file(judge.write, "input");
  client.commit_file(judge.write);
  if (bytes.size() % 2 == 1) client.leave(judge.read);
  client.tick(0);
  client.tick(1000000);
  client.lost("end");
  require(client.open_channels() == 0 && client.failed());
}

template <class M>
void fuzz_message(std::string_view bytes) {
  M message;
  if (!message.decode(bytes)) return;
  std::string again;
  message.encode(again);
  require(again == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const std::string_view rest = std::string_view(bytes).substr(1);
  switch (data[0]) {
    case 1:
      fuzz_message<SpawnRequest>(rest);
      break;
    case 2:
      fuzz_message<ListReply>(rest);
      break;
    case 3:
      fuzz_message<AttachRequest>(rest);
      break;
    case 4:
      fuzz_message<EnvSetRequest>(rest);
      break;
    case 5:
      fuzz_message<SignalRequest>(rest);
      break;
    case 6:
      fuzz_message<End>(rest);
      break;
    case 7:
      fuzz_message<ErrorInfo>(rest);
      break;
    case 8:
      fuzz_message<HelloReply>(rest);
      break;
    case 9:
      fuzz_message<Hello>(rest);
      break;
    case 10:
      fuzz_message<Exit>(rest);
      break;
    case 11:
      fuzz_message<FileRequest>(rest);
      break;
    case 12:
      fuzz_message<FileEntries>(rest);
      break;
    case 13:
      fuzz_message<FileEvent>(rest);
      break;
    default:
      fuzz_client(std::string(rest));
  }
  return 0;
}

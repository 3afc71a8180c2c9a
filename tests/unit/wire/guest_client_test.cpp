// The client against a guest that says whatever the test wants.
#include "sandforge/wire/guest/client.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace sandforge::wire::guest;

namespace {

struct Recorder : ClientEvents {
  std::vector<std::string> log;
  std::string out;
  std::optional<ErrorCode> error;

  static std::string name(ChannelId id) { return std::to_string(static_cast<std::uint64_t>(id)); }
  void note(const char* what, ChannelId id) { log.push_back(what + (" " + name(id))); }

  void on_hello(const HelloReply&) override { log.push_back("hello"); }
  void on_started(ChannelId id, const Started&) override { note("started", id); }
  void on_output(ChannelId id, StreamId, std::uint64_t, std::string_view bytes) override {
    note("output", id);
    out.append(bytes);
  }
  void on_gap(ChannelId id, StreamId, std::uint64_t, std::uint64_t n) override {
    note("gap", id);
    log.back() += "+" + std::to_string(n);
  }
  void on_stdin_credit(ChannelId id) override { note("stdin", id); }
  void on_stdin_closed(ChannelId id, int) override { note("stdin closed", id); }
  void on_exited(ChannelId id, const Exit&) override { note("exited", id); }
  void on_end(ChannelId id, const End&) override { note("end", id); }
  void on_done(ChannelId id, std::uint64_t) override { note("done", id); }
  void on_list(ChannelId id, const ListReply&) override { note("list", id); }
  void on_file_entries(ChannelId id, const FileEntries& e, bool more) override {
    note(more ? "files+" : "files", id);
    log.back() += "=" + std::to_string(e.entries.size());
  }
  void on_file_bytes(ChannelId id, std::string_view bytes) override {
    note("bytes", id);
    out.append(bytes);
  }
  void on_file_credit(ChannelId id) override { note("credit", id); }
  void on_file_event(ChannelId id, const FileEvent& e) override { note(e.path.c_str(), id); }
  void on_file_end(ChannelId id, std::uint64_t n) override {
    note("file end", id);
    log.back() += "=" + std::to_string(n);
  }
  void on_error(ChannelId id, const ErrorInfo& e) override {
    note("error", id);
    error = e.code;
  }
  void on_lost(ChannelId id, bool may) override { note(may ? "lost maybe" : "lost unsent", id); }
};

struct Fixture {
  Recorder events;
  GuestClient client{events};

  template <class M>
  bool guest(FrameType type, std::uint64_t channel, const M& message) {
    std::string payload;
    message.encode(payload);
    return raw(type, channel, 0, payload);
  }
  bool raw(FrameType type, std::uint64_t channel, std::uint64_t value = 0,
           std::string_view payload = {}, std::uint8_t flags = 0) {
    std::string bytes;
    append_message(bytes, type, channel, value, payload, flags);
    return client.feed(bytes);
  }
  void greet() { REQUIRE(guest(FrameType::hello_reply, 0, HelloReply())); }
  void send_all() { client.consume(client.output().size()); }
  ChannelId spawn(std::uint64_t window = 100, StdinMode mode = StdinMode::null) {
    SpawnRequest r;
    r.request_id = "r";
    r.argv = {"x"};
    r.window = window;
    r.stdin_mode = mode;
    const auto id = client.spawn(r);
    REQUIRE(id);
    return *id;
  }
  Exit code(int n) {
    Exit e;
    e.code = n;
    return e;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a whole process, byte by byte") {
  const ChannelId id = spawn();
  std::string bytes, payload;
  const auto add = [&](FrameType type, const auto& message, std::uint64_t channel) {
    payload.clear();
    message.encode(payload);
    append_message(bytes, type, channel, 0, payload);
  };
  add(FrameType::hello_reply, HelloReply(), 0);
  add(FrameType::started, Started(), 1);
  append_message(bytes, FrameType::output, 1, 0, "ab", 0);
  append_message(bytes, FrameType::output, 1, 0, "cd", 1);
  add(FrameType::exited, code(0), 1);
  add(FrameType::end, End(), 1);
  for (const char c : bytes)
    REQUIRE(client.feed(std::string_view(&c, 1)));
  CHECK(events.log == std::vector<std::string>{"hello", "started 1", "output 1", "output 1",
                                               "exited 1", "end 1"});
  CHECK(events.out == "abcd");
  CHECK_FALSE(client.open(id));
  CHECK(client.open_channels() == 0);
}

TEST_CASE_METHOD(Fixture, "what a guest must not say ends the connection") {
  const auto refused = [&](bool accepted) {
    CHECK_FALSE(accepted);
    CHECK(client.failed());
    CHECK_FALSE(client.failure().empty());
    CHECK(client.output().empty());
    CHECK(client.open_channels() == 0);
    CHECK_FALSE(client.feed("more"));
    CHECK_FALSE(client.spawn(SpawnRequest()));
  };
  SECTION("anything before the greeting") {
    refused(raw(FrameType::guest_ping, 0));
  }
  SECTION("another version") {
    HelloReply hello;
    hello.version = 9;
    refused(guest(FrameType::hello_reply, 0, hello));
  }
  SECTION("after the greeting") {
    greet();
    SECTION("a second greeting") {
      refused(guest(FrameType::hello_reply, 0, HelloReply()));
    }
    SECTION("a channel that was never opened") {
      refused(guest(FrameType::started, 5, Started()));
    }
    SECTION("an unknown frame") {
      refused(raw(static_cast<FrameType>(0xf0), 0));
    }
    SECTION("a malformed frame") {
      refused(client.feed(std::string(24, '\xff')));
    }
    SECTION("a request of ours") {
      refused(raw(FrameType::spawn, 0));
    }
    SECTION("the answer to another question") {
      client.list();
      refused(raw(FrameType::done, 1));
    }
    SECTION("output before the start") {
      spawn();
      refused(raw(FrameType::output, 1, 0, "x"));
    }
    SECTION("of a running process") {
      spawn(4);
      REQUIRE(guest(FrameType::started, 1, Started()));
      SECTION("a second start") {
        refused(guest(FrameType::started, 1, Started()));
      }
      SECTION("output beyond the credit") {
        refused(raw(FrameType::output, 1, 0, "12345"));
      }
      SECTION("empty output") {
        refused(raw(FrameType::output, 1, 0, ""));
      }
      SECTION("a third stream") {
        refused(raw(FrameType::output, 1, 0, "x", 2));
      }
      SECTION("output twice") {
        REQUIRE(raw(FrameType::output, 1, 0, "ab"));
        refused(raw(FrameType::output, 1, 1, "b"));
      }
      SECTION("an offset that wraps") {
        refused(raw(FrameType::output, 1, ~0ULL, "ab"));
      }
      SECTION("an end before the exit") {
        refused(guest(FrameType::end, 1, End()));
      }
      SECTION("a second exit") {
        REQUIRE(guest(FrameType::exited, 1, code(0)));
        refused(guest(FrameType::exited, 1, code(0)));
      }
      SECTION("a reply") {
        refused(raw(FrameType::done, 1));
      }
      SECTION("too much credit for input") {
        refused(raw(FrameType::stdin_credit, 1, 1ULL << 40));
      }
      SECTION("an impossible error number") {
        refused(raw(FrameType::stdin_closed, 1, 5000));
      }
      CHECK(events.log.back() == "lost unsent 1");
    }
  }
}

TEST_CASE_METHOD(Fixture, "gaps are told with their size") {
  greet();
  spawn();
  REQUIRE(guest(FrameType::started, 1, Started()));
  REQUIRE(raw(FrameType::output, 1, 10, "ab"));
  REQUIRE(raw(FrameType::output, 1, 12, "c"));
  CHECK(events.log ==
        std::vector<std::string>{"hello", "started 1", "gap 1+10", "output 1", "output 1"});
}

TEST_CASE_METHOD(Fixture, "credit is what was granted, and no more") {
  greet();
  const ChannelId id = spawn(2);
  REQUIRE(guest(FrameType::started, 1, Started()));
  REQUIRE(raw(FrameType::output, 1, 0, "ab"));
  client.grant(id, 1);
  client.grant(id, ~0ULL);
  client.grant(id, ~0ULL);  // saturates
  REQUIRE(raw(FrameType::output, 1, 2, "cdef"));
  CHECK(events.out == "abcdef");
}

TEST_CASE_METHOD(Fixture, "what left the program decides whether a request may have run") {
  greet();
  send_all();
  const ChannelId sent = spawn();
  send_all();
  spawn();
  client.consume(client.output().size() - 1);  // all but the last byte
  client.lost("cut");
  client.lost("again");
  CHECK(events.log == std::vector<std::string>{"hello", "lost maybe 1", "lost unsent 2"});
  CHECK(client.failure() == "cut");
  CHECK_FALSE(client.open(sent));
}

TEST_CASE_METHOD(Fixture, "input goes under the credit of the guest") {
  greet();
  const ChannelId none = spawn();
  CHECK_FALSE(client.write_stdin(none, "x"));
  const ChannelId id = spawn(0, StdinMode::pipe);
  CHECK(client.write_stdin(id, "x") == std::size_t{0});
  REQUIRE(guest(FrameType::started, 2, Started()));
  REQUIRE(raw(FrameType::stdin_credit, 2, 100000));
  CHECK(client.stdin_room(id) == 100000);
  send_all();
  CHECK(client.write_stdin(id, std::string(70000, 'i')) == std::size_t{70000});
  CHECK(client.output().size() == 70000 + 2 * kHeaderSize);
  CHECK(client.write_stdin(id, std::string(70000, 'i')) == std::size_t{30000});
  CHECK(client.write_stdin(id, "x") == std::size_t{0});
  client.close_stdin(id);
  client.close_stdin(id);
  CHECK_FALSE(client.write_stdin(id, "x"));
  REQUIRE(raw(FrameType::stdin_credit, 2, 5));  // crossed our close
  const ChannelId other = spawn(0, StdinMode::pipe);
  REQUIRE(guest(FrameType::started, 3, Started()));
  REQUIRE(raw(FrameType::stdin_closed, 3, 32));
  CHECK(events.log.back() == "stdin closed 3");
  CHECK_FALSE(client.write_stdin(other, "x"));
}

TEST_CASE_METHOD(Fixture, "input waits while too much is unsent") {
  greet();
  send_all();
  const ChannelId id = spawn(0, StdinMode::pipe);
  REQUIRE(guest(FrameType::started, 1, Started()));
  REQUIRE(raw(FrameType::stdin_credit, 1, 10 << 20));
  std::size_t taken = 0;
  while (const auto n = client.write_stdin(id, std::string(65536, 'i'))) {
    if (*n == 0) break;
    taken += *n;
  }
  CHECK(taken <= 1 << 20);
  CHECK(taken > 900000);
  send_all();
  CHECK(client.write_stdin(id, "x") == std::size_t{1});
}

TEST_CASE_METHOD(Fixture, "a channel that was left is quiet, whatever crosses") {
  greet();
  const ChannelId id = spawn();
  REQUIRE(guest(FrameType::started, 1, Started()));
  client.leave(id);
  CHECK_FALSE(client.open(id));
  REQUIRE(raw(FrameType::output, 1, 0, "late"));
  REQUIRE(guest(FrameType::exited, 1, code(0)));
  REQUIRE(guest(FrameType::end, 1, End()));
  REQUIRE(raw(FrameType::done, 1));
  CHECK_FALSE(raw(FrameType::done, 1));
  CHECK(events.log == std::vector<std::string>{"hello", "started 1"});
}

TEST_CASE_METHOD(Fixture, "a ping is answered, and a silent guest is given up") {
  greet();
  send_all();
  REQUIRE(raw(FrameType::guest_ping, 0, 42));
  FrameView frame;
  REQUIRE(parse_frame(client.output(), frame) == ParseResult::frame);
  CHECK(frame.header.type == static_cast<std::uint8_t>(FrameType::pong));
  CHECK(frame.header.value == 42);
  send_all();

  CHECK(client.tick(1000) == 11000);
  CHECK(client.tick(5000) == 11000);
  CHECK(client.output().empty());
  CHECK(client.tick(11000) == 31000);
  CHECK_FALSE(client.output().empty());
  REQUIRE(raw(FrameType::guest_pong, 0, 1));
  CHECK(client.tick(12000) == 22000);
  CHECK(client.tick(22000) == 42000);
  spawn();
  send_all();
  CHECK(client.tick(42000) == ~0ULL);
  CHECK(client.failed());
  CHECK(events.log.back() == "lost maybe 1");
}

TEST_CASE("an event may make requests and leave channels") {
  struct Busy : Recorder {
    GuestClient* client = nullptr;
    void on_gap(ChannelId id, StreamId s, std::uint64_t o, std::uint64_t n) override {
      Recorder::on_gap(id, s, o, n);
      for (int i = 0; i < 100; ++i)
        client->list();
      client->leave(id);
    }
  } events;
  GuestClient client(events);
  events.client = &client;
  std::string bytes, payload;
  HelloReply().encode(payload);
  append_message(bytes, FrameType::hello_reply, 0, 0, payload);
  SpawnRequest r;
  r.request_id = "r";
  r.argv = {"x"};
  r.window = 100;
  REQUIRE(client.spawn(r));
  payload.clear();
  Started().encode(payload);
  append_message(bytes, FrameType::started, 1, 0, payload);
  append_message(bytes, FrameType::output, 1, 5, "not shown");
  REQUIRE(client.feed(bytes));
  CHECK(events.out.empty());
  CHECK(client.open_channels() == 100);
}

namespace {

struct FileFixture : Fixture {
  FileFixture() { greet(); }
  ChannelId ask(FrameType operation, std::uint64_t length = kToEnd) {
    FileRequest request;
    request.path = "file";
    request.window = 10;
    request.offset = 5;
    request.length = length;
    const auto id = client.file(operation, request);
    REQUIRE(id);
    return *id;
  }
  static FileEntries entries(std::size_t count) {
    FileEntries out;
    out.entries.resize(count);
    for (FileEntry& entry : out.entries)
      entry.path = "f";
    return out;
  }
  bool list(std::size_t count, bool more) {
    std::string payload;
    entries(count).encode(payload);
    return raw(FrameType::file_entries, 1, more ? 1 : 0, payload);
  }
};

}  // namespace

TEST_CASE_METHOD(FileFixture, "files are listed, read, written and watched") {
  SECTION("a list in pieces") {
    ask(FrameType::file_list);
    CHECK(list(2, true));
    CHECK(list(1, false));
    CHECK(events.log == std::vector<std::string>{"hello", "files+ 1=2", "files 1=1"});
  }
  SECTION("a list that nobody can hold is left, and told as too large") {
    ask(FrameType::file_list);
    FileEntries long_ones = entries(100);
    for (FileEntry& entry : long_ones.entries) {
      entry.path.assign(2 * kMaxFilePath, 'f');
      entry.link_target = std::string(kMaxFilePath, 't');
    }
    std::string payload;
    long_ones.encode(payload);
    std::size_t pieces = 0;
    bool accepted = true;
    while (accepted && events.log.back() != "error 1" && ++pieces < 1000)
      accepted = raw(FrameType::file_entries, 1, 1, payload);
    CHECK(accepted);
    CHECK(pieces == kMaxListedBytes / payload.size() + 1);
    CHECK(events.error == ErrorCode::too_large);
    CHECK(client.open_channels() == 0);
    // What crossed the leave is heard no more.
    const std::size_t heard = events.log.size();
    CHECK(raw(FrameType::file_entries, 1, 1, payload));
    CHECK(raw(FrameType::done, 1));
    CHECK(events.log.size() == heard);
  }
  SECTION("bytes under credit, from an offset on") {
    const auto id = ask(FrameType::file_read);
    CHECK(raw(FrameType::file_bytes, 1, 5, "0123456789"));
    client.grant(id, 2);
    CHECK(raw(FrameType::file_bytes, 1, 15, "ab"));
    CHECK(raw(FrameType::file_end, 1, 12));
    CHECK(events.out == "0123456789ab");
    CHECK(events.log.back() == "file end 1=12");
  }
  SECTION("bytes to write, as far as the guest grants") {
    const auto id = ask(FrameType::file_write);
    CHECK(client.write_file(id, "early") == std::size_t{0});
    CHECK(raw(FrameType::file_credit, 1, 3));
    CHECK(client.file_room(id) == 3);
    CHECK(client.write_file(id, "bytes") == std::size_t{3});
    client.commit_file(id);
    CHECK_FALSE(client.write_file(id, "late"));
    CHECK(raw(FrameType::file_end, 1, 3));
  }
  SECTION("changes") {
    ask(FrameType::file_watch);
    CHECK(guest(FrameType::file_event, 1, FileEvent(FileChange::create, "a")));
    CHECK(events.log.back() == "a 1");
    CHECK(raw(FrameType::file_end, 1));
  }
  SECTION("what is left is heard no more, whatever crossed") {
    const auto id = ask(FrameType::file_read);
    client.leave(id);
    CHECK(raw(FrameType::file_bytes, 1, 5, "x"));
    CHECK(raw(FrameType::file_end, 1, 1));
    CHECK(raw(FrameType::done, 1));
    CHECK(events.log == std::vector<std::string>{"hello"});
    CHECK_FALSE(client.failed());
  }
}

TEST_CASE_METHOD(FileFixture, "what a guest must not say of files ends the connection") {
  bool accepted = true;
  SECTION("another answer than was asked for") {
    ask(FrameType::file_move);
    accepted = list(1, false);
  }
  SECTION("two files for one") {
    ask(FrameType::file_stat);
    accepted = list(2, false);
  }
  SECTION("pieces of nothing") {
    ask(FrameType::file_list);
    accepted = list(0, true);
  }
  SECTION("a list that has no end") {
    ask(FrameType::file_list);
    for (int i = 0; i < 1000 && accepted; ++i)
      accepted = list(1000, true);
  }
  SECTION("bytes beyond the credit") {
    ask(FrameType::file_read);
    accepted = raw(FrameType::file_bytes, 1, 5, "0123456789a");
  }
  SECTION("more than was asked for") {
    ask(FrameType::file_read, 3);
    accepted = raw(FrameType::file_bytes, 1, 5, "0123");
  }
  SECTION("bytes of another place") {
    ask(FrameType::file_read);
    accepted = raw(FrameType::file_bytes, 1, 6, "0");
  }
  SECTION("an end that counts others than came") {
    ask(FrameType::file_read);
    accepted = raw(FrameType::file_bytes, 1, 5, "0") && raw(FrameType::file_end, 1, 2);
  }
  SECTION("a write that ends before its commit") {
    ask(FrameType::file_write);
    accepted = raw(FrameType::file_end, 1, 0);
  }
  SECTION("credit without bounds") {
    ask(FrameType::file_write);
    accepted = raw(FrameType::file_credit, 1, std::uint64_t{1} << 40);
  }
  SECTION("changes beyond the credit") {
    ask(FrameType::file_watch);
    accepted = guest(FrameType::file_event, 1, FileEvent(FileChange::create, "long enough"));
  }
  SECTION("a change that there is none") {
    ask(FrameType::file_watch);
    accepted = raw(FrameType::file_event, 1, 0, std::string(5, '\x63'));
  }
  SECTION("frames of a process") {
    ask(FrameType::file_read);
    accepted = guest(FrameType::started, 1, Started());
  }
  CHECK_FALSE(accepted);
  CHECK(client.failed());
  CHECK(events.log.back() == "lost unsent 1");
}

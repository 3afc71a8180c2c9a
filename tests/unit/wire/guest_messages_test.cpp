#include "sandforge/wire/guest/messages.hpp"

#include <catch2/catch.hpp>

using namespace sandforge::wire::guest;

namespace {

template <class M>
std::string bytes_of(const M& message) {
  std::string out;
  message.encode(out);
  return out;
}

// What was encoded decodes to the same bytes again; every shorter and every longer form is refused.
template <class M>
M round_trip(const M& message) {
  const std::string bytes = bytes_of(message);
  M back;
  REQUIRE(back.decode(bytes));
  CHECK(bytes_of(back) == bytes);
  M other;
  bool refused = true;
  for (std::size_t n = 0; n < bytes.size(); ++n)
    refused = refused && !other.decode(std::string_view(bytes).substr(0, n));
  CHECK(refused);
  CHECK_FALSE(other.decode(bytes + '\0'));
  return back;
}

SpawnRequest full_spawn() {
  SpawnRequest r;
  r.request_id = "id-1";
  r.argv = {"printf", "", std::string("\xff", 1)};
  r.stored_environment = false;
  r.env = {EnvEntry("A", std::string("1")), EnvEntry("B", std::nullopt)};
  r.cwd = "/tmp";
  r.user = "nobody:nogroup";
  r.stdin_mode = StdinMode::pipe;
  r.tty.emplace();
  r.tty->cols = 132;
  r.tty->term = "xterm";
  r.combined = true;
  r.detach = true;
  r.timeout_ms = 5;
  r.grace_ms = 6;
  r.window = 7;
  r.tag = "tag";
  return r;
}

}  // namespace

TEST_CASE("spawn requests round-trip") {
  const SpawnRequest back = round_trip(full_spawn());
  CHECK(back.argv == std::vector<std::string>{"printf", "", "\xff"});
  REQUIRE(back.env.size() == 2);
  CHECK(back.env[0].value == std::string("1"));
  CHECK_FALSE(back.env[1].value);
  CHECK(back.tty->cols == 132);
  CHECK(back.tty->rows == 24);
  CHECK(back.timeout_ms == 5);
  CHECK(back.grace_ms == 6);
  CHECK(back.window == 7);
  CHECK(back.tag == "tag");
  SpawnRequest shell;
  shell.request_id = "x";
  shell.shell_text = "true";
  CHECK(round_trip(shell).shell_text == "true");
}

TEST_CASE("all other messages round-trip") {
  Hello hello;
  hello.client = "test";
  CHECK(round_trip(hello).client == "test");
  HelloReply reply;
  reply.features = 5;
  reply.pid = 3;
  reply.instance = "abc";
  CHECK(round_trip(reply).features == 5);
  AttachRequest attach;
  attach.request_id = "r";
  attach.from = Cursor(4, 5);
  attach.take_stdin = true;
  CHECK(round_trip(attach).from.err == 5);
  SignalRequest signal;
  signal.target = Target(ChannelId{4});
  signal.signal = 15;
  signal.scope = SignalScope::tree;
  CHECK(round_trip(signal).target.by_channel);
  KillRequest kill;
  kill.target = Target(ProcessId{9});
  kill.grace_ms = 1;
  CHECK(round_trip(kill).target.id == 9);
  StopAllRequest stop;
  stop.exit = true;
  CHECK(round_trip(stop).exit);
  EnvSetRequest set;
  set.replace_all = true;
  set.entries = {EnvEntry("A", std::nullopt)};
  CHECK(round_trip(set).entries.size() == 1);
  EnvReply env;
  env.entries = {EnvEntry("A", std::string("v"))};
  CHECK(round_trip(env).entries[0].name == "A");
  Started started;
  started.process = ProcessId{8};
  started.existing = true;
  CHECK(round_trip(started).existing);
  End end;
  end.total = Cursor(1, 2);
  end.dropped = Cursor(3, 4);
  end.background = true;
  CHECK(round_trip(end).dropped.err == 4);
  ErrorInfo error;
  error.code = ErrorCode::no_directory;
  error.error_number = 2;
  error.message = "m";
  CHECK(round_trip(error).code == ErrorCode::no_directory);
  InfoReply info;
  info.spawned = 12;
  CHECK(round_trip(info).spawned == 12);
  ProcessInfo process;
  process.request_id = "r";
  process.command = "c";
  process.state = ProcessState::ended;
  process.exit.emplace();
  process.exit->code = 3;
  process.log_end = Cursor(5, 6);
  ListReply list;
  list.processes = {process, ProcessInfo()};
  const ListReply back = round_trip(list);
  REQUIRE(back.processes.size() == 2);
  CHECK(back.processes[0].exit->code == 3);
  CHECK(back.processes[0].log_end.err == 6);
  CHECK_FALSE(back.processes[1].exit);
}

TEST_CASE("an exit is a code or a signal, within what exists") {
  Exit exit;
  exit.code = 255;
  CHECK(round_trip(exit).code == 255);
  exit.code.reset();
  exit.signal = 9;
  exit.timed_out = exit.killed = exit.out_of_memory = true;
  CHECK(round_trip(exit).signal == 9);
  Exit bad;
  bad.code = 256;
  CHECK_FALSE(Exit().decode(bytes_of(bad)));
  bad.code.reset();
  bad.signal = 0;
  CHECK_FALSE(Exit().decode(bytes_of(bad)));
  bad.signal = 128;
  CHECK_FALSE(Exit().decode(bytes_of(bad)));
}

TEST_CASE("hostile counts and lengths cost no memory") {
  SpawnRequest r;
  std::string bytes("\x01\0\0\0x", 5);
  bytes += "\xff\xff\xff\xff";  // four milliard arguments
  CHECK_FALSE(r.decode(bytes));
  bytes.resize(5);
  bytes += std::string("\x01\0\0\0\xff\xff\xff\x7f", 8);  // one of two gigabytes
  CHECK_FALSE(r.decode(bytes));
  ListReply list;
  CHECK_FALSE(list.decode(std::string("\xff\xff\0\0", 4)));
  Hello hello;
  CHECK_FALSE(hello.decode("SFG2\x01"));
}

TEST_CASE("a spawn request is checked before it is sent") {
  CHECK(full_spawn().check().empty());
  const auto wrong = [](auto change) {
    SpawnRequest r = full_spawn();
    change(r);
    return !r.check().empty();
  };
  CHECK(wrong([](SpawnRequest& r) { r.request_id.clear(); }));
  CHECK(wrong([](SpawnRequest& r) { r.request_id.assign(129, 'x'); }));
  CHECK(wrong([](SpawnRequest& r) { r.argv.clear(); }));
  CHECK(wrong([](SpawnRequest& r) { r.shell_text = "both"; }));
  CHECK(wrong([](SpawnRequest& r) { r.argv[0].clear(); }));
  CHECK(wrong([](SpawnRequest& r) { r.argv[1].assign(1, '\0'); }));
  CHECK(wrong([](SpawnRequest& r) { r.env[0].name = "A=B"; }));
  CHECK(wrong([](SpawnRequest& r) { r.env[0].name.clear(); }));
  CHECK(wrong([](SpawnRequest& r) { r.env[0].value->assign(1, '\0'); }));
  CHECK(wrong([](SpawnRequest& r) { r.cwd.assign(1, '\0'); }));
  CHECK(wrong([](SpawnRequest& r) { r.user.assign(129, 'u'); }));
  CHECK(wrong([](SpawnRequest& r) { r.tag.assign(1025, 't'); }));
  CHECK(wrong([](SpawnRequest& r) { r.tty->term.assign(1, '\0'); }));
  CHECK(wrong([](SpawnRequest& r) { r.argv.emplace_back(8u << 20, 'x'); }));
}

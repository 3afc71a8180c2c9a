// C: processes.
#include <atomic>
#include <csignal>
#include <future>
#include <limits>
#include <sstream>

#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

std::optional<ProcessInfo> find_listed(Sandbox& sandbox, const ProcessId& id) {
  for (auto& info : sandbox.list_processes())
    if (info.id == id) return info;
  return std::nullopt;
}

void has_number(Host& host) {
  const auto process = host.make()->spawn(shell("echo hello"));
  CHECK(process->pid() > 0);
  CHECK_FALSE(process->id().empty());
  CHECK(process->wait().success);
}

void spawned(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  CHECK_FALSE(process->id().empty());
  CHECK(process->running());
  CHECK_FALSE(process->exit_code().has_value());
  CHECK(process->command() == "echo up; sleep 60");
  CHECK(process->kill());
}

void listed(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  const auto info = find_listed(*sandbox, process->id());
  REQUIRE(info.has_value());
  CHECK(info->running);
  CHECK(info->command.find("sleep 60") != std::string::npos);
  CHECK(info->pid == process->pid());
  CHECK_FALSE(info->exit.has_value());
  process->kill();

  const auto other = sandbox->spawn(shell("exit 5"));
  other->wait();
  const auto ended = find_listed(*sandbox, other->id());
  REQUIRE(ended.has_value());
  CHECK_FALSE(ended->running);
  REQUIRE(ended->exit.has_value());
  CHECK(ended->exit->code == 5);
  CHECK(other->exit_code() == 5);
}

void ended_is_listed(Host& host) {
  const auto sandbox = host.started();
  const auto ended = sandbox->spawn(argv({"true"}));
  ended->wait();
  const auto info = find_listed(*sandbox, ended->id());
  REQUIRE(info.has_value());
  CHECK_FALSE(info->running);
  REQUIRE(info->exit.has_value());
  CHECK(info->exit->code == 0);
}

void got(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(shell("echo so far; sleep 60"));
  const auto found = sandbox->get_process(process->id());
  REQUIRE((found != nullptr));
  CHECK((found == process));
  CHECK(eventually([&] { return found->out() == "so far\n"; }));
  process->kill();
}

void many_wait(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(shell("sleep 0.3; echo done; exit 4"));
  std::vector<std::future<Result<CommandResult>>> waiting;
  for (int i = 0; i < 20; ++i) {
    auto promise = std::make_shared<std::promise<Result<CommandResult>>>();
    waiting.push_back(promise->get_future());
    process->async_wait({},
                        [promise](Result<CommandResult> r) { promise->set_value(std::move(r)); });
  }
  for (auto& one : waiting) {
    const auto result = one.get();
    REQUIRE(result.ok());
    CHECK(result->exit_code == 4);
    CHECK(result->out == "done\n");
  }
  CHECK(process->wait().exit_code == 4);
}

void retained(Host& host) {
  const auto sandbox = host.started();
  const auto process =
      sandbox->spawn(shell("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"));
  CHECK(eventually([&] { return process->out() == "one\n"; }));
  CHECK(process->running());
  touch(*sandbox, "go");
  process->wait();
  CHECK(process->out() == "one\ntwo\n");
}

void killed_by_id(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  const auto id = process->id();
  REQUIRE(eventually([&] { return sandbox->get_process(id)->out() == "up\n"; }));
  CHECK(sandbox->kill_process(id));
  CHECK_FALSE(process->running());
  CHECK_FALSE(process->wait().success);
  CHECK((sandbox->get_process(id) == nullptr));
  CHECK_FALSE(sandbox->kill_process(id));
  CHECK_FALSE(find_listed(*sandbox, id).has_value());
}

void killed_by_handle_stays(Host& host) {
  const auto sandbox = host.make();
  const auto process = sandbox->spawn(argv({"sleep", "60"}));
  CHECK(process->kill());
  process->wait();
  const auto found = sandbox->get_process(process->id());
  REQUIRE((found != nullptr));
  CHECK((found->id() == process->id()));
}

void released(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(shell("while [ ! -e go ]; do sleep 0.02; done; echo end"));
  sandbox->release_process(process->id());
  CHECK((sandbox->get_process(process->id()) == nullptr));
  CHECK_FALSE(find_listed(*sandbox, process->id()).has_value());
  CHECK(process->running());
  touch(*sandbox, "go");
  CHECK(process->wait().out == "end\n");
}

void reader_and_writer(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(argv({"cat"}));
  std::string read;
  WaitOptions reader;
  reader.on_stdout = [&](std::string_view chunk) { read += chunk; };
  auto promise = std::make_shared<std::promise<Result<CommandResult>>>();
  process->async_wait(reader,
                      [promise](Result<CommandResult> r) { promise->set_value(std::move(r)); });
  for (int i = 0; i < 3; ++i)
    process->write("line " + std::to_string(i) + "\n");
  process->close_stdin();
  const auto result = promise->get_future().get();
  REQUIRE(result.ok());
  CHECK(read == "line 0\nline 1\nline 2\n");
  CHECK(result->out == read);
}

void reader_ends(Host& host) {
  const auto process = host.make()->spawn(shell("echo data"));
  std::string read;
  WaitOptions reader;
  reader.on_stdout = [&](std::string_view chunk) { read += chunk; };
  CHECK(timed([&] { process->wait(reader); }) < 5s);
  CHECK((read.empty() || read == "data\n"));  // only what comes during the wait
  CHECK(process->out() == "data\n");
}

void apart(Host& host) {
  const auto sandbox = host.started();
  std::vector<std::shared_ptr<Process>> all;
  for (const std::string name : {"a", "b"})
    all.push_back(sandbox->spawn(shell("for i in 1 2 3; do echo " + name + "$i; echo E" + name +
                                       "$i >&2; sleep 0.05; done")));
  all.push_back(sandbox->spawn(shell("echo c; sleep 60")));
  CHECK(all[0]->wait().out == "a1\na2\na3\n");
  CHECK(all[1]->wait().out == "b1\nb2\nb3\n");
  CHECK(all[0]->err() == "Ea1\nEa2\nEa3\n");
  CHECK(all[1]->err() == "Eb1\nEb2\nEb3\n");
  CHECK(all[2]->running());
  CHECK(eventually([&] { return all[2]->out() == "c\n"; }));
  CHECK((all[0]->id() != all[1]->id()));
  CHECK((all[1]->id() != all[2]->id()));
  CHECK(all[2]->kill());
}

void got_once(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(shell("echo kept; exit 6"));
  const auto id = process->id();
  REQUIRE(eventually([&] { return !process->running(); }));
  const auto found = sandbox->get_process(id);
  REQUIRE((found != nullptr));
  CHECK(found->exit_code() == 6);
  CHECK(found->out() == "kept\n");
  CHECK((sandbox->get_process(id) == nullptr));
}

void unknown(Host& host) {
  const auto sandbox = host.started();
  const bool kills = host.has("spawn.kill");
  for (const std::string id : {"999999999", "no-such", "", "-1", "18446744073709551616"}) {
    CAPTURE(id);
    CHECK((sandbox->get_process(ProcessId(id)) == nullptr));
    if (kills) CHECK_FALSE(sandbox->kill_process(ProcessId(id)));
  }
}

// Of a process that has ended nothing is asked any more, so that nobody who has its number now can
// be hit.
void ended_is_left_alone(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(argv({"true"}));
  process->wait();
  CHECK_FALSE(process->kill());
  CHECK_FALSE(sandbox->kill_process(process->id()));
  if (host.has("spawn.signal"))
    CHECK(error_of([&] { process->signal(SIGKILL, true); }).code == Status::conflict);
}

void signals(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(
      shell("trap 'echo got; exit 9' USR1; touch ready; while :; do sleep 0.05; done"));
  REQUIRE(eventually([&] { return exists(*sandbox, "ready"); }));
  process->signal(SIGUSR1);
  const auto result = process->wait();
  CHECK(result.exit_code == 9);
  CHECK(result.out == "got\n");
  CHECK_THROWS_AS(sandbox->spawn(argv({"sleep", "5"}))->signal(0), InvalidArgumentError);

  const auto tree = sandbox->spawn(shell("sleep 60 & echo $! > child; wait"));
  const auto child = read_pid(*sandbox, "child");
  tree->signal(SIGTERM, true);
  CHECK(tree->wait().signal == SIGTERM);
  CHECK(eventually([&] { return !runs(*sandbox, child); }));
}

void terminal(Host& host) {
  const auto sandbox = host.started();
  SpawnOptions options;
  options.tty = Tty{100, 40, "xterm"};
  const auto process =
      sandbox->spawn(shell("stty size; echo $TERM; for at in go further; do "
                           "while [ ! -e $at ]; do sleep 0.02; done; stty size; done; "
                           "stty rows 50 cols 65535; stty size"),
                     options);
  REQUIRE(eventually([&] { return process->out().find("xterm") != std::string::npos; }));
  CHECK(process->out().find("40 100") != std::string::npos);
  await_result<void>([&](auto done) { process->async_resize(120, 50, std::move(done)); });
  touch(*sandbox, "go");
  REQUIRE(eventually([&] { return process->out().find("50 120") != std::string::npos; }));
  // The widest that a terminal can be, for which not every stty has a number.
  await_result<void>([&](auto done) { process->async_resize(70'000, 50, std::move(done)); });
  touch(*sandbox, "further");
  const auto result = process->wait();
  CHECK(result.exit_code == 0);
  std::istringstream said(result.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(said, line);)
    lines.push_back(line);
  REQUIRE(lines.size() == 5);
  CHECK(lines[3] != lines[2]);
  CHECK(lines[3] == lines[4]);
}

void callback(Host& host, bool of_stdout) {
  std::string seen;
  SpawnOptions options;
  (of_stdout ? options.on_stdout : options.on_stderr) = [&](std::string_view chunk) {
    seen += chunk;
  };
  host.make()->spawn(shell(of_stdout ? "echo out" : "echo err >&2"), options)->wait();
  CHECK(seen == (of_stdout ? "out\n" : "err\n"));
}
void callback_out(Host& host) {
  callback(host, true);
}
void callback_err(Host& host) {
  callback(host, false);
}

void in_time(Host& host, bool of_stdout) {
  const auto sandbox = host.make();
  std::atomic<int> chunks{0};
  SpawnOptions options;
  (of_stdout ? options.on_stdout : options.on_stderr) = [&](std::string_view) { ++chunks; };
  const auto process = sandbox->spawn(shell("(for i in 1 2 3; do echo line$i; sleep 0.2; done; "
                                            "while [ ! -e go ]; do sleep 0.02; done) >&" +
                                            std::string(of_stdout ? "1" : "2")),
                                      options);
  CHECK(eventually([&] { return chunks >= 1; }));
  CHECK(process->running());
  touch(*sandbox, "go");
  const auto result = process->wait();
  CHECK((of_stdout ? result.out : result.err) == "line1\nline2\nline3\n");
}
void in_time_out(Host& host) {
  in_time(host, true);
}
void in_time_err(Host& host) {
  in_time(host, false);
}

void handle_has_output(Host& host) {
  const auto process = host.make()->spawn(shell("echo out; echo err >&2"));
  process->wait();
  CHECK(process->out().find("out\n") != std::string::npos);
  if (host.has("stderr.separate")) CHECK(process->err() == "err\n");
}

void no_code_before_end(Host& host) {
  const auto process = host.make()->spawn(shell("read line"));
  CHECK_FALSE(process->exit_code().has_value());
  process->write("x\n");
  process->wait();
  CHECK(process->exit_code() == 0);
}

}  // namespace

void add_processes(Procedures& to) {
  to["processes.has_number"] = has_number;
  to["processes.spawned"] = spawned;
  to["processes.listed"] = listed;
  to["processes.ended_is_listed"] = ended_is_listed;
  to["processes.got"] = got;
  to["processes.many_wait"] = many_wait;
  to["processes.retained"] = retained;
  to["processes.killed_by_id"] = killed_by_id;
  to["processes.killed_by_handle_stays"] = killed_by_handle_stays;
  to["processes.released"] = released;
  to["processes.reader_and_writer"] = reader_and_writer;
  to["processes.reader_ends"] = reader_ends;
  to["processes.apart"] = apart;
  to["processes.got_once"] = got_once;
  to["processes.unknown"] = unknown;
  to["processes.ended_is_left_alone"] = ended_is_left_alone;
  to["processes.signals"] = signals;
  to["processes.terminal"] = terminal;
  to["processes.callback_out"] = callback_out;
  to["processes.callback_err"] = callback_err;
  to["processes.in_time_out"] = in_time_out;
  to["processes.in_time_err"] = in_time_err;
  to["processes.handle_has_output"] = handle_has_output;
  to["processes.no_code_before_end"] = no_code_before_end;
}

}  // namespace sandforge::conformance

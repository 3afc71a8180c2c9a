// The checks of group C of the shared contract suite: process management.
#include <algorithm>
#include <fstream>
#include <stop_token>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

const char* const kThreeLines = "for i in 1 2 3; do echo line$i; sleep 0.2; done";

}  // namespace

TEST_CASE_METHOD(LocalFixture, "contract C1 C2 spawn gives a handle whose output accumulates",
                 "[contract.C1][contract.C2]") {
  const auto process = make()->spawn(shell("echo hello"));
  CHECK(process->pid() > 0);
  CHECK_FALSE(process->id().empty());
  const auto result = process->wait();
  CHECK(result.success);
  CHECK(result.out == "hello\n");
}

TEST_CASE_METHOD(LocalFixture, "contract C3 C4 stderr and the exit code of a spawn",
                 "[contract.C3][contract.C4]") {
  const auto sandbox = make();
  CHECK(sandbox->spawn(shell("echo oops >&2"))->wait().err == "oops\n");
  const auto result = sandbox->spawn(shell("exit 42"))->wait();
  CHECK(result.exit_code == 42);
  CHECK_FALSE(result.success);
}

TEST_CASE_METHOD(LocalFixture, "contract C5 the env option of a spawn", "[contract.C5]") {
  SpawnOptions options;
  options.env["V"] = "value";
  CHECK(make()->spawn(shell("echo $V"), options)->wait().out == "value\n");
}

TEST_CASE_METHOD(LocalFixture, "contract C6 C7 the callbacks get the output",
                 "[contract.C6][contract.C7]") {
  std::string out;
  std::string err;
  SpawnOptions options;
  options.on_stdout = [&](std::string_view chunk) { out += chunk; };
  options.on_stderr = [&](std::string_view chunk) { err += chunk; };
  make()->spawn(shell("echo out; echo err >&2"), options)->wait();
  CHECK(out == "out\n");
  CHECK(err == "err\n");
}

TEST_CASE_METHOD(LocalFixture, "contract C8 C9 the callbacks get the output in time",
                 "[contract.C8][contract.C9]") {
  for (const std::string stream : {"1", "2"}) {
    CAPTURE(stream);
    const auto sandbox = make("s" + stream);
    std::atomic<int> chunks{0};
    SpawnOptions options;
    (stream == "1" ? options.on_stdout : options.on_stderr) = [&](std::string_view) { ++chunks; };
    const auto process =
        sandbox->spawn(shell("(" + std::string(kThreeLines) +
                             "; while [ ! -e go ]; do sleep 0.02; done) >&" + stream),
                       options);
    CHECK(eventually([&] { return chunks >= 1; }));
    CHECK(process->running());
    std::ofstream(folder("s" + stream) / "go") << "x";
    const auto result = process->wait();
    CHECK((stream == "1" ? result.out : result.err) == "line1\nline2\nline3\n");
  }
}

TEST_CASE_METHOD(LocalFixture, "contract C10 C11 the handle has the output after wait",
                 "[contract.C10][contract.C11]") {
  const auto process = make()->spawn(shell("echo out; echo err >&2"));
  process->wait();
  CHECK(process->out() == "out\n");
  CHECK(process->err() == "err\n");
}

TEST_CASE_METHOD(LocalFixture, "contract C12 there is no exit code before the end",
                 "[contract.C12]") {
  const auto process = make()->spawn(shell("read line"));
  CHECK_FALSE(process->exit_code());
  process->write("x\n");
  process->wait();
  CHECK(process->exit_code() == 0);
}

TEST_CASE_METHOD(LocalFixture, "contract C13 wait can be called again", "[contract.C13]") {
  const auto process = make()->spawn(shell("echo once; exit 3"));
  const auto first = process->wait();
  const auto second = process->wait();
  CHECK(first.exit_code == 3);
  CHECK(second.exit_code == 3);
  CHECK(first.out == second.out);
}

TEST_CASE_METHOD(LocalFixture, "contract C14 C15 kill is true while it runs, false after",
                 "[contract.C14][contract.C15]") {
  const auto sandbox = make();
  const auto process = sandbox->spawn(argv({"sleep", "60"}));
  CHECK(process->kill());
  CHECK_FALSE(process->wait().success);
  const auto ended = sandbox->spawn(argv({"true"}));
  ended->wait();
  CHECK_FALSE(ended->kill());
}

TEST_CASE_METHOD(LocalFixture, "contract C16 C18 an abort from the first output keeps what came",
                 "[contract.C16][contract.C18]") {
  std::stop_source stop;
  SpawnOptions options;
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  const auto result = make()->spawn(shell("echo partial; sleep 60"), options)->wait();
  CHECK_FALSE(result.success);
  CHECK(result.out == "partial\n");
}

TEST_CASE_METHOD(LocalFixture, "contract C17 a signal that was raised before: nothing starts",
                 "[contract.C17]") {
  const auto sandbox = started();
  std::stop_source stop;
  stop.request_stop();
  SpawnOptions options;
  options.stop = stop.get_token();
  CHECK_THROWS_AS(sandbox->spawn(shell("touch started; sleep 60"), options), SandboxAbortError);
  CHECK_FALSE(fs::exists(folder() / "started"));
}

TEST_CASE_METHOD(LocalFixture,
                 "contract C19 C20 head -1 gets a line, after its end input is refused",
                 "[contract.C19][contract.C20]") {
  const auto process = make()->spawn(argv({"head", "-1"}));
  process->write("a line\n");
  CHECK(process->wait().out == "a line\n");
  CHECK_THROWS_AS(process->write("late\n"), Exception);
}

TEST_CASE_METHOD(LocalFixture, "contract C21 C22 C23 list shows what runs, and what has ended",
                 "[contract.C21][contract.C22][contract.C23]") {
  const auto sandbox = make();
  const auto running = sandbox->spawn(argv({"sleep", "60"}));
  const auto ended = sandbox->spawn(argv({"true"}));
  ended->wait();
  const auto all = sandbox->list_processes();
  const auto find = [&](const ProcessId& id) {
    return std::find_if(all.begin(), all.end(), [&](const auto& info) { return info.id == id; });
  };
  REQUIRE(find(running->id()) != all.end());
  CHECK(find(running->id())->running);
  CHECK(find(running->id())->command.find("sleep") != std::string::npos);
  REQUIRE(find(ended->id()) != all.end());
  CHECK_FALSE(find(ended->id())->running);
  CHECK(find(ended->id())->exit->code == 0);
  running->kill();
}

TEST_CASE_METHOD(LocalFixture, "contract C24 C26 get finds a running process with its output",
                 "[contract.C24][contract.C26]") {
  const auto sandbox = make();
  const auto process = sandbox->spawn(shell("echo so far; sleep 60"));
  const auto found = sandbox->get_process(process->id());
  REQUIRE(found != nullptr);
  CHECK(found->id() == process->id());
  CHECK(eventually([&] { return found->out() == "so far\n"; }));
  process->kill();
}

TEST_CASE_METHOD(LocalFixture,
                 "contract C25 C28 the first get after the end has it, the second not",
                 "[contract.C25][contract.C28]") {
  const auto sandbox = make();
  const auto process = sandbox->spawn(shell("echo out; exit 2"));
  const auto id = process->id();
  REQUIRE(eventually([&] { return !process->running(); }));
  const auto found = sandbox->get_process(id);
  REQUIRE(found != nullptr);
  CHECK(found->out() == "out\n");
  CHECK(found->exit_code() == 2);
  CHECK(sandbox->get_process(id) == nullptr);
}

TEST_CASE_METHOD(LocalFixture, "contract C27 spawn, get and kill in separate calls",
                 "[contract.C27]") {
  const auto sandbox = make();
  const auto id = sandbox->spawn(shell("echo up; sleep 60"))->id();
  REQUIRE(eventually([&] { return sandbox->get_process(id)->out() == "up\n"; }));
  CHECK(sandbox->kill_process(id));
  CHECK(sandbox->get_process(id) == nullptr);
}

TEST_CASE_METHOD(LocalFixture, "contract C29 C33 an unknown id is neither found nor killed",
                 "[contract.C29][contract.C33]") {
  const auto sandbox = started();
  CHECK(sandbox->get_process(ProcessId("unknown")) == nullptr);
  CHECK_FALSE(sandbox->kill_process(ProcessId("unknown")));
}

TEST_CASE_METHOD(LocalFixture, "contract C30 a kill by the handle does not untrack",
                 "[contract.C30]") {
  const auto sandbox = make();
  const auto process = sandbox->spawn(argv({"sleep", "60"}));
  CHECK(process->kill());
  process->wait();
  const auto found = sandbox->get_process(process->id());
  REQUIRE(found != nullptr);
  CHECK(found->id() == process->id());
}

TEST_CASE_METHOD(LocalFixture, "contract C31 three processes are independent", "[contract.C31]") {
  const auto sandbox = make();
  const auto one = sandbox->spawn(shell("echo one"));
  const auto two = sandbox->spawn(shell("echo two"));
  const auto three = sandbox->spawn(argv({"sleep", "60"}));
  CHECK(one->pid() != two->pid());
  CHECK(two->pid() != three->pid());
  CHECK(one->wait().out == "one\n");
  CHECK(two->wait().out == "two\n");
  CHECK(three->running());
  three->kill();
}

TEST_CASE_METHOD(LocalFixture, "contract C32 C34 a kill by id is true, then the process is unknown",
                 "[contract.C32][contract.C34]") {
  const auto sandbox = make();
  const auto process = sandbox->spawn(argv({"sleep", "60"}));
  CHECK(sandbox->kill_process(process->id()));
  CHECK_FALSE(process->wait().success);
  CHECK(sandbox->get_process(process->id()) == nullptr);
}

TEST_CASE_METHOD(LocalFixture, "contract C35 C36 a spawn inherits the environment and goes over it",
                 "[contract.C35][contract.C36]") {
  SandboxConfig config;
  config.id = "s";
  config.env = EnvMap{{"A", "a"}, {"B", "b"}};
  const auto sandbox = make(config);
  CHECK(sandbox->spawn(shell("echo $A $B"))->wait().out == "a b\n");
  SpawnOptions options;
  options.env["B"] = "over";
  CHECK(sandbox->spawn(shell("echo $A $B"), options)->wait().out == "a over\n");
}

TEST_CASE_METHOD(LocalFixture, "contract C37 C38 a reader gets data and ends with the process",
                 "[contract.C37][contract.C38]") {
  const auto process = make()->spawn(shell("echo data"));
  std::string read;
  WaitOptions reader;
  reader.on_stdout = [&](std::string_view chunk) { read += chunk; };
  CHECK(timed([&] { process->wait(reader); }) < 5s);
  CHECK((read.empty() || read == "data\n"));  // only what comes during the wait
  CHECK(process->out() == "data\n");
}

TEST_CASE_METHOD(LocalFixture, "contract C39 a writer feeds head -1, closing feeds cat",
                 "[contract.C39]") {
  const auto sandbox = make();
  const auto head = sandbox->spawn(argv({"head", "-1"}));
  head->write("fed\nmore\n");
  CHECK(head->wait().out == "fed\n");
  const auto cat = sandbox->spawn(argv({"cat"}));
  cat->write("data");
  cat->close_stdin();
  const auto result = cat->wait();
  CHECK(result.exit_code == 0);
  CHECK(result.out == "data");
}

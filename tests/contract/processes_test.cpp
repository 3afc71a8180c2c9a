// C: processes, one case for each sentence of the row, and what the contract adds.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

std::optional<ProcessInfo> listed(Sandbox& sandbox, const ProcessId& id) {
  for (auto& info : sandbox.list_processes())
    if (info.id == id) return info;
  return std::nullopt;
}

SpawnOptions keeping(std::uint64_t bytes) {
  SpawnOptions options;
  options.max_retained_bytes = bytes;
  return options;
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "C spawn, list and get show a running process",
                 "[cases.C_spawn][cases.C_list][cases.C_get]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  CHECK_FALSE(process->id().empty());
  CHECK(process->pid() > 0);
  CHECK(process->running());
  CHECK_FALSE(process->exit_code());
  CHECK(process->command() == "echo up; sleep 60");

  const auto info = listed(*sandbox, process->id());
  REQUIRE(info);
  CHECK(info->running);
  CHECK(info->command.find("sleep 60") != std::string::npos);
  CHECK(info->pid == process->pid());
  CHECK_FALSE(info->exit);

  CHECK(sandbox->get_process(process->id()) == process);
  process->kill();
}

TEST_CASE_METHOD(LocalFixture, "C list shows how a process ended", "[cases.C_list]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(shell("exit 5"));
  process->wait();
  const auto info = listed(*sandbox, process->id());
  REQUIRE(info);
  CHECK_FALSE(info->running);
  REQUIRE(info->exit);
  CHECK(info->exit->code == 5);
  CHECK(process->exit_code() == 5);
}

TEST_CASE_METHOD(LocalFixture, "C many wait for one process and get the same result",
                 "[cases.C_wait]") {
  const auto sandbox = started();
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

TEST_CASE_METHOD(LocalFixture, "C retained output can be read while running and after",
                 "[cases.C_retained]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(
      shell("echo one; echo err >&2; while [ ! -e go ]; do sleep 0.02; done; echo two"));
  CHECK(eventually([&] { return process->out() == "one\n" && process->err() == "err\n"; }));
  CHECK(process->running());
  std::ofstream(folder() / "go") << "x";
  process->wait();
  CHECK(process->out() == "one\ntwo\n");
  CHECK(process->err() == "err\n");
}

TEST_CASE_METHOD(LocalFixture, "C kill by id ends, answers once, and forgets", "[cases.C_kill]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(argv({"sleep", "60"}));
  const auto id = process->id();
  CHECK(sandbox->kill_process(id));
  CHECK_FALSE(process->running());
  CHECK_FALSE(process->wait().success);
  CHECK(sandbox->get_process(id) == nullptr);
  CHECK_FALSE(sandbox->kill_process(id));
  CHECK_FALSE(listed(*sandbox, id));
}

TEST_CASE_METHOD(LocalFixture, "C release hides a process and leaves it alone",
                 "[cases.C_release]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(shell("while [ ! -e go ]; do sleep 0.02; done; echo end"));
  sandbox->release_process(process->id());
  CHECK(sandbox->get_process(process->id()) == nullptr);
  CHECK_FALSE(listed(*sandbox, process->id()));
  CHECK(process->running());
  std::ofstream(folder() / "go") << "x";
  CHECK(process->wait().out == "end\n");
}

TEST_CASE_METHOD(LocalFixture, "C a reader sees all output of a process, a writer feeds it",
                 "[cases.C_streams]") {
  const auto sandbox = started();
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

TEST_CASE_METHOD(LocalFixture, "C three at once keep their output apart", "[cases.C_apart]") {
  const auto sandbox = started();
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
  CHECK(all[0]->id() != all[1]->id());
  CHECK(all[1]->id() != all[2]->id());
  CHECK(all[2]->kill());
}

TEST_CASE_METHOD(LocalFixture, "C a get after the end returns it once, with its output",
                 "[cases.C_get_once]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(shell("echo kept; echo too >&2; exit 6"));
  const auto id = process->id();
  REQUIRE(eventually([&] { return !process->running(); }));
  const auto found = sandbox->get_process(id);
  REQUIRE(found != nullptr);
  CHECK(found->exit_code() == 6);
  CHECK(found->out() == "kept\n");
  CHECK(found->err() == "too\n");
  CHECK(sandbox->get_process(id) == nullptr);
}

TEST_CASE_METHOD(LocalFixture, "C an unknown id is absent", "[cases.C_unknown]") {
  const auto sandbox = started();
  for (const std::string id : {"1", "999999999", "no-such", "", "-1", "18446744073709551616"}) {
    CAPTURE(id);
    CHECK(sandbox->get_process(ProcessId(id)) == nullptr);
    CHECK_FALSE(sandbox->kill_process(ProcessId(id)));
  }
  // A process of the host's is no process of the sandbox.
  CHECK(sandbox->get_process(ProcessId(std::to_string(::getpid()))) == nullptr);
  CHECK_FALSE(sandbox->kill_process(ProcessId(std::to_string(::getppid()))));
}

TEST_CASE_METHOD(LocalFixture, "C the environment of a spawn goes over the sandbox's",
                 "[cases.C_env]") {
  SandboxConfig config;
  config.id = "s";
  config.env = EnvMap{{"A", "sandbox"}, {"B", "sandbox"}};
  const auto sandbox = make(config);
  SpawnOptions options;
  options.env = {{"B", "spawn"}, {"C", "spawn"}};
  CHECK(sandbox->spawn(shell("echo $A $B $C"), options)->wait().out == "sandbox spawn spawn\n");
  CHECK(sandbox->spawn(shell("echo $A $B $C"))->wait().out == "sandbox sandbox\n");
}

TEST_CASE_METHOD(LocalFixture, "C retention of nothing counts everything",
                 "[cases.C_retention_0]") {
  const auto sandbox = started();
  std::string seen;
  auto options = keeping(0);
  options.on_stdout = [&](std::string_view chunk) { seen += chunk; };
  const auto result = sandbox->spawn(shell("echo hello"), options)->wait();
  CHECK(result.out.empty());
  CHECK(result.stdout_truncated);
  CHECK(result.stdout_dropped_bytes == 6);
  CHECK_FALSE(result.stderr_truncated);
  CHECK(seen == "hello\n");
}

TEST_CASE_METHOD(LocalFixture, "C retention keeps the newest bytes and counts the rest",
                 "[cases.C_retention_5]") {
  const auto sandbox = started();
  const auto five = sandbox->spawn(shell("printf 'hello world'"), keeping(5))->wait();
  CHECK(five.out == "world");
  CHECK(five.stdout_dropped_bytes == 6);

  // Four-byte characters on the edge: bytes are exact, the text holds no torn character.
  const std::string smile = "\xf0\x9f\x98\x80";
  const auto torn = sandbox->spawn(shell("printf '" + smile + smile + "'"), keeping(5))->wait();
  CHECK(torn.out == smile.substr(3) + smile);
  CHECK(torn.stdout_dropped_bytes == 3);
  CHECK(torn.stdout_text().find(smile) != std::string::npos);
  const auto whole = sandbox->spawn(shell("printf '" + smile + "'"), keeping(4))->wait();
  CHECK(whole.out == smile);
  CHECK_FALSE(whole.stdout_truncated);
}

TEST_CASE_METHOD(LocalFixture, "C a process keeps a mebibyte where nothing else is said",
                 "[cases.C_retention_1m]") {
  const auto sandbox = started();
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  const auto result =
      sandbox->spawn(shell("head -c 1048580 /dev/zero; head -c 1048577 /dev/zero >&2"))->wait();
  CHECK(result.out.size() == kMebibyte);
  CHECK(result.stdout_dropped_bytes == 4);
  CHECK(result.err.size() == kMebibyte);
  CHECK(result.stderr_dropped_bytes == 1);
  const auto command = sandbox->execute_command("head -c 2097152 /dev/zero");
  CHECK(command.out.size() == 2 * kMebibyte);
  CHECK_FALSE(command.stdout_truncated);
}

TEST_CASE_METHOD(LocalFixture, "C characters of four bytes on the edge of a mebibyte",
                 "[cases.C_retention_1m]") {
  const auto sandbox = started();
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  const std::string smile = "\xf0\x9f\x98\x80";
  // A mebibyte of whole characters, and then 0 to 4 bytes more, which push as many out.
  for (std::size_t more = 0; more <= 4; ++more) {
    CAPTURE(more);
    const auto result =
        sandbox
            ->spawn(shell("yes '" + smile + "' | tr -d '\\n' | head -c 1048576; printf '%s' '" +
                          std::string(more, 'x') + "'"))
            ->wait();
    CHECK(result.out.size() == kMebibyte);
    CHECK(result.stdout_dropped_bytes == more);
    CHECK(result.stdout_truncated == (more > 0));
    CHECK(result.out.compare(0, 4 - more % 4, smile.substr(more % 4)) == 0);
    // The text begins with a whole character.
    const std::string text = result.stdout_text();
    CHECK(text.compare(0, 4, smile) == 0);
    CHECK(text.find("\xef\xbf\xbd") == std::string::npos);
    CHECK(text.size() == (more == 0 ? kMebibyte : kMebibyte - (4 - more % 4) % 4));
  }
}

TEST_CASE_METHOD(LocalFixture, "C a pid that the system uses again is never killed by mistake",
                 "[cases.C_pid_reuse]") {
  // Only who may choose the next pid can bring the collision about.
  const char* const last_pid = "/proc/sys/kernel/ns_last_pid";
  if (::access(last_pid, W_OK) != 0) {
    WARN("SKIPPED: ns_last_pid cannot be written here");
    return;
  }
  const auto sandbox = started();
  const auto process = sandbox->spawn(argv({"true"}));
  const auto reused = static_cast<pid_t>(process->pid());
  process->wait();
  REQUIRE(eventually([&] { return ::kill(reused, 0) != 0; }));

  pid_t stranger = 0;
  std::string sleep = "sleep", long_time = "60";
  char* words[] = {sleep.data(), long_time.data(), nullptr};
  for (int tries = 0; tries < 200 && stranger != reused; ++tries) {
    if (stranger != 0) {
      ::kill(stranger, SIGKILL);
      ::waitpid(stranger, nullptr, 0);
    }
    std::ofstream(last_pid) << reused - 1;
    REQUIRE(::posix_spawnp(&stranger, "sleep", nullptr, nullptr, words, environ) == 0);
  }
  const bool collided = stranger == reused;
  if (collided) {
    CHECK_FALSE(process->kill());
    CHECK_FALSE(sandbox->kill_process(process->id()));
    CHECK(error_of([&] { process->signal(SIGKILL, true); }).reason == "process.ended");
    sandbox->stop();
    CHECK(alive(stranger));
  }
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
  if (!collided) WARN("SKIPPED: the pid was not given out again");
}

TEST_CASE_METHOD(LocalFixture, "C signals reach the leader, or the whole tree") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(
      shell("trap 'echo got; exit 9' USR1; touch ready; while :; do sleep 0.05; done"));
  REQUIRE(eventually([&] { return fs::exists(folder() / "ready"); }));
  process->signal(SIGUSR1);
  const auto result = process->wait();
  CHECK(result.exit_code == 9);
  CHECK(result.out == "got\n");
  CHECK_THROWS_AS(sandbox->spawn(argv({"sleep", "5"}))->signal(0), InvalidArgumentError);

  const auto tree = sandbox->spawn(shell("sleep 60 & echo $! > child; wait"));
  const pid_t child = read_pid(folder() / "child");
  tree->signal(SIGTERM, true);
  CHECK(tree->wait().signal == SIGTERM);
  CHECK(eventually([&] { return !alive(child); }));
}

TEST_CASE_METHOD(LocalFixture, "C a terminal has its size, and can be resized") {
  const auto sandbox = started();
  SpawnOptions options;
  options.tty = Tty{100, 40, "xterm"};
  const auto process =
      sandbox->spawn(shell("stty size; echo $TERM; for at in go further; do "
                           "while [ ! -e $at ]; do sleep 0.02; done; stty size; done"),
                     options);
  REQUIRE(eventually([&] { return process->out().find("xterm") != std::string::npos; }));
  CHECK(process->out().find("40 100") != std::string::npos);
  await_result<void>([&](auto done) { process->async_resize(120, 50, std::move(done)); });
  std::ofstream(folder() / "go") << "x";
  REQUIRE(eventually([&] { return process->out().find("50 120") != std::string::npos; }));
  // The longest that a terminal can have.
  await_result<void>([&](auto done) { process->async_resize(70'000, 50, std::move(done)); });
  std::ofstream(folder() / "further") << "x";
  const auto result = process->wait();
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("50 65535") != std::string::npos);
}

TEST_CASE_METHOD(LocalFixture, "C a hard output limit ends the command") {
  const auto sandbox = started();
  ExecOptions options;
  options.output_limit = 1000;
  const auto result = sandbox->execute_command("yes", {}, options);
  CHECK(result.outcome == Outcome::output_limit);
  CHECK_FALSE(result.success);
  CHECK(result.out.size() == 1000);
  CHECK(only_guests());
}

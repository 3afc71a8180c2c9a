// A plugin in a process of its own behaves as one in line: calls, streams, errors, services.
#include "sandforge/runner.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>

#include "runner_fixture.hpp"
#include "sandforge/abi.h"
#include "sandforge/posix/fd.hpp"

using namespace sandforge;
using test::error_of;
using test::RunnerHost;

TEST_CASE("a whole life in a process of its own", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  const auto info = host.registry->find("unruly").value();
  CHECK(info.in_process);
  const auto started = sandbox->start();
  CHECK(started.outcome == StartOutcome::created);
  CHECK(sandbox->sandbox_id()->str() == "machine-s");
  CHECK(sandbox->instructions() == "do as you like");
  CHECK(sandbox->info().status == SandboxStatus::running);

  const auto result = sandbox->execute_command("hello");
  CHECK(result.out == "hello");
  CHECK(result.exit_code == 0);

  Command command;
  command.shell = "pid";
  const auto process = sandbox->spawn(command);
  CHECK(process->wait().exit_code == 0);
  sandbox->stop();
  sandbox->destroy();
  CHECK(host.registry->find("unruly")->faults == 0);
}

TEST_CASE("output of any size arrives whole, under the host's credit", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65536},
                                 std::size_t{65537}, std::size_t{3'000'000}}) {
    std::size_t seen = 0;
    ExecOptions options;
    options.on_stdout = [&](std::string_view piece) { seen += piece.size(); };
    const auto result = sandbox->execute_command("fill " + std::to_string(size), {}, options);
    CHECK(result.exit_code == 0);
    CHECK(seen == size);
  }
  CHECK(host.registry->find("unruly")->faults == 0);
}

TEST_CASE("input of any size arrives whole, and a closed one refuses more", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  sandbox->start();
  Command command;
  command.shell = "cat";
  command.stdin_pipe = true;
  const auto process = sandbox->spawn(command);
  const std::string text(1'000'000, 'y');
  process->write(text);
  process->close_stdin();
  const auto result = process->wait();
  CHECK(result.exit_code == 0);
  CHECK(result.out.size() + result.stdout_dropped_bytes == text.size());
  CHECK(error_of([&] { process->write("more"); }).code == Status::conflict);
}

TEST_CASE("errors of the plugin keep their code and their words", "[runner]") {
  RunnerHost host;
  const auto refused = error_of([&] { host.open("open"); });
  CHECK(refused.code == Status::invalid);
  CHECK(refused.message == "these options are wrong");
  const auto settings = error_of([&] { host.make("create")->start(); });
  CHECK(settings.code == Status::invalid);
  CHECK(settings.message == "these settings are wrong");
  const auto start = error_of([&] { host.make("start")->start(); });
  CHECK(start.code == Status::no_space);
  CHECK(start.message == "there is no room");
}

TEST_CASE("state, log and the callbacks of a session cross", "[runner]") {
  RunnerHost host;
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId("s");
  context->sandbox_id = ProviderSandboxId("kept-id");
  context->repository_access = [](Handler<RepositoryAccess> done) {
    RepositoryAccess access;
    access.clone_url = "https://example.org/r.git";
    access.authorization.emplace();
    access.authorization->token = "minted";
    std::move(done)(std::move(access));
  };
  context->resolve_head = [](std::string url, std::string token,
                             Handler<std::optional<std::string>> done) {
    std::move(done)(std::optional(url + "@" + token));
  };
  const auto sandbox = host.make(host.open(), "s", context);
  CHECK(sandbox->start().warnings == std::vector<std::string>{"knew kept-id"});
  CHECK(sandbox->execute_command("access").out == "https://example.org/r.git minted");
  CHECK(sandbox->execute_command("head u").out == "u@t");
  CHECK(sandbox->execute_command("log this").out == "logged");
  // The host takes calls of a plugin in their order: this answer comes after the record.
  CHECK(sandbox->execute_command("keep v1").out == "v1");
  const std::string log = host.log();
  INFO(log);
  CHECK(log.find("said plugin=unruly what=this hidden=***") != std::string::npos);
  CHECK(log.find("s3cret-value") == std::string::npos);
}

TEST_CASE("a log record has a limit, and the next ones arrive", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  CHECK(sandbox->execute_command("shout 262000").out == "shouted");
  CHECK(sandbox->execute_command("keep v1").out == "v1");
  CHECK(host.registry->find("unruly")->faults == 0);
  CHECK(host.log().find("xxx… (253808 more bytes)") != std::string::npos);
  CHECK(sandbox->execute_command("shout 262144").out == "shouted");
  CHECK(sandbox->execute_command("keep v2").out == "v2");
  CHECK(host.registry->find("unruly")->faults == 1);
  CHECK(host.log().find("a log record of more than 256 KiB") != std::string::npos);
}

TEST_CASE("options that no frame takes are refused, and the process lives on", "[runner]") {
  RunnerHost host;
  host.open();
  json::Object options;
  options.set("record", std::string(9U << 20, 'x'));
  const Error refused = error_of([&] { host.registry->open("unruly", options); });
  CHECK(refused.code == Status::invalid);
  CHECK(refused.message == "the request is larger than 8 MiB");
  CHECK(host.make()->execute_command("hello").out == "hello");
  CHECK(host.log().find("was started again") == std::string::npos);
}

TEST_CASE("a plugin that is slow to open or to create keeps only itself waiting", "[runner]") {
  RunnerHost host;
  host.open();
  const std::string before = GENERATE("", "create ");
  std::vector<std::future<bool>> ends;
  std::vector<std::string> gates;
  // As many as the host has threads.
  for (const char* name : {"one", "two"}) {
    gates.push_back((host.folder / name).string());
    REQUIRE(::mkfifo(gates.back().c_str(), 0600) == 0);
    ends.push_back(std::async(std::launch::async, [&, gate = gates.back()] {
      return host.make(before + "gate " + gate)->execute_command("hello").out == "hello";
    }));
  }
  std::vector<posix::Fd> open;
  for (const std::string& gate : gates)
    open.emplace_back(::open(gate.c_str(), O_WRONLY | O_CLOEXEC));  // until it is at the gate
  std::promise<void> ran;
  host.runtime.make_lane().post([&] { ran.set_value(); });
  CHECK(ran.get_future().wait_for(std::chrono::seconds(5)) == std::future_status::ready);
  open.clear();
  for (auto& end : ends)
    CHECK(end.get());
}

TEST_CASE("a plugin's lanes take no signals, whichever thread runs them", "[runner]") {
  RunnerHost host;
  const auto provider = host.open("create-pipe");
  for (int i = 0; i < 20; ++i)
    CHECK(host.make(provider, "s" + std::to_string(i))->execute_command("hello").out == "hello");
}

TEST_CASE("a call of a plugin without a lane is refused as in line", "[runner]") {
  PluginPolicy policy;
  policy.secrets = {"my-token"};
  RunnerHost host(policy);
  const auto sandbox = host.make();
  CHECK_THAT(sandbox->execute_command("laneless my-token").out,
             Catch::StartsWith("error " + std::to_string(SF_INVALID) + ": "));
  CHECK(sandbox->execute_command("secret my-token").out == "my-token of s");
}

TEST_CASE("what a plugin waits for comes to an end with its host", "[runner]") {
  PluginPolicy policy;
  policy.secrets = {"held-token"};
  RunnerHost host(policy);
  const auto sandbox = host.make();
  sandbox->start();
  Command command;
  command.shell = "testament";
  const auto process = sandbox->spawn(command);
  REQUIRE(host.tokens->is_held());
  host.registry.reset();
  CHECK(test::read_file(host.record()) == "machine-s\nthe host has closed this plugin\n");
  CHECK(process->wait().error);
  host.tokens->release();
}

TEST_CASE("output without end keeps no frame waiting", "[runner]") {
  RunnerHost host;
  const auto sandbox = host.make();
  CHECK(sandbox->execute_command("noise").out == "noisy");
  CHECK(sandbox->execute_command("hello").out == "hello");
}

TEST_CASE("many commands of many sandboxes at once", "[runner]") {
  RunnerHost host;
  const auto provider = host.open();
  std::vector<std::shared_ptr<Sandbox>> sandboxes;
  for (int i = 0; i < 8; ++i)
    sandboxes.push_back(host.make(provider, "s" + std::to_string(i)));
  std::vector<std::shared_ptr<Process>> processes;
  Command command;
  command.shell = "fill 100000";
  for (int i = 0; i < 64; ++i)
    processes.push_back(sandboxes[static_cast<std::size_t>(i) % 8]->spawn(command));
  for (const auto& process : processes) {
    const auto result = process->wait();
    CHECK(result.exit_code == 0);
    CHECK(result.out.size() + result.stdout_dropped_bytes == 100'000);
  }
}

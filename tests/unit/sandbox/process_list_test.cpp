// The list of processes: what it shows, and until when.
#include "sandforge/backend.hpp"

#include "fixture.hpp"

namespace sandforge {
namespace {

ProcessInfo foreign(const std::string& id, bool running) {
  ProcessInfo info;
  info.id = ProcessId(id);
  info.pid = 77;
  info.command = "make all";
  info.tag = "build";
  info.running = running;
  info.detached = true;
  if (!running) {
    info.exit.emplace();
    info.exit->outcome = Outcome::exited;
    info.exit->code = 5;
  }
  return info;
}

std::vector<std::string> ids(const std::vector<ProcessInfo>& list) {
  std::vector<std::string> all;
  for (const auto& info : list)
    all.push_back(info.id.str());
  return all;
}

}  // namespace

TEST_CASE("a spawned process is listed, found, killed and then forgotten") {
  Fixture f;
  const auto process = f.sandbox->spawn(shell("sleep 60"));
  const auto list = f.sandbox->list_processes();
  REQUIRE(list.size() == 1);
  CHECK(list[0].id == process->id());
  CHECK(list[0].pid == process->pid());
  CHECK(list[0].command == "sleep 60");
  CHECK(list[0].running);
  CHECK(f.sandbox->get_process(process->id()) == process);
  CHECK(f.sandbox->get_process(process->id()) == process);
  CHECK(f.sandbox->kill_process(process->id()));
  CHECK(process->wait().killed);
  CHECK(f.sandbox->get_process(process->id()) == nullptr);
  CHECK_FALSE(f.sandbox->kill_process(process->id()));
  CHECK(f.sandbox->list_processes().empty());
}

TEST_CASE("a process that has ended stays listed, is given once, then forgotten") {
  Fixture f;
  const auto id = f.sandbox->spawn(shell("echo done"))->id();
  REQUIRE(eventually([&] { return !f.sandbox->list_processes().at(0).running; }));
  CHECK(f.sandbox->list_processes().at(0).exit->code == 0);
  const auto process = f.sandbox->get_process(id);
  REQUIRE(process != nullptr);
  CHECK(process->out() == "done\n");
  CHECK(process->exit_code() == 0);
  CHECK(f.sandbox->get_process(id) == nullptr);
}

TEST_CASE("a kill of the handle does not forget the process") {
  Fixture f;
  const auto process = f.sandbox->spawn(shell("sleep"));
  CHECK(process->kill());
  process->wait();
  CHECK(f.sandbox->get_process(process->id()) == process);
}

TEST_CASE("killing what has ended is false, and forgets it") {
  Fixture f;
  const auto process = f.sandbox->spawn(shell("true"));
  process->wait();
  CHECK_FALSE(f.sandbox->kill_process(process->id()));
  CHECK(f.sandbox->get_process(process->id()) == nullptr);
}

TEST_CASE("release forgets at once, the process goes on") {
  Fixture f;
  f.world->has_processes = true;
  const auto process = f.sandbox->spawn(shell("sleep"));
  f.sandbox->release_process(process->id());
  CHECK(f.sandbox->get_process(process->id()) == nullptr);
  CHECK(f.sandbox->list_processes().empty());
  CHECK(process->running());
  CHECK(process->kill());
}

TEST_CASE("unknown processes are absent") {
  Fixture f;
  f.world->has_processes = GENERATE(false, true);
  CHECK(f.sandbox->get_process(ProcessId("nope")) == nullptr);
  CHECK_FALSE(f.sandbox->kill_process(ProcessId("nope")));
  f.sandbox->release_process(ProcessId("nope"));
}

TEST_CASE("commands of exec are not listed, neither while they run nor after") {
  Fixture f;
  f.world->has_processes = true;  // the provider would list them
  auto run = later<CommandResult>(
      [&](auto done) { f.sandbox->async_exec({"sleep"}, {}, std::move(done)); });
  const auto inside = f.world->process(0);
  REQUIRE(inside != nullptr);
  REQUIRE(eventually([&] { return f.sandbox->list_processes().empty(); }));
  CHECK(f.sandbox->get_process(inside->id()) == nullptr);
  CHECK_FALSE(f.sandbox->kill_process(inside->id()));
  inside->exit(0);
  CHECK(get(run)->success);
}

TEST_CASE("looking for processes starts nothing where there cannot be any") {
  Fixture f;
  CHECK(f.sandbox->list_processes().empty());
  CHECK(f.sandbox->get_process(ProcessId("p1")) == nullptr);
  CHECK(f.sandbox->status() == SandboxStatus::pending);
  CHECK(f.world->counts().starts == 0);
}

TEST_CASE("processes of an earlier host are found on the first look") {
  Fixture f;
  f.world->has_processes = true;
  f.world->foreign = {foreign("f1", true)};
  f.world->foreign_output[ProcessId("f1")] = "kept ";
  const auto list = f.sandbox->list_processes();
  CHECK(f.sandbox->status() == SandboxStatus::running);
  REQUIRE(list.size() == 1);
  CHECK(list[0].command == "make all");
  CHECK(list[0].tag == "build");
  CHECK(list[0].detached);

  const auto process = f.sandbox->get_process(ProcessId("f1"));
  REQUIRE(process != nullptr);
  CHECK(process->command() == "make all");
  CHECK(process->pid() == 77);
  CHECK(f.sandbox->get_process(ProcessId("f1")) == process);
  CHECK(ids(f.sandbox->list_processes()) == std::vector<std::string>{"f1"});
  const auto inside = f.world->process(0);
  inside->out("and more");
  inside->exit(4);
  const auto r = process->wait();
  CHECK(r.out == "kept and more");
  CHECK(r.exit_code == 4);
}

TEST_CASE("two who look for one process of an earlier host get one handle") {
  Fixture f;
  f.world->has_processes = true;
  f.world->foreign = {foreign("f1", true)};
  const auto look = [&] {
    return later<std::shared_ptr<Process>>(
        [&](auto done) { f.sandbox->async_get_process(ProcessId("f1"), std::move(done)); });
  };
  auto a = look();
  auto b = look();
  const auto first = get(a).value();
  CHECK(first != nullptr);
  CHECK(get(b).value() == first);
  CHECK(f.world->processes().size() == 1);
}

TEST_CASE("an ended process of an earlier host is given once with all it wrote") {
  Fixture f;
  f.world->has_processes = true;
  f.world->foreign = {foreign("f1", false)};
  f.world->foreign_output[ProcessId("f1")] = "all of it";
  const auto process = f.sandbox->get_process(ProcessId("f1"));
  REQUIRE(process != nullptr);
  CHECK(process->out() == "all of it");
  CHECK(process->exit_code() == 5);
  CHECK(f.sandbox->get_process(ProcessId("f1")) == nullptr);
  CHECK(f.sandbox->list_processes().empty());
}

TEST_CASE("a process of an earlier host is killed without attaching to it") {
  Fixture f;
  f.world->has_processes = true;
  f.world->foreign = {foreign("f1", true), foreign("f2", false)};
  CHECK(f.sandbox->kill_process(ProcessId("f1")));
  CHECK(f.world->killed == std::vector<ProcessId>{ProcessId("f1")});
  CHECK(f.sandbox->get_process(ProcessId("f1")) == nullptr);
  CHECK_FALSE(f.sandbox->kill_process(ProcessId("f2")));
  CHECK(f.world->processes().empty());
}

TEST_CASE("a reader more of a process of an earlier host changes no list") {
  Fixture f;
  f.world->has_processes = true;
  f.world->foreign = {foreign("f1", true)};
  f.world->foreign_output[ProcessId("f1")] = "kept ";
  std::string read;
  AttachOptions options;
  options.from = {3, 1};
  options.on_stdout = [&](std::string_view piece) { read += piece; };
  const auto a = f.sandbox->attach_process(ProcessId("f1"), std::move(options));
  REQUIRE(a != nullptr);
  CHECK(a->command() == "make all");
  CHECK(f.world->attached_from.out == 3);
  CHECK(f.world->attached_from.err == 1);
  const auto b = f.sandbox->attach_process(ProcessId("f1"));
  REQUIRE(b != nullptr);
  CHECK(f.world->attached_from.out == 0);
  CHECK(ids(f.sandbox->list_processes()) == std::vector<std::string>{"f1"});
  f.world->process(0)->out("and more");
  f.world->process(0)->exit(4);
  CHECK(a->wait().exit_code == 4);
  CHECK(read == "kept and more");
  CHECK(b->running());
  f.world->process(1)->exit(4);
  b->wait();
  CHECK(ids(f.sandbox->list_processes()) == std::vector<std::string>{"f1"});
}

TEST_CASE("there is no reader more of what is unknown, or has its handle here") {
  Fixture f;
  CHECK(f.sandbox->attach_process(ProcessId("f1")) == nullptr);
  CHECK(f.world->counts().starts == 0);
  f.world->has_processes = true;
  CHECK(f.sandbox->attach_process(ProcessId("f1")) == nullptr);
  const auto own = f.sandbox->spawn(shell("sleep"));
  CHECK(error_of([&] { static_cast<void>(f.sandbox->attach_process(own->id())); }).reason ==
        "process.own");
  AttachOptions options;
  options.window = 0;
  CHECK(error_of([&] {
          static_cast<void>(f.sandbox->attach_process(ProcessId("f1"), std::move(options)));
        }).code == Status::invalid);
  CHECK(own->kill());
}

TEST_CASE("three processes at once have their own output") {
  Fixture f;
  const auto a = f.sandbox->spawn(shell("echo a"));
  const auto b = f.sandbox->spawn(shell("echo b"));
  const auto c = f.sandbox->spawn(shell("sleep"));
  CHECK(a->wait().out == "a\n");
  CHECK(b->wait().out == "b\n");
  CHECK(c->running());
  CHECK(ids(f.sandbox->list_processes()) ==
        std::vector<std::string>{a->id().str(), b->id().str(), c->id().str()});
  CHECK(c->kill());
}

TEST_CASE("ended processes that nobody reads are kept within a bound, the newest stay") {
  Fixture f;
  std::shared_ptr<Process> last;
  for (int i = 0; i < 1100; ++i)
    last = f.sandbox->spawn(shell("echo " + std::to_string(i)));
  last->wait();
  REQUIRE(eventually([&] { return f.sandbox->list_processes().size() == 1024; }));
  CHECK(f.sandbox->get_process(last->id()) == last);
}

TEST_CASE("after a stop the list shows what was, and starts nothing") {
  Fixture f;
  f.world->has_processes = true;
  const auto process = f.sandbox->spawn(shell("true"));
  process->wait();
  f.sandbox->stop();
  CHECK(ids(f.sandbox->list_processes()) == std::vector<std::string>{process->id().str()});
  CHECK(f.sandbox->get_process(process->id()) == process);
  CHECK(f.sandbox->status() == SandboxStatus::stopped);
}

}  // namespace sandforge

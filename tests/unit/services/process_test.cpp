// What commands of the process service get and give.
#include <csignal>
#include <fstream>
#include <sstream>

#include "unit/services/process_fixture.hpp"

using namespace sandforge;
using namespace sandforge::test;
using plugin::Fault;

TEST_CASE("process service: output, exit codes, signals, streams") {
  Service service;
  const auto echo = service.run(program({"/bin/echo", "a b", "", "\xff"}));
  CHECK(echo->code_ == SF_OK);
  CHECK(echo->out_ == "a b  \xff\n");
  CHECK(echo->exit_.outcome == SF_EXIT_EXITED);
  CHECK(echo->exit_.code == 0);
  CHECK(echo->end_.delivered == 7);
  CHECK(echo->end_.dropped == 0);
  CHECK(echo->pid_ > 0);

  const auto three = service.run(shell("echo out; echo err >&2; exit 3"));
  CHECK(three->out_ == "out\n");
  CHECK(three->err_ == "err\n");
  CHECK(three->exit_.code == 3);

  const auto killed = service.run(shell("kill -9 $$"));
  CHECK(killed->exit_.outcome == SF_EXIT_SIGNALED);
  CHECK(killed->exit_.signal == SIGKILL);
  CHECK(killed->exit_.flags == 0);

  auto combined = shell("echo 1; echo 2 >&2; echo 3");
  combined.output = SF_OUTPUT_COMBINED;
  CHECK(service.run(combined)->out_ == "1\n2\n3\n");
  CHECK(helpers().size() == 1);
}

TEST_CASE("process service: the environment is what was given, and no descriptor is inherited") {
  Service service;
  auto bare = program({"/usr/bin/env"});
  bare.env = {{"A", "0"},          {"D", "1"}, {"A", "1"},
              {"B", std::nullopt}, {"C", ""},  {"D", std::nullopt}};
  std::vector<std::string> lines;
  std::istringstream text(service.run(bare)->out_);
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("SANDFORGE_GUEST_PROCESS=", 0) != 0) lines.push_back(line);
  }
  CHECK(lines == std::vector<std::string>{"A=1", "C="});
  // 0, 1, 2, and the one by which ls reads the folder.
  CHECK(service.run(program({"/bin/ls", "/proc/self/fd"}))->out_ == "0\n1\n2\n3\n");
}

TEST_CASE("process service: folders and programs that are not there") {
  Service service;
  const TempDir dir;
  auto here = program({"/bin/pwd"});
  CHECK(service.run(here)->out_ == "/\n");
  here.cwd = dir.path().string();
  CHECK(service.run(here)->out_ == dir.path().string() + "\n");
  here.cwd = (dir / "absent").string();
  const auto lost = service.run(here);
  CHECK(lost->code_ == SF_INVALID);
  CHECK(lost->pid_ == 0);
  CHECK(lost->exit_.struct_size == 0);
  CHECK_FALSE(lost->may_have_started_);
  CHECK_THAT(lost->message_, Catch::Contains((dir / "absent").string()));
  CHECK_THAT(lost->details_, Catch::Contains("command.no_directory"));

  const auto none = service.run(program({"/no/such/program"}));
  CHECK(none->code_ == SF_NOT_FOUND);
  CHECK_THAT(none->message_, Catch::Contains("/no/such/program"));
  CHECK(service.run(program({dir.write("text", "no program").string()}))->code_ == SF_INVALID);
}

TEST_CASE("process service: commands that nobody can run are refused at once") {
  Service service;
  Spawned nothing(service.lane);
  std::string why;
  CHECK(service.try_spawn(program({}), nothing) == SF_INVALID);
  CHECK(service.try_spawn(program({""}), nothing) == SF_INVALID);
  CHECK(service.try_spawn(program({std::string("a\0b", 3)}), nothing) == SF_INVALID);
  auto relative = program({"/bin/true"});
  relative.cwd = "here";
  CHECK(service.try_spawn(relative, nothing, &why) == SF_INVALID);
  CHECK(why == "the working directory must be absolute");
  auto detached = program({"/bin/true"});
  detached.flags = SF_COMMAND_DETACH;
  CHECK(service.try_spawn(detached, nothing) == SF_UNSUPPORTED);
  auto both = shell("true");
  both.argv = {"/bin/true"};
  CHECK(service.try_spawn(both, nothing) == SF_INVALID);
  auto mode = program({"/bin/true"});
  mode.stdin_mode = 7;
  CHECK(service.try_spawn(mode, nothing) == SF_INVALID);
  auto name = program({"/bin/true"});
  name.env = {{"A=B", "1"}};
  CHECK(service.try_spawn(name, nothing) == SF_INVALID);
  CHECK(nothing.process == nullptr);
  CHECK(nothing.dones_ == 0);

  const auto io = Spawned::io_of(&nothing);
  const auto events = Spawned::events_of(&nothing);
  sf_process* process = nullptr;
  sf_command small{};
  small.struct_size = sizeof(std::size_t);
  CHECK(service.table->spawn(service.host, service.lane, &small, &io, &events, &process, nullptr) ==
        SF_INVALID);
  CHECK(service.table->spawn(service.host, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        SF_INVALID);
  CHECK(process == nullptr);
  CHECK(helpers().empty());
}

TEST_CASE("process service: input") {
  Service service;
  auto cat = program({"/bin/cat"});
  cat.stdin_mode = SF_STDIN_PIPE;
  cat.window = 64U << 20;
  auto copy = service.spawn(cat);
  const std::string data(3'000'000, 'x');
  std::size_t sent = 0;
  while (sent < data.size()) {
    const int before = copy->writables();
    std::size_t accepted = 0;
    REQUIRE(service.write(*copy, std::string_view(data).substr(sent), accepted) == SF_OK);
    sent += accepted;
    if (sent < data.size()) REQUIRE(eventually([&] { return copy->writables() > before; }));
  }
  service.end_input(*copy);
  service.end_input(*copy);
  std::size_t accepted = 0;
  CHECK(service.write(*copy, "more", accepted) == SF_CONFLICT);
  REQUIRE(copy->wait());
  CHECK(copy->out_ == data);
  CHECK(copy->exit_.code == 0);

  // Without a pipe there is the end of file, and nothing to write to.
  auto empty = program({"/bin/cat"});
  auto nothing = service.spawn(empty);
  CHECK(service.write(*nothing, "x", accepted) == SF_CONFLICT);
  REQUIRE(nothing->wait());
  CHECK(nothing->out_.empty());
  CHECK(copy->stream()->vtbl->write(copy->stream(), bytes("x"), 0, &accepted, nullptr) ==
        SF_INVALID);
  CHECK(service.bench->faults(Fault::off_lane) == 1);
}

TEST_CASE("process service: a writer that waits learns that the process took no more") {
  Service service;
  auto deaf = shell("exec <&-; exec " + long_sleep());
  deaf.stdin_mode = SF_STDIN_PIPE;
  auto process = service.spawn(deaf);
  const std::string data(1U << 20, 'x');
  REQUIRE(eventually([&] {
    std::size_t accepted = 0;
    return service.write(*process, data, accepted) == SF_CONFLICT;
  }));
  process->cancel();
  REQUIRE(process->wait());
}

TEST_CASE("process service: a terminal") {
  Service service;
  const sf_tty tty{100, 30, str("vt100")};
  auto parts = shell("stty size; echo $TERM");
  parts.tty = &tty;
  CHECK(service.run(parts)->out_ == "30 100\r\nvt100\r\n");
}

TEST_CASE("process service: output is held back without credit") {
  Service service;
  auto parts = shell("head -c 1000000 /dev/zero; echo end");
  parts.window = 0;
  auto held = service.spawn(parts);
  REQUIRE(held->wait_started());
  held->grant(10);
  REQUIRE(eventually([&] { return held->out().size() == 10; }));
  // Another command is through meanwhile; this one got no byte more.
  service.run(shell("sleep 0.2"));
  CHECK(held->out().size() == 10);
  CHECK_FALSE(held->ended());
  held->grant(std::uint64_t{1} << 63);
  REQUIRE(held->wait());
  CHECK(held->out_.size() == 1'000'004);
  CHECK(held->end_.delivered == 1'000'004);
  CHECK(held->end_.dropped == 0);
}

TEST_CASE("process service: what a released handle cannot take is dropped and counted") {
  Service service;
  auto parts = shell("head -c 1000000 /dev/zero");
  parts.window = 100;
  auto process = service.spawn(parts);
  process->release();
  REQUIRE(process->wait());
  CHECK(process->end_.delivered == 100);
  CHECK(process->end_.dropped == 999'900);
  CHECK(process->exit_.code == 0);
}

TEST_CASE("process service: a request id runs once") {
  Service service;
  const TempDir dir;
  const std::string file = (dir / "log").string();
  auto parts = shell("echo ran >> " + file + "; echo out");
  parts.request_id = "one";
  CHECK(service.run(parts)->out_ == "out\n");
  const auto again = service.run(parts);
  CHECK((again->code_ == SF_ALREADY_EXISTS || again->out_ == "out\n"));
  CHECK(read_file(file) == "ran\n");
}

TEST_CASE("process service: two hundred at once, and no thread for any of them") {
  Service service;
  service.run(shell("true"));
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator());
  };
  const auto before = threads();
  const TempDir dir;
  const std::string gate = (dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  std::vector<std::unique_ptr<Spawned>> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(service.spawn(shell("read x < " + gate + "; echo " + std::to_string(i))));
  for (auto& one : all)
    REQUIRE(one->wait_started());
  CHECK(threads() <= before);
  std::ofstream open(gate);
  for (int i = 0; i < 200; ++i)
    open << "go\n";
  open.flush();
  for (int i = 0; i < 200; ++i) {
    if (!all[i]->wait()) FAIL("number " << i << " did not end");
    CHECK(all[i]->out_ == std::to_string(i) + "\n");
  }
  CHECK(helpers().size() == 1);
}

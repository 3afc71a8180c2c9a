// Commands and exits, over the boundary and back.
#include <sandforge/plugin/command.hpp>

#include <catch2/catch.hpp>

using namespace sandforge::plugin;

TEST_CASE("a command goes over the boundary and back unchanged") {
  Command command;
  command.argv = {"a", std::string("b\0c", 3)};
  command.env.emplace_back("SET", "1");
  command.env.emplace_back("UNSET", std::nullopt);
  command.cwd = "";
  command.user = "u";
  command.tty.emplace();
  command.tty->cols = 100;
  command.tty->term = "vt100";
  command.pipe_stdin = true;
  command.combine_output = true;
  command.detach = true;
  command.timeout = std::chrono::milliseconds(1500);
  command.grace = std::chrono::milliseconds(20);
  command.window = 77;
  command.tag = "t";
  command.request_id = "r";
  const detail::CommandView view(command);
  const Command back(*view.get());
  CHECK_FALSE(back.shell);
  CHECK(back.argv == command.argv);
  REQUIRE(back.env.size() == 2);
  CHECK(back.env[0].value == "1");
  CHECK_FALSE(back.env[1].value);
  CHECK(back.cwd == "");
  CHECK(back.user == "u");
  REQUIRE(back.tty);
  CHECK(back.tty->cols == 100);
  CHECK(back.tty->rows == 24);
  CHECK(back.tty->term == "vt100");
  CHECK(back.pipe_stdin);
  CHECK(back.combine_output);
  CHECK(back.detach);
  CHECK(back.timeout == command.timeout);
  CHECK(back.grace == command.grace);
  CHECK(back.window == 77);
  CHECK(back.tag == "t");
  CHECK(back.request_id == "r");
}

TEST_CASE("an exit keeps its parts, and an outcome of the future reads as unknown") {
  Exit exit = Exit::signaled(15);
  exit.killed = true;
  exit.pipes_held = true;
  exit.started_at = 1;
  exit.ended_at = 2;
  sf_exit raw = exit.raw();
  const Exit back(raw);
  CHECK(back.outcome == ExitOutcome::signaled);
  CHECK(back.signal == 15);
  CHECK(back.killed);
  CHECK(back.pipes_held);
  CHECK(back.ended_at == 2);
  raw.outcome = 99;
  CHECK(Exit(raw).outcome == ExitOutcome::unknown);
}

TEST_CASE("a command of nothing is that of the defaults, and shell text is no argv") {
  const Command none;
  const detail::CommandView view_of_none(none);
  CHECK(view_of_none.get()->shell.ptr == nullptr);
  CHECK(view_of_none.get()->cwd.ptr == nullptr);
  CHECK(view_of_none.get()->tty == nullptr);
  CHECK(view_of_none.get()->window == 65536);
  CHECK(view_of_none.get()->stdin_mode == SF_STDIN_EOF);
  CHECK(view_of_none.get()->output == SF_OUTPUT_SEPARATE);
  Command shell;
  shell.shell = "";
  const detail::CommandView view(shell);
  CHECK(Command(*view.get()).shell == "");
  CHECK(Command(*view.get()).argv.empty());
  CHECK_FALSE(Command(*view.get()).cwd);
}

TEST_CASE("how a process ended, as the boundary says it") {
  const sf_exit exited = Exit::exited(-3).raw();
  CHECK(exited.struct_size == sizeof exited);
  CHECK(exited.outcome == SF_EXIT_EXITED);
  CHECK(exited.code == -3);
  CHECK(exited.flags == 0);
  CHECK(Exit().raw().outcome == SF_EXIT_UNKNOWN);
  for (std::uint32_t outcome = 0; outcome <= SF_EXIT_OUT_OF_MEMORY; ++outcome) {
    sf_exit raw{};
    raw.struct_size = sizeof raw;
    raw.outcome = outcome;
    CHECK(Exit(raw).raw().outcome == outcome);
  }
}

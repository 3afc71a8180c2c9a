// A02 to A06: commands and arguments that are no plain data.
#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

void every_byte(Host& host) {
  const auto sandbox = host.make();
  std::string all;
  for (int byte = 1; byte < 256; ++byte)
    all += static_cast<char>(byte);
  CHECK(sandbox->execute_command("printf %s", {all}).out == all);
  CHECK(sandbox->exec({"printf", "%s", all}).out == all);
}

void refused_before_start(Host& host) {
  const auto sandbox = host.make();
  const std::string nul("a\0b", 3);
  const auto name_with_equals = with_env({{"A=B", "x"}});
  const auto name_with_nul = with_env({{nul, "x"}});
  const auto value_with_nul = with_env({{"A", nul}});

  CHECK_THROWS_AS(sandbox->execute_command("echo", {nul}), InvalidArgumentError);
  CHECK_THROWS_AS(sandbox->execute_command("echo " + nul), InvalidArgumentError);
  CHECK_THROWS_AS(sandbox->exec({"echo", nul}), InvalidArgumentError);
  CHECK_THROWS_AS(sandbox->exec({"true"}, name_with_equals), InvalidArgumentError);
  CHECK_THROWS_AS(sandbox->exec({"true"}, name_with_nul), InvalidArgumentError);
  CHECK_THROWS_AS(sandbox->exec({"true"}, value_with_nul), InvalidArgumentError);
  CHECK_THROWS_AS(sandbox->spawn(argv({"echo", nul})), InvalidArgumentError);
  CHECK_THROWS_AS(sandbox->exec({}), InvalidArgumentError);
  CHECK_THROWS_AS(sandbox->execute_command(""), InvalidArgumentError);

  CHECK(sandbox->status() == SandboxStatus::pending);
  CHECK(nothing_runs(host));
}

// Either it comes through, or the error says that it is too large.
void comes_through_or_too_large(Sandbox& sandbox, std::size_t size) {
  CAPTURE(size);
  const std::string argument(size, 'x');
  try {
    const auto result = sandbox.exec({"sh", "-c", "printf %s \"$1\" | wc -c", "sh", argument});
    CHECK(result.exit_code == 0);
    CHECK(std::stoul(result.out) == size);
  } catch (const InvalidArgumentError& error) {
    CHECK(error.error().reason == "command.too_large");
    CHECK_FALSE(error.error().may_have_started);
  }
}

void long_arguments(Host& host) {
  const auto sandbox = host.started();
  comes_through_or_too_large(*sandbox, 131'071);
  comes_through_or_too_large(*sandbox, 200'000);
  const std::string longer(200'000, 'x');
  try {
    const auto result = sandbox->execute_command("printf %s", {longer});
    CHECK(result.out == longer);
  } catch (const InvalidArgumentError& error) {
    CHECK(error.error().reason == "command.too_large");
  }
  CHECK(sandbox->exec({"true"}).success);
}

void bad_directories(Host& host) {
  const auto sandbox = host.make();
  REQUIRE(sh(*sandbox, "touch file; mkdir doomed").success);
  const auto refused = [&](const std::string& cwd) {
    ExecOptions options;
    options.cwd.emplace(cwd);
    const Error error = error_of([&] { sandbox->exec({"true"}, options); });
    CAPTURE(error.message);
    CHECK(error.code == Status::invalid);
    CHECK(error.message.find(cwd) != std::string::npos);
    CHECK_FALSE(error.may_have_started);
  };
  refused(sandbox->exec({"pwd"}).out.substr(0, 1) + host.word("missing"));
  refused("missing");
  refused("file");

  ExecOptions in_doomed;
  in_doomed.cwd.emplace("doomed");
  CHECK(sh(*sandbox, "rmdir ../doomed; echo still here", in_doomed).out == "still here\n");
  refused("doomed");

  CHECK(sandbox->status() == SandboxStatus::running);
  CHECK(sandbox->exec({"true"}).success);
}

}  // namespace

void add_commands(Procedures& to) {
  to["commands.every_byte"] = every_byte;
  to["commands.refused_before_start"] = refused_before_start;
  to["commands.long_arguments"] = long_arguments;
  to["commands.bad_directories"] = bad_directories;
}

}  // namespace sandforge::conformance

// A01 to A06: commands, their arguments, and what cannot be run.
#include <fstream>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

// Every kind of argument that a shell could take apart.
const std::vector<std::string>& hard_words() {
  static const std::vector<std::string> words = {"a b", "$HOME", "x'y",      "",         "-n",
                                                 "--",  "*",     "one\ntwo", "\xc3\xa9", "\t"};
  return words;
}

std::string each_with_nul(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words)
    out.append(word).push_back('\0');
  return out;
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "A01 exact bytes and the exact code, on both streams",
                 "[cases.A01]") {
  const auto sandbox = make();
  const auto hello = sandbox->execute_command("echo hello");
  CHECK(hello.outcome == Outcome::exited);
  CHECK(hello.success);
  CHECK(hello.exit_code == 0);
  CHECK(hello.out == "hello\n");
  CHECK(hello.err.empty());
  CHECK(hello.command == "echo hello");
  CHECK_FALSE(hello.error);

  const auto both = sh(*sandbox, "echo out; echo err >&2; exit 42");
  CHECK(both.outcome == Outcome::exited);
  CHECK_FALSE(both.success);
  CHECK(both.exit_code == 42);
  CHECK(both.out == "out\n");
  CHECK(both.err == "err\n");
  CHECK_FALSE(both.killed);
  CHECK_FALSE(both.timed_out);

  CHECK(sandbox->exec({"echo", "hello"}).out == "hello\n");
}

TEST_CASE_METHOD(LocalFixture, "A02 arguments survive byte for byte", "[cases.A02]") {
  const auto sandbox = make();
  const std::string expected = each_with_nul(hard_words());

  CHECK(sandbox->execute_command("printf '%s\\0'", hard_words()).out == expected);

  std::vector<std::string> words = {"sh", "-c", "printf '%s\\0' \"$@\"", "sh"};
  words.insert(words.end(), hard_words().begin(), hard_words().end());
  CHECK(sandbox->exec(words).out == expected);

  std::vector<std::string> direct = {"printf", "%s\\0"};
  direct.insert(direct.end(), hard_words().begin(), hard_words().end());
  CHECK(sandbox->exec(direct).out == expected);
}

TEST_CASE_METHOD(LocalFixture, "A02 every byte but NUL survives as an argument", "[cases.A02]") {
  const auto sandbox = make();
  std::string all;
  for (int byte = 1; byte < 256; ++byte)
    all += static_cast<char>(byte);
  CHECK(sandbox->execute_command("printf %s", {all}).out == all);
  CHECK(sandbox->exec({"printf", "%s", all}).out == all);
}

TEST_CASE_METHOD(LocalFixture, "A03 a NUL or a bad name is refused before anything starts",
                 "[cases.A03]") {
  const auto sandbox = make();
  const std::string nul("a\0b", 3);
  ExecOptions name_with_equals;
  name_with_equals.env["A=B"] = "x";
  ExecOptions name_with_nul;
  name_with_nul.env[nul] = "x";
  ExecOptions value_with_nul;
  value_with_nul.env["A"] = nul;

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
  CHECK(nothing_runs());
  CHECK_FALSE(fs::exists(root()));
}

TEST_CASE_METHOD(LocalFixture, "A04 the longest argument works, a longer one is a typed error",
                 "[cases.A04]") {
  const auto sandbox = make();
  const std::string longest(131'071, 'x');
  const auto fits = sandbox->exec({"sh", "-c", "printf %s \"$1\" | wc -c", "sh", longest});
  CHECK(fits.exit_code == 0);
  CHECK(std::stoul(fits.out) == longest.size());

  const std::string longer(200'000, 'x');
  const Error refused = error_of([&] { sandbox->exec({"printf", "%s", longer}); });
  CHECK(refused.code == Status::invalid);
  CHECK(refused.reason == "command.too_large");
  CHECK_FALSE(refused.may_have_started);
  const Error as_text = error_of([&] { sandbox->execute_command("printf %s", {longer}); });
  CHECK(as_text.reason == "command.too_large");
  ExecOptions environment;
  environment.env["LONG"] = longer;
  CHECK(error_of([&] { sandbox->exec({"true"}, environment); }).reason == "command.too_large");

  CHECK(sandbox->exec({"true"}).success);
}

TEST_CASE_METHOD(LocalFixture, "A05 command text means what it means to a shell", "[cases.A05]") {
  const auto sandbox = make();
  CHECK(sandbox->execute_command("printf 'b\\na\\n' | sort | head -n 1").out == "a\n");
  CHECK(sandbox->execute_command("cat <<END\none $((1 + 1))\nEND").out == "one 2\n");
  CHECK(sandbox->execute_command("false && echo no").out.empty());
  CHECK(sandbox->execute_command("true && echo yes").out == "yes\n");
  CHECK(sandbox->execute_command("echo kept > file; cat < file").out == "kept\n");
  CHECK(read_text(folder() / "file") == "kept\n");
  CHECK(sandbox->execute_command("echo gone > /dev/null; echo err 2>/dev/null >&2").err.empty());
}

TEST_CASE_METHOD(LocalFixture, "A06 a command that is not there, or cannot be run", "[cases.A06]") {
  const auto sandbox = make();
  const auto missing = sandbox->execute_command("no-such-program-here");
  CHECK(missing.outcome == Outcome::exited);
  CHECK(missing.exit_code == 127);
  CHECK(missing.err.find("not found") != std::string::npos);

  std::ofstream(folder() / "plain") << "text\n";
  CHECK(sandbox->execute_command("./plain").exit_code == 126);
  CHECK(sandbox->execute_command("/").exit_code == 126);

  // Without a shell there is nobody to answer 127: the error says what could not be run.
  const Error absent = error_of([&] { sandbox->exec({"no-such-program-here"}); });
  CHECK(absent.code == Status::not_found);
  CHECK(absent.reason == "command.not_found");
  CHECK(absent.message.find("no-such-program-here") != std::string::npos);
  CHECK_FALSE(absent.may_have_started);
  const Error plain = error_of([&] { sandbox->exec({"./plain"}); });
  CHECK(plain.reason == "command.not_executable");
  CHECK(plain.message.find("plain") != std::string::npos);
}

TEST_CASE_METHOD(LocalFixture, "A06 a working directory that is missing, a file, or was deleted",
                 "[cases.A06]") {
  const auto sandbox = make();
  sh(*sandbox, "touch file; mkdir doomed");
  const auto refused = [&](const std::string& cwd) {
    ExecOptions options;
    options.cwd = cwd;
    const Error error = error_of([&] { sandbox->exec({"true"}, options); });
    CAPTURE(error.message);
    CHECK(error.code == Status::invalid);
    CHECK(error.reason == "command.no_directory");
    CHECK(error.message.find(cwd) != std::string::npos);
    CHECK_FALSE(error.may_have_started);
  };
  refused((folder() / "missing").string());
  refused("missing");
  refused((folder() / "file").string());

  ExecOptions in_doomed;
  in_doomed.cwd = "doomed";
  CHECK(sh(*sandbox, "rmdir ../doomed; echo still here", in_doomed).out == "still here\n");
  refused("doomed");
  CHECK(sandbox->status() == SandboxStatus::running);
  CHECK(sandbox->exec({"pwd"}).out == folder().string() + "\n");
}

// The checks of group A of the shared contract suite: command execution.
#include <algorithm>
#include <stop_token>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

ExecOptions limited(milliseconds timeout) {
  ExecOptions options;
  options.timeout = timeout;
  return options;
}

// A session with variables of its own.
std::shared_ptr<Sandbox> with_env(LocalFixture& host, EnvMap env) {
  SandboxConfig config;
  config.id = "s";
  config.env = std::move(env);
  return host.make(config);
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "contract A1 echo hello succeeds with 0", "[contract.A1]") {
  const auto result = make()->execute_command("echo", {"hello"});
  CHECK(result.exit_code == 0);
  CHECK(result.success);
  CHECK(result.out == "hello\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A2 stdout is captured", "[contract.A2]") {
  CHECK(make()->execute_command("echo captured").out == "captured\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A3 stderr is captured", "[contract.A3]") {
  const auto result = make()->execute_command("sh", {"-c", "echo oops >&2"});
  CHECK(result.err == "oops\n");
  CHECK(result.out.empty());
}

TEST_CASE_METHOD(LocalFixture, "contract A4 exit 1 is a result without success", "[contract.A4]") {
  const auto result = make()->execute_command("sh", {"-c", "exit 1"});
  CHECK(result.exit_code == 1);
  CHECK_FALSE(result.success);
}

TEST_CASE_METHOD(LocalFixture, "contract A5 three arguments are joined by spaces",
                 "[contract.A5]") {
  CHECK(make()->execute_command("echo", {"one", "two", "three"}).out == "one two three\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A6 an argument with a space stays one", "[contract.A6]") {
  CHECK(make()->execute_command("printf '[%s]'", {"a b", "c"}).out == "[a b][c]");
}

TEST_CASE_METHOD(LocalFixture, "contract A7 one variable is passed", "[contract.A7]") {
  ExecOptions options;
  options.env["ONE"] = "first";
  CHECK(make()->execute_command("printenv", {"ONE"}, options).out == "first\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A8 two variables are passed", "[contract.A8]") {
  ExecOptions options;
  options.env = {{"ONE", "1"}, {"TWO", "2"}};
  CHECK(make()->execute_command("echo $ONE $TWO", {}, options).out == "1 2\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A9 a value with spaces, & and quotes survives",
                 "[contract.A9]") {
  const std::string value = "a b & \"c\" 'd'";
  ExecOptions options;
  options.env["HARD"] = value;
  CHECK(make()->execute_command("printenv", {"HARD"}, options).out == value + "\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A10 the working directory of a call", "[contract.A10]") {
  ExecOptions options;
  options.cwd = "/tmp";
  const auto out = make()->execute_command("pwd", {}, options).out;
  CHECK((out == "/tmp\n" || out == "/private/tmp\n"));
}

TEST_CASE_METHOD(LocalFixture, "contract A11 a time limit ends a long command", "[contract.A11]") {
  const auto result = make()->execute_command("sleep 10", {}, limited(100ms));
  CHECK(result.exit_code != 0);
  CHECK(result.timed_out);
}

TEST_CASE_METHOD(LocalFixture, "contract A12 an endless loop is ended, its output was seen",
                 "[contract.A12]") {
  int chunks = 0;
  auto options = limited(2s);
  options.on_stdout = [&](std::string_view) { ++chunks; };
  const auto result =
      make()->execute_command("while :; do echo tick; sleep 0.1; done", {}, options);
  CHECK_FALSE(result.success);
  CHECK(chunks >= 1);
}

TEST_CASE_METHOD(LocalFixture, "contract A13 a fast command within its limit succeeds",
                 "[contract.A13]") {
  CHECK(make()->execute_command("echo fast", {}, limited(10s)).success);
}

TEST_CASE_METHOD(LocalFixture, "contract A14 A16 an abort from the first output ends it early",
                 "[contract.A14][contract.A16]") {
  std::stop_source stop;
  ExecOptions options;
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  const auto result = make()->execute_command("echo partial; sleep 30", {}, options);
  CHECK_FALSE(result.success);
  CHECK(result.out == "partial\n");
  CHECK(result.execution_time < 5s);
}

TEST_CASE_METHOD(LocalFixture, "contract A15 a signal that was raised before ends it at once",
                 "[contract.A15]") {
  const auto sandbox = started();
  std::stop_source stop;
  stop.request_stop();
  ExecOptions options;
  options.stop = stop.get_token();
  CommandResult result;
  CHECK(timed([&] { result = sandbox->execute_command("sleep 10", {}, options); }) < 5s);
  CHECK_FALSE(result.success);
}

TEST_CASE_METHOD(LocalFixture, "contract A17 a pipeline", "[contract.A17]") {
  CHECK(make()->execute_command("echo 'pear banana apple' | tr ' ' '\\n' | sort | head -1").out ==
        "apple\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A18 a here-document into a file", "[contract.A18]") {
  const auto sandbox = make();
  const std::string file = (base() / "tmp" / "lines").string();
  CHECK(sandbox->execute_command("cat > " + file + " <<'EOF'\nfirst\nsecond\nEOF").success);
  CHECK(sandbox->execute_command("cat " + file + "; rm " + file).out == "first\nsecond\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A19 exit 42 is preserved", "[contract.A19]") {
  CHECK(make()->execute_command("exit 42").exit_code == 42);
}

TEST_CASE_METHOD(LocalFixture, "contract A20 both streams from one command", "[contract.A20]") {
  const auto result = make()->execute_command("echo out; echo err >&2");
  CHECK(result.out == "out\n");
  CHECK(result.err == "err\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A21 a token is written and read again", "[contract.A21]") {
  const auto sandbox = make();
  sandbox->execute_command("echo token-42 > token");
  CHECK(sandbox->execute_command("cat token").out == "token-42\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A22 exactly five thousand lines", "[contract.A22]") {
  const auto out = make()->execute_command("seq 1 5000").out;
  CHECK(std::count(out.begin(), out.end(), '\n') == 5000);
  CHECK(out.substr(0, 2) == "1\n");
  CHECK(out.substr(out.size() - 6) == "\n5000\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A23 A24 both streams come in pieces",
                 "[contract.A23][contract.A24]") {
  int out = 0;
  int err = 0;
  ExecOptions options;
  options.on_stdout = [&](std::string_view) { ++out; };
  options.on_stderr = [&](std::string_view) { ++err; };
  const auto result = make()->execute_command(
      "for i in 1 2 3; do echo line$i; echo err$i >&2; sleep 0.3; done", {}, options);
  CHECK(out >= 1);
  CHECK(err >= 1);
  CHECK(result.out.find("line3") != std::string::npos);
  CHECK(result.err.find("err3") != std::string::npos);
}

TEST_CASE_METHOD(LocalFixture, "contract A25 a call's variable is for that call",
                 "[contract.A25]") {
  const auto sandbox = with_env(*this, {{"V", "initial"}});
  ExecOptions options;
  options.env["V"] = "override";
  CHECK(sandbox->execute_command("echo $V").out == "initial\n");
  CHECK(sandbox->execute_command("echo $V", {}, options).out == "override\n");
  CHECK(sandbox->execute_command("echo $V").out == "initial\n");
}

TEST_CASE_METHOD(LocalFixture, "contract A26 variables are merged", "[contract.A26]") {
  const auto sandbox = with_env(*this, {{"A", "a"}, {"B", "b"}});
  ExecOptions options;
  options.env = {{"B", "B"}, {"C", "C"}};
  CHECK(sandbox->execute_command("echo $A $B $C", {}, options).out == "a B C\n");
}

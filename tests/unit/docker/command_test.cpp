// Commands: the first line of the script, output, exits, and what is never invented.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "unit/docker/engine.hpp"

using namespace sandforge;
using namespace sandforge::docker_test;
namespace testing = sandforge::testing;

namespace {

const std::string kEnded = R"({"Running":false,"ExitCode":0})";
const std::string kRuns = R"({"Running":true,"ExitCode":null})";

std::string exited(int code) {
  return R"({"Running":false,"ExitCode":)" + std::to_string(code) + "}";
}
// An engine whose commands say this after their first line.
void says(FakeEngine& engine, const std::string& frames, const std::string& exit = kEnded) {
  engine.on_exec(
      [frames](const std::string& nonce) { return stream(frame(2, nonce + " 42\n") + frames); },
      exit);
}

// The output of a command up to here. places: what its first line says of its pipes.
Answer unfinished(const std::string& nonce, const std::string& said,
                  const std::string& places = {}) {
  Answer out = stream(frame(2, nonce + " 42" + places + "\n") + frame(1, said));
  out.stays_open = true;
  return out;
}
// An engine whose commands say this, and keep their output open.
void goes_on(FakeEngine& engine, const std::string& said, const std::string& exit = kEnded,
             const std::string& places = {}) {
  engine.on_exec([=](const std::string& nonce) { return unfinished(nonce, said, places); }, exit);
}
// An engine whose first command says "up" and runs, until another one is started to end it. The
// number of commands.
std::shared_ptr<const int> goes_on_until(FakeEngine& engine, std::function<void()> helper) {
  const auto count = std::make_shared<int>(0);
  engine.on_exec(
      [count, helper = std::move(helper)](const std::string& nonce) {
        if (++*count == 1) return unfinished(nonce, "up");
        helper();
        return stream("");
      },
      kRuns);
  return count;
}

struct Said {
  std::string out;
  int code = -1;
};
// Runs shell text on this machine.
Said run_script(const std::map<std::string, std::string>& env, const std::string& shell) {
  for (const auto& [name, value] : env)
    ::setenv(name.c_str(), value.c_str(), 1);
  Said said;
  std::FILE* const in = ::popen(shell.c_str(), "r");
  REQUIRE(in != nullptr);
  for (int c = std::fgetc(in); c != EOF; c = std::fgetc(in))
    said.out += static_cast<char>(c);
  const int status = ::pclose(in);
  if (WIFEXITED(status)) said.code = WEXITSTATUS(status);
  for (const auto& [name, value] : env)
    ::unsetenv(name.c_str());
  return said;
}

}  // namespace

TEST_CASE("a command is run by a script that gets it as arguments") {
  FakeEngine engine;
  engine.box->start();
  says(engine, frame(1, "out") + frame(2, "err"), exited(3));
  testing::CommandLine line;
  line.argv = {"printf", "a b"};
  line.cwd = "sub";
  line.env = {{"A", "1"}};
  const auto ran = engine.box->exec(line);
  CHECK(ran.out == "out");
  CHECK(ran.err == "err");
  CHECK(ran.outcome == SF_EXIT_EXITED);
  CHECK(ran.code == 3);
  const auto words = engine.command(0);
  REQUIRE(words.size() == 9);
  CHECK(words[0] == "/bin/sh");
  CHECK(words[4].size() == 32);
  CHECK((std::vector<std::string>(words.begin() + 5, words.end()) ==
         std::vector<std::string>{"a", "/workspace/sub", "printf", "a b"}));
  const auto body = engine.body_of("POST /containers/c1/exec");
  CHECK(json::write(*body.find("Env")) == "[\"SANDFORGE_COMMAND=" + words[4] + "\",\"A=1\"]");
  CHECK(body.find("WorkingDir")->as_string() == "/");
  CHECK_FALSE(body.find("AttachStdin")->as_bool());
}

TEST_CASE("words that are no text are written for printf") {
  FakeEngine engine;
  engine.box->start();
  says(engine, "");
  testing::CommandLine line;
  line.argv = {"echo", "\xff\\ x"};
  engine.box->exec(line);
  const auto words = engine.command(0);
  CHECK((std::vector<std::string>(words.begin() + 5, words.end()) ==
         std::vector<std::string>{"ab", "/workspace/", "echo", "\\0377\\0134\\0040x"}));
}

TEST_CASE("variables that are no text are in no argument, and reach the command alone") {
  FakeEngine engine;
  engine.box->start();
  says(engine, "");
  testing::CommandLine line;
  line.argv = {"env"};
  line.env = {{"TEXT", "t"}, {"V", "\xfe *"}, {"W", "\xff\n"}};
  engine.box->exec(line);
  const auto words = engine.command(0);
  CHECK((std::vector<std::string>(words.begin() + 5, words.end()) ==
         std::vector<std::string>{"ae", "/workspace/", "env"}));
  const auto body = engine.body_of("POST /containers/c1/exec");
  const auto& env = body.find("Env")->as_array();
  REQUIRE(env.size() == 3);
  CHECK(env[1].as_string() == "TEXT=t");
  CHECK(env[2].as_string() == "SANDFORGE_ENCODED=V=\\0376\\0040\\0052 W=\\0377\\0012");
  const auto seen = run_script({{"SCRIPT", words[2]}, {"ENCODED", env[2].as_string()}},
                               "env \"$ENCODED\" sh -c \"$SCRIPT\" sh n ae / sh -c 'printf %s: "
                               "\"${SANDFORGE_ENCODED-none}\" \"$V\" \"$W\"' 2>/dev/null");
  CHECK(seen.out == "none:\xfe *:\xff\n:");
}

TEST_CASE("a variable that is no text needs a name that a shell takes") {
  FakeEngine engine;
  engine.box->start();
  testing::CommandLine line;
  line.argv = {"true"};
  line.env = {{"a.b", "\xfe"}};
  const auto ran = engine.box->exec(line);
  CHECK(ran.failure.code == SF_INVALID);
  CHECK_FALSE(ran.started);
}

TEST_CASE("a command that is too large is refused before anything is sent") {
  FakeEngine engine;
  engine.box->start();
  testing::CommandLine line;
  line.argv = {"true", std::string(131'072, 'x')};
  const auto ran = engine.box->exec(line);
  CHECK(ran.failure.code == SF_INVALID);
  CHECK(ran.failure.details.find("command.too_large") != std::string::npos);
  CHECK_FALSE(engine.called("POST /containers/c1/exec"));
}

TEST_CASE("the first line is taken out of stderr wherever it is cut, and output before it waits") {
  FakeEngine engine;
  engine.box->start();
  engine.on_exec(
      [](const std::string& nonce) {
        return stream(frame(1, "early ") + frame(2, nonce.substr(0, 7)) + frame(1, "bird") +
                      frame(2, nonce.substr(7) + " 4") + frame(2, "2\nrest"));
      },
      kEnded);
  const auto ran = engine.exec("x");
  CHECK(ran.out == "early bird");
  CHECK(ran.err == "rest");
  CHECK(ran.code == 0);
}

TEST_CASE("warnings before the first line are the command's stderr") {
  FakeEngine engine;
  engine.box->start();
  engine.on_exec(
      [](const std::string& nonce) {
        return stream(frame(2, "sh: warning: setlo") + frame(2, "cale\nld.so: " + nonce + "\n") +
                      frame(2, nonce.substr(0, 9)) + frame(2, nonce.substr(9) + " 42\nrest") +
                      frame(1, "out"));
      },
      exited(3));
  const auto ran = engine.exec("x");
  CHECK(ran.started);
  CHECK(ran.code == 3);
  CHECK(ran.out == "out");
  CHECK(ran.err.rfind("sh: warning: setlocale\nld.so: ", 0) == 0);
  CHECK(ran.err.substr(ran.err.size() - 5) == "\nrest");
  CHECK(ran.err.find(" 42") == std::string::npos);
}

TEST_CASE("a warning before the script's refusal does not hide it") {
  FakeEngine engine;
  engine.box->start();
  engine.on_exec(
      [](const std::string& nonce) {
        return stream(frame(2, "sh: warning\n" + nonce + " missing\n"));
      },
      exited(126));
  const auto ran = engine.exec("x");
  CHECK(ran.failure.code == SF_NOT_FOUND);
  CHECK_FALSE(ran.failure.may_have_started());
}

TEST_CASE("without a first line the output is passed on, and not kept for ever") {
  const std::string much(60'000, 'x');
  const auto ran = [](const std::string& frames, bool open) {
    FakeEngine engine;
    engine.box->start();
    engine.on_exec(
        [&](const std::string&) {
          Answer out = stream(frames);
          out.stays_open = open;
          return out;
        },
        open ? kRuns : exited(5));
    testing::CommandLine line;
    line.argv = {"x"};
    line.window = 1 << 20;
    const auto running = engine.box->spawn(line);
    if (open) {
      // It is not at its end: what is more than a little has been passed on already.
      engine.box->driver().wait([&] { return running->err.size() > 100'000; });
      engine.open_stream->end();
      engine.on("GET /exec/e1/json", {Answer(200, exited(5))});
    }
    return engine.box->finish(*running);
  };
  const auto err = ran(frame(2, much) + frame(2, much), true);
  CHECK(err.started);
  CHECK(err.err == much + much);
  CHECK(err.code == 5);
  const auto both = ran(frame(2, "warned") + frame(1, much) + frame(1, much), false);
  CHECK(both.out == much + much);
  CHECK(both.err == "warned");
  CHECK(both.code == 5);
}

TEST_CASE("once a start was sent, what fails says that the command may have started") {
  const auto failed = [](const Answer& start, const Answer& seen) {
    FakeEngine engine;
    engine.box->start();
    engine.on_exec([&](const std::string&) { return start; }, exited(0));
    engine.on("GET /containers/c1/json", {seen});
    const auto ran = engine.exec("x");
    CHECK_FALSE(ran.started);
    CHECK(ran.failure.may_have_started());
    return ran.failure.code;
  };
  const Answer running(200, FakeEngine::container("running"));
  const Answer exited_one(200, FakeEngine::container("exited"));
  const Answer lost = Answer::lost(SF_HTTP_NOT_CONNECTED, SF_TRANSPORT_LOST);
  for (const Answer& start : {stream(""), stream(frame(2, "sh: warning\n"))}) {
    CHECK(failed(start, running) == SF_TRANSPORT_LOST);
    CHECK(failed(start, exited_one) == SF_TRANSPORT_LOST);
    CHECK(failed(start, Answer(404)) == SF_GONE);
    CHECK(failed(start, lost) == SF_TRANSPORT_LOST);
  }
  for (const std::uint32_t status : {404U, 409U, 500U, 502U}) {
    failed(Answer(status), running);
    failed(Answer(status), lost);
    CHECK(failed(Answer(status), exited_one) == SF_CONFLICT);
    CHECK(failed(Answer(status), Answer(404)) == SF_GONE);
  }
  CHECK(failed(stream(frame(1, "what is this")), running) == SF_INVALID);
}

TEST_CASE("why a command did not start is a typed error, and no output") {
  const auto refused = [](const std::string& word) {
    FakeEngine engine;
    engine.box->start();
    engine.on_exec(
        [word](const std::string& nonce) { return stream(frame(2, nonce + " " + word + "\n")); },
        exited(126));
    testing::CommandLine line;
    line.argv = {"prog"};
    const auto ran = engine.box->exec(line);
    CHECK_FALSE(ran.started);
    CHECK_FALSE(ran.failure.may_have_started());
    return std::to_string(ran.failure.code) + " " + ran.failure.message;
  };
  CHECK(refused("directory") ==
        "1 the working directory does not exist, is none, or may not be entered: /workspace/");
  CHECK(refused("missing") == "2 there is no program prog");
  CHECK(refused("denied") == "1 prog cannot be executed");
}

TEST_CASE("an engine's own words in the place of output are a start that failed") {
  FakeEngine engine;
  engine.box->start();
  engine.on_exec(
      [](const std::string&) {
        return stream(frame(1, "OCI runtime exec failed: exec: \"/bin/sh\": no such file\r\n"));
      },
      exited(126));
  const auto ran = engine.exec("x");
  CHECK(ran.failure.code == SF_INVALID);
  CHECK(ran.failure.message ==
        "the engine refuses to start the command: OCI runtime exec failed: exec: \"/bin/sh\": no "
        "such file");
  CHECK(ran.out.empty());
  CHECK_FALSE(ran.started);
  CHECK_FALSE(ran.failure.may_have_started());
}

TEST_CASE("a user that the container does not know is a start that failed") {
  FakeEngine engine;
  engine.box->start();
  engine.on_exec(
      [](const std::string&) {
        return stream(frame(1, "unable to find user x: no matching entries in passwd file\r\n"));
      },
      exited(126));
  const auto ran = engine.exec("x");
  CHECK(ran.failure.code == SF_INVALID);
  CHECK(ran.failure.message.find("unable to find user x") != std::string::npos);
  CHECK_FALSE(ran.failure.may_have_started());
}

TEST_CASE("an exit code of a signal that ends processes reads as that signal") {
  const auto outcome = [](int code) {
    FakeEngine engine;
    engine.box->start();
    says(engine, "", exited(code));
    const auto ran = engine.exec("x");
    return std::to_string(ran.outcome) + ":" + std::to_string(ran.code) + ":" +
           std::to_string(ran.signal);
  };
  const std::string exit = std::to_string(SF_EXIT_EXITED) + ":";
  const std::string signal = std::to_string(SF_EXIT_SIGNALED) + ":0:";
  CHECK(outcome(137) == signal + "9");
  CHECK(outcome(143) == signal + "15");
  CHECK(outcome(129) == signal + "1");
  CHECK(outcome(145) == exit + "145:0");  // SIGCHLD ends nothing
  CHECK(outcome(128) == exit + "128:0");
  CHECK(outcome(255) == exit + "255:0");
}

TEST_CASE("an exit that the engine records late is waited for") {
  FakeEngine engine;
  engine.box->start();
  says(engine, frame(1, "out"));
  engine.on("GET /exec/e1/json",
            {Answer(200, kRuns), Answer(200, R"({"Running":false,"ExitCode":null})"),
             Answer(200, exited(5))});
  CHECK(engine.exec("x").code == 5);
}

TEST_CASE("a stream that is lost is never an exit") {
  struct Case {
    const char* about;
    std::function<void(FakeEngine&)> make;
    sf_status code;
  };
  const Case cases[] = {
      {"reset",
       [](FakeEngine& engine) {
         engine.on_exec(
             [](const std::string& nonce) {
               Answer out = stream(frame(2, nonce + " 42\n") + frame(1, "part"));
               out.failure = Failure(SF_TRANSPORT_LOST, "reset");
               return out;
             },
             kEnded);
       },
       SF_TRANSPORT_LOST},
      {"cut inside a frame",
       [](FakeEngine& engine) { says(engine, frame(1, "part") + frame(1, "rest").substr(0, 10)); },
       SF_TRANSPORT_LOST},
      {"the engine forgot it",
       [](FakeEngine& engine) {
         says(engine, frame(1, "part"));
         engine.on("GET /exec/e1/json", {Answer(404)});
       },
       SF_TRANSPORT_LOST},
      {"the machine was removed",
       [](FakeEngine& engine) {
         says(engine, frame(1, "part"));
         engine.on("GET /exec/e1/json", {Answer(404)});
         engine.on("GET /containers/c1/json", {Answer(404)});
       },
       SF_GONE},
      {"the machine ended by itself",
       [](FakeEngine& engine) {
         says(engine, frame(1, "part"));
         engine.on("GET /exec/e1/json", {Answer(404)});
         engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("exited"))});
       },
       SF_TRANSPORT_LOST},
      {"the machine ended by itself, and the engine does not answer",
       [](FakeEngine& engine) {
         says(engine, frame(1, "part") + frame(1, "rest").substr(0, 10));
         engine.on("GET /exec/e1/json", {Answer::lost(SF_HTTP_NOT_CONNECTED, SF_TRANSPORT_LOST)});
         engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("exited"))});
       },
       SF_TRANSPORT_LOST}};
  for (const Case& one : cases) {
    CAPTURE(one.about);
    FakeEngine engine;
    engine.box->start();
    one.make(engine);
    const auto ran = engine.exec("x");
    CHECK(ran.failure.code == one.code);
    CHECK(ran.failure.may_have_started());
    CHECK(ran.out.rfind("part", 0) == 0);
    CHECK(ran.started);
  }
}

TEST_CASE("the exit code of a command that its machine took along is the engine's") {
  FakeEngine engine;
  engine.box->start();
  says(engine, frame(1, "part") + frame(1, "rest").substr(0, 10), exited(143));
  engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("exited"))});
  const auto ran = engine.exec("x");
  CHECK(ran.outcome == SF_EXIT_SIGNALED);
  CHECK(ran.signal == 15);
}

TEST_CASE("a machine that was stopped on purpose has ended its commands") {
  FakeEngine engine;
  engine.box->start();
  goes_on(engine, "part", kRuns);
  testing::CommandLine line;
  line.shell = "sleep 99";
  const auto running = engine.box->spawn(line);
  engine.box->driver().wait([&] { return running->out == "part"; });
  engine.on("GET /containers/json", {Answer(200, R"([{"Id":"c1"}])")});
  engine.on("POST /containers/c1/stop", {Answer(204)});
  engine.box->stop();
  engine.on("GET /exec/e1/json", {Answer(404)});
  engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("exited"))});
  engine.open_stream->end();
  const auto ran = engine.box->finish(*running);
  CHECK(ran.outcome == SF_EXIT_SIGNALED);
  CHECK(ran.signal == 9);
}

TEST_CASE("a machine that is gone, stopped or paused takes no command, and none has started") {
  const auto refused = [](std::uint32_t status, const Answer& seen) {
    FakeEngine engine;
    engine.box->start();
    engine.on("POST /containers/c1/exec", {Answer(status)});
    engine.on("GET /containers/c1/json", {seen});
    const auto ran = engine.exec("x");
    CHECK_FALSE(ran.failure.may_have_started());
    return ran.failure.code;
  };
  CHECK(refused(404, Answer(404)) == SF_GONE);
  CHECK(refused(409, Answer(200, FakeEngine::container("exited"))) == SF_CONFLICT);
  CHECK(refused(409, Answer(200, FakeEngine::container("paused"))) == SF_CONFLICT);
  CHECK(refused(400, Answer(200, FakeEngine::container("running"))) == SF_INVALID);
}

TEST_CASE("output that a child holds open does not hold up its command") {
  FakeEngine engine;
  engine.box->start();
  goes_on(engine, "hi");
  const auto ran = engine.exec("sleep 30 & echo hi");
  CHECK(ran.out == "hi");
  CHECK(ran.outcome == SF_EXIT_EXITED);
  CHECK(engine.open_stream->stream->cancelled());
}

TEST_CASE("a look at a command that the engine does not answer is made again") {
  for (const Answer& missed : {Answer::lost(SF_HTTP_NOT_CONNECTED, SF_UNAVAILABLE), Answer(500)}) {
    FakeEngine engine;
    engine.box->start();
    goes_on(engine, "hi");
    engine.on("GET /exec/e1/json", {missed, missed, missed, Answer(200, kEnded)});
    const auto ran = engine.exec("sleep 30 & echo hi");
    CHECK(ran.out == "hi");
    CHECK(ran.outcome == SF_EXIT_EXITED);
    CHECK(engine.count("GET /exec/e1/json") > 3);
  }
}

TEST_CASE("an output that cannot be kept open does not hold up its command either") {
  for (const Answer& made :
       {Answer::lost(SF_HTTP_MAYBE_SENT, SF_TRANSPORT_LOST), Answer(500), Answer(201, "none")}) {
    FakeEngine engine;
    engine.box->start();
    goes_on(engine, "hi", kEnded, " pipe:[1] pipe:[2]");
    engine.on("POST /containers/c1/exec", {Answer(201, R"({"Id":"e1"})"), made});
    const auto ran = engine.exec("sleep 30 & echo hi");
    CHECK(ran.out == "hi");
    CHECK(ran.outcome == SF_EXIT_EXITED);
    CHECK(engine.open_stream->stream->cancelled());
    CHECK(engine.host.logged("is not kept open"));
  }
}

TEST_CASE("what nobody takes of a command that ends is waited for once, not piece by piece") {
  FakeEngine engine;
  engine.box->start();
  goes_on_until(engine, [&] {
    engine.on("GET /exec/e1/json", {Answer(200, exited(0)), Answer(200, exited(137))});
    for (int i = 0; i < 10; ++i)
      engine.open_stream->send(frame(1, "late"));
    engine.open_stream->end();
  });
  testing::CommandLine line;
  line.shell = "yes";
  line.window = 2;
  line.timeout_ms = 1000;
  const auto running = engine.box->spawn(line);
  running->grant_back = false;
  const auto ran = engine.box->finish(*running);
  CHECK(ran.outcome == SF_EXIT_TIMED_OUT);
  CHECK(ran.out == "up");
  CHECK_FALSE(engine.host.logged("does not tell the end of the command"));
}

TEST_CASE("a time limit without a grace kills the tree by a helper") {
  FakeEngine engine;
  engine.box->start();
  const auto execs = goes_on_until(engine, [&] {
    // The helper has killed it, and ends well.
    engine.on("GET /exec/e1/json", {Answer(200, exited(0)), Answer(200, exited(137))});
    engine.open_stream->end();
  });
  testing::CommandLine line;
  line.shell = "sleep 99";
  line.timeout_ms = 1000;
  const auto ran = engine.box->exec(line);
  CHECK(ran.outcome == SF_EXIT_TIMED_OUT);
  CHECK(ran.out == "up");
  CHECK(*execs == 2);
  const auto words = engine.command(1);
  CHECK(
      (std::vector<std::string>(words.begin() + 4, words.end()) ==
       std::vector<std::string>{"42", "SANDFORGE_COMMAND=" + engine.command(0).at(4), "9", "200"}));
}

TEST_CASE("a tree that cannot be ended is no regular end") {
  FakeEngine engine;
  engine.box->start();
  goes_on_until(engine, [&] { engine.on("GET /exec/e1/json", {Answer(200, exited(1))}); });
  testing::CommandLine line;
  line.shell = "sleep 99";
  line.timeout_ms = 1000;
  const auto ran = engine.box->exec(line);
  CHECK(ran.out == "up");
  CHECK(ran.outcome == SF_EXIT_TIMED_OUT);
  CHECK(engine.host.logged("not every process of the command could be ended"));
}

TEST_CASE("a process that may not be signaled makes the signal an error") {
  FakeEngine engine;
  engine.box->start();
  engine.on_exec(
      [&](const std::string& nonce) {
        Answer out = stream(frame(2, nonce + " 42\n"));
        out.stays_open = !engine.open_stream;
        if (engine.open_stream) engine.open_stream->end();
        return out;
      },
      exited(0));
  testing::CommandLine line;
  line.shell = "sleep 99";
  line.timeout_ms = 100;
  engine.box->exec(line);
  const std::string script = engine.command(1).at(2);
  // A process with a mark of its own, which says when it has it.
  const std::string mark = "SANDFORGE_COMMAND=" + engine.command(0).at(4);
  const std::string victim = "exec env " + mark + " sh -c 'echo up; kill -STOP $$'";
  std::FILE* const up = ::popen(victim.c_str(), "r");
  REQUIRE(up != nullptr);
  CHECK(std::fgetc(up) == 'u');
  const std::map<std::string, std::string> env = {{"SCRIPT", script}};
  const std::string sent = " sh none " + mark + " ";
  const std::string refusing = "sh -c \"kill() { return 1; }; $SCRIPT\"" + sent;
  CHECK(run_script(env, refusing + "9 3").code == 1);
  CHECK(run_script(env, refusing + "15 1").code == 1);
  CHECK(run_script(env, "sh -c \"$SCRIPT\"" + sent + "9 200").code == 0);
  const int status = ::pclose(up);
  CHECK(WIFSIGNALED(status));
  // Nobody is left: nothing was refused.
  CHECK(run_script(env, refusing + "9 3").code == 0);
}

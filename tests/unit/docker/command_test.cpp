// Commands: the first line of the script, output, exits, and what is never invented.
#include "unit/docker/engine.hpp"

using namespace sandforge;
using namespace sandforge::docker_test;
namespace testing = sandforge::testing;

namespace {

const std::string kEnded = R"({"Running":false,"ExitCode":0})";

std::string exited(int code) {
  return R"({"Running":false,"ExitCode":)" + std::to_string(code) + "}";
}
// An engine whose commands say this after their first line.
void says(FakeEngine& engine, const std::string& frames, const std::string& exit = kEnded) {
  engine.on_exec(
      [frames](const std::string& nonce) { return stream(frame(2, nonce + " 42\n") + frames); },
      exit);
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
  REQUIRE(words.size() == 10);
  CHECK(words[0] == "/bin/sh");
  CHECK(words[4].size() == 32);
  CHECK((std::vector<std::string>(words.begin() + 5, words.end()) ==
         std::vector<std::string>{"a", "0", "/workspace/sub", "printf", "a b"}));
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
  line.env = {{"V", "\xfe"}};
  engine.box->exec(line);
  const auto words = engine.command(0);
  CHECK((std::vector<std::string>(words.begin() + 5, words.end()) ==
         std::vector<std::string>{"ab", "1", "/workspace/", "V=\\0376", "echo",
                                  "\\0377\\0134\\0040x"}));
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
            {Answer(200, R"({"Running":true,"ExitCode":null})"),
             Answer(200, R"({"Running":false,"ExitCode":null})"), Answer(200, exited(5))});
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
       SF_GONE}};
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

TEST_CASE("a machine that ended in the middle of a command has ended the command") {
  FakeEngine engine;
  engine.box->start();
  says(engine, frame(1, "part"));
  engine.on("GET /exec/e1/json", {Answer(404)});
  engine.on("GET /containers/c1/json", {Answer(200, FakeEngine::container("exited"))});
  const auto ran = engine.exec("x");
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
  engine.on_exec(
      [](const std::string& nonce) {
        Answer out = stream(frame(2, nonce + " 42\n") + frame(1, "hi"));
        out.stays_open = true;
        return out;
      },
      kEnded);
  const auto ran = engine.exec("sleep 30 & echo hi");
  CHECK(ran.out == "hi");
  CHECK(ran.outcome == SF_EXIT_EXITED);
  CHECK(engine.open_stream->stream->cancelled());
}

TEST_CASE("a time limit without a grace kills the tree by a helper") {
  FakeEngine engine;
  engine.box->start();
  int execs = 0;
  engine.on_exec(
      [&](const std::string& nonce) {
        if (++execs == 1) {
          Answer out = stream(frame(2, nonce + " 42\n") + frame(1, "up"));
          out.stays_open = true;
          return out;
        }
        // The helper has killed it, and ends well.
        engine.on("GET /exec/e1/json", {Answer(200, exited(0)), Answer(200, exited(137))});
        engine.open_stream->end();
        return stream("");
      },
      R"({"Running":true,"ExitCode":null})");
  testing::CommandLine line;
  line.shell = "sleep 99";
  line.timeout_ms = 1000;
  const auto ran = engine.box->exec(line);
  CHECK(ran.outcome == SF_EXIT_TIMED_OUT);
  CHECK(ran.out == "up");
  CHECK(execs == 2);
  const auto words = engine.command(1);
  CHECK(
      (std::vector<std::string>(words.begin() + 4, words.end()) ==
       std::vector<std::string>{"42", "SANDFORGE_COMMAND=" + engine.command(0).at(4), "9", "200"}));
}

TEST_CASE("a tree that cannot be ended is no regular end") {
  FakeEngine engine;
  engine.box->start();
  int execs = 0;
  engine.on_exec(
      [&](const std::string& nonce) {
        if (++execs == 1) {
          Answer out = stream(frame(2, nonce + " 42\n") + frame(1, "up"));
          out.stays_open = true;
          return out;
        }
        engine.on("GET /exec/e1/json", {Answer(200, exited(1))});
        return stream("");
      },
      R"({"Running":true,"ExitCode":null})");
  testing::CommandLine line;
  line.shell = "sleep 99";
  line.timeout_ms = 1000;
  const auto ran = engine.box->exec(line);
  CHECK(ran.out == "up");
  CHECK(ran.outcome == SF_EXIT_TIMED_OUT);
  CHECK(engine.host.logged("not every process of the command could be ended"));
}

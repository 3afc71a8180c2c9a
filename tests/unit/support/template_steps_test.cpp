#include "sandforge/support/template_steps.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace sandforge;

namespace {

// A folder of the test's own.
class Folder {
 public:
  Folder() {
    char path[] = "/tmp/sf-steps-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Ran {
  int status;
  std::string out;
};

// A step in a real shell, with the input that its secrets give.
Ran run_step(const TemplateStep& step, const std::map<std::string, std::string>& secrets = {}) {
  const Folder folder;
  const std::string input = folder.path() + "/input", script = folder.path() + "/script";
  std::ofstream(input, std::ios::binary) << secrets_input(step, secrets);
  std::ofstream(script, std::ios::binary) << step.argv().at(2);
  const std::string line = "cd " + (step.workdir.empty() ? folder.path() : step.workdir) +
                           " && sh -c \"$(cat " + script + ")\" <" + input + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string out;
  char buffer[4096];
  while (const std::size_t n = fread(buffer, 1, sizeof(buffer), pipe))
    out.append(buffer, n);
  const int status = pclose(pipe);
  return {WEXITSTATUS(status), out};
}

TemplateStep step_of(const Template& of, const StepOptions& options = {}) {
  return template_steps(of, options).back();
}

}  // namespace

TEST_CASE("steps: each operation is one, with what holds for it") {
  const Template made = Template()
                            .set_envs({{"A", "1"}, {"B", "2"}})
                            .set_workdir("/srv")
                            .run_cmd("make")
                            .set_workdir("app/")
                            .set_envs({{"B", "3"}})
                            .set_ephemeral_envs({{"A", "secret"}, {"T", "token"}})
                            .run_cmd("make\ninstall");
  const auto steps = template_steps(made);
  REQUIRE(steps.size() == 6);
  CHECK(steps[0].script.empty());
  CHECK(steps[0].env == Template::Envs{{"A", "secret"}, {"B", "2"}, {"T", "token"}});
  CHECK(steps[0].title == "environment A B");
  CHECK(steps[1].script == "mkdir -p -- /srv");
  CHECK(steps[1].user == "0");
  CHECK(steps[1].workdir.empty());
  CHECK(steps[2].workdir == "/srv");
  CHECK(steps[2].script == "make");
  CHECK(steps[2].user.empty());
  CHECK(steps[2].argv() == std::vector<std::string>{"/bin/sh", "-c", "make"});
  CHECK(steps[3].script == "mkdir -p -- /srv/app/");
  CHECK(steps[3].workdir == "/srv");
  CHECK(steps[5].position == 5);
  CHECK(steps[5].workdir == "/srv/app/");
  CHECK(steps[5].title == "run make");
  CHECK(steps[5].env.at("B") == "3");
  CHECK(steps[5].env.at("A") == "secret");
  CHECK(template_config(made).env == Template::Envs{{"A", "1"}, {"B", "3"}});
  CHECK(template_config(made).workdir == "/srv/app/");
  CHECK(template_steps(Template()).empty());
}

TEST_CASE("steps: the folder of the base is where relative ones begin") {
  StepOptions options;
  options.workdir = "/srv/node";
  options.owner = "node:node";
  const auto steps = template_steps(Template().set_workdir("a b").run_cmd("x"), options);
  CHECK(steps[0].workdir == "/srv/node");
  CHECK(steps[0].script ==
        "[ -d '/srv/node/a b' ] || { mkdir -p -- '/srv/node/a b' && "
        "chown -- node:node '/srv/node/a b'; }");
  CHECK(steps[1].workdir == "/srv/node/a b");
  // Unknown: relative to whatever it is.
  const auto unknown = template_steps(Template().set_workdir("a").set_workdir("b"));
  CHECK(unknown[1].workdir == "a");
  CHECK(unknown[1].script == "mkdir -p -- b");
  CHECK(template_config(Template().set_workdir("a").set_workdir("b")).workdir == "a/b");
}

TEST_CASE("steps: installs") {
  const auto script = [](const Template& of) { return step_of(of).script; };
  CHECK(script(Template().apt_install({"git", "a b"}, true, true)) ==
        "export DEBIAN_FRONTEND=noninteractive\napt-get update && apt-get install -y "
        "--no-install-recommends --fix-missing git 'a b' && rm -rf /var/lib/apt/lists/*");
  CHECK(step_of(Template().apt_install({"git"})).user == "0");
  CHECK(step_of(Template().apt_install({"git"})).title == "apt-get install git");
  CHECK(script(Template().pip_install()) == "pip install .");
  CHECK(script(Template().pip_install({"six>=1"}, true)) == "pip install --user 'six>=1'");
  CHECK(script(Template().npm_install({}, true, true)) == "npm install -g --include=dev");
  CHECK(script(Template().npm_install({"x"}, false, true)) == "npm install x");
}

TEST_CASE("steps: commands run in turn in one shell, and none swallows the next") {
  const auto ran = [](std::vector<std::string> commands) {
    return run_step(step_of(Template().run_cmds(std::move(commands))));
  };
  CHECK(ran({"x=1; cd /", "echo $x; pwd"}).out == "1\n/\n");
  CHECK(ran({"false", "echo no"}).status == 1);
  CHECK(ran({"false", "echo no"}).out.empty());
  CHECK(ran({"true # a comment", "echo yes"}).out == "yes\n");
  CHECK(ran({"cat <<E\nin $HOME\nE", "echo 'it''s'"}).out ==
        "in " + std::string(getenv("HOME")) + "\nits\n");
  CHECK(ran({" ", "\n", "echo yes"}).out == "yes\n");
  CHECK(ran({"echo 'open", "echo no"}).status != 0);
  CHECK(ran({"true &", "wait; echo yes"}).out == "yes\n");
}

TEST_CASE("steps: secrets come by stdin, byte for byte, and are gone from it") {
  RunWithSecrets operation;
  operation.commands = {"printf '[%s]' \"$A\" \"$B\"", "env | grep -c '^[AB]='", "cat"};
  operation.secrets = {"A", "B"};
  operation.output = "/out";
  operation.owner = "1000";
  const TemplateStep step = step_of(Template().run_with_secrets(operation));
  CHECK(step.output->path == "/out");
  CHECK(step.output->owner == "1000");
  std::string all;
  for (int byte = 1; byte < 256; ++byte)
    all += static_cast<char>(byte);
  const Ran ran = run_step(step, {{"A", all}, {"B", "two\nlines\n"}, {"C", "not asked for"}});
  CHECK(ran.status == 0);
  CHECK(ran.out.substr(0, ran.out.rfind(']') + 1) == "[" + all + "][two\nlines\n]");
  CHECK(step.script.find(all) == std::string::npos);
  CHECK(secrets_input(step, {{"A", "x"}, {"B", ""}}) == "A=x\nexport A\nB=''\nexport B\n");
  try {
    secrets_input(step, {{"A", "x"}});
    FAIL("nothing was thrown");
  } catch (const TemplateError& error) {
    CHECK(error.fault() == TemplateFault::missing_secret);
    CHECK(std::string(error.what()).find(" B,") != std::string::npos);
  }
  CHECK_THROWS_AS(secrets_input(step, {{"A", std::string(1, '\0')}, {"B", ""}}), TemplateError);

  operation.secrets = {};
  operation.commands = {"exit 3"};
  const TemplateStep plain = step_of(Template().run_with_secrets(operation));
  CHECK(plain.script == "eval 'exit 3'");
  CHECK(run_step(plain).status == 3);
}

TEST_CASE("steps: paths and packages of any bytes stay one word") {
  const Folder folder;
  const std::string odd = folder.path() + "/-a 'b' $(c) \"d\"\n;é";
  CHECK(run_step(step_of(Template().set_workdir(odd))).status == 0);
  CHECK(std::filesystem::is_directory(odd));
}

TEST_CASE("steps: a long title is cut between characters") {
  std::string command;
  for (int i = 0; i < 100; ++i)
    command += "é";
  const std::string title = step_of(Template().run_cmd(command)).title;
  CHECK(title.size() <= 123);
  CHECK(title.substr(title.size() - 5) == "é…");
}

#include "sandforge/setup.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "session/setup_git.hpp"
#include "unit/sandbox/fixture.hpp"
#include "unit/session/git_origin.hpp"

using namespace sandforge;
using fake::read_file;
using test::TempDir;

namespace {

// A sandbox whose commands really run, in a folder of the test.
struct Bench {
  Bench() {
    ::mkdir(root.c_str(), 0700);
    ::mkdir(scratch.c_str(), 0700);
    world->set_program(fake::real_program(runtime, root, scratch));
    SandboxConfig config;
    config.id = "s1";
    sandbox = Sandbox::create(runtime, world->provider(), config).value();
    sandbox->start();
    started.outcome = StartOutcome::created;
  }

  SetupReport setup() {
    SetupRequest request;
    request.plan = plan;
    request.access = access;
    request.started = started;
    request.options = options;
    return await_result<SetupReport>(
        [&](auto done) { async_setup(sandbox, request, std::move(done)); });
  }
  Error failure() {
    return error_of([&] { setup(); });
  }
  RepositoryPlan& add(const GitOrigin& origin) {
    RepositoryPlan repository;
    repository.url = origin.url();
    plan.repositories.push_back(repository);
    return plan.repositories.back();
  }
  std::string file(const std::string& name) const { return read_file(root + "/" + name); }
  bool exists(const std::string& name) const { return std::filesystem::exists(root + "/" + name); }
  std::string git(const std::string& directory, const std::string& arguments) {
    const auto ran =
        fake::run_here({"sh", "-c", "git " + arguments}, {}, root + "/" + directory, scratch);
    return GitOrigin::line(ran.out);
  }

  TempDir dir;
  const std::string root = dir / "root", scratch = dir / "scratch";
  Runtime runtime;
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>(runtime);
  std::shared_ptr<Sandbox> sandbox;
  SetupPlan plan;
  RepositoryAccessByIndex access;
  StartedInfo started;
  SetupOptions options;
};

const std::string kEmptyDigest =
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

}  // namespace

TEST_CASE("One repository is cloned, its command runs inside it, and the marker says so") {
  Bench bench;
  GitOrigin origin("widgets");
  bench.add(origin).setup_commands = {"pnpm install"};
  bench.plan.repositories[0].setup_commands = {"pwd >where; echo ran >>count"};
  const auto report = bench.setup();
  CHECK(report.ran);
  CHECK(report.heads == std::vector<std::string>{origin.head()});
  CHECK(bench.file("widgets/README") == "first\n");
  CHECK(bench.git("widgets", "symbolic-ref --short HEAD") == "main");
  CHECK(bench.git("widgets", "rev-parse --abbrev-ref 'main@{upstream}'") == "origin/main");
  CHECK(bench.file("widgets/count") == "ran\n");
  CHECK(bench.file(".mastra-sandbox/setup").rfind("sha256:", 0) == 0);
  CHECK(bench.exists(".mastra-bootstrapped"));
  CHECK_FALSE(bench.exists(".mastra-sandbox/clone"));
}

TEST_CASE("A machine that was reattached with everything done is left alone") {
  Bench bench;
  GitOrigin origin("widgets");
  bench.add(origin).setup_commands = {"echo ran >>count"};
  bench.setup();
  bench.started.outcome = StartOutcome::connected;
  origin.commit("two", "README", "second\n");
  CHECK_FALSE(bench.setup().ran);
  CHECK(bench.file("widgets/README") == "first\n");

  SECTION("another plan is set up") {
    bench.plan.repositories[0].setup_commands = {"echo other >>count"};
    CHECK(bench.setup().ran);
    CHECK(bench.file("widgets/README") == "second\n");
    CHECK(bench.file("widgets/count") == "ran\nother\n");
  }
  SECTION("a checkout that is gone is made again") {
    std::filesystem::remove_all(bench.root + "/widgets");
    CHECK(bench.setup().ran);
    CHECK(bench.file("widgets/README") == "second\n");
  }
}

TEST_CASE("What a template brought along is only fetched and checked out") {
  Bench bench;
  GitOrigin origin("widgets");
  bench.add(origin).setup_commands = {"echo ran >>../count"};
  bench.setup();
  // As a template leaves it: detached, without the last marker.
  bench.git("widgets", "checkout -q --detach");
  std::filesystem::remove(bench.root + "/.mastra-bootstrapped");

  SECTION("exact: the same commit, so the commands are spared") {
    bench.started.provenance = Provenance::exact;
    bench.setup();
    CHECK(bench.file("count") == "ran\n");
  }
  SECTION("family: an older commit, so they run again") {
    bench.started.provenance = Provenance::family;
    const auto head = origin.commit("two", "README", "second\n");
    CHECK(bench.setup().heads == std::vector<std::string>{head});
    CHECK(bench.file("widgets/README") == "second\n");
    CHECK(bench.file("count") == "ran\nran\n");
  }
}

TEST_CASE("Refs: branch, tag, commit, full name, and none such") {
  Bench bench;
  GitOrigin origin("widgets");
  const auto first = origin.head();
  origin.git("tag v1");
  origin.git("checkout -q -b feature/x");
  const auto feature = origin.commit("x", "README", "feature\n");
  origin.git("update-ref refs/pull/7/head HEAD");
  origin.git("checkout -q main");
  origin.commit("two", "README", "second\n");
  auto& repository = bench.add(origin);

  SECTION("branch") {
    repository.ref = "feature/x";
    CHECK(bench.setup().heads.at(0) == feature);
    CHECK(bench.git("widgets", "symbolic-ref --short HEAD") == "feature/x");
  }
  SECTION("tag") {
    repository.ref = "v1";
    CHECK(bench.setup().heads.at(0) == first);
  }
  SECTION("commit") {
    repository.ref = first;
    CHECK(bench.setup().heads.at(0) == first);
  }
  SECTION("full name that a clone does not bring") {
    repository.ref = "refs/pull/7/head";
    CHECK(bench.setup().heads.at(0) == feature);
  }
  SECTION("none such") {
    repository.ref = "nowhere";
    const auto error = bench.failure();
    CHECK(error.code == Status::not_found);
    CHECK(error.reason == "setup.no_ref");
    CHECK(error.message.find("nowhere") != std::string::npos);
  }
}

TEST_CASE("An empty repository is set up") {
  Bench bench;
  TempDir dir;
  REQUIRE(
      fake::run_here({"git", "init", "-q", "-b", "main", "empty"}, {}, dir.str(), dir.str()).code ==
      0);
  RepositoryPlan repository;
  repository.url = "file://" + (dir / "empty").native();
  repository.setup_commands = {"touch here"};
  bench.plan.repositories = {repository};
  CHECK(bench.setup().heads == std::vector<std::string>{""});
  CHECK(bench.exists("empty/here"));
}

TEST_CASE("On a reattached machine no work is lost") {
  Bench bench;
  GitOrigin origin("widgets");
  bench.add(origin).ref = "main";
  bench.setup();
  bench.started.outcome = StartOutcome::connected;
  bench.started.setup_unfinished = true;
  const auto second = origin.commit("two", "README", "second\n");

  SECTION("without changes the branch goes forward") {
    CHECK(bench.setup().heads.at(0) == second);
  }
  SECTION("uncommitted changes stay") {
    std::ofstream(bench.root + "/widgets/README") << "mine\n";
    const auto report = bench.setup();
    CHECK(bench.file("widgets/README") == "mine\n");
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings[0].find("local changes") != std::string::npos);
  }
  SECTION("a fresh machine is brought there by force") {
    std::ofstream(bench.root + "/widgets/README") << "of a template\n";
    bench.started.outcome = StartOutcome::created;
    CHECK(bench.setup().heads.at(0) == second);
    CHECK(bench.file("widgets/README") == "second\n");
  }
}

TEST_CASE("A failing command fails the set-up, and the next attempt runs all commands again") {
  Bench bench;
  GitOrigin origin("widgets");
  bench.add(origin).setup_commands = {"echo a >>count", "test -e fixed || exit 17"};
  const auto error = bench.failure();
  CHECK(error.reason == "setup.command_failed");
  CHECK(error.details.find("exitCode")->as_integer() == 17);
  CHECK(error.details.find("repository")->as_string() == "widgets");
  CHECK(error.message == "set-up command 2 of 'widgets' failed with exit code 17");
  CHECK_FALSE(bench.exists(".mastra-sandbox/setup"));
  CHECK_FALSE(bench.exists(".mastra-bootstrapped"));

  std::ofstream(bench.root + "/widgets/fixed") << "x";
  bench.started.outcome = StartOutcome::connected;
  bench.started.setup_unfinished = true;
  bench.setup();
  CHECK(bench.file("widgets/count") == "a\na\n");
  CHECK(bench.exists(".mastra-bootstrapped"));
}

TEST_CASE("The error of a command tells what it wrote last, bounded and without credentials") {
  Bench bench;
  bench.plan.list_form = true;
  SECTION("both streams") {
    bench.plan.workspace_commands = {"echo compile error; echo why >&2; exit 2"};
    const auto error = bench.failure();
    CHECK(error.details.find("command")->as_string() == bench.plan.workspace_commands[0]);
    CHECK(error.details.find("stdout")->as_string() == "compile error\n");
    CHECK(error.details.find("stderr")->as_string() == "why\n");
  }
  SECTION("the last lines") {
    bench.plan.workspace_commands = {"seq 1 1000; exit 2"};
    std::string expected;
    for (int i = 981; i <= 1000; ++i)
      expected += std::to_string(i) + "\n";
    CHECK(bench.failure().details.find("stdout")->as_string() == expected);
  }
  SECTION("whole lines, where they are long") {
    bench.plan.workspace_commands = {
        "for i in 1 2 3 4 5 6; do printf '%01000d\\n' $i; done; exit 2"};
    const auto text = bench.failure().details.find("stdout")->as_string();
    CHECK(text.size() == 4 * 1001);
  }
  SECTION("of one line without an end, its end") {
    bench.plan.workspace_commands = {"printf '%09000d' 7; exit 2"};
    const auto text = bench.failure().details.find("stdout")->as_string();
    CHECK(text.size() == 4096);
    CHECK(text.back() == '7');
  }
  SECTION("no credential") {
    bench.plan.workspace_commands = {
        "echo https://ada:hunter2@example.org/x >&2; echo "
        "ghp_0123456789abcdefghijABCDEFGHIJ012345; "
        "exit 2"};
    const auto text = json::write(bench.failure().details);
    CAPTURE(text);
    CHECK(text.find("hunter2") == std::string::npos);
    CHECK(text.find("ghp_0123") == std::string::npos);
    CHECK(text.find("***") != std::string::npos);
  }
}

TEST_CASE("Many repositories with one failing set-up") {
  Bench bench;
  GitOrigin one("one"), two("two"), three("three");
  bench.add(one).setup_commands = {"touch ../done-one"};
  bench.add(two).setup_commands = {"exit 3", "touch ../after"};
  bench.add(three).setup_commands = {"touch ../done-three"};
  bench.plan.workspace_commands = {"ls >listing; echo w >>workspace"};
  bench.plan.list_form = true;

  SECTION("is recorded, and the others are there") {
    bench.plan.continue_on_failure = true;
    CHECK(bench.setup().failed_repositories == std::vector<std::string>{"two"});
    CHECK(bench.file(".mastra-sandbox/setup-failed") == "two\n");
    CHECK(bench.exists("done-one"));
    CHECK(bench.exists("after"));
    CHECK(bench.exists("done-three"));
    CHECK(bench.file("workspace") == "w\n");
    CHECK(bench.exists(".mastra-sandbox/repos/two"));
    CHECK(bench.file(".mastra-sandbox/workspace-setup").rfind("sha256:", 0) == 0);

    // Again: only what failed runs, its name stands there once, and goes when it succeeds.
    std::filesystem::remove(bench.root + "/done-one");
    bench.started.setup_unfinished = true;
    bench.setup();
    CHECK(bench.file(".mastra-sandbox/setup-failed") == "two\n");
    CHECK_FALSE(bench.exists("done-one"));
    bench.plan.repositories[1].setup_commands = {"true"};
    bench.setup();
    CHECK_FALSE(bench.exists(".mastra-sandbox/setup-failed"));
  }
  SECTION("fails the whole without continueOnSetupFailure") {
    CHECK(bench.failure().reason == "setup.command_failed");
    CHECK_FALSE(bench.exists("done-three"));
    CHECK(bench.exists("three/README"));
  }
}

TEST_CASE("A list without commands leaves the digest of nothing") {
  Bench bench;
  GitOrigin one("one");
  bench.add(one);
  bench.plan.list_form = true;
  bench.setup();
  CHECK(bench.file(".mastra-sandbox/repos/one") == kEmptyDigest);
  CHECK(bench.file(".mastra-sandbox/workspace-setup") == kEmptyDigest);
}

TEST_CASE("Every repository is fetched before any command runs") {
  Bench bench;
  GitOrigin one("one"), two("two");
  bench.add(one).setup_commands = {"ls .. >../seen"};
  bench.add(two);
  bench.setup();
  CHECK(bench.file("seen").find("two") != std::string::npos);
}

TEST_CASE("What is in the way of a checkout is not overwritten") {
  Bench bench;
  GitOrigin origin("widgets");
  bench.add(origin);
  std::filesystem::create_directory(bench.root + "/widgets");
  SECTION("an empty folder is no obstacle") {
    CHECK(bench.setup().ran);
  }
  SECTION("files are") {
    std::ofstream(bench.root + "/widgets/mine") << "x";
    const auto error = bench.failure();
    CHECK(error.reason == "setup.occupied");
    CHECK(bench.file("widgets/mine") == "x");
  }
}

TEST_CASE("An interrupted clone is begun anew") {
  Bench bench;
  GitOrigin origin("widgets");
  bench.add(origin);
  std::filesystem::create_directories(bench.root + "/.mastra-sandbox/clone/widgets/.git");
  std::ofstream(bench.root + "/.mastra-sandbox/clone/widgets/junk") << "x";
  bench.setup();
  CHECK(bench.file("widgets/README") == "first\n");
  CHECK_FALSE(bench.exists("widgets/junk"));
}

TEST_CASE("Without git the error says so") {
  Bench bench;
  GitOrigin origin("widgets");
  bench.add(origin);
  TempDir bin;
  REQUIRE(::symlink("/bin/sh", (bin / "sh").c_str()) == 0);
  EnvMap env;
  env["PATH"] = bin.str();
  bench.world->set_program(fake::real_program(bench.runtime, bench.root, bench.scratch, env));
  const auto error = bench.failure();
  CHECK(error.code == Status::unsupported);
  CHECK(error.reason == "setup.no_git");
}

TEST_CASE("A repository that is not there") {
  Bench bench;
  RepositoryPlan repository;
  repository.url = "file:///nowhere/at/all";
  bench.plan.repositories = {repository};
  const auto error = bench.failure();
  CHECK(error.code == Status::not_found);
  CHECK(error.reason == "setup.git_not_found");
  CHECK(error.details.find("stderr")->as_string().find("nowhere") != std::string::npos);
}

TEST_CASE("What git or a marker says reaches no error with a credential in it") {
  const std::string url = "https://octo:hunter2hunter2@example.com/a.git";
  const auto error = setup::git_error("fetch", "a", "", "fatal: unable to access '" + url + "'\n");
  CHECK(error.details.find("stderr")->as_string().find("fatal: unable") == 0);
  CHECK(error.details.find("stderr")->as_string().find("hunter2") == std::string::npos);
}

TEST_CASE("Hostile refs and URLs never reach git") {
  Bench bench;
  GitOrigin origin("widgets");
  SECTION("ref") {
    bench.add(origin).ref = "--upload-pack=touch pwned";
    CHECK(bench.failure().reason == "setup.bad_ref");
  }
  SECTION("URL of the plan") {
    bench.add(origin).url = "ext::sh -c touch% pwned";
    CHECK(bench.failure().reason == "setup.bad_url");
  }
  SECTION("URL that access names") {
    bench.add(origin).url.clear();
    bench.access = [](std::size_t, Handler<RepositoryAccess> done) {
      RepositoryAccess access;
      access.clone_url = "--upload-pack=touch pwned";
      std::move(done)(access);
    };
    CHECK(bench.failure().reason == "setup.bad_url");
  }
  CHECK_FALSE(bench.exists("pwned"));
  CHECK(bench.world->counts().spawns == 0);
}

TEST_CASE("A credential is in the environment of the fetch only, and nowhere else") {
  Bench bench;
  RepositoryPlan repository;
  repository.setup_commands = {"env >../env; exit 9"};
  bench.plan.repositories = {repository};
  int asked = 0;
  bench.access = [&](std::size_t, Handler<RepositoryAccess> done) {
    ++asked;
    RepositoryAccess access;
    access.clone_url = "https://example.invalid/acme/widgets.git";
    Authorization authorization;
    authorization.token = "s3cr3t-token";
    access.authorization = authorization;
    std::move(done)(access);
  };
  // Plays git: answers as the real scripts would, and says the credential aloud.
  bench.world->set_program([](const std::shared_ptr<fake::Process>& process) {
    process->start();
    const auto& command = process->command;
    const bool fetch = command.env.count("GIT_CONFIG_GLOBAL") != 0;
    if (fetch) {
      for (const auto& [name, value] : command.env)
        if (value) process->err(name + "=" + *value + "\n");
      process->out("cloned\nkind default\ncommit abc\n");
      return process->exit(command.argv[6] == "" ? 128 : 0);
    }
    process->out("head abc\n");
    process->exit(0);
  });

  const auto error = bench.failure();
  CHECK(asked == 1);
  const auto processes = bench.world->processes();
  REQUIRE(processes.size() == 1);
  const auto& command = processes[0]->command;
  std::string all_arguments;
  for (const auto& word : command.argv)
    all_arguments += word + "\n";
  const std::string basic = "eC1hY2Nlc3MtdG9rZW46czNjcjN0LXRva2Vu";  // x-access-token:s3cr3t-token
  CHECK(all_arguments.find("s3cr3t") == std::string::npos);
  CHECK(all_arguments.find(basic) == std::string::npos);
  const auto shown = json::write(to_json(error));
  CHECK(shown.find("s3cr3t") == std::string::npos);
  CHECK(shown.find(basic) == std::string::npos);
  CHECK(shown.find("***") != std::string::npos);

  bool bound = false;
  for (const auto& [name, value] : command.env) {
    if (value && *value == "http.https://example.invalid/acme/widgets.git.extraheader")
      bound = true;
  }
  CHECK(bound);
  CHECK(command.env.at("GIT_ALLOW_PROTOCOL") == std::optional<std::string>("https"));
  CHECK(command.env.at("GIT_TERMINAL_PROMPT") == std::optional<std::string>("0"));
}

TEST_CASE("Later steps see nothing of the credential") {
  Bench bench;
  GitOrigin origin("widgets");
  RepositoryPlan repository;
  repository.setup_commands = {"true"};
  bench.plan.repositories = {repository};
  bench.access = [&](std::size_t, Handler<RepositoryAccess> done) {
    RepositoryAccess access;
    access.clone_url = "http://127.0.0.1:1/acme/widgets";
    Authorization authorization;
    authorization.token = "s3cr3t-token";
    access.authorization = authorization;
    std::move(done)(access);
  };
  bench.world->set_program([](const std::shared_ptr<fake::Process>& process) {
    process->start();
    process->out("cloned\nkind default\ncommit abc\nhead abc\n");
    process->exit(0);
  });
  bench.setup();
  const auto processes = bench.world->processes();
  REQUIRE(processes.size() > 3);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    bool carries = false;
    for (const auto& [name, value] : processes[i]->command.env)
      carries = carries || (value && value->find("AUTHORIZATION") != std::string::npos);
    CHECK(carries == (i == 0));
  }
}

TEST_CASE("A credential is not sent in the clear") {
  Bench bench;
  bench.plan.repositories.resize(1);
  bench.access = [](std::size_t, Handler<RepositoryAccess> done) {
    RepositoryAccess access;
    access.clone_url = "http://user:s3cr3t@example.invalid/acme/widgets";
    std::move(done)(access);
  };
  const auto error = bench.failure();
  CHECK(error.reason == "setup.insecure_url");
  CHECK(json::write(to_json(error)).find("s3cr3t") == std::string::npos);
}

TEST_CASE("An error of the access function is the error of the set-up") {
  Bench bench;
  bench.plan.repositories.resize(1);
  bench.access = [](std::size_t, Handler<RepositoryAccess> done) {
    std::move(done)(Error(Status::unauthenticated, "no token today", "host.no_token"));
  };
  CHECK(bench.failure().reason == "host.no_token");
}

TEST_CASE("Set-up that is stopped ends as cancelled") {
  Bench bench;
  bench.world->set_program(fake::basic_program);
  bench.plan.workspace_commands = {"x"};
  bench.plan.list_form = true;
  bench.world->set_program([](const std::shared_ptr<fake::Process>& p) { p->start(); });
  std::stop_source source;
  bench.options.stop = source.get_token();
  SetupRequest request;
  request.plan = bench.plan;
  request.started = bench.started;
  request.options = bench.options;
  auto future =
      later<SetupReport>([&](auto done) { async_setup(bench.sandbox, request, std::move(done)); });
  REQUIRE(bench.world->process(0));
  source.request_stop();
  const auto result = get(future);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == Status::cancelled);
}

TEST_CASE("Steps and output are told") {
  Bench bench;
  GitOrigin origin("widgets");
  bench.add(origin).setup_commands = {"echo out; echo err >&2"};
  std::mutex mutex;
  std::vector<std::string> steps;
  std::string output;
  bench.options.on_step = [&](const SetupStep& step) {
    const std::lock_guard lock(mutex);
    steps.push_back(step.name + ":" + step.repository);
  };
  bench.options.on_output = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    output += text;
  };
  bench.setup();
  CHECK(steps == std::vector<std::string>{"fetch:widgets", "checkout:widgets", "setup:widgets"});
  CHECK(output == "out\nerr\n");
}

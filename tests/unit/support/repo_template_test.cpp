#include "sandforge/support/repo_template.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "sandforge/support/hash.hpp"
#include "sandforge/support/shell.hpp"
#include "sandforge/support/template_steps.hpp"

using namespace sandforge;

namespace {

using Urls = RepoRules::Urls;

std::string refused_wish(const std::function<void()>& call) {
  try {
    call();
  } catch (const TemplateError& error) {
    return std::string(to_string(error.fault())).substr(9) + " " + error.pointer();
  }
  return "nothing";
}
std::string refused_request(RepoRequest request, const RepoRules& rules = {}) {
  return refused_wish([&] { check(request, rules); });
}

RepoRequest with_list() {
  RepoRequest request;
  request.repositories = {RepoWish{{"make"}, ""}, RepoWish{{" ", "\n"}, "v1"}};
  return request;
}

// The commands of a template's text, each operation a line.
std::string step_lines(const Template& of) {
  std::string out;
  for (const TemplateStep& step : template_steps(of)) {
    out += step.script.empty() ? step.title : step.script;
    if (step.output) out += " -> " + step.output->path + " " + step.output->owner;
    for (const auto& name : step.secrets)
      out += " $" + name;
    out += "\n";
  }
  return out;
}

RepoPlan plan_of(bool list_form, std::size_t count) {
  RepoPlan plan;
  plan.list_form = list_form;
  plan.working_directory = "/workspace";
  for (std::size_t i = 0; i < count; ++i) {
    PlannedRepository repository;
    repository.index = i;
    repository.directory = std::string(1, static_cast<char>('a' + i));
    repository.url = "https://example.com/x/" + repository.directory;
    repository.head = std::string(40, static_cast<char>('a' + i));
    repository.setup_commands = {"make " + repository.directory};
    plan.repositories.push_back(repository);
  }
  plan.family = repo_family(plan);
  return plan;
}

const std::string kMarkA = "mkdir -p .mastra-sandbox/repos && printf '%s' " +
                           setup_marker({"make a"}) + " > .mastra-sandbox/repos/a\n";

}  // namespace

TEST_CASE("repositories: fields that contradict each other are refused") {
  RepoRequest both = with_list();
  both.repository = RepoWish{};
  CHECK(refused_request(both) == "exclusive /repositories");
  RepoRequest workspace;
  workspace.workspace_commands.emplace();
  CHECK(refused_request(workspace) == "exclusive /workspaceCommands");
  workspace.repository = RepoWish{};
  CHECK(refused_request(workspace) == "exclusive /workspaceCommands");
  RepoRequest going_on;
  going_on.continue_on_failure = false;
  CHECK(refused_request(going_on) == "exclusive /continueOnFailure");
  RepoRequest empty;
  empty.repositories.emplace();
  empty.workspace_commands = {"x"};
  empty.continue_on_failure = false;
  CHECK(refused_request(empty) == "nothing");
  CHECK(refused_request(RepoRequest()) == "nothing");
}

TEST_CASE("repositories: blank commands are dropped, and the others checked") {
  RepoRequest request = with_list();
  request.workspace_commands = {"", "a", "\t"};
  check(request, {});
  CHECK((*request.repositories)[0].setup_commands == std::vector<std::string>{"make"});
  CHECK((*request.repositories)[1].setup_commands.empty());
  CHECK(request.workspace_commands == std::vector<std::string>{"a"});
  (*request.repositories)[1].setup_commands = {"a", std::string("b\0", 2)};
  CHECK(refused_request(request) == "not_text /repositories/1/setupCommands/1");

  RepoRules lines;
  lines.single_line_commands = true;
  const auto one = [&](const std::string& command, const RepoRules& rules) {
    RepoRequest single;
    single.repository = RepoWish{{command}, ""};
    return refused_request(single, rules);
  };
  CHECK(one("a\nb", {}) == "nothing");
  CHECK(one("a\nb", lines) == "bad_command /repository/setupCommands/0");
  CHECK(one("a \\\nb", lines) == "nothing");
  CHECK(one("a\r", lines) == "bad_command /repository/setupCommands/0");
  CHECK(one("a \\\r\n", lines) == "bad_command /repository/setupCommands/0");
}

TEST_CASE("repositories: refs, folders, sizes and variables are checked") {
  const auto ref = [](const std::string& text) {
    RepoRequest request;
    request.repository = RepoWish{{}, text};
    return refused_request(request);
  };
  for (const char* good : {"main", "v1.2", "feature/x_y-z", "refs/heads/main", "0a1b2c3"})
    CHECK(ref(good) == "nothing");
  for (const char* bad :
       {"-x", "/a", "a/", "a..b", "a b", "a~1", "a:b", "HEAD", "a//b", "é", "a.", "$(x)"}) {
    CAPTURE(bad);
    CHECK(ref(bad) == "bad_ref /repository/ref");
  }
  const auto folder = [](const std::string& text) {
    RepoRequest request;
    request.working_directory = text;
    const std::string refused = refused_wish([&] { check(request, {}); });
    return refused == "nothing" ? *request.working_directory : refused;
  };
  CHECK(folder("/workspace//") == "/workspace");
  CHECK(folder("/") == "/");
  CHECK(folder("/a/..b") == "/a/..b");
  for (const char* bad : {"", "a", "/a/../b", "/..", "/a b", "/$x", "/é"}) {
    CAPTURE(bad);
    CHECK(folder(bad) == "bad_path /workingDirectory");
  }
  RepoRules rules;
  rules.working_directory = "/workspace/";
  RepoRequest none;
  check(none, rules);
  CHECK(none.working_directory == "/workspace");
  none.resources.cpu_count = 0;
  CHECK(refused_request(none) == "bad_value /resources/cpuCount");
  none.resources = {1, -1};
  CHECK(refused_request(none) == "bad_value /resources/memoryMB");
  none.resources = {};
  none.build_env = {{"A=", ""}};
  CHECK(refused_request(none) == "bad_name /buildEnv/A=");
}

TEST_CASE("repositories: clone URLs become normal, or are refused") {
  const auto https = [](const std::string& url) { return normal_clone_url(url, Urls::https); };
  CHECK(https("HTTPS://GitHub.COM/Acme/Widgets.GIT///") == "https://github.com/Acme/Widgets");
  CHECK(https("https://example.com:8443/a/b/c") == "https://example.com:8443/a/b/c");
  for (const char* bad : {"",
                          "http://example.com/a",
                          "ssh://git@example.com/a",
                          "file:///a",
                          "git@host:a",
                          "https://u@example.com/a",
                          "https://u:p@example.com/a",
                          "https://example.com",
                          "https://example.com/",
                          "https://example.com/.git",
                          "https://example.com/a//b",
                          "https://example.com/../b",
                          "https://example.com/-a",
                          "https://example.com/a?b",
                          "https://example.com/a#b",
                          "https://example.com/a b",
                          "https://example.com/$(a)",
                          "https://exa_mple.com/a",
                          "https://example.com:x/a",
                          "https://example.com:/a",
                          "https://-x/a",
                          "https:///a",
                          "https://example.com/a\\b",
                          "-https://example.com/a",
                          "https://example.com/a:b",
                          "ext::sh",
                          "https://example.com/a\n"}) {
    CAPTURE(bad);
    CHECK(refused_wish([&] { https(bad); }) == "bad_url ");
  }
  CHECK(refused_wish([&] { https("https://example.com/" + std::string(2048, 'a')); }) ==
        "bad_url ");
  // The password is not repeated.
  try {
    https("https://user:hunter2@example.com/a");
  } catch (const TemplateError& error) {
    CHECK(std::string(error.what()).find("hunter2") == std::string::npos);
  }

  const auto any = [](const std::string& url) { return normal_clone_url(url, Urls::any); };
  CHECK(any("file:///srv/a.git") == "file:///srv/a");
  CHECK(any("http://localhost:1/a") == "http://localhost:1/a");
  CHECK(any("ssh://git@Host/a.git") == "ssh://git@host/a");
  CHECK(any("git@Host:a/b.git") == "git@host:a/b");
  for (const char* bad :
       {"file://host/a", "file:///a/../b", "git://host/a", "-x@host:a", "host/a:b", "git@host:-a",
        "git@host:a@b", "http://u@host/a", "/srv/a", "git@-host:a", "@host:a", "ext::sh"}) {
    CAPTURE(bad);
    CHECK(refused_wish([&] { any(bad); }) == "bad_url ");
  }
}

TEST_CASE("repositories: the folder of a checkout is made of the URL") {
  CHECK(clone_directory("https://github.com/acme/widgets.git/") == "widgets");
  CHECK(clone_directory("git@host:widgets") == "widgets");
  CHECK(clone_directory("https://x/..dots") == "dots");
  CHECK(clone_directory("https://x/-dash") == "dash");
  CHECK(clone_directory("https://x/a b$") == "a-b-");
  CHECK(clone_directory("https://x/...") == "repo");
  CHECK(clone_directory("https://x/" + std::string(300, 'a')).size() == 255);
}

TEST_CASE("repositories: the marker of commands is the hash that the references give") {
  CHECK(setup_marker({"pnpm install"}).substr(0, 19) == "sha256:005d0b7e5c26");
  CHECK(setup_marker({}).substr(0, 15) == "sha256:e3b0c442");
  CHECK(setup_marker({"a", "b"}) == "sha256:" + sha256_hex("a\nb"));
}

TEST_CASE("repositories: the family is of URLs and folders alone") {
  RepoPlan one = plan_of(false, 1);
  one.repositories[0].url = "https://github.com/acme/widgets";
  one.repositories[0].directory = "widgets";
  one.working_directory.clear();
  CHECK(repo_family(one) == "repo:https://github.com/acme/widgets:/widgets");
  one.working_directory = "/w";
  CHECK(repo_family(one) == "repo:https://github.com/acme/widgets:/w/widgets");
  one.repositories[0].url += std::string(200, 'x');
  CHECK(repo_family(one).size() == 37);

  const RepoPlan two = plan_of(true, 2);
  const std::string text =
      R"(["/workspace",[["https://example.com/x/a","a"],["https://example.com/x/b","b"]]])";
  CHECK(two.family == "repos:" + sha256_hex(text).substr(0, 32));
  RepoPlan other = two;
  other.repositories[0].head.reset();
  other.repositories[1].setup_commands.clear();
  other.repositories[1].token = "t";
  other.resources.cpu_count = 8;
  other.workspace_commands = {"x"};
  CHECK(repo_family(other) == two.family);
  std::swap(other.repositories[0], other.repositories[1]);
  CHECK(repo_family(other) != two.family);
}

TEST_CASE("repositories: isolated, private clones come before any command of a repository") {
  RepoPlan plan = plan_of(true, 3);
  plan.repositories[1].token = "s3cr3t";
  plan.repositories[2].head.reset();
  plan.workspace_commands = {"make all"};
  plan.build_env = {{"CI", "1"}};
  plan.resources = {4, 2048};
  RepoStyle style;
  style.install_git = true;
  style.owner = "node";
  const Template made = repo_template(plan, style, Template().from("debian:12"));
  const std::string a(40, 'a'), b(40, 'b');
  const std::string text = step_lines(made);
  const std::string auth = made.operation_text(3);
  CHECK(text.find("s3cr3t") == std::string::npos);
  CHECK(made.text().find("s3cr3t") == std::string::npos);
  std::istringstream in(text);
  std::string all, line;
  while (std::getline(in, line))
    if (line.find("GIT_CONFIG") == std::string::npos) all += line + "\n";
  const auto at = [&](const std::string& what) {
    CAPTURE(what, all);
    const auto found = all.find(what);
    CHECK(found != std::string::npos);
    return found;
  };
  std::size_t last = 0;
  for (const auto& what : std::vector<std::string>{
           "apt-get install", "environment CI", "mkdir -p -- /workspace",
           " -> /workspace/b node $GH_TOKEN_1", "git clone -- https://example.com/x/a a",
           "cd a && make a", "> .mastra-sandbox/repos/a", "git clone -- https://example.com/x/c c",
           "cd c && make c", "> .mastra-sandbox/repos/c", "cd b && make b",
           "> .mastra-sandbox/repos/b", "\nmake all\n", "> .mastra-sandbox/workspace-setup"}) {
    CHECK(at(what) >= last);
    last = at(what);
  }
  CHECK(all.find(kMarkA) != std::string::npos);
  CHECK(auth.find("git clone -- https://example.com/x/b b") != std::string::npos);
  CHECK(auth.find("git -C b checkout --detach " + b) != std::string::npos);
  CHECK(auth.find(" -c ") == std::string::npos);
  CHECK(auth.find("GIT_CONFIG_KEY_2=http.https://example.com/x/b.extraheader") !=
        std::string::npos);
  CHECK(repo_secrets(plan, style) == std::map<std::string, std::string>{{"GH_TOKEN_1", "s3cr3t"}});
  CHECK(made.ephemeral_envs().empty());
  CHECK(made.base() == "debian:12");
  CHECK(made.resources() == TemplateResources{4, 2048});
  CHECK(made.family() == plan.family);
  // The token is no part of it: another one gives the same.
  plan.repositories[1].token = "other";
  CHECK(repo_template(plan, style, Template().from("debian:12")).text() == made.text());
  plan.repositories[1].head = std::string(40, 'e');
  CHECK(repo_template(plan, style, Template().from("debian:12")).identity() != made.identity());
}

TEST_CASE("repositories: one alone has the simple names and markers") {
  RepoPlan plan = plan_of(false, 1);
  plan.repositories[0].token = "secret";
  plan.repositories[0].head.reset();
  plan.repositories[0].ref = "v1";
  const Template made = repo_template(plan, RepoStyle());
  CHECK(repo_secrets(plan, RepoStyle()).count("GH_TOKEN") == 1);
  CHECK(made.operation_text(1).find("git -C a fetch origin v1") != std::string::npos);
  CHECK(made.operation_text(1).find("git -C a checkout --detach FETCH_HEAD") != std::string::npos);
  CHECK(step_lines(made).find("> .mastra-sandbox/setup\n") != std::string::npos);
  CHECK(step_lines(made).find("workspace") == step_lines(made).find("workspace\n"));
  plan.working_directory.clear();
  CHECK(refused_wish([&] { repo_template(plan, RepoStyle()); }) == "bad_path ");
  plan.working_directory = "/";
  CHECK(step_lines(repo_template(plan, RepoStyle())).find("-> /a ") != std::string::npos);
}

TEST_CASE("repositories: layered, a clone knows no commit, and private ones come first") {
  RepoPlan plan = plan_of(true, 2);
  plan.repositories[0].token = "secret";
  plan.build_env = {{"CI", "1"}};
  RepoStyle style;
  style.steps = RepoStyle::Steps::layered;
  style.token_name = "MASTRA_REPOSITORY_ACCESS_TOKEN";
  style.setup_twice = true;
  style.ephemeral_build_env = true;
  const Template made = repo_template(plan, style);
  CHECK(made.ephemeral_envs() ==
        Template::Envs{{"CI", "1"}, {"MASTRA_REPOSITORY_ACCESS_TOKEN_0", "secret"}});
  const std::string a(40, 'a'), b(40, 'b');
  const std::string text = step_lines(made);
  CAPTURE(text);
  const std::string drop = "unset MASTRA_REPOSITORY_ACCESS_TOKEN_0 && ";
  const auto at = [&](const std::string& what) {
    CAPTURE(what);
    CHECK(text.find(what) != std::string::npos);
    return text.find(what);
  };
  const auto private_clone =
      at("\"$MASTRA_REPOSITORY_ACCESS_TOKEN_0\" | base64 | tr -d '\\n')\" "
         "git clone --depth=1 --single-branch -- https://example.com/x/a a\n");
  const auto public_steps =
      at("git clone --depth=1 --single-branch -- https://example.com/x/b b\n" + drop +
         "cd b && make b\ngit -C b fetch origin " + b + "\ngit -C b checkout --detach " + b + "\n" +
         drop + "cd b && make b\n");
  CHECK(private_clone < public_steps);
  CHECK(public_steps < at(drop + "cd a && make a\n"));
  CHECK(text.rfind("cd a && make a") == text.find("cd a && make a"));
  plan.workspace_commands = {"make all"};
  CHECK(step_lines(repo_template(plan, style)).find("\n" + drop + "make all\n") !=
        std::string::npos);
  CHECK(made.text().find("secret") == std::string::npos);
  style.setup_twice = false;
  CHECK(step_lines(repo_template(plan, style)).find("b b\ngit -C b fetch") != std::string::npos);
  plan.repositories[1].head.reset();
  CHECK(step_lines(repo_template(plan, style)).find("b b\n" + drop + "cd b && make b\nmkdir") !=
        std::string::npos);
  plan.repositories[1].ref = "main";
  CHECK(step_lines(repo_template(plan, style))
            .find("git -C b fetch origin main\ngit -C b checkout --detach FETCH_HEAD\n") !=
        std::string::npos);
}

TEST_CASE("repositories: sizes alone are a template of their own") {
  RepoPlan sizes;
  sizes.resources = {2, {}};
  CHECK(repo_template(sizes, RepoStyle()).text() == Template().cpu_count(2).text());
}

namespace {

// Runs the steps of a template in order, below a folder that stands for the machine's root.
class Machine {
 public:
  Machine() {
    char path[] = "/tmp/sf-repos-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    root_ = path;
  }
  ~Machine() { std::filesystem::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const std::string& root() const { return root_; }
  int sh(const std::string& text) const {
    return std::system(("cd " + root_ + " && { " + text + "\n} >/dev/null 2>&1").c_str());
  }
  // The first script that fails; empty: none.
  std::string build(const Template& of, const std::map<std::string, std::string>& secrets) const {
    for (const TemplateStep& step : template_steps(of)) {
      if (step.script.empty()) continue;
      std::ofstream(root_ + "/input") << secrets_input(step, secrets);
      std::string env;
      for (const auto& [name, value] : step.env)
        env += name + "=" + shell_quote(value) + " ";
      const std::string folder = step.workdir.empty() ? root_ : step.workdir;
      if (sh("cd " + folder + " && " + env + "sh -c " + shell_quote(step.script) + " <" + root_ +
             "/input") != 0)
        return step.script;
    }
    return {};
  }
  std::string read(const std::string& path) const {
    std::ifstream in(root_ + "/" + path);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }

 private:
  std::string root_;
};

}  // namespace

TEST_CASE("repositories: the steps do what they say, with git and a shell") {
  const Machine machine;
  if (machine.sh("git --version") != 0) {
    WARN("SKIPPED: git is not installed");
    return;
  }
  for (const auto steps : {RepoStyle::Steps::isolated, RepoStyle::Steps::layered}) {
    REQUIRE(machine.sh("rm -rf work; for name in a b c; do rm -rf $name; git init -q $name; "
                       "git -C $name -c user.name=x -c user.email=x@x commit -q --allow-empty "
                       "-m first; git -C $name config uploadpack.allowAnySHA1InWant true; "
                       "git -C $name rev-parse HEAD >$name.head; git -C $name -c user.name=x "
                       "-c user.email=x@x commit -q --allow-empty -m second; done") == 0);
    RepoPlan plan = plan_of(true, 3);
    plan.working_directory = machine.root() + "/work";
    for (PlannedRepository& repository : plan.repositories) {
      repository.url = "file://" + machine.root() + "/" + repository.directory;
      repository.head = machine.read(repository.directory + ".head").substr(0, 40);
      repository.setup_commands = {"pwd > ../at-" + repository.directory};
    }
    plan.repositories[1].token = "secret'\"$x";
    plan.repositories[1].setup_commands = {"exit 7", "echo 'went on' > went-on", "exit 8"};
    plan.workspace_commands = {"echo x >> once"};
    plan.continue_on_failure = true;
    RepoStyle style;
    style.steps = steps;
    style.setup_twice = true;
    CAPTURE(static_cast<int>(steps));
    CHECK(machine.build(repo_template(plan, style), repo_secrets(plan, style)).empty());
    CHECK(machine.read("work/.mastra-sandbox/setup-failed") == "b\n");
    for (const char* name : {"a", "b", "c"}) {
      CAPTURE(name);
      CHECK(machine.sh("test $(git -C work/" + std::string(name) + " rev-parse HEAD) = $(cat " +
                       name + ".head)") == 0);
      CHECK(machine.read("work/.mastra-sandbox/repos/" + std::string(name)).substr(0, 7) ==
            "sha256:");
      CHECK(machine.read("work/" + std::string(name) + "/.git/config").find("AUTH") ==
            std::string::npos);
    }
    CHECK(machine.read("work/at-c") == machine.root() + "/work/c\n");
    CHECK(machine.read("work/b/went-on") == "went on\n");
    CHECK(machine.read("work/once") == "x\n");
    CHECK(machine.read("work/.mastra-sandbox/workspace-setup") == setup_marker({"echo x >> once"}));
    // Without it the first failure ends the build.
    REQUIRE(machine.sh("rm -rf work") == 0);
    plan.continue_on_failure = false;
    CHECK(machine.build(repo_template(plan, style), repo_secrets(plan, style))
              .find("cd b && exit 7") != std::string::npos);
    // A branch that is not the default one, and whose head nobody could tell.
    REQUIRE(machine.sh("rm -rf work; git -C a branch -q other $(cat a.head)") == 0);
    for (const char* ref : {"other", "refs/heads/other"}) {
      REQUIRE(machine.sh("rm -rf work") == 0);
      RepoPlan branch = plan;
      branch.repositories.resize(1);
      branch.repositories[0].head.reset();
      branch.repositories[0].ref = ref;
      CAPTURE(ref);
      CHECK(machine.build(repo_template(branch, style), {}).empty());
      CHECK(machine.sh("test $(git -C work/a rev-parse HEAD) = $(cat a.head)") == 0);
    }
  }
}

TEST_CASE("repositories: git gets the credential in its environment, and nothing else does") {
  const Machine machine;
  REQUIRE(machine.sh("mkdir bin; printf '#!/bin/sh\\necho \"$@\" >> %s/args\\nenv >> %s/env\\n' "
                     "$PWD $PWD > bin/git; chmod +x bin/git") == 0);
  RepoPlan plan = plan_of(false, 1);
  plan.working_directory = machine.root();
  plan.repositories[0].token = "secret'$x";
  for (const auto steps : {RepoStyle::Steps::isolated, RepoStyle::Steps::layered}) {
    REQUIRE(machine.sh("rm -f args env") == 0);
    plan.repositories[0].setup_commands.clear();
    RepoStyle style;
    style.steps = steps;
    const Template made = repo_template(
        plan, style,
        Template().set_envs({{"PATH", machine.root() + "/bin:" + std::getenv("PATH")}}));
    CHECK(machine.build(made, repo_secrets(plan, style)).empty());
    CHECK(machine.read("args").find("secret") == std::string::npos);
    CHECK(machine.read("args").find("AUTH") == std::string::npos);
    CHECK(machine.read("args").find("clone") != std::string::npos);
    // base64 of "x-access-token:secret'$x"
    CHECK(machine.read("env").find("AUTHORIZATION: basic "
                                   "eC1hY2Nlc3MtdG9rZW46c2VjcmV0JyR4\n") != std::string::npos);
    CHECK(machine.read("env").find("GIT_CONFIG_COUNT=3\n") != std::string::npos);
  }
}

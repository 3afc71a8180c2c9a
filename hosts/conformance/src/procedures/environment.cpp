// A17 to A19: the environment and the place that a command runs in.
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

void exact(Host& host) {
  const auto sandbox = host.make();
  const auto one = sandbox->exec({"printenv", "A", "B"}, with_env({{"A", "1"}, {"B", "2"}}));
  CHECK(one.out == "1\n2\n");

  const std::string hard = "a b & \"c\" 'd' $HOME `x` \\ \n end";
  CHECK(sandbox->exec({"printenv", "V"}, with_env({{"V", hard}})).out == hard + "\n");
  CHECK(sandbox->execute_command("printf %s \"$V\"", {}, with_env({{"V", hard}})).out == hard);

  const std::string bytes = "\xff\xfe\x80 not text";
  CHECK(sandbox->exec({"printenv", "V"}, with_env({{"V", bytes}})).out == bytes + "\n");
  CHECK(sandbox->exec({"printenv", "EMPTY"}, with_env({{"EMPTY", ""}})).out == "\n");
}

void layers(Host& host) {
  auto config = host.config();
  config.env = EnvMap{{"A", "sandbox"}, {"C", "kept"}};
  config.overlay = {{"B", "overlay"}};
  const auto sandbox = host.make(config);
  const std::vector<std::string> show = {"sh", "-c", "echo ${A-unset} ${B-unset} ${C-unset}"};
  CHECK(sandbox->exec(show).out == "sandbox overlay kept\n");
  CHECK(sandbox->exec(show, with_env({{"A", "call"}, {"B", "call"}})).out == "call call kept\n");
  CHECK(sandbox->exec(show, with_env({{"A", std::nullopt}, {"B", std::nullopt}})).out ==
        "unset unset kept\n");
  CHECK(sandbox->exec(show).out == "sandbox overlay kept\n");

  sandbox->set_env([](EnvMap env) {
    env["B"] = "rotated";
    env["C"] = "rotated";
    return env;
  });
  CHECK(sandbox->exec(show).out == "sandbox rotated rotated\n");
  CHECK(sandbox->env().at("B") == "rotated");
}

void path(Host& host) {
  const auto sandbox = host.make();
  CHECK(sandbox->exec({"sh", "-c", "test -n \"$PATH\""}).success);
  const auto where = sandbox->exec({"sh", "-c", "command -v printenv"}).out;
  REQUIRE(!where.empty());
  const auto printenv = where.substr(0, where.size() - 1);
  CHECK(sandbox->exec({printenv, "PATH"}, with_env({{"PATH", "/other"}})).out == "/other\n");
  CHECK(sandbox->exec({printenv}, with_env({{"PATH", std::nullopt}})).out.find("\nPATH=") ==
        std::string::npos);
}

// Planted after the start of this process: it is in what a host would hand on, but in no
// /proc/*/environ unless somebody did hand it on.
void no_secret(Host& host) {
  const std::string secret = "host-secret-" + host.setting().token;
  REQUIRE(::setenv("SANDFORGE_TEST_SECRET", secret.c_str(), 1) == 0);
  for (const char* name : {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY"})
    REQUIRE(::setenv(name, secret.c_str(), 1) == 0);
  const auto sandbox = host.started();
  const auto inside = sandbox->exec({"env"});
  CHECK(inside.out.find(secret) == std::string::npos);
  CHECK(sandbox->execute_command("env").out.find(secret) == std::string::npos);
  // Not in the environment of what serves it either.
  const auto all = sh(*sandbox, "cat /proc/[0-9]*/environ 2>/dev/null; :");
  CHECK(all.out.find(secret) == std::string::npos);
}

void context(Host& host) {
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId(host.id());
  context->factory_id = "factory-1";
  context->env = [](const SessionContext& c) -> std::optional<EnvMap> {
    return EnvMap{{"TOKEN", c.factory_id == "factory-1" ? "granted" : "denied"}};
  };
  SandboxConfig config;
  config.context = context;
  CHECK(host.make(config)->exec({"printenv", "TOKEN"}).out == "granted\n");
}

void planted_profiles(Host& host) {
  const char* const kProfiles[] = {".bash_profile", ".bashrc", ".profile", ".shrc"};
  const std::string planted = "echo planted; PATH=/nowhere; export PATH\n";
  for (const char* file : kProfiles)
    std::ofstream(host.home() / file) << planted;
  host.env()["BASH_ENV"] = (host.home() / ".bashrc").string();
  host.env()["ENV"] = (host.home() / ".bashrc").string();
  const auto sandbox = host.started();
  const auto seen = [&] {
    std::string out = sandbox->execute_command("echo \"$PATH\"").out;
    out += sandbox->exec({"sh", "-c", "echo \"$PATH\""}).out;
    out += sandbox->exec({"env"}).out.find("planted") == std::string::npos ? "" : "planted";
    if (sh(*sandbox, "command -v bash").success)
      out += sandbox->exec({"bash", "-c", "echo \"$PATH\""}).out;
    return out;
  };
  const auto before = seen();
  // The same in a home inside, for sandboxes that are elsewhere.
  const auto home = sh(*sandbox,
                       "mkdir home; for f in .bash_profile .bashrc .profile .shrc; do "
                       "echo 'echo planted; PATH=/nowhere; export PATH' > home/$f; done; "
                       "printf %s \"$PWD/home\"")
                        .out;
  sandbox->set_env([&](EnvMap env) {
    env["HOME"] = home;
    return env;
  });
  CHECK(before.find("planted") == std::string::npos);
  CHECK(before.find("/nowhere") == std::string::npos);
  CHECK(seen() == before);
  for (const char* file : kProfiles)
    fs::remove(host.home() / file);
}

void directories(Host& host) {
  const auto sandbox = host.started();
  const auto own = sandbox->exec({"pwd", "-P"}).out;
  REQUIRE(own.size() > 1);
  const auto place = own.substr(0, own.size() - 1);
  sh(*sandbox, "mkdir -p sub/deep");
  const auto in = [&](const std::string& cwd) {
    ExecOptions options;
    options.cwd.emplace(cwd);
    return sandbox->exec({"pwd", "-P"}, options).out;
  };
  CHECK(in("/tmp") == sh(*sandbox, "cd /tmp; pwd -P").out);
  CHECK(in("sub") == place + "/sub\n");
  CHECK(in("./sub/deep") == place + "/sub/deep\n");
  CHECK(in(".") == own);

  SpawnOptions options;
  options.cwd.emplace("sub");
  CHECK(sandbox->spawn(argv({"pwd", "-P"}), options)->wait().out == place + "/sub\n");
}

void own_directory(Host& host) {
  auto config = host.config();
  config.working_directory = (host.scratch() / "elsewhere" / "deep").string();
  const auto sandbox = host.make(config);
  CHECK(sandbox->start().outcome == StartOutcome::created);
  CHECK(sandbox->exec({"pwd"}).out == *config.working_directory + "\n");
  sh(*sandbox, "mkdir sub");
  ExecOptions options;
  options.cwd.emplace("sub");
  CHECK(sandbox->exec({"pwd"}, options).out == *config.working_directory + "/sub\n");
}

// As the user that commands run as anyway: to become another needs rights that not all have.
void named_user(Host& host) {
  const auto sandbox = host.started();
  const auto own = sandbox->exec({"id", "-un"}).out;
  REQUIRE(own.size() > 1);
  ExecOptions options;
  options.user = own.substr(0, own.size() - 1);
  CHECK(sandbox->exec({"id", "-un"}, options).out == own);
  options.user = "nobody-of-that-name";
  const Error error = error_of([&] { sandbox->exec({"true"}, options); });
  CHECK(error.message.find("nobody-of-that-name") != std::string::npos);
  CHECK_FALSE(error.may_have_started);
}

}  // namespace

void add_environment(Procedures& to) {
  to["environment.exact"] = exact;
  to["environment.layers"] = layers;
  to["environment.path"] = path;
  to["environment.no_secret"] = no_secret;
  to["environment.context"] = context;
  to["environment.planted_profiles"] = planted_profiles;
  to["environment.directories"] = directories;
  to["environment.own_directory"] = own_directory;
  to["environment.named_user"] = named_user;
}

}  // namespace sandforge::conformance

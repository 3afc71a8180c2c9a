#include "sandforge/setup_plan.hpp"

#include <catch2/catch.hpp>

using namespace sandforge;

TEST_CASE("Clone URLs that git may be given") {
  struct Row {
    std::string text, url, protocol, host;
  };
  const std::vector<Row> rows = {
      {"https://example.com/a/b.git", "https://example.com/a/b.git", "https", "example.com"},
      {"HTTPS://example.com/a/b", "https://example.com/a/b", "https", "example.com"},
      {"http://127.0.0.1:8080/r", "http://127.0.0.1:8080/r", "http", "127.0.0.1:8080"},
      {"http://[::1]:8080/r", "http://[::1]:8080/r", "http", "[::1]:8080"},
      {"ssh://git@example.com:22/a/b", "ssh://git@example.com:22/a/b", "ssh", "example.com:22"},
      {"git@example.com:a/b.git", "git@example.com:a/b.git", "ssh", "example.com"},
      {"file:///srv/a", "file:///srv/a", "file", ""},
      {"/srv/a b", "file:///srv/a%20b", "file", ""},
      {"file:///srv/a b", "file:///srv/a%20b", "file", ""},
      {"file:///srv/a%20b", "file:///srv/a%20b", "file", ""},
      {"/srv/100%25", "file:///srv/100%2525", "file", ""},
      {"/srv/a\\b", "file:///srv/a%5Cb", "file", ""},
      {"/srv/a", "file:///srv/a", "file", ""},
  };
  for (const auto& row : rows) {
    INFO(row.text);
    const auto url = parse_clone_url(row.text);
    if (row.url.empty()) {
      CHECK_FALSE(url.ok());
      continue;
    }
    REQUIRE(url.ok());
    CHECK(url->url == row.url);
    CHECK(url->protocol == row.protocol);
    CHECK(url->host == row.host);
    CHECK_FALSE(url->authorization);
  }
}

TEST_CASE("Hostile clone URLs are refused, and the error repeats nothing of them") {
  for (const std::string text : {"",
                                 "--upload-pack=touch /tmp/x",
                                 "-oProxyCommand=x",
                                 "ext::sh -c x",
                                 "ext::sh",
                                 "fd::17",
                                 "git://example.com/a",
                                 "ftp://example.com/a",
                                 "ssh://-oProxyCommand=x/a",
                                 "ssh://-x@host/a",
                                 "-x@host:a",
                                 "u@-host:a",
                                 "host:-x",
                                 "https://",
                                 "https://host",
                                 "https://host/",
                                 "https:///path",
                                 "file://host/path",
                                 "relative/path",
                                 "a",
                                 "C:\\x",
                                 "https://ho st/a",
                                 "https://host/a b",
                                 "git@host:a b",
                                 "/srv/a\nb",
                                 "ext::sh -c /x",
                                 "https://host/a\nb",
                                 "https://h/a%00\x01",
                                 "https://u:s3cret@-h/a",
                                 "https://h/a?private_token=s3cret",
                                 "https://h/a#s3cret",
                                 "ssh://h/a?s3cret",
                                 "u:s3cret@h:a"}) {
    INFO(text);
    const auto url = parse_clone_url(text);
    REQUIRE_FALSE(url.ok());
    CHECK(url.error().code == Status::invalid);
    CHECK(url.error().reason == "setup.bad_url");
    CHECK(url.error().message.find("s3cret") == std::string::npos);
  }
  CHECK_FALSE(parse_clone_url("https://host/" + std::string(2048, 'a')).ok());
  CHECK_FALSE(parse_clone_url(std::string("https://host/a\0b", 16)).ok());
}

TEST_CASE("Credentials of a URL are taken out of it") {
  auto url = parse_clone_url("https://me:p%40ss@example.com/a/b").value();
  CHECK(url.url == "https://example.com/a/b");
  REQUIRE(url.authorization);
  CHECK(url.authorization->scheme == "basic");
  CHECK(url.authorization->username == "me");
  CHECK(url.authorization->token == "p@ss");

  url = parse_clone_url("https://ghp_token@example.com/a/b").value();
  CHECK(url.url == "https://example.com/a/b");
  CHECK(url.authorization->token == "ghp_token");
}

TEST_CASE("Refs") {
  for (const std::string good : {"main", "feature/x_1.2", "v1.0", "refs/pull/1/head", "a+b#c",
                                 "0123456789012345678901234567890123456789"}) {
    INFO(good);
    CHECK(check_ref(good).ok());
  }
  for (const std::string bad : {"",     "-x",   "--upload-pack=x",
                                "a..b", "a b",  "a~1",
                                "a^",   "a:b",  "a?",
                                "a*",   "a[",   "a\\b",
                                "@",    "HEAD", "a@{1}",
                                "/a",   "a/",   "a.",
                                "a//b", "a\n"}) {
    INFO(bad);
    const auto checked = check_ref(bad);
    REQUIRE_FALSE(checked.ok());
    CHECK(checked.error().reason == "setup.bad_ref");
  }
}

TEST_CASE("Directory of a repository") {
  CHECK(repository_directory("https://github.com/acme/widgets") == "widgets");
  CHECK(repository_directory("https://github.com/acme/widgets.git") == "widgets");
  CHECK(repository_directory("https://github.com/acme/widgets.git/") == "widgets");
  CHECK(repository_directory("git@github.com:widgets.git") == "widgets");
  CHECK(repository_directory("https://h/a/.hidden") == "hidden");
  CHECK(repository_directory("https://h/a/we%20ird!") == "we-20ird-");
  CHECK(repository_directory("file:///srv/my%20code") == "my-code");
  CHECK(repository_directory("https://h/a/...") == "repo");
  CHECK(repository_directory("https://h/a/.git") == "git");
}

namespace {

RepositoryPlan repository(std::string url) {
  RepositoryPlan out;
  out.url = std::move(url);
  return out;
}

}  // namespace

TEST_CASE("Normalize drops blank commands and fills in directories") {
  SetupPlan plan;
  plan.repositories = {repository("https://h/a/one.git"), repository("https://h/a/two")};
  plan.repositories[0].setup_commands = {"  ", "make", ""};
  plan.workspace_commands = {"", "true", "\n"};
  REQUIRE(normalize(plan).ok());
  CHECK(plan.repositories[0].directory == "one");
  CHECK(plan.repositories[0].setup_commands == std::vector<std::string>{"make"});
  CHECK(plan.workspace_commands == std::vector<std::string>{"true"});
}

TEST_CASE("A credential is the name of a place, and what is none is not repeated") {
  SetupPlan plan;
  plan.repositories = {repository("https://h/a/x")};
  for (const std::string good : {"", "${TOKEN}", "${_a1}", "file:/run/token", "file:token"}) {
    plan.repositories[0].credential = good;
    CHECK(normalize(plan).ok());
  }
  for (const std::string bad :
       {"s3cr3t", "$s3cr3t", "${s3cr3t", "${}", "${1s3cr3t}", "${A}s3cr3t", "s3cr3t${A}",
        "${A}${B}", "${A-s3cr3t}", "$${s3cr3t}", "file:", "$file:s3cr3t", " "}) {
    INFO(bad);
    plan.repositories[0].credential = bad;
    const auto checked = normalize(plan);
    REQUIRE_FALSE(checked.ok());
    CHECK(checked.error().reason == "setup.bad_credential");
    CHECK(json::write(to_json(checked.error())).find("s3cr3t") == std::string::npos);
  }
}

TEST_CASE("Normalize refuses what cannot be set up") {
  const auto reason = [](SetupPlan plan) { return normalize(plan).error().reason; };
  SetupPlan plan;
  plan.repositories = {repository("https://h/a/x"), repository("https://other/b/x.git")};
  CHECK(reason(plan) == "setup.same_directory");
  plan.repositories.pop_back();
  for (const std::string bad : {"..", ".git", "a/b", "-x", "a b"}) {
    plan.repositories[0].directory = bad;
    CHECK(reason(plan) == "setup.bad_directory");
  }
  plan.repositories[0].directory.clear();
  plan.repositories[0].setup_commands = {std::string("a\0b", 3)};
  CHECK(reason(plan) == "setup.bad_command");
  plan.repositories[0].setup_commands.clear();
  plan.repositories[0].ref = "-x";
  CHECK(reason(plan) == "setup.bad_ref");
}

TEST_CASE("The plan of a context") {
  SessionContext context;
  CHECK(setup_plan(context).value().empty());

  context.repository_access = [](Handler<RepositoryAccess>) {};
  context.setup_command = "npm ci";
  auto plan = setup_plan(context).value();
  CHECK_FALSE(plan.list_form);
  REQUIRE(plan.repositories.size() == 1);
  CHECK(plan.repositories[0].setup_commands == std::vector<std::string>{"npm ci"});

  context.repository_access = nullptr;
  context.repos.emplace();
  context.repos->push_back({[](Handler<RepositoryAccess>) {}, {"a", "b"}});
  context.workspace_setup_commands = {"w"};
  context.continue_on_setup_failure = true;
  plan = setup_plan(context).value();
  CHECK(plan.list_form);
  CHECK(plan.continue_on_failure);
  CHECK(plan.workspace_commands == std::vector<std::string>{"w"});

  context.repository_access = [](Handler<RepositoryAccess>) {};
  CHECK(setup_plan(context).error().reason == "context.exclusive_fields");
}

TEST_CASE("A plan as JSON and back") {
  SetupPlan plan;
  plan.repositories = {repository("https://h/a/x")};
  plan.repositories[0].ref = "main";
  plan.repositories[0].setup_commands = {"make"};
  plan.workspace_commands = {"w"};
  plan.list_form = true;
  const auto back = parse_setup_plan(to_json(plan)).value();
  CHECK(to_json(back) == to_json(plan));
  CHECK_FALSE(parse_setup_plan(json::Value("x")).ok());
  CHECK_FALSE(parse_setup_plan(json::parse(R"({"repositories":[1]})").value).ok());
  CHECK_FALSE(parse_setup_plan(json::parse(R"({"listForm":"yes"})").value).ok());
}

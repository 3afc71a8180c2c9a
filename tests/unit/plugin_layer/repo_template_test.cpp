// The plan of a repository template, asked of the fake host by a blocking author.
#include <sandforge/plugin/repo_template.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;
using sandforge::RepoOutcome;
using sandforge::RepoRules;
using sandforge::RepoStyle;
using sandforge::Template;
using sandforge::TemplateError;

namespace {

const std::string some_head(40, 'a');

struct Repos {
  Ground ground;
  testing::Context raw;

  Repos() {
    ground.host.process.real = false;
    raw.clone_url = "https://github.com/acme/widgets.git";
    raw.token = "s3cr3t-token";
  }
  RepoOutcome resolve(const StopToken& stop = {}) {
    RepoOutcome outcome;
    std::exception_ptr error;
    ground.off_lane([&] {
      try {
        const Context context(&raw, ground.lane);
        RepoRules rules;
        rules.working_directory = "/workspace";
        outcome = resolve_repo_template(context, request_of(context), rules, stop);
      } catch (...) {
        error = std::current_exception();
      }
    });
    if (error) std::rethrow_exception(error);
    return outcome;
  }
};

}  // namespace

TEST_CASE("a head is the context's where it knows it") {
  Repos repos;
  repos.raw.head = some_head;
  repos.raw.setup_command = "\"make\"";
  const RepoOutcome outcome = repos.resolve();
  REQUIRE(outcome.plan);
  CHECK(outcome.plan->repositories.at(0).head == some_head);
  CHECK(outcome.plan->repositories.at(0).setup_commands == std::vector<std::string>{"make"});
  CHECK(outcome.plan->repositories.at(0).username == "git");
  const ResolvedTemplate resolved = resolved_template(outcome, RepoStyle());
  CHECK(resolved.document->find("s3cr3t") == std::string::npos);
  CHECK(resolved.identity == Template::parse(*resolved.document).identity());
  CHECK(resolved.family == "repo:https://github.com/acme/widgets:/workspace/widgets");
}

TEST_CASE("a head is GitHub's, else what git lists on the host, with the token in neither line") {
  Repos repos;
  repos.ground.host.http.expect("GET", "/repos/acme/widgets/commits/HEAD")
      .with_header("Authorization", "Bearer s3cr3t-token")
      .answer(200, some_head);
  CHECK(repos.resolve().plan->repositories.at(0).head == some_head);
  CHECK(repos.ground.host.http.requests().at(0).base_url == "https://api.github.com");
  CHECK(repos.ground.host.http.requests().at(0).total_timeout_ms == 10'000);
  CHECK(testing::HttpService::live_clients == 0);

  repos.ground.host.http.expect("GET", "/repos/acme/widgets/commits/HEAD").answer(403, "limit");
  std::shared_ptr<testing::Invocation> seen;
  repos.ground.host.process.handler = [&](const std::shared_ptr<testing::Invocation>& command) {
    seen = command;
    command->started();
    command->out(some_head + "\tHEAD\n");
    command->exit(0);
  };
  CHECK(repos.resolve().plan->repositories.at(0).head == some_head);
  REQUIRE(seen);
  CHECK(seen->line == "git ls-remote -- https://github.com/acme/widgets HEAD");
  CHECK(seen->timeout_ms == 10'000);
  CHECK(seen->variable("GIT_CONFIG_KEY_2") == "http.https://github.com/acme/widgets.extraheader");
  CHECK(seen->variable("GIT_CONFIG_VALUE_2").find("basic ") != std::string::npos);
  seen.reset();
}

TEST_CASE("what nobody can tell is a warning without credentials") {
  Repos repos;
  repos.raw.head_failure = testing::Failure(SF_UNAVAILABLE, "no: s3cr3t-token");
  repos.ground.host.http.expect("GET", "/repos/acme/widgets/commits/HEAD")
      .fail(SF_HTTP_NOT_CONNECTED, SF_UNAVAILABLE, "refused");
  repos.ground.host.process.expect("git ls-remote -- https://github.com/acme/widgets HEAD", 128, "",
                                   "fatal: s3cr3t-token");
  const RepoOutcome outcome = repos.resolve();
  CHECK_FALSE(outcome.plan);
  REQUIRE(outcome.warnings.size() == 1);
  CHECK(outcome.warnings[0] ==
        "the head of https://github.com/acme/widgets is not to be had (no: ***; refused; git "
        "ls-remote failed: fatal: ***): there is no template of this very commit");
  const ResolvedTemplate resolved = resolved_template(outcome, RepoStyle());
  CHECK_FALSE(resolved.document);
  CHECK_FALSE(resolved.family.empty());
  CHECK(resolved.warnings == outcome.warnings);
}

TEST_CASE("a host without http and process is one that cannot tell a head") {
  Repos repos;
  detail::services().http = nullptr;
  detail::services().process = nullptr;
  const RepoOutcome outcome = repos.resolve();
  CHECK_FALSE(outcome.plan);
  CHECK(outcome.warnings.size() == 1);
}

TEST_CASE("a stop ends the search, and is no answer") {
  Repos repos;
  StopSource stop;
  repos.ground.host.http.handler = [&](const std::shared_ptr<testing::Exchange>& exchange) {
    stop.request_stop();
    exchange->end(SF_HTTP_NOT_SENT, testing::Failure(SF_CANCELLED, "cancelled"));
  };
  CHECK(code_of([&] { repos.resolve(stop.token()); }) == Code::cancelled);
}

TEST_CASE("many repositories are asked for by their position") {
  Repos repos;
  repos.raw.head = some_head;
  repos.raw.repositories = {{"https://example.com/a", "t-one"}, {"https://example.com/b", ""}};
  repos.raw.repos = R"([{"setupCommand":["x","y"]},{}])";
  repos.raw.workspace_setup_command = R"("all")";
  repos.raw.continues_on_failure = true;
  repos.raw.working_directory = "/w/";
  const RepoOutcome outcome = repos.resolve();
  REQUIRE(outcome.plan);
  CHECK(outcome.plan->list_form);
  CHECK(outcome.plan->continue_on_failure);
  CHECK(outcome.plan->working_directory == "/w");
  CHECK(outcome.plan->workspace_commands == std::vector<std::string>{"all"});
  REQUIRE(outcome.plan->repositories.size() == 2);
  CHECK(outcome.plan->repositories[0].token == "t-one");
  CHECK(outcome.plan->repositories[0].setup_commands == std::vector<std::string>{"x", "y"});
  CHECK(outcome.plan->repositories[1].url == "https://example.com/b");
  repos.raw.repos = "[";
  CHECK(code_of([&] { repos.resolve(); }) == Code::invalid);
  repos.raw.repos.clear();
  repos.raw.repositories[1].clone_url = "https://example.org/a";
  CHECK_THROWS_AS(repos.resolve(), TemplateError);
}

TEST_CASE("a session without repositories asks for nothing") {
  Repos repos;
  repos.raw.clone_url.clear();
  const RepoOutcome outcome = repos.resolve();
  CHECK_FALSE(outcome.plan);
  CHECK(outcome.complete);
  CHECK_FALSE(resolved_template(outcome, RepoStyle()).document);
}

TEST_CASE("what is wrong with a template reaches the host as invalid, with its place") {
  std::string told;
  const auto wrong = [] { static_cast<void>(Template().run_cmd("a").run_cmd("")); };
  CHECK(detail::fence(nullptr, wrong) == SF_INVALID);
  try {
    wrong();
  } catch (...) {
    detail::with_error(std::current_exception(),
                       [&](const sf_error& e) { told = testing::text(e.details); });
  }
  CHECK(told == R"({"reason":"template.empty","pointer":"/operations/1/args/0","operation":1})");
}

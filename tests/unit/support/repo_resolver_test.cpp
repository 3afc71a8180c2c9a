#include "sandforge/support/repo_resolver.hpp"

#include <catch2/catch.hpp>

#include "sandforge/support/encoding.hpp"

using namespace sandforge;

namespace {

const std::string kHead(40, 'a');
const std::string kOther = "0123456789abcdef0123456789abcdef01234567";

RepoRequest one_wish(const std::string& ref = "") {
  RepoRequest request;
  request.repository = RepoWish{{"make"}, ref};
  return request;
}
RepoRequest many_wishes(std::size_t count) {
  RepoRequest request;
  request.repositories.emplace(count);
  return request;
}
RepoRules any_url() {
  RepoRules rules;
  rules.urls = RepoRules::Urls::any;
  return rules;
}

}  // namespace

TEST_CASE("heads: the context is asked first, then GitHub, then git") {
  RepoResolver resolver(one_wish(), {}, true);
  CHECK(resolver.need() == RepoNeed::access);
  resolver.give_access("https://GitHub.com/acme/widgets.git", "token");
  CHECK(resolver.need() == RepoNeed::context_head);
  CHECK(resolver.url() == "https://github.com/acme/widgets");
  CHECK(resolver.token() == "token");
  resolver.give_head(std::nullopt);
  CHECK(resolver.need() == RepoNeed::github_head);
  CHECK(resolver.http().base_url == "https://api.github.com");
  CHECK(resolver.http().target == "/repos/acme/widgets/commits/HEAD");
  CHECK(resolver.http().headers.back() ==
        std::pair<std::string, std::string>("Authorization", "Bearer token"));
  resolver.give_http(403, "rate limited");
  CHECK(resolver.need() == RepoNeed::git_head);
  resolver.give_git(true, kHead + "\tHEAD\n");
  CHECK(resolver.need() == RepoNeed::nothing);
  const RepoOutcome outcome = resolver.outcome();
  REQUIRE(outcome.plan);
  CHECK(outcome.complete);
  CHECK(outcome.warnings.empty());
  CHECK(outcome.plan->repositories[0].head == kHead);
  CHECK(outcome.plan->repositories[0].directory == "widgets");
  CHECK(outcome.plan->repositories[0].token == "token");
  CHECK(outcome.family == "repo:https://github.com/acme/widgets:/widgets");
}

TEST_CASE("heads: each answer that is one ends the search") {
  const auto resolve = [](bool context, const auto& answer) {
    RepoResolver resolver(one_wish(), {}, context);
    resolver.give_access("https://github.com/acme/widgets", "");
    answer(resolver);
    CHECK(resolver.need() == RepoNeed::nothing);
    return resolver.outcome().plan->repositories.at(0).head.value_or("none");
  };
  CHECK(resolve(true, [](RepoResolver& r) { r.give_head("ABCDEF0"); }) == "abcdef0");
  CHECK(resolve(false, [](RepoResolver& r) { r.give_http(200, kHead + "\n"); }) == kHead);
  RepoResolver fixed(one_wish(kOther), {}, true);
  fixed.give_access("https://github.com/acme/widgets", "");
  CHECK(fixed.need() == RepoNeed::nothing);
  CHECK(fixed.outcome().plan->repositories[0].head == kOther);
}

TEST_CASE("heads: what is no commit is no answer") {
  RepoResolver resolver(one_wish(), {}, true);
  resolver.give_access("https://github.com/acme/widgets", "");
  resolver.give_head("main; rm -rf /");
  REQUIRE(resolver.need() == RepoNeed::github_head);
  resolver.give_http(200, "<html>" + kHead);
  REQUIRE(resolver.need() == RepoNeed::git_head);
  resolver.give_git(true, "main\tHEAD\nabc\tHEAD\n" + kHead + " HEAD");
  REQUIRE(resolver.need() == RepoNeed::nothing);
  const RepoOutcome outcome = resolver.outcome();
  CHECK_FALSE(outcome.plan);
  CHECK_FALSE(outcome.complete);
  CHECK(outcome.family == "repo:https://github.com/acme/widgets:/widgets");
  REQUIRE(outcome.warnings.size() == 1);
  CHECK(outcome.warnings[0] ==
        "the head of https://github.com/acme/widgets is not to be had (the host told something "
        "that is no commit; GitHub answered 200; git ls-remote lists no such ref): there is no "
        "template of this very commit");
}

TEST_CASE("heads: only two segments at GitHub are asked of its API") {
  for (const char* url : {"https://github.com/acme", "https://github.com/acme/widgets/wiki",
                          "https://example.com/acme/widgets", "https://github.com.evil.org/a/b"}) {
    RepoResolver resolver(one_wish(), {}, false);
    resolver.give_access(url, "");
    CHECK(resolver.need() == RepoNeed::git_head);
  }
}

TEST_CASE("heads: git is told refs, and the credential in its environment alone") {
  const auto command = [](const std::string& ref, const std::string& token) {
    RepoResolver resolver(one_wish(ref), {}, true);
    resolver.give_access("https://example.com/x", token, token.empty() ? "" : "me");
    CHECK(resolver.need() == (ref.empty() ? RepoNeed::context_head : RepoNeed::git_head));
    return resolver.git();
  };
  using Words = std::vector<std::string>;
  CHECK(command("", "").argv == Words{"git", "ls-remote", "--", "https://example.com/x", "HEAD"});
  CHECK(command("v1", "").argv == Words{"git", "ls-remote", "--", "https://example.com/x",
                                        "refs/heads/v1", "refs/tags/v1", "refs/tags/v1^{}"});
  CHECK(command("refs/pull/1/head", "").argv == Words{"git", "ls-remote", "--",
                                                      "https://example.com/x", "refs/pull/1/head",
                                                      "refs/pull/1/head^{}"});
  CHECK(command("", "").env.count("GIT_CONFIG_COUNT") == 0);
  CHECK(command("", "").env.at("GIT_ALLOW_PROTOCOL") == "https");
  const HeadCommand secret = command("", "token");
  for (const auto& word : secret.argv)
    CHECK(word.find("token") == std::string::npos);
  CHECK(secret.env.at("GIT_CONFIG_COUNT") == "3");
  CHECK(secret.env.at("GIT_CONFIG_KEY_2") == "http.https://example.com/x.extraheader");
  CHECK(secret.env.at("GIT_CONFIG_VALUE_2") == "AUTHORIZATION: basic " + base64_encode("me:token"));
}

TEST_CASE("heads: a tag is the commit that it names") {
  RepoResolver resolver(one_wish("v1"), {}, false);
  resolver.give_access("https://example.com/x", "");
  resolver.give_git(true, kOther + "\trefs/tags/v1\n" + kHead + "\trefs/tags/v1^{}\n");
  CHECK(resolver.outcome().plan->repositories[0].head == kHead);
}

TEST_CASE("heads: what was told last stands in, for this URL and ref") {
  HeadMemory memory;
  const auto resolve = [&](const std::string& ref, bool tells) {
    RepoResolver resolver(one_wish(ref), {}, false, &memory);
    resolver.give_access("https://example.com/x", "");
    if (tells) {
      resolver.give_git(true, kHead + "\tHEAD\n");
    } else {
      resolver.give_failure("no network");
    }
    return resolver.outcome();
  };
  CHECK_FALSE(resolve("", false).plan);
  CHECK(resolve("", true).complete);
  const RepoOutcome again = resolve("", false);
  REQUIRE(again.plan);
  CHECK(again.complete);
  CHECK(again.plan->repositories[0].head == kHead);
  CHECK(again.warnings.size() == 1);
  CHECK_FALSE(resolve("main", false).plan);
}

TEST_CASE("heads: the memory is bounded, and what was used stays") {
  HeadMemory memory;
  memory.keep("u", "", "first");
  memory.keep("u", "", "second");
  for (std::size_t i = 0; i < HeadMemory::kMost; ++i) {
    CHECK(memory.find("u", "") == "second");
    memory.keep(std::to_string(i), "", "x");
  }
  CHECK(memory.find("u", "") == "second");
  CHECK_FALSE(memory.find("0", ""));
  CHECK(memory.find("1", ""));
}

TEST_CASE("heads: a provider may go on without a commit") {
  RepoRules rules;
  rules.unknown_head = RepoRules::UnknownHead::unpinned;
  RepoResolver resolver(many_wishes(2), rules, false);
  resolver.give_access("https://example.com/a", "");
  resolver.give_failure("no network");
  CHECK(resolver.index() == 1);
  resolver.give_access("https://example.com/b", "");
  resolver.give_git(true, kHead + "\tHEAD\n");
  const RepoOutcome outcome = resolver.outcome();
  REQUIRE(outcome.plan);
  CHECK(outcome.complete);
  CHECK_FALSE(outcome.plan->repositories[0].head);
  CHECK(outcome.plan->repositories[1].head == kHead);
  CHECK(outcome.warnings.size() == 1);
}

TEST_CASE("access: without it the sizes are left, and a warning without credentials") {
  RepoRequest request = many_wishes(2);
  request.resources.cpu_count = 2;
  RepoResolver resolver(request, {}, true);
  resolver.give_access("https://example.com/a", "s3cr3t-token");
  resolver.give_head(kHead);
  resolver.give_failure("bearer s3cr3t https://u:p4ss@example.com/ said no");
  CHECK(resolver.need() == RepoNeed::nothing);
  const RepoOutcome outcome = resolver.outcome();
  REQUIRE(outcome.plan);
  CHECK_FALSE(outcome.complete);
  CHECK(outcome.plan->repositories.empty());
  CHECK(outcome.plan->resources.cpu_count == 2);
  CHECK(outcome.family.empty());
  REQUIRE(outcome.warnings.size() == 1);
  CHECK(outcome.warnings[0].find("repository 2 cannot be accessed") == 0);
  CHECK(outcome.warnings[0].find("p4ss") == std::string::npos);
}

TEST_CASE("access: what cannot be cloned, or safely, is given up before any network") {
  const auto warning = [](const std::string& url, const std::string& token) {
    RepoResolver resolver(one_wish(), any_url(), true);
    resolver.give_access(url, token);
    CHECK(resolver.need() == RepoNeed::nothing);
    const RepoOutcome outcome = resolver.outcome();
    CHECK_FALSE(outcome.plan);
    CHECK_FALSE(outcome.complete);
    return outcome.warnings.at(0);
  };
  CHECK(warning("", "t") == "the repository has no clone URL");
  CHECK(warning("https://u:hunter2@example.com/a", "").find("hunter2") == std::string::npos);
  CHECK(warning("http://example.com/a", "t").find("none is sent") != std::string::npos);
  CHECK(warning("file:///a", "t").find("none is sent") != std::string::npos);
  CHECK(warning("https://example.com/a", "a\nHost: b").find("no request can carry") !=
        std::string::npos);
  for (const char* foreign : {"http://127.example.com/a", "http://127.0.0.1.example.com/a"})
    CHECK(warning(foreign, "t").find("none is sent") != std::string::npos);
  for (const char* fine : {"http://127.0.0.1:80/a", "http://localhost/a"}) {
    RepoResolver resolver(one_wish(), any_url(), true);
    resolver.give_access(fine, "t");
    CHECK(resolver.need() == RepoNeed::context_head);
  }
}

TEST_CASE("access: two repositories cannot have one folder") {
  RepoResolver resolver(many_wishes(2), {}, true);
  resolver.give_access("https://example.com/x/same", "");
  resolver.give_head(kHead);
  try {
    resolver.give_access("https://example.com/y/same.git", "");
    FAIL("nothing was thrown");
  } catch (const TemplateError& error) {
    CHECK(error.fault() == TemplateFault::same_directory);
    CHECK(error.pointer() == "/repositories/1");
  }
}

TEST_CASE("access: nothing is asked where nothing is wanted") {
  RepoResolver nothing(RepoRequest(), {}, true);
  CHECK(nothing.need() == RepoNeed::nothing);
  const RepoOutcome none = nothing.outcome();
  CHECK_FALSE(none.plan);
  CHECK(none.complete);
  CHECK(none.warnings.empty());
  RepoRequest sizes = many_wishes(0);
  sizes.resources.memory_mb = 512;
  RepoResolver sized(sizes, {}, true);
  CHECK(sized.need() == RepoNeed::nothing);
  CHECK(sized.outcome().plan->resources.memory_mb == 512);
  RepoRequest wrong;
  wrong.continue_on_failure = true;
  CHECK_THROWS_AS(RepoResolver(wrong, {}, true), TemplateError);
}

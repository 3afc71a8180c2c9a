// E04 to E16: templates and builds. What a template is made of is the provider's: the
// cases vary the settings by the schema, the set-up command and the repository, and hold the
// answers against each other.
#include "builds.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "procedure.hpp"
#include "random.hpp"
#include "sandforge/support/encoding.hpp"
#include "sandforge/support/template.hpp"

namespace sandforge::conformance {
namespace {

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Recipe with(Recipe recipe, const std::function<void(SessionContext&)>& change) {
  auto context = std::make_shared<SessionContext>(*recipe.context);
  change(*context);
  recipe.context = std::move(context);
  return recipe;
}

Recipe with_setup(Recipe recipe, const std::string& command) {
  return with(std::move(recipe), [&](SessionContext& c) { c.setup_command = command; });
}

// ---- E04

// What a document asks for. Its family says only what may stand in for it.
std::string without_family(const std::string& document) {
  auto parsed = json::parse(document);
  if (!parsed || !parsed.value.is_object()) return document;
  parsed.value.as_object().erase("family");
  return json::write_canonical(parsed.value);
}

// A document has one identity, and another document has another.
class Identities {
 public:
  void add(const ResolvedTemplate& resolved) {
    if (!resolved.document) return;
    CAPTURE(*resolved.document);
    CHECK(is_digest(resolved.identity));
    const std::string wish = without_family(*resolved.document);
    const auto of_document = documents_.emplace(wish, resolved.identity).first;
    CHECK(of_document->second == resolved.identity);
    const auto of_identity = identities_.emplace(resolved.identity, wish).first;
    CHECK(of_identity->second == wish);
  }
  std::size_t size() const { return documents_.size(); }

 private:
  std::map<std::string, std::string> documents_, identities_;
};

void identity(Host& host) {
  const Builds builds(host);
  auto plain = recipe_of(host);
  if (!builds.resolve(plain).document) plain.context = fresh_recipe(host).context;
  auto unset = plain;
  unset.settings = {};
  CHECK(builds.resolve(unset).identity == builds.resolve(plain).identity);
  CHECK(builds.resolve(plain).identity == builds.resolve(plain).identity);

  Random random(host.setting().seed);
  Identities seen;
  const auto* fields = host.description().settings_schema.find("properties");
  for (int i = 0; i < 20; ++i) {
    auto recipe = plain;
    if (fields != nullptr)
      recipe.settings = recipe_of(host, fitting_document(fields->as_object(), random)).settings;
    seen.add(builds.resolve(recipe));
    seen.add(builds.resolve(with_setup(recipe, "true && exit 0")));
    seen.add(builds.resolve(with_setup(recipe, "exit 0 && true")));
    // Who asks and under which display name changes no wish.
    const auto renamed = builds.resolve(with(recipe, [](SessionContext& c) {
      c.session_id = SessionId(c.session_id->str() + "-other");
      c.factory_name = "another name";
    }));
    CHECK(renamed.identity == builds.resolve(recipe).identity);
    const auto family = builds.resolve(
        with(recipe, [](SessionContext& c) { c.repo_full_name = *c.repo_full_name + "-fork"; }));
    seen.add(family);
  }
  if (seen.size() < 2) unverified("all that was tried had one template, or none");
}

// ---- E05

void failing_build(Host& host) {
  const Builds builds(host);
  const auto plain = fresh_recipe(host);
  const auto recipe = with_setup(plain, "exit 17");
  if (builds.resolve(recipe).document == builds.resolve(plain).document)
    unverified("a set-up command is no part of its templates: no build that must fail is known");
  const auto build = builds.ended(recipe, builds.start(recipe));
  CHECK(to_string(build.status) == "failed");
  CHECK(build.error.find("17") != std::string::npos);
  try {
    CHECK_FALSE(builds.log(recipe, build.id).empty());
  } catch (const UnsupportedFeatureError&) {
  }
  const auto sandbox = make(host, recipe);
  const auto started = sandbox->start();
  CHECK(started.outcome == StartOutcome::created);
  CHECK((started.provenance != Provenance::exact));
  CHECK_FALSE(started.warnings.empty());
}

// ---- E06, E16

// Where that is not so, the build was through at once, or there is none.
StartedInfo start_before_build(Sandbox& sandbox) {
  auto started = sandbox.start();
  CHECK(started.outcome == StartOutcome::created);
  if (started.provenance == Provenance::exact || !started.template_pending)
    unverified("the start of a session with a new template named no build that is under way");
  CHECK((started.provenance == Provenance::base || started.provenance == Provenance::family));
  return started;
}

void start_does_not_wait(Host& host) {
  const Builds builds(host);
  const auto recipe = fresh_recipe(host);
  const auto started = start_before_build(*make(host, recipe));
  CHECK(started.template_pending->str() == builds.start(recipe).template_id.str());
  builds.ended(recipe, builds.start(recipe));
}

void becomes_ready(Host& host) {
  const Builds builds(host);
  const auto recipe = fresh_recipe(host);
  const auto running = make(host, recipe, "running");
  const auto before = start_before_build(*running);
  const auto build = builds.ended(recipe, builds.start(recipe));
  REQUIRE(to_string(build.status) == "ready");
  CHECK(running->status() == SandboxStatus::running);
  CHECK(running->start().outcome == StartOutcome::connected);
  CHECK(running->started()->generation == before.generation);

  const auto fresh = make(host, recipe, "fresh")->start();
  CHECK(fresh.outcome == StartOutcome::created);
  CHECK((fresh.provenance == Provenance::exact));
  CHECK_FALSE(fresh.template_pending.has_value());
}

// ---- E07, E10, E11, E13

struct Asked {
  std::atomic<int> access{0};
  std::atomic<int> head{0};
  int all() const { return access + head; }
};

// With a private repository that is nowhere.
Recipe with_repository(Host& host, Recipe recipe, const std::shared_ptr<Asked>& asked,
                       const std::string& token, bool head) {
  const std::string url = "https://repository.invalid/" + host.setting().token + ".git";
  return with(std::move(recipe), [&](SessionContext& c) {
    c.repository_access = [asked, token, url](Handler<RepositoryAccess> done) {
      ++asked->access;
      RepositoryAccess access;
      access.clone_url = url;
      access.authorization = Authorization{"bearer", token, {}};
      std::move(done)(std::move(access));
    };
    c.resolve_head = [asked, head](std::string, std::string,
                                   Handler<std::optional<std::string>> done) {
      ++asked->head;
      if (head) return std::move(done)(std::optional<std::string>(std::string(40, 'a')));
      std::move(done)(Error(Status::unavailable, "the head is not to be had"));
    };
  });
}

std::vector<std::string> disguises(const std::string& secret) {
  return {secret, base64_encode(secret), base64_encode("x-access-token:" + secret)};
}

void check_absent(const std::string& text, const std::string& secret, const char* where) {
  for (const auto& form : disguises(secret))
    if (text.find(form) != std::string::npos)
      findings().add(std::string("the secret is in ") + where);
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Arguments of all processes of this machine. The environment is where a token may be.
std::string command_lines() {
  std::string out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc", none))
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().string().front())) != 0)
      out += content(entry.path() / "cmdline");
  return out;
}

std::string texts_of(const StartedInfo& started) {
  std::string out;
  for (const auto& warning : started.warnings)
    out += warning + "\n";
  return out;
}

// What a sandbox that booted from the build can see.
std::string seen_inside(Host& host, Sandbox& sandbox, const std::string& secret) {
  std::string out;
  if (host.has("commands.own")) return out;
  for (const auto& form : disguises(secret)) {
    // The pattern does not find itself in its own command line.
    const std::string pattern = "'[" + form.substr(0, 1) + "]" + form.substr(1) + "'";
    out += sh(sandbox,
              "{ env; cat /proc/[0-9]*/cmdline; cat .git/config */.git/config; grep -rash " +
                  pattern + " /etc /home /root /tmp /var .; } 2>/dev/null | grep -ao " + pattern)
               .out;
  }
  return out;
}

// A private repository that builders of the provider can reach, and what may read it.
struct PrivateRepository {
  std::string url;
  std::string token;
};

std::optional<PrivateRepository> private_repository() {
  const char* url = std::getenv("SANDFORGE_CONFORMANCE_REPOSITORY");
  const char* token = std::getenv("SANDFORGE_CONFORMANCE_REPOSITORY_TOKEN");
  if (url == nullptr || token == nullptr || *url == '\0' || *token == '\0') return std::nullopt;
  return PrivateRepository{url, token};
}

// It keeps what it finds where the template keeps it, and goes on in the background.
constexpr const char* kScanner =
    "(while :; do cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline >>scanned; sleep 1; done)"
    " 2>/dev/null & sleep 2; grep -rs . /tmp /root /home >>scanned; true";

// The head is asked of the repository itself, with the token.
Recipe of_private(Recipe recipe, const PrivateRepository& repository,
                  const std::shared_ptr<Asked>& asked) {
  return with(std::move(recipe), [&](SessionContext& c) {
    c.setup_command = kScanner;
    c.repository_access = [asked, repository](Handler<RepositoryAccess> done) {
      ++asked->access;
      RepositoryAccess access;
      access.clone_url = repository.url;
      access.authorization = Authorization{"bearer", repository.token, {}};
      std::move(done)(std::move(access));
    };
  });
}

// To the end of the build, with a look at this machine's processes whenever it is asked for.
Build watched(const Builds& builds, const Recipe& recipe, Build build, const std::string& token) {
  bool seen = false;
  const auto over = [&] {
    if (!seen)
      for (const auto& form : disguises(token))
        seen = seen || command_lines().find(form) != std::string::npos;
    build = builds.get(recipe, build.id);
    return build.status != BuildStatus::pending && build.status != BuildStatus::building;
  };
  if (!eventually(over, 10min)) {
    findings().add("the build " + build.id.str() + " does not end");
    throw Abandoned{};
  }
  if (seen) findings().add("the secret is in the arguments of a process");
  return build;
}

void token_leaves_no_trace(Host& host) {
  const Builds builds(host);
  const auto repository = private_repository();
  const std::string token = repository ? repository->token : "ghs" + host.word("token");
  const auto asked = std::make_shared<Asked>();
  const auto recipe = repository ? of_private(recipe_of(host), *repository, asked)
                                 : with_repository(host, recipe_of(host), asked, token, true);
  const auto resolved = builds.resolve(recipe);
  check_absent(resolved.document.value_or("") + resolved.identity + resolved.family, token,
               "the template");
  const auto build = watched(builds, recipe, builds.start(recipe), token);
  check_absent(builds.everything_about(recipe, build.id), token, "what is told of the build");

  const auto sandbox = make(host, recipe);
  const auto started = sandbox->start();
  check_absent(texts_of(started), token, "the warnings of a start");
  check_absent(json::write(to_json(sandbox->info())), token, "the info of a sandbox");
  check_absent(seen_inside(host, *sandbox, token), token, "the sandbox");
  for (const auto& entry : fs::recursive_directory_iterator(host.base()))
    if (entry.is_regular_file()) check_absent(content(entry.path()), token, "a file of the host");
  if (asked->access == 0) unverified("it asked for no access to the repository");
  if (!repository && to_string(build.status) != "ready")
    unverified("SANDFORGE_CONFORMANCE_REPOSITORY and its _TOKEN name no private repository");
  CAPTURE(build.error);
  REQUIRE(to_string(build.status) == "ready");
  CHECK((started.provenance == Provenance::exact));
  if (host.has("commands.own")) return;
  // It has run, and found something at all.
  CHECK(sh(*sandbox, "test -s scanned || cat */scanned | grep -q .").success);
}

void head_is_not_to_be_had(Host& host) {
  const auto asked = std::make_shared<Asked>();
  const std::string token = "ghs" + host.word("token");
  const auto recipe = with_repository(host, recipe_of(host), asked, token, false);
  const auto started = make(host, recipe)->start();
  if (asked->head == 0) unverified("it asked for no head of the repository");
  CHECK(started.outcome == StartOutcome::created);
  CHECK((started.provenance != Provenance::exact));
  CHECK_FALSE(started.warnings.empty());
  check_absent(texts_of(started), token, "the warnings of a start");
}

void reattach_asks_nothing(Host& host) {
  const auto asked = std::make_shared<Asked>();
  const auto recipe = with_repository(host, recipe_of(host), asked, "token", true);
  const auto first = make(host, recipe);
  first->start();
  const auto id = first->sandbox_id();
  if (!id) unverified("the provider has no ids of its own to reattach by");

  const int before = asked->all();
  const auto again = make(host, with(recipe, [&](SessionContext& c) { c.sandbox_id = id; }));
  CHECK(again->start().outcome == StartOutcome::connected);
  CHECK(asked->all() == before);
  // A stuck session: a host that knows the ids destroys what it never started.
  const auto stuck = make(host, with(recipe, [&](SessionContext& c) { c.sandbox_id = id; }));
  stuck->destroy();
  CHECK(asked->all() == before);
}

void ephemeral_values(Host& host) {
  const Builds builds(host);
  const std::string secret = host.word("ephemeral");
  const bool runs_setup = !host.has("commands.own");
  const auto plain = runs_setup ? with_setup(fresh_recipe(host), "test -n \"$SFC_EPHEMERAL\"")
                                : fresh_recipe(host);
  auto recipe = plain;
  recipe.ephemeral_env["SFC_EPHEMERAL"] = secret;
  auto build = builds.start(recipe);
  CHECK(builds.start(plain).template_id.str() == build.template_id.str());
  build = builds.ended(plain, build);
  CHECK(to_string(build.status) == "ready");
  check_absent(builds.resolve(recipe).document.value_or(""), secret, "the template");
  check_absent(builds.everything_about(plain, build.id), secret, "what is told of the build");
  const auto sandbox = make(host, plain);
  check_absent(texts_of(sandbox->start()), secret, "the warnings of a start");
  check_absent(seen_inside(host, *sandbox, secret), secret, "the sandbox");
}

// ---- E08, E12, E15

void cancelled_build(Host& host) {
  const Builds builds(host);
  const auto recipe = fresh_recipe(host);
  const auto build = builds.start(recipe);
  try {
    builds.cancel(recipe, build.id);
  } catch (const UnsupportedFeatureError&) {
    builds.ended(recipe, build);
    throw Absent{"builds.cancel"};
  }
  const auto after = builds.get(recipe, build.id).status;
  const auto over = builds.ended(recipe, build);
  if (after == BuildStatus::ready) unverified("the build was through before its cancel");
  if (over.status == BuildStatus::ready) {
    findings().add("a cancel that succeeded did not end the build: it was " +
                   std::string(to_string(after)) + " after it, and ready in the end");
    throw Abandoned{};
  }
  CHECK(to_string(over.status) == "failed");
  CHECK_NOTHROW(builds.cancel(recipe, build.id));
  CHECK(to_string(builds.ended(recipe, builds.start(recipe)).status) == "ready");
}

// The field of the settings that says how large a machine is.
std::optional<std::string> size_field(const json::Object& fields) {
  for (const auto& [name, field] : fields) {
    const auto* type = field.find("type");
    if (type == nullptr || !type->is_string() || type->as_string() != "integer") continue;
    std::string lower;
    for (const char c : name)
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const char* word : {"cpu", "memory", "disk"})
      if (lower.find(word) != std::string::npos) return name;
  }
  return std::nullopt;
}

std::shared_ptr<Sandbox> boot(Host& host, const Recipe& recipe, const Template& document,
                              const std::string& name) {
  auto config = host.config(name);
  auto context = std::make_shared<SessionContext>(*recipe.context);
  context->session_id = SessionId(config.id);
  config.context = std::move(context);
  config.settings = recipe.settings;
  config.template_document = [text = document.text()](Handler<std::optional<std::string>> done) {
    std::move(done)(std::optional<std::string>(text));
  };
  return host.make(std::move(config));
}

// A template that nothing but its document tells of.
void document_of_a_file(Host& host) {
  const Builds builds(host);
  auto recipe = fresh_recipe(host);
  const auto given = Template::parse(*builds.resolve(recipe).document).run_cmd("true");
  recipe.template_document = given.text();
  const auto build = builds.ended(recipe, builds.start(recipe));
  CAPTURE(build.error);
  REQUIRE(to_string(build.status) == "ready");
  const auto started = boot(host, recipe, given, "given")->start();
  CHECK((started.provenance == Provenance::exact));
  CHECK_FALSE(started.template_pending.has_value());
}

// Of a provider without settings of sizes: a template says them itself.
void no_other_size_of_documents(Host& host) {
  const Builds builds(host);
  const auto recipe = fresh_recipe(host);
  const auto plain =
      Template::parse(*builds.resolve(recipe).document).with_family(host.word("family"));
  const auto small = plain.cpu_count(1).memory_mb(512);
  const auto wait_for = [&](const StartedInfo& started) {
    if (!started.template_pending)
      unverified("the start of a session with a new template named no build that is under way");
    Build build;
    build.id = BuildId(started.template_pending->str());
    return builds.ended(recipe, build);
  };
  const auto first = wait_for(boot(host, recipe, small, "first")->start());
  CAPTURE(first.error);
  REQUIRE(to_string(first.status) == "ready");

  // Another template of the family: what was built stands in for the same sizes, and no others.
  const auto other = plain.run_cmd("true");
  const auto same = boot(host, recipe, other.cpu_count(1).memory_mb(512), "same")->start();
  CHECK((same.provenance == Provenance::family));
  const auto more = boot(host, recipe, other.cpu_count(2).memory_mb(512), "more")->start();
  CHECK((more.provenance == Provenance::base));
  const auto larger = boot(host, recipe, other.cpu_count(1).memory_mb(1024), "larger")->start();
  CHECK((larger.provenance == Provenance::base));
  for (const auto* started : {&same, &more, &larger})
    CHECK(to_string(wait_for(*started).status) == "ready");
}

void no_other_size(Host& host) {
  const Builds builds(host);
  const auto* fields = host.description().settings_schema.find("properties");
  const auto size = fields == nullptr ? std::nullopt : size_field(fields->as_object());
  if (!size) return no_other_size_of_documents(host);
  const auto& field = *fields->find(*size);
  const auto low = limit_of(field, "minimum", 1);
  const auto of_size = [&](std::int64_t value) {
    json::Object settings;
    settings.set(*size, static_cast<long long>(value));
    auto recipe = recipe_of(host, settings);
    REQUIRE(recipe.settings.contains(*size));
    return recipe;
  };
  const auto small = of_size(low);
  const auto large = of_size(std::min(limit_of(field, "maximum", low * 2 + 1), low * 2 + 1));
  if (!builds.resolve(small).document)
    unverified("no settings of this provider give a session without repositories a template");
  REQUIRE(to_string(builds.ended(small, builds.start(small)).status) == "ready");
  const auto started = make(host, large)->start();
  CHECK((started.provenance != Provenance::family));
  builds.ended(large, builds.start(large));
}

void status_after_restart(Host& host) {
  const Builds builds(host);
  const auto recipe = fresh_recipe(host);
  const auto build = builds.start(recipe);
  // It shares nothing with the first but the plugin's code, as the next host does.
  const Builds next(host.open());
  const auto read = next.get(recipe, build.id);
  CHECK(read.id.str() == build.id.str());
  CHECK(to_string(read.status) != "failed");
  const auto over = builds.ended(recipe, build);
  const auto later = next.get(recipe, build.id).status;
  CHECK((later == BuildStatus::unknown || later == over.status));
  try {
    CHECK(to_string(next.get(recipe, BuildId("never-was")).status) == "unknown");
  } catch (const Exception& error) {
    CHECK(error.error().code == Status::not_found);
  }
}

// ---- E09

// Public repositories of this machine, each with one commit.
class Repositories {
 public:
  Repositories(Host& host, const std::vector<std::string>& names) : folder_(host.scratch()) {
    for (const auto& name : names) {
      const auto at = (folder_ / name).string();
      const std::string git = "git -C '" + at + "' -c user.name=suite -c user.email=suite@invalid ";
      const std::string text = "{ git init -q '" + at + "' && echo " + name + " > '" + at +
                               "/name' && " + git + "add name && " + git +
                               "commit -q -m first; } >/dev/null 2>&1";
      if (std::system(text.c_str()) != 0)
        unverified("git is not to be had on this machine: no repositories can be made");
    }
  }
  SessionRepository of(const std::string& name, std::vector<std::string> setup,
                       const std::shared_ptr<std::map<std::string, int>>& asked) const {
    SessionRepository repository;
    repository.setup_commands = std::move(setup);
    repository.access = [url = "file://" + (folder_ / name).string(), name,
                         asked](Handler<RepositoryAccess> done) {
      ++(*asked)[name];
      RepositoryAccess access;
      access.clone_url = url;
      std::move(done)(std::move(access));
    };
    return repository;
  }
  // The commit, as a host knows it.
  static std::string head(const std::string& url) {
    std::ifstream in(url.substr(std::string("file://").size()) + "/.git/HEAD");
    std::string ref;
    std::getline(in, ref);
    std::ifstream commit(url.substr(std::string("file://").size()) + "/.git/" +
                         (ref.rfind("ref: ", 0) == 0 ? ref.substr(5) : ref));
    std::getline(commit, ref);
    return ref;
  }

 private:
  const fs::path folder_;
};

std::string line_of_warnings(const ResolvedTemplate& resolved) {
  std::string out;
  for (const auto& warning : resolved.warnings)
    out += ": " + warning;
  return out;
}

// What the machine of the build has of it.
void check_checkouts(Host& host, const Recipe& recipe) {
  const auto sandbox = make(host, recipe);
  CHECK((sandbox->start().provenance == Provenance::exact));
  if (host.has("commands.own")) return;
  CHECK(read_file(*sandbox, ".mastra-sandbox/setup-failed") == "fails\n");
  for (const std::string name : {"first", "fails", "last"}) {
    CAPTURE(name);
    CHECK(read_file(*sandbox, name + "/name") == name + "\n");
    CHECK(read_file(*sandbox, ".mastra-sandbox/repos/" + name).rfind("sha256:", 0) == 0);
  }
  CHECK(exists(*sandbox, "last/set-up"));
  CHECK(read_file(*sandbox, "workspace-set-up") == "once\n");
  CHECK(read_file(*sandbox, ".mastra-sandbox/workspace-setup").rfind("sha256:", 0) == 0);
}

void many_repositories(Host& host) {
  const Builds builds(host);
  const Repositories repositories(host, {"first", "fails", "last"});
  const auto asked = std::make_shared<std::map<std::string, int>>();
  const auto recipe = [&](const std::vector<std::string>& names, const std::string& fails,
                          bool goes_on) {
    return with(recipe_of(host), [&](SessionContext& c) {
      c.repos.emplace();
      for (const auto& name : names)
        c.repos->push_back(
            repositories.of(name, {name == "fails" ? fails : "touch set-up"}, asked));
      c.workspace_setup_commands = {"echo once >> workspace-set-up"};
      c.continue_on_setup_failure = goes_on;
      c.resolve_head = [](std::string url, std::string, Handler<std::optional<std::string>> done) {
        std::move(done)(std::optional<std::string>(Repositories::head(url)));
      };
    });
  };
  const std::vector<std::string> names = {"first", "fails", "last"};
  const auto good = recipe(names, "true", false);
  const auto resolved = builds.resolve(good);
  if (!resolved.document)
    unverified("repositories of this machine give no template" + line_of_warnings(resolved));
  for (const auto& name : names)
    CHECK((*asked)[name] == 1);

  const auto continued = recipe(names, "exit 7", true);
  const auto strict = recipe(names, "exit 7", false);
  Identities seen;
  for (const auto& one :
       {good, continued, strict, recipe({"last", "fails", "first"}, "true", false),
        recipe({"first", "last"}, "true", false),
        with(good, [](SessionContext& c) { c.workspace_setup_commands = {"echo twice"}; })})
    seen.add(builds.resolve(one));
  CHECK(seen.size() == 6);

  const auto plain = builds.ended(good, builds.start(good));
  if (plain.status != BuildStatus::ready)
    unverified("its builds cannot reach repositories of this machine: " + plain.error);
  const auto failed = builds.ended(strict, builds.start(strict));
  CHECK(to_string(failed.status) == "failed");
  CHECK(failed.error.find('7') != std::string::npos);
  const auto over = builds.ended(continued, builds.start(continued));
  CAPTURE(over.error);
  REQUIRE(to_string(over.status) == "ready");
  check_checkouts(host, continued);
}

// ---- E14

void contradictions(Host& host) {
  const auto refused = [&](const std::function<void(SessionContext&)>& change) {
    SandboxConfig config;
    auto context = std::make_shared<SessionContext>();
    change(*context);
    config.context = std::move(context);
    const auto made = Sandbox::create(host.runtime(), host.provider(), std::move(config));
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().code == Status::invalid);
    CHECK(made.error().reason == "context.exclusive_fields");
  };
  refused([](SessionContext& c) {
    c.repos.emplace();
    c.repository_access = [](Handler<RepositoryAccess>) {};
  });
  refused([](SessionContext& c) { c.workspace_setup_commands = {"true"}; });
  refused([](SessionContext& c) { c.continue_on_setup_failure = true; });
}

}  // namespace

void add_builds(Procedures& to) {
  to["builds.identity"] = identity;
  to["builds.fails"] = failing_build;
  to["builds.start_does_not_wait"] = start_does_not_wait;
  to["builds.becomes_ready"] = becomes_ready;
  to["builds.token_leaves_no_trace"] = token_leaves_no_trace;
  to["builds.head_is_not_to_be_had"] = head_is_not_to_be_had;
  to["builds.reattach_asks_nothing"] = reattach_asks_nothing;
  to["builds.ephemeral_values"] = ephemeral_values;
  to["builds.cancelled"] = cancelled_build;
  to["builds.document_of_a_file"] = document_of_a_file;
  to["builds.no_other_size"] = no_other_size;
  to["builds.status_after_restart"] = status_after_restart;
  to["builds.many_repositories"] = many_repositories;
  to["builds.contradictions"] = contradictions;
}

}  // namespace sandforge::conformance

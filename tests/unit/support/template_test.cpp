#include "sandforge/support/template.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "sandforge/support/hash.hpp"
#include "sandforge/support/json.hpp"

using namespace sandforge;

namespace {

// "FAULT POINTER" of what the call throws.
std::string refused_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const TemplateError& error) {
    const std::string where =
        error.operation() ? " at " + std::to_string(*error.operation()) : std::string();
    return std::string(to_string(error.fault())).substr(9) + " " + error.pointer() + where;
  }
  return "nothing";
}
std::string refused_text(const std::string& text) {
  return refused_by([&] { Template::parse(text); });
}
std::string with_operations(const std::string& operations) {
  return "{\"schemaVersion\":1,\"operations\":[" + operations + "]}";
}

RunWithSecrets secret_step() {
  RunWithSecrets step;
  step.commands = {"make"};
  step.secrets = {"B", "A", "B"};
  step.output = "/srv/out";
  step.owner = "node:node";
  return step;
}

Template rich() {
  return Template()
      .from("debian:12")
      .cpu_count(2)
      .memory_mb(4096)
      .apt_install({"git", "curl"}, true, true)
      .set_envs({{"B", "2"}, {"A", ""}})
      .run_cmd("echo \"é\" 'x'\n$HOME")
      .run_cmds({"true", "false"})
      .run_with_secrets(secret_step())
      .set_workdir("/srv")
      .pip_install({"six"}, true)
      .pip_install({}, true)
      .npm_install({"a", "b"}, true)
      .npm_install({}, false, true)
      .with_family("repo:x");
}

}  // namespace

TEST_CASE("template: the text is canonical and complete") {
  CHECK(Template().text() == R"({"operations":[],"schemaVersion":1})");
  CHECK(
      rich().text() ==
      R"({"family":"repo:x","operations":[{"args":["debian:12"],"method":"from"},)"
      R"({"args":[2],"method":"cpuCount"},{"args":[4096],"method":"memoryMB"},)"
      R"({"args":[["git","curl"],{"fixMissing":true,"noInstallRecommends":true}],"method":"aptInstall"},)"
      R"({"args":[{"A":"","B":"2"}],"method":"setEnvs"},)"
      R"({"args":["echo \"é\" 'x'\n$HOME"],"method":"runCmd"},)"
      R"({"args":[["true","false"]],"method":"runCmd"},)"
      R"({"args":["make",{"output":"/srv/out","owner":"node:node","secrets":["A","B"]}],"method":"runWithSecrets"},)"
      R"({"args":["/srv"],"method":"setWorkdir"},)"
      R"({"args":["six",{"g":false}],"method":"pipInstall"},)"
      R"({"args":[null,{"g":false}],"method":"pipInstall"},)"
      R"({"args":[["a","b"],{"g":true}],"method":"npmInstall"},)"
      R"({"args":[null,{"dev":true}],"method":"npmInstall"}],"schemaVersion":1})");
  CHECK(Template().pip_install().text() ==
        R"({"operations":[{"args":[],"method":"pipInstall"}],"schemaVersion":1})");
}

TEST_CASE("template: a value does not change, and knows what it was made of") {
  const Template empty;
  const Template one = empty.run_cmd("a");
  const Template two = one.run_cmd("b");
  CHECK(empty.operations().empty());
  CHECK(one.operations().size() == 1);
  CHECK(two.operations().size() == 2);
  CHECK(two.operation_text(1) == R"({"args":["b"],"method":"runCmd"})");
  CHECK_THROWS(two.operation_text(2));
  CHECK(empty.empty());
  CHECK(empty.with_family("f").set_ephemeral_envs({{"A", "b"}}).empty());
  CHECK_FALSE(empty.from("x").empty());
  CHECK_FALSE(empty.cpu_count(1).empty());
  CHECK_FALSE(one.empty());
  CHECK(rich().base() == "debian:12");
  CHECK(rich().resources() == TemplateResources{2, 4096});
  CHECK(rich().family() == "repo:x");
  CHECK_FALSE(rich().without_family().family());
}

TEST_CASE("template: what counts once has its last value") {
  const Template twice = Template().cpu_count(1).from("a").memory_mb(1).cpu_count(2).from("b");
  CHECK(twice.text() == Template().from("b").cpu_count(2).memory_mb(1).text());
  CHECK(Template().with_family("a").with_family("b").family() == "b");
}

TEST_CASE("template: the same wish has the same text") {
  const Template plain;
  CHECK(plain.set_envs({}).text() == plain.text());
  CHECK(plain.run_cmds({"a"}).text() == plain.run_cmd("a").text());
  CHECK(plain.npm_install({"a"}, false, true).text() == plain.npm_install({"a"}).text());
  for (const auto& [given, canonical] : std::vector<std::pair<std::string, Template>>{
           {R"({"method":"runCmd","args":[["a"]]})", plain.run_cmd("a")},
           {R"({"method":"cpuCount","args":[2.0]})", plain.cpu_count(2)},
           {R"({"method":"setEnvs","args":[{}]})", plain},
           {R"({"method":"pipInstall","args":[["a"],{"g":true}]})", plain.pip_install({"a"})},
           {R"({"method":"pipInstall","args":[null]})", plain.pip_install()},
           {R"({"method":"npmInstall","args":["a",{"g":false,"dev":false}]})",
            plain.npm_install({"a"})},
           {R"({"method":"aptInstall","args":["a",{}]})", plain.apt_install({"a"})},
           {R"({"method":"runCmd","args":["a"]},{"method":"memoryMB","args":[5]})",
            plain.memory_mb(5).run_cmd("a")},
           {R"({"method":"runWithSecrets","args":["a",{"output":"/o"}]})",
            plain.run_with_secrets({{"a"}, {}, "/o", {}})},
       }) {
    CAPTURE(given);
    CHECK(Template::parse(with_operations(given)).text() == canonical.text());
    CHECK(Template::parse(with_operations(given)).identity() == canonical.identity());
  }
}

TEST_CASE("template: ephemeral values are beside it, and in no text") {
  const Template plain = Template().set_envs({{"A", "serialized"}});
  const Template secret =
      plain.set_ephemeral_envs({{"A", "one"}, {"B", "two"}}).set_ephemeral_envs({{"A", "three"}});
  CHECK(secret.text() == plain.text());
  CHECK(secret.identity() == plain.identity());
  CHECK(secret.ephemeral_envs() == Template::Envs{{"A", "three"}, {"B", "two"}});
  CHECK(Template::parse(secret.text()).ephemeral_envs().empty());
  CHECK(refused_by([&] {
          static_cast<void>(plain.set_ephemeral_envs({{"A=", "x"}}));
        }) == "bad_name /ephemeral/A=");
}

TEST_CASE("template: the identity is of operations and effective resources alone") {
  const TemplateResources defaults{2, 1024};
  const Template plain = Template().run_cmd("a");
  CHECK(plain.identity() == sha256_hex(plain.text()));
  CHECK(plain.identity() != plain.identity(defaults));
  CHECK(plain.identity(defaults) == plain.cpu_count(2).identity(defaults));
  CHECK(plain.identity(defaults) == plain.memory_mb(1024).cpu_count(2).identity());
  CHECK(plain.identity(defaults) != plain.cpu_count(3).identity(defaults));
  CHECK(plain.identity(defaults) != plain.memory_mb(1023).identity(defaults));
  CHECK(plain.identity() == plain.with_family("f").identity());
  CHECK(plain.identity() != plain.from("x").identity());
}

TEST_CASE("template: order matters, but not that of an environment") {
  std::mt19937 random(7);
  std::set<std::string> identities;
  std::vector<int> order = {0, 1, 2, 3, 4};
  do {
    Template made;
    for (const int i : order)
      made = i < 4 ? made.run_cmd(std::to_string(i)) : made.set_workdir("/w");
    identities.insert(made.identity());
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(identities.size() == 120);

  std::vector<std::string> names = {"a", "B", "c", "é", "_", "Z"};
  std::set<std::string> one;
  for (int i = 0; i < 50; ++i) {
    std::shuffle(names.begin(), names.end(), random);
    json::Object envs;
    for (const auto& name : names)
      envs.set(name, name + "!");
    const std::string text = json::write(json::Value(std::move(envs)));
    one.insert(Template::parse(with_operations(R"({"method":"setEnvs","args":[)" + text + "]}"))
                   .identity());
  }
  CHECK(one.size() == 1);
}

TEST_CASE("template: what is read back is what was written") {
  CHECK(Template::parse(rich().text()).text() == rich().text());
  CHECK(Template::parse(json::write_pretty(json::parse(rich().text()).value)).text() ==
        rich().text());
  // Templates of all kinds of bytes that a text can have.
  std::mt19937 random(11);
  const std::vector<std::string> pieces = {"a", "\n",         "'", "\"", "\\", "\x01",
                                           "é", "\U0001F600", " ", "$",  "/",  "\x7f"};
  const auto text = [&] {
    std::string out = "x";
    for (auto n = random() % 6; n > 0; --n)
      out += pieces[random() % pieces.size()];
    return out;
  };
  for (int round = 0; round < 300; ++round) {
    Template made;
    for (auto n = random() % 6; n > 0; --n) {
      switch (random() % 8) {
        case 0:
          made = made.run_cmds({text(), text()});
          break;
        case 1:
          made = made.set_envs({{"A" + std::to_string(random() % 3), text()}});
          break;
        case 2:
          made = made.set_workdir(text());
          break;
        case 3:
          made = made.apt_install({text()}, random() % 2 == 0, random() % 2 == 0);
          break;
        case 4:
          made = made.pip_install({}, random() % 2 == 0);
          break;
        case 5:
          made = made.npm_install({text(), text()}, random() % 2 == 0, true);
          break;
        case 6:
          made = made.from(text()).memory_mb(1 + static_cast<std::int64_t>(random()));
          break;
        default:
          made = made.run_with_secrets({{text()}, {"S"}, "/" + std::string("o"), ""});
      }
    }
    const std::string written = made.with_family(text()).text();
    CAPTURE(written);
    REQUIRE(Template::parse(written).text() == written);
  }
}

TEST_CASE("template: the limits hold at their edges") {
  const Template plain;
  const std::string longest(32'768, 'x');
  CHECK_NOTHROW(plain.run_cmd(longest));
  CHECK(refused_by([&] { static_cast<void>(plain.run_cmd(longest + "x")); }) ==
        "too_long /operations/0/args/0 at 0");
  // UTF-16 units: one for é, two for an emoji.
  std::string accents, faces;
  for (int i = 0; i < 32'768; ++i)
    accents += "é";
  for (int i = 0; i < 16'384; ++i)
    faces += "\U0001F600";
  CHECK_NOTHROW(plain.run_cmd(accents));
  CHECK_NOTHROW(plain.run_cmd(faces));
  CHECK(refused_by([&] { static_cast<void>(plain.run_cmd(faces + "x")); }) ==
        "too_long /operations/0/args/0 at 0");
  CHECK_NOTHROW(plain.with_family(std::string(200, 'f')));
  CHECK(refused_by([&] { static_cast<void>(plain.with_family(std::string(201, 'f'))); }) ==
        "too_long /family");

  const std::vector<std::string> full(512, "p");
  CHECK_NOTHROW(plain.apt_install(full));
  auto more = full;
  more.emplace_back("p");
  CHECK(refused_by([&] { static_cast<void>(plain.apt_install(more)); }) ==
        "too_many /operations/0/args/0 at 0");
  CHECK(refused_by([&] { static_cast<void>(plain.run_cmds(more)); }) ==
        "too_many /operations/0/args/0 at 0");
  Template::Envs envs;
  for (int i = 0; i < 512; ++i)
    envs["V" + std::to_string(i)] = "";
  CHECK_NOTHROW(plain.set_envs(envs));
  envs["W"] = "";
  CHECK(refused_by([&] { static_cast<void>(plain.set_envs(envs)); }) ==
        "too_many /operations/0/args/0 at 0");
}

TEST_CASE("template: sizes and bases count among the operations") {
  Template many;
  for (int i = 0; i < 255; ++i)
    many = many.run_cmd("x");
  const Template full = many.from("x");
  CHECK(Template::parse(full.text()).text() == full.text());
  CHECK(refused_by([&] { static_cast<void>(full.run_cmd("x")); }) == "too_many /operations");
  CHECK(refused_by([&] { static_cast<void>(full.cpu_count(1)); }) == "too_many /operations");
  CHECK(refused_by([&] { static_cast<void>(full.memory_mb(1)); }) == "too_many /operations");
  CHECK_NOTHROW(full.from("y"));
}

TEST_CASE("template: the whole text cannot exceed 256 KiB, family included") {
  Template large;
  const std::string piece(30'000, 'x');
  for (int i = 0; i < 8; ++i)
    large = large.run_cmd(piece);
  const std::size_t left =
      262'144 - large.text().size() - std::string(R"(,{"args":[""],"method":"runCmd"})").size();
  const Template full = large.run_cmd(std::string(left, 'x'));
  CHECK(full.text().size() == 262'144);
  CHECK(Template::parse(full.text()).text() == full.text());
  CHECK(refused_by([&] { static_cast<void>(large.run_cmd(std::string(left + 1, 'x'))); }) ==
        "too_large ");
  CHECK(refused_by([&] { static_cast<void>(full.with_family("f")); }) == "too_large ");
  CHECK(refused_by([&] { static_cast<void>(full.cpu_count(1)); }) == "too_large ");
  CHECK(refused_text(full.text() + " ") == "too_large ");
  const Template headed = large.memory_mb(1);
  const std::size_t less =
      262'144 - headed.text().size() - std::string(R"(,{"args":[""],"method":"runCmd"})").size();
  CHECK(headed.run_cmd(std::string(less, 'x')).text().size() == 262'144);
  CHECK(refused_by([&] { static_cast<void>(headed.run_cmd(std::string(less + 1, 'x'))); }) ==
        "too_large ");
}

TEST_CASE("template: what the builder refuses, with its place") {
  const Template two = Template().cpu_count(1).run_cmd("x");
  const std::string nul("a\0b", 3);
  const auto secrets = [&](auto change) {
    RunWithSecrets step = secret_step();
    change(step);
    return refused_by([&] { static_cast<void>(two.run_with_secrets(step)); });
  };
  CHECK(refused_by([&] { static_cast<void>(two.run_cmd("")); }) ==
        "empty /operations/2/args/0 at 2");
  CHECK(refused_by([&] { static_cast<void>(two.run_cmds({})); }) ==
        "empty /operations/2/args/0 at 2");
  CHECK(refused_by([&] {
          static_cast<void>(two.run_cmds({"a", ""}));
        }) == "empty /operations/2/args/0/1 at 2");
  CHECK(refused_by([&] { static_cast<void>(two.run_cmd(nul)); }) ==
        "not_text /operations/2/args/0 at 2");
  CHECK(refused_by([&] { static_cast<void>(two.run_cmd("\xff")); }) ==
        "not_text /operations/2/args/0 at 2");
  CHECK(refused_by([&] { static_cast<void>(two.from("")); }) == "empty /operations/0/args/0 at 0");
  CHECK(refused_by([&] { static_cast<void>(two.cpu_count(0)); }) ==
        "bad_value /operations/0/args/0 at 0");
  CHECK(refused_by([&] { static_cast<void>(two.memory_mb(-1)); }) ==
        "bad_value /operations/1/args/0 at 1");
  CHECK(refused_by([&] { static_cast<void>(two.memory_mb((std::int64_t{1} << 53))); }) ==
        "bad_value /operations/1/args/0 at 1");
  CHECK_NOTHROW(two.memory_mb((std::int64_t{1} << 53) - 1));
  CHECK(refused_by([&] { static_cast<void>(two.set_workdir("")); }) ==
        "empty /operations/2/args/0 at 2");
  CHECK(refused_by([&] {
          static_cast<void>(two.set_envs({{"", "x"}}));
        }) == "empty /operations/2/args/0 at 2");
  CHECK(refused_by([&] {
          static_cast<void>(two.set_envs({{"A=B", "x"}}));
        }) == "bad_name /operations/2/args/0/A=B at 2");
  CHECK(refused_by([&] {
          static_cast<void>(two.set_envs({{"A\n", "x"}}));
        }) == "bad_name /operations/2/args/0/A\n at 2");
  CHECK(refused_by([&] {
          static_cast<void>(two.set_envs({{"A/~", nul}}));
        }) == "not_text /operations/2/args/0/A~1~0 at 2");
  CHECK(refused_by([&] { static_cast<void>(two.apt_install({})); }) ==
        "empty /operations/2/args/0 at 2");
  CHECK(refused_by([&] { static_cast<void>(two.pip_install({""})); }) ==
        "empty /operations/2/args/0 at 2");
  CHECK(refused_by([&] { static_cast<void>(two.with_family("")); }) == "empty /family");
  CHECK(secrets([](auto& s) { s.output = ""; }) == "empty /operations/2/args/1/output at 2");
  for (const char* output : {"srv", "/", "//", "/.", "/srv/..", "/../srv"}) {
    CAPTURE(output);
    CHECK(secrets([&](auto& s) { s.output = output; }) ==
          "bad_path /operations/2/args/1/output at 2");
  }
  for (const char* name : {"1A", "A-B", "A B", "é"}) {
    CAPTURE(name);
    CHECK(secrets([&](auto& s) {
            s.secrets = {"A", name};
          }) == "bad_name /operations/2/args/1/secrets/1 at 2");
  }
  for (const char* owner : {"-R", "a b", ":", "a:", ":b", "a:b:c", "a;b"}) {
    CAPTURE(owner);
    CHECK(secrets([&](auto& s) { s.owner = owner; }) == "bad_name /operations/2/args/1/owner at 2");
  }
  CHECK(secrets([](auto& s) { s.owner = "1000:www-data"; }) == "nothing");
  CHECK(secrets([](auto& s) { s.commands = {}; }) == "empty /operations/2/args/0 at 2");
}

TEST_CASE("template: what the reader refuses, with its place") {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "not_a_template "},
           {"{", "not_a_template "},
           {"[]", "bad_value "},
           {"{\"operations\":[]}", "not_a_template /schemaVersion"},
           {R"({"schemaVersion":2,"operations":[]})", "not_a_template /schemaVersion"},
           {R"({"schemaVersion":"1","operations":[]})", "not_a_template /schemaVersion"},
           {R"({"schemaVersion":1})", "bad_value /operations"},
           {R"({"schemaVersion":1,"operations":{}})", "bad_value /operations"},
           {R"({"schemaVersion":1,"operations":[],"provider":"x"})", "unknown /provider"},
           {R"({"schemaVersion":1,"operations":[],"operations":[]})", "not_a_template "},
           {R"({"schemaVersion":1,"operations":[],"family":1})", "bad_value /family"},
           {R"({"schemaVersion":1,"operations":[],"family":""})", "empty /family"},
           {with_operations("1"), "bad_value /operations/0 at 0"},
           {with_operations("{}"), "bad_value /operations/0/method at 0"},
           {with_operations(R"({"method":"runCmd"})"), "bad_value /operations/0/args at 0"},
           {with_operations(R"({"method":"runCmd","args":["a"],"x":1})"),
            "unknown /operations/0/x at 0"},
           {with_operations(R"({"method":"cpuCount","args":[1]},{"method":"exec","args":[]})"),
            "unknown /operations/1/method at 1"},
           {with_operations(R"({"method":"runCmd","args":[]})"),
            "bad_value /operations/0/args at 0"},
           {with_operations(R"({"method":"runCmd","args":["a","b"]})"),
            "bad_value /operations/0/args at 0"},
           {with_operations(R"({"method":"runCmd","args":[1]})"),
            "bad_value /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"runCmd","args":[["a",1]]})"),
            "bad_value /operations/0/args/0/1 at 0"},
           {with_operations(R"({"method":"runCmd","args":[[]]})"),
            "empty /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"runCmd","args":["a\u0000"]})"),
            "not_text /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"cpuCount","args":[1.5]})"),
            "bad_value /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"cpuCount","args":[1e300]})"),
            "bad_value /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"memoryMB","args":["1"]})"),
            "bad_value /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"memoryMB","args":[0]})"),
            "bad_value /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"from","args":[""]})"), "empty /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"setEnvs","args":[[]]})"),
            "bad_value /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"setEnvs","args":[{"A":1}]})"),
            "bad_value /operations/0/args/0/A at 0"},
           {with_operations(R"({"method":"aptInstall","args":[null]})"),
            "bad_value /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"aptInstall","args":["a",{"fixmissing":true}]})"),
            "unknown /operations/0/args/1/fixmissing at 0"},
           {with_operations(R"({"method":"aptInstall","args":["a",{"fixMissing":1}]})"),
            "bad_value /operations/0/args/1/fixMissing at 0"},
           {with_operations(R"({"method":"aptInstall","args":["a",true]})"),
            "bad_value /operations/0/args/1 at 0"},
           {with_operations(R"({"method":"npmInstall","args":["a",{},{}]})"),
            "bad_value /operations/0/args at 0"},
           {with_operations(R"({"method":"pipInstall","args":[[]]})"),
            "empty /operations/0/args/0 at 0"},
           {with_operations(R"({"method":"runWithSecrets","args":["a"]})"),
            "bad_value /operations/0/args at 0"},
           {with_operations(R"({"method":"runWithSecrets","args":["a",{}]})"),
            "empty /operations/0/args/1/output at 0"},
           {with_operations(
                R"({"method":"runWithSecrets","args":["a",{"secrets":"A","output":"/o"}]})"),
            "bad_value /operations/0/args/1/secrets at 0"},
           {with_operations(
                R"({"method":"runWithSecrets","args":["a",{"owner":"","output":"/o"}]})"),
            "empty /operations/0/args/1/owner at 0"},
       }) {
    CAPTURE(text);
    CHECK(refused_text(text) == why);
  }
  std::string operations;
  for (int i = 0; i < 257; ++i)
    operations += (i == 0 ? "" : ",") + std::string(R"({"method":"cpuCount","args":[1]})");
  CHECK(refused_text(with_operations(operations)) == "too_many /operations");
  CHECK(refused_text(std::string(100, '[')) == "not_a_template ");
}

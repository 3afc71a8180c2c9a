// Every rule must find its bad examples, or it could not fail, and leave the good ones alone.
#include "lint/lint.hpp"

#include <catch2/catch.hpp>

using namespace sandforge::lint;

namespace {

const Tree& tree() {
  static const Tree made{
      {"core/include/sandforge/core/host.hpp", "core/src/json.hpp", "plugins/local/src/root.hpp",
       "plugins/local/src/json.hpp", "hosts/cli/args.hpp", "sdk/include/sandforge/abi.h",
       "sdk/include/sandforge/ext/pty.h", "README.md"},
      "/somewhere/checkout",
      {"Shared"}};
  return made;
}

// The rules that fire for this text in this file, joined by blanks.
std::string rules(const std::string& path, const std::string& text) {
  std::string joined;
  for (const Finding& finding : check(make_source(path, text), tree())) {
    joined += (joined.empty() ? "" : " ") + finding.rule;
  }
  return joined;
}

std::string in_body(const std::string& statements) {
  return rules("core/src/a.cpp", "Task f() {\n" + statements + "\n}\n");
}

}  // namespace

TEST_CASE("co_await in a condition") {
  CHECK(in_body("if (co_await ready()) { g(); }") == "co-await-condition");
  CHECK(in_body("if (auto r = co_await ready(); r) { g(); }") == "co-await-condition");
  CHECK(in_body("if constexpr (co_await ready()) { g(); }") == "co-await-condition");
  CHECK(in_body("while (\n    co_await ready()) { g(); }") == "co-await-condition");
  CHECK(in_body("switch (co_await ready()) { default: g(); }") == "co-await-condition");
  CHECK(in_body("for (auto x : co_await list()) { g(x); }") == "co-await-condition");
}

TEST_CASE("co_await as part of a larger expression") {
  CHECK(in_body("g(co_await ready());") == "co-await-nested");
  CHECK(in_body("auto n = (co_await list()).size();") == "co-await-nested");
  CHECK(in_body("Pair p{co_await one(), 2};") == "co-await-nested");
  CHECK(in_body("auto g = [x = co_await one()] { return x; };") == "co-await-nested");
  CHECK(in_body("if (a && (b || co_await ready())) { g(); }") == "co-await-nested");
}

TEST_CASE("co_await in ?:") {
  CHECK(in_body("auto r = a ? co_await one() : two();") == "co-await-conditional");
  CHECK(in_body("auto r = co_await one() ? 1 : 2;") == "co-await-conditional");
  CHECK(in_body("auto r = a(1, b[2]) ? 3 : co_await one();") == "co-await-conditional");
  CHECK(in_body("auto r = co_await run(a ? b : c());") == "co-await-conditional");
  CHECK(in_body("co_await run(x, f(a ? 1 : 2)).then();") == "co-await-conditional");
}

TEST_CASE("co_await in a handler") {
  CHECK(in_body("try { g(); } catch (const E& e) { co_await undo(); }") == "co-await-catch");
  CHECK(in_body("try { g(); } catch (...) { if (a) { co_await undo(); } }") == "co-await-catch");
}

TEST_CASE("a braced list inside a co_await expression") {
  CHECK(in_body("co_await run({1, 2});") == "co-await-braces");
  CHECK(in_body("co_await run(Options{});") == "co-await-braces");
  CHECK(in_body("auto r = co_await run(a, std::vector<int>{1, g(2)});") == "co-await-braces");
}

TEST_CASE("a lambda that captures by value inside a co_await expression") {
  CHECK(in_body("co_await run([lane] { g(lane); });") == "co-await-lambda");
  CHECK(in_body("auto r = co_await run(a, [&b, c = move(d)](int) { g(); });") == "co-await-lambda");
  CHECK(in_body("co_await run([=] { g(); });") == "co-await-lambda");
  CHECK(in_body("co_await run([*this] { g(); });") == "co-await-lambda");
  CHECK(in_body("co_await object->run([a]() mutable { g(a); });") == "co-await-lambda");
  CHECK(in_body("co_await run([this, &a] { g(a); }, b[i], f(c)[0]);") == "");
  CHECK(in_body("auto work = [lane] { g(lane); };\nco_await run(work);") == "");
}

TEST_CASE("aggregates as parameters of coroutines") {
  const std::string rule = "coroutine-aggregate";
  const std::string plain = "struct Options { int a = 1; std::string b; };\n";
  CHECK(rules("core/src/a.cpp", plain + "Task<void> f(Options o);") == rule);
  CHECK(rules("core/src/a.cpp", plain + "asio::awaitable<int> C::f(int, const Options o) {}") ==
        rule);
  CHECK(rules("core/src/a.cpp", plain + "Task<std::map<int, T>> f(n::Options o, int b);") == rule);
  CHECK(rules("plugins/x/src/a.cpp", "Task<void> f(Shared s);") == rule);
  CHECK(
      rules("core/src/a.cpp",
            "class C { public: void g() {} ~C(); std::vector<int> v{1}; };\nTask<void> f(C c);") ==
      rule);
  CHECK(rules("sdk/include/sandforge/plugin/a.hpp", "virtual Result<int> f(Shared s) = 0;") ==
        rule);
  CHECK(rules("plugins/x/src/a.cpp", "Result<int> f(Shared s);") == "");
  // By reference, in a function that is no coroutine, or only inside another type.
  CHECK(rules("core/src/a.cpp", plain + "Task<void> f(const Options& o, Options* p);") == "");
  CHECK(rules("core/src/a.cpp", plain + "void f(Options o); Task<void> t(make(Options()));") == "");
  CHECK(rules("core/src/a.cpp", plain + "Task<void> f(std::vector<Options> o);") == "");
  CHECK(rules("core/src/a.cpp", "Task<void> f(Shared s);") == "");
  // Classes with constructors, inherited ones too, with hidden parts, or without data.
  CHECK(rules("core/src/a.cpp", "struct O { O() {} int a; };\nTask<void> f(O o);") == "");
  CHECK(rules("core/src/a.cpp", "struct O : B { using B::O; int a; };\nTask<void> f(O o);") == "");
  CHECK(rules("core/src/a.cpp", "class O { int g() const; private: int a; };\nTask<int> f(O o);") ==
        "");
  CHECK(rules("core/src/a.cpp", "struct O { static int a; void g(); };\nTask<void> f(O o);") == "");
  CHECK(rules("core/src/a.cpp", "struct O;\nenum class E { a };\nTask<void> f(O o, E e);") == "");
}

TEST_CASE("shapes of co_await that are fine") {
  CHECK(in_body("co_await run(a, b);") == "");
  CHECK(in_body("auto r = co_await run(a);\nif (r) { g(r ? 1 : 2); }") == "");
  CHECK(in_body("co_await run([&] { return a ? b : c; });") == "");
  CHECK(in_body("if (a) { co_await run(); } else { co_await other(); }") == "");
  CHECK(in_body("auto x = a ? b : c;\nco_await run(x);") == "");
  CHECK(in_body("co_await run([&] { g(); }, [](int) {});") == "");
  CHECK(in_body("co_await run([&](int v) -> int { return v; });") == "");
  CHECK(in_body("for (int i = 0; i < 3; ++i) { co_await run(i); }") == "");
  CHECK(in_body("switch (a) { case 1: { co_await run(); break; } default: co_await run(); }") ==
        "");
  CHECK(in_body("try { co_await run(); } catch (...) { g(); }\nco_await undo();") == "");
  CHECK(in_body("catch_all([&] { co_await run(); });") == "");
  CHECK(in_body("try { g(); } catch (...) { later([]() -> Task { co_await undo(); }); }") == "");
  CHECK(in_body("Options o{1, 2};\nco_return co_await run(o);") == "");
  CHECK(rules("core/src/a.cpp", "struct A { auto operator co_await() noexcept; };") == "");
  CHECK(in_body("// if (co_await x)\ng(\"if (co_await x)\");") == "");
}

TEST_CASE("views of the standard library") {
  CHECK(rules("core/src/a.cpp", "auto v = std::views::keys(m);") == "std-views");
  CHECK(rules("core/src/a.cpp", "auto v = std::ranges::views::keys(m);") == "std-views");
  CHECK(rules("core/src/a.cpp", "std::ranges::filter_view v(m, f);") == "std-views");
  CHECK(rules("core/src/a.cpp", "#include <ranges>\n") == "std-views");
  CHECK(rules("core/src/a.cpp", "std::ranges::sort(list); views::mine(x);") == "");
}

TEST_CASE("sleeping in tests") {
  CHECK(rules("tests/unit/x/a.cpp", "std::this_thread::sleep_for(1s);") == "test-sleeps");
  CHECK(rules("tests/unit/x/a.cpp", "::usleep(10);") == "test-sleeps");
  CHECK(rules("tests/unit/x/a.cpp", "run(\"sleep 5\"); // sleep(5)") == "");
  CHECK(rules("core/src/a.cpp", "sleep(1);") == "");
  // Timers of the host.
  CHECK(rules("tests/unit/x/a.cpp", "host.sleep(lane, ms).get(); host->sleep(lane, ms);") == "");
  CHECK(rules("tests/unit/x/a.cpp", "Task f() { co_await sleep_for(ms); }") == "");
  CHECK(rules("tests/unit/x/a.cpp", "sleep_for(ms);") == "test-sleeps");
  CHECK(rules("tests/unit/x/a.cpp", "co_await x; std::this_thread::sleep_for(ms);") ==
        "test-sleeps");
}

TEST_CASE("calls that change or end the whole process") {
  const std::string rule = "plugin-changes-process";
  CHECK(rules("plugins/local/src/a.cpp", "auto home = std::getenv(\"HOME\");") == rule);
  CHECK(rules("plugins/local/src/a.cpp", "if (bad) ::abort();") == rule);
  CHECK(rules("sdk/include/sandforge/plugin/a.hpp", "return exit(1);") == rule);
  CHECK(rules("sdk/include/sandforge/plugin/a.hpp", "setenv(\"A\", \"b\", 1);") == rule);
  CHECK(rules("plugins/local/src/a.cpp", "context.getenv(name); stream->abort(); my::exit(1);") ==
        "");
  CHECK(rules("plugins/local/src/a.cpp", "void abort(int); int exit = 1;") == "");
  CHECK(rules("core/src/a.cpp", "std::getenv(\"HOME\");") == "");
}

TEST_CASE("headers that have one place") {
  const std::vector<std::pair<std::string, std::string>> examples = {
      {"<rapidjson/document.h>", "include-rapidjson"},
      {"<valijson/schema.hpp>", "include-valijson"},
      {"<yaml-cpp/yaml.h>", "include-yaml-cpp"},
      {"<boost/dll.hpp>", "include-boost-dll"},
      {"<boost/dll/import.hpp>", "include-boost-dll"},
      {"<boost/beast/http.hpp>", "include-boost-beast"},
      {"<CLI/CLI.hpp>", "include-cli11"},
      {"<sqlite3.h>", "include-sqlite"},
      {"\"re2/re2.h\"", "include-re2"},
  };
  for (const auto& [name, rule] : examples) {
    INFO(name);
    CHECK(rules("hosts/cli/a.cpp", "#include " + name + "\n") == rule);
  }
  CHECK(rules("hosts/cli/a.cpp", "#include <boost/asio.hpp>\n") == "");
}

TEST_CASE("layers") {
  const std::string rule = "include-layer";
  CHECK(rules("core/src/a.cpp", "#include \"plugins/local/src/root.hpp\"\n") == rule);
  CHECK(rules("core/src/a.cpp", "#include \"../../hosts/cli/args.hpp\"\n") == rule);
  CHECK(rules("plugins/local/src/a.cpp", "#include <sandforge/core/host.hpp>\n") == rule);
  CHECK(rules("sdk/include/sandforge/plugin/a.hpp", "#include <sandforge/core/host.hpp>\n") ==
        rule);
  CHECK(rules("sdk/posix/src/a.cpp", "#include \"root.hpp\"\n") == rule);
  // Both have a json.hpp: each means its own.
  CHECK(rules("plugins/local/src/a.cpp", "#include \"json.hpp\"\n") == "");
  CHECK(rules("plugins/local/src/a.cpp", "#include <sandforge/abi.h>\n") == "");
  CHECK(rules("hosts/cli/a.cpp", "#include <sandforge/core/host.hpp>\n") == "");
  CHECK(rules("core/src/a.cpp", "#include \"sandforge/ext/pty.h\"\n#include <vector>\n") == "");
}

TEST_CASE("core names no provider") {
  CHECK(rules("core/src/a.cpp", "if (name == \"docker\") {}") == "core-names-a-provider");
  CHECK(rules("core/include/a.hpp", "auto p = \"local\";") == "core-names-a-provider");
  CHECK(rules("core/src/a.cpp", "log(\"a local file\");") == "");
  CHECK(rules("hosts/cli/a.cpp", "auto p = \"local\";") == "");
}

TEST_CASE("unfinished work and paths of one machine, in any text file") {
  CHECK(rules("README.md", "# A page\nfirst\nTODO: second\n") == "unfinished");
  CHECK(rules("core/src/a.cpp", "// FIXME\n") == "unfinished");
  CHECK(rules("README.md", "# A page\nmastodons\n") == "");
  CHECK(rules("tests/run.sh", "cd /home/alice/src\n") == "machine-path");
  CHECK(rules("README.md", "# A page\n/somewhere/checkout/build\n") == "machine-path");
  CHECK(rules("README.md", "# A page\n/home/user/app, /home/x and /var/lib\n") == "");
}

TEST_CASE("a page begins with its title") {
  CHECK(rules("core/README.md", "#core\n\nWhat is here.\n") == "page-title");
  CHECK(rules("core/README.md", "") == "page-title");
  CHECK(rules("core/README.md", "# core\n\nWhat is here.\n") == "");
  CHECK(rules("core/src/a.cpp", "// core\n") == "");
}

TEST_CASE("a finding names the line") {
  const auto findings =
      check(make_source("core/src/a.cpp", "\n\nauto v = std::views::keys(m);"), tree());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].line == 3);
  CHECK(findings[0].path == "core/src/a.cpp");
}

TEST_CASE("the allow list covers a file or a folder, and wants a reason") {
  const AllowList allowed("# comment\n\nunfinished a/b.md # because\nunfinished c/ # because\n");
  CHECK(allowed.covers({"unfinished", "a/b.md", 1, ""}));
  CHECK(allowed.covers({"unfinished", "c/d/e.md", 1, ""}));
  CHECK_FALSE(allowed.covers({"unfinished", "a/b.md.txt", 1, ""}));
  CHECK_FALSE(allowed.covers({"machine-path", "a/b.md", 1, ""}));
  CHECK_THROWS_AS(AllowList("unfinished a/b.md\n"), std::runtime_error);
  CHECK_THROWS_AS(AllowList("unfinished a/b.md #\n"), std::runtime_error);
  CHECK_THROWS_AS(AllowList("unfinished # because\n"), std::runtime_error);
}

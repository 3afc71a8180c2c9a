// Whole runs over plugins that are right, and cases of one's own.
#include <map>
#include <set>

#include "fixture.hpp"
#include "sandforge/error.hpp"
#include "support/temp_dir.hpp"
#include "test_paths.hpp"

using namespace conformance_test;

namespace {

std::set<std::string> with(const conformance::Report& report, Verdict verdict) {
  std::set<std::string> out;
  for (const auto& one : report.cases)
    if (one.verdict == verdict) out.insert(one.id);
  return out;
}

conformance::Report run_own(const std::string& steps, const std::string& more = "") {
  const sandforge::test::TempDir folder;
  auto wanted = request(LOCAL_PLUGIN, {"own"});
  wanted.case_files = {folder.write("own.json", R"({"cases":[{"id":"own","about":"one of ours",)" +
                                                    more + R"("steps":[)" + steps + "]}]}")};
  return conformance::run(wanted);
}

}  // namespace

TEST_CASE("local passes all cases, or they are not applicable") {
  const auto report = conformance::run(request(LOCAL_PLUGIN));
  INFO(to_text(report));
  CHECK(with(report, Verdict::fail) == std::set<std::string>());
  CHECK(with(report, Verdict::unverified) == std::set<std::string>());
  CHECK(report.provider == "local");
  CHECK(report.seed == 42);
}

TEST_CASE("a case of one's own passes or fails by its steps") {
  CHECK(run_own(R"({"run":"echo hi","expect":{"out":"hi\n"}})").cases[0].verdict == Verdict::pass);
  const auto wrong = run_own(R"({"run":"echo hi","expect":{"out":"ho\n","code":0}})");
  CHECK(wrong.cases[0].verdict == Verdict::fail);
  CHECK(wrong.cases[0].reason.find(" is \"hi\\n\", and must be \"ho\\n\"") != std::string::npos);
  const auto error = run_own(R"({"exec":["no-such-program-here"]})");
  CHECK(error.cases[0].verdict == Verdict::fail);
  CHECK(error.cases[0].reason.find("no-such-program-here") != std::string::npos);
  CHECK(run_own(R"({"exec":["no-such-program-here"],"expect":{"error":{"code":"NOT_FOUND"}}})")
            .cases[0]
            .verdict == Verdict::pass);
  const auto none = run_own(R"({"run":"true","expect":{"error":{"code":"NOT_FOUND"}}})");
  CHECK(none.cases[0].verdict == Verdict::fail);
  CHECK(none.cases[0].reason.find("there was no error, and the step expects one") !=
        std::string::npos);
}

TEST_CASE("a step that is not well formed is refused before anything runs") {
  for (const char* step :
       {R"({"walk":"x"})", R"({"run":"x","exec":["y"]})", R"({"run":"x","expct":{}})",
        R"({"run":"x","expect":{"outt":"y"}})", R"({"call":"no.such_procedure"})",
        R"({"status":"running","args":[]})", R"({"run":"x","expect":{}})",
        R"({"run":"x","expect":{"answer":true}})", R"({"spawn":"x","expect":{"out":"y"}})",
        R"({"stop":true,"expect":{"outcome":"x"}})"}) {
    CAPTURE(step);
    CHECK_THROWS_AS(run_own(step), sandforge::InvalidArgumentError);
  }
}

TEST_CASE("a case that cannot be decided is unverified") {
  const auto report = run_own(R"({"run":5})");
  CHECK(report.cases[0].verdict == Verdict::unverified);
  CHECK(exit_code(report) == 3);
}

TEST_CASE("a case is ended at its bound, with all that it started") {
  const auto report = run_own(R"({"run":"setsid sleep 300 & sleep 300"})", R"("bound":2,)");
  CHECK(report.cases[0].verdict == Verdict::fail);
  CHECK(report.cases[0].reason.find("took longer than 2000 ms") != std::string::npos);
  CHECK(report.cases[0].reason.find("sleep 300") != std::string::npos);
}

TEST_CASE("a run that was asked to stop is unverified") {
  std::stop_source stop;
  auto wanted = request(LOCAL_PLUGIN, {"contract.A1", "contract.A2"});
  wanted.jobs = 1;
  wanted.stop = stop.get_token();
  wanted.on_result = [&](const conformance::CaseResult&) { stop.request_stop(); };
  const auto report = conformance::run(wanted);
  CHECK(report.cases[0].verdict == Verdict::pass);
  CHECK(report.cases[1].verdict == Verdict::unverified);
}

TEST_CASE("a provider that cannot be opened fails once, and the other cases were not run") {
  for (const auto& [fault, why] : std::map<std::string, std::string>{
           {"does not open", "the key is not valid"}, {"dies while it opens", "signal 6"}}) {
    CAPTURE(fault);
    const auto report =
        conformance::run(crooked(fault, {"cases.D14", "cases.E04", "cases.F01", "contract.A*"}));
    INFO(to_text(report));
    CHECK(report.unopened == "cases.D14");
    CHECK(with(report, Verdict::fail) == std::set<std::string>{"cases.D14"});
    CHECK(report.cases[0].reason.find("the provider cannot be opened: ") == 0);
    CHECK(report.cases[0].reason.find(why) != std::string::npos);
    CHECK(with(report, Verdict::pass) == std::set<std::string>{"cases.F01"});
    CHECK(report.count(Verdict::unverified) == report.cases.size() - 2);
    CHECK(report.cases[1].reason == "was not run: the provider cannot be opened, see cases.D14");
    CHECK(exit_code(report) == 1);
    CHECK(to_text(report).find("cases that need the provider: see cases.D14") != std::string::npos);
    CHECK(to_text(report).find("contract.A1:") == std::string::npos);
  }
}

// With stacks of 4 GiB each thread costs as much of the address space, which a sanitizer wants
// whole.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("where no thread can be made, nothing is decided") {
  const sandforge::test::TempDir folder;
  std::set<Verdict> seen;
  for (const int gigabytes : {24, 32, 40, 48}) {
    auto wanted = request(LOCAL_PLUGIN, {"cases.D01.threads"});
    const std::string limits =
        "ulimit -s 4194304\nulimit -v " + std::to_string(gigabytes * 1048576) + "\n";
    wanted.program = folder.write(
        "limited", "#!/bin/sh\n" + limits + "exec '" + SANDFORGE_PROGRAM + "' \"$@\"\n");
    std::filesystem::permissions(wanted.program, std::filesystem::perms(0700));
    const auto report = conformance::run(wanted);
    INFO(to_text(report));
    CHECK(report.count(Verdict::fail) == 0);
    seen.insert(report.cases[0].verdict);
  }
  CHECK(seen.count(Verdict::unverified) == 1);
}
#endif

TEST_CASE("a file that is no plugin, and a provider that it has not, are errors") {
  const sandforge::test::TempDir folder;
  const auto file = folder.write("no.so", "hello");
  CHECK_THROWS_AS(conformance::run(request(file.c_str())), sandforge::InvalidArgumentError);
  auto other = request(LOCAL_PLUGIN);
  other.subject.provider = "docker";
  CHECK_THROWS_WITH(conformance::run(other), "the plugin has no provider docker, only: local");
}

// What needs no plugin: globs, files of cases, verdicts and reports.
#include "case.hpp"
#include "fixture.hpp"
#include "sandforge/error.hpp"
#include "support/temp_dir.hpp"

using namespace conformance_test;
using conformance::fits_glob;

namespace {

conformance::Report report_of(std::vector<Verdict> verdicts) {
  conformance::Report out;
  out.plugin = "/p.so";
  out.provider = "p";
  out.seed = 7;
  int number = 0;
  for (const auto verdict : verdicts) {
    conformance::CaseResult one;
    one.id = "x." + std::to_string(++number);
    one.about = "a <b>";
    one.verdict = verdict;
    if (verdict != Verdict::pass) one.reason = "\"why\" &\nmore";
    one.took = std::chrono::milliseconds(1040);
    out.cases.push_back(one);
  }
  return out;
}

std::string mistake_of(const std::string& cases) {
  try {
    conformance::read_cases(cases, "f.json");
    return "none";
  } catch (const sandforge::Exception& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("globs fit whole ids") {
  CHECK(fits_glob("cases.A01", "cases.A01"));
  CHECK_FALSE(fits_glob("cases.A0", "cases.A01"));
  CHECK_FALSE(fits_glob("ases.A01", "cases.A01"));
  CHECK(fits_glob("cases.A*", "cases.A01.more"));
  CHECK(fits_glob("*", ""));
  CHECK(fits_glob("*.C?", "contract.C1"));
  CHECK_FALSE(fits_glob("*.C?", "contract.C12"));
  CHECK(fits_glob("**a*b*", "xxaxxbxx"));
  CHECK_FALSE(fits_glob("a*b", "acccc"));
  CHECK_FALSE(fits_glob("?", ""));
}

TEST_CASE("the suite has ids once each, with one line about each") {
  const auto& all = conformance::suite_cases();
  CHECK(all.size() > 150);
  std::set<std::string> ids;
  for (const auto& one : all) {
    CAPTURE(one.id);
    CHECK(ids.insert(one.id).second);
    CHECK(one.about.size() < 130);
  }
}

TEST_CASE("mistakes in a file of cases are told with their place") {
  CHECK(mistake_of(R"({"cases":[]})") == "none");
  CHECK(mistake_of("{").find("f.json:1:") == 0);
  CHECK(mistake_of("{}") == "f.json: /cases: must be a list");
  CHECK(mistake_of(R"({"cases":[{"id":"a"}]})") == "f.json: a/about: must be a text");
  CHECK(mistake_of(R"({"cases":[{"id":"a","about":"b","stepz":[]}]})") ==
        "f.json: /cases/0/stepz: unknown key");
  CHECK(mistake_of(R"({"cases":[{"id":"a","about":"b","steps":[]}]})") ==
        "f.json: a/steps: must be a list of steps");
  CHECK(mistake_of(R"({"cases":[{"id":"a","about":"b","bound":0,"steps":[1]}]})") ==
        "f.json: a/bound: must be seconds from 1 to 3600");
  CHECK(mistake_of(R"({"cases":[{"id":"a","about":"b","programs":1,"steps":[1]}]})") ==
        "f.json: a/programs: must be true or false");
  CHECK(mistake_of(R"({"cases":[{"id":"a","about":"b","steps":[1]},
                                {"id":"a","about":"b","steps":[1]}]})") ==
        "f.json: a: is there twice");
}

TEST_CASE("include and exclude choose, and a glob that fits nothing is a mistake") {
  conformance::Request wanted;
  wanted.include = {"contract.A1", "contract.A2?"};
  wanted.exclude = {"contract.A22"};
  std::string ids;
  for (const auto& one : conformance::list(wanted))
    ids += one.id + " ";
  CHECK(ids ==
        "contract.A1 contract.A20 contract.A21 contract.A23 contract.A24 contract.A25 contract.A26 "
        "contract.A27 contract.A28 ");
  wanted.exclude = {"nothing.*"};
  CHECK_THROWS_AS(conformance::list(wanted), sandforge::InvalidArgumentError);
  wanted.exclude.clear();
  wanted.include = {"nothing.*"};
  CHECK_THROWS_AS(conformance::list(wanted), sandforge::InvalidArgumentError);
}

TEST_CASE("nothing but pass and not applicable is green") {
  using enum Verdict;
  CHECK(exit_code(report_of({pass, not_applicable})) == 0);
  CHECK(exit_code(report_of({pass, fail, unverified})) == 1);
  CHECK(exit_code(report_of({pass, unverified})) == 3);
  CHECK(exit_code(report_of({})) == 3);
}

TEST_CASE("the summary counts, and says what is no pass") {
  using enum Verdict;
  CHECK(to_text(report_of({pass, pass})) ==
        "p: 2 cases: 2 pass, 0 fail, 0 not applicable, 0 unverified (seed 7)\n");
  CHECK(to_text(report_of({pass, unverified})) ==
        "unverified: x.2: a <b>\n    \"why\" &\n    more\n\n"
        "p: 2 cases: 1 pass, 0 fail, 0 not applicable, 1 unverified (seed 7)\n"
        "This is no pass: what is unverified may be wrong.\n");
}

TEST_CASE("the JSON report") {
  using enum Verdict;
  CHECK(sandforge::json::write(to_json(report_of({pass, fail}))) ==
        R"({"plugin":"/p.so","provider":"p","seed":"7",)"
        R"("summary":{"pass":1,"fail":1,"notApplicable":0,"unverified":0},"cases":[)"
        R"({"id":"x.1","about":"a <b>","verdict":"pass","milliseconds":1040},)"
        R"({"id":"x.2","about":"a <b>","verdict":"fail","reason":"\"why\" &\nmore",)"
        R"("milliseconds":1040}]})");
}

TEST_CASE("the JUnit report is XML, an unverified case is an error in it") {
  using enum Verdict;
  CHECK(to_junit(report_of({pass, fail, unverified, not_applicable})) ==
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuite name=\"p\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" "
        "time=\"4.160\">\n"
        "  <testcase classname=\"x\" name=\"x.1 a &lt;b&gt;\" time=\"1.040\"/>\n"
        "  <testcase classname=\"x\" name=\"x.2 a &lt;b&gt;\" time=\"1.040\">\n"
        "    <failure message=\"&quot;why&quot; &amp;&#10;more\"/>\n  </testcase>\n"
        "  <testcase classname=\"x\" name=\"x.3 a &lt;b&gt;\" time=\"1.040\">\n"
        "    <error message=\"&quot;why&quot; &amp;&#10;more\"/>\n  </testcase>\n"
        "  <testcase classname=\"x\" name=\"x.4 a &lt;b&gt;\" time=\"1.040\">\n"
        "    <skipped message=\"&quot;why&quot; &amp;&#10;more\"/>\n  </testcase>\n"
        "</testsuite>\n");
}

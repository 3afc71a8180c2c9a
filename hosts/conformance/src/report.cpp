#include <algorithm>

#include "sandforge/conformance.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge::conformance {
namespace {

std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : to_valid_utf8(text)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\n') {
      out += "&#10;";
    } else if (static_cast<unsigned char>(c) < 0x20 && c != '\t') {
      out += '?';  // XML 1.0 has no way to say it
    } else {
      out += c;
    }
  }
  return out;
}

std::string seconds_text(std::chrono::milliseconds took) {
  const auto rest = std::to_string(took.count() % 1000);
  return std::to_string(took.count() / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

std::string junit_of(const CaseResult& one) {
  const auto group = one.id.substr(0, one.id.find('.'));
  std::string out = "  <testcase classname=\"" + escaped(group) + "\" name=\"" +
                    escaped(one.id + " " + one.about) + "\" time=\"" + seconds_text(one.took) +
                    "\"";
  const auto element = [&](const char* name) {
    return out + ">\n    <" + name + " message=\"" + escaped(one.reason) + "\"/>\n  </testcase>\n";
  };
  if (one.verdict == Verdict::fail) return element("failure");
  if (one.verdict == Verdict::unverified) return element("error");
  if (one.verdict == Verdict::not_applicable) return element("skipped");
  return out + "/>\n";
}

std::string attribute(const char* name, std::size_t value) {
  return std::string(" ") + name + "=\"" + std::to_string(value) + "\"";
}

}  // namespace

std::string_view to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::fail:
      return "fail";
    case Verdict::not_applicable:
      return "not applicable";
    case Verdict::unverified:
      break;
  }
  return "unverified";
}

std::size_t Report::count(Verdict verdict) const noexcept {
  return static_cast<std::size_t>(std::count_if(
      cases.begin(), cases.end(), [&](const CaseResult& one) { return one.verdict == verdict; }));
}

int exit_code(const Report& report) noexcept {
  if (report.count(Verdict::fail) != 0) return 1;
  if (report.count(Verdict::unverified) != 0 || report.cases.empty()) return 3;
  return 0;
}

std::string to_line(const CaseResult& one) {
  std::string out = std::string(to_string(one.verdict)) + ": " + one.id + ": " + one.about + "\n";
  if (!one.reason.empty()) out += "    " + indented(one.reason) + "\n";
  return out;
}

std::string to_text(const Report& report) {
  std::string out;
  std::size_t not_run = 0;
  const auto is_told = [&](const CaseResult& one) {
    if (report.unopened.empty() || one.verdict != Verdict::unverified) return true;
    ++not_run;  // one and the same reason for all
    return false;
  };
  for (const auto verdict : {Verdict::not_applicable, Verdict::unverified, Verdict::fail})
    for (const auto& one : report.cases)
      if (one.verdict == verdict && is_told(one)) out += to_line(one);
  if (not_run != 0)
    out += "unverified: " + std::to_string(not_run) + " cases that need the provider: see " +
           report.unopened + "\n";
  if (!out.empty()) out += "\n";
  out += report.provider + ": " + std::to_string(report.cases.size()) +
         " cases: " + std::to_string(report.count(Verdict::pass)) + " pass, " +
         std::to_string(report.count(Verdict::fail)) + " fail, " +
         std::to_string(report.count(Verdict::not_applicable)) + " not applicable, " +
         std::to_string(report.count(Verdict::unverified)) + " unverified (seed " +
         std::to_string(report.seed) + ")\n";
  if (exit_code(report) == 3)
    out += report.cases.empty() ? "Nothing was looked at.\n"
                                : "This is no pass: what is unverified may be wrong.\n";
  return out;
}

json::Value to_json(const Report& report) {
  json::Array cases;
  for (const auto& one : report.cases) {
    json::Object entry;
    entry.set("id", one.id);
    entry.set("about", one.about);
    entry.set("verdict", std::string(to_string(one.verdict)));
    if (!one.reason.empty()) entry.set("reason", to_valid_utf8(one.reason));
    entry.set("milliseconds", static_cast<long long>(one.took.count()));
    cases.emplace_back(std::move(entry));
  }
  json::Object summary;
  summary.set("pass", report.count(Verdict::pass));
  summary.set("fail", report.count(Verdict::fail));
  summary.set("notApplicable", report.count(Verdict::not_applicable));
  summary.set("unverified", report.count(Verdict::unverified));
  json::Object out;
  out.set("plugin", report.plugin.string());
  out.set("provider", report.provider);
  out.set("seed", std::to_string(report.seed));  // as text: it may need 64 bits
  out.set("summary", std::move(summary));
  out.set("cases", std::move(cases));
  return out;
}

std::string to_junit(const Report& report) {
  std::chrono::milliseconds total{0};
  for (const auto& one : report.cases)
    total += one.took;
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" +
                    escaped(report.provider) + "\"" + attribute("tests", report.cases.size()) +
                    attribute("failures", report.count(Verdict::fail)) +
                    attribute("errors", report.count(Verdict::unverified)) +
                    attribute("skipped", report.count(Verdict::not_applicable)) + " time=\"" +
                    seconds_text(total) + "\">\n";
  for (const auto& one : report.cases)
    out += junit_of(one);
  return out + "</testsuite>\n";
}

}  // namespace sandforge::conformance

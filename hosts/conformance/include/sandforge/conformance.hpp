// The conformance suite as a library: judges a provider plugin case by case.
//
// The command `sandforge conformance` is made of this. A test runner of one's own:
//
//   int main(int argc, char** argv) {
//     namespace conformance = sandforge::conformance;
//     if (const auto code = conformance::case_process(argc, argv)) return *code;
//     conformance::Request request;
//     request.subject.plugin = argv[1];
//     const auto report = conformance::run(request);
//     std::cout << conformance::to_text(report);
//     return conformance::exit_code(report);
//   }
//
// Source: sdk/conformance (the cases), reference of the workspace-sandbox contract. Threads: run()
// blocks and makes a thread for each job; call it before or after threads of your own as you like.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/support/json.hpp"

namespace sandforge::conformance {

enum class Verdict : std::uint8_t {
  pass,
  fail,
  not_applicable,  // what it needs is declared absent, and a call for it was refused
  unverified,      // could not be decided; never as good as a pass
};
std::string_view to_string(Verdict verdict) noexcept;  // "pass", "fail", "not applicable", …

// The plugin that is judged.
struct Subject {
  std::filesystem::path plugin;  // file
  std::string provider;          // empty: the only one that the plugin declares
  // Options of the provider. "${NAME}" and "file:PATH" in texts are resolved as in a configuration;
  // ${SANDFORGE_CASE_DIR} is a folder that each case has for itself.
  json::Object options;
  std::filesystem::path options_directory;  // of relative "file:" paths; empty: the current one
};

struct CaseResult {
  std::string id;
  std::string about;
  Verdict verdict = Verdict::unverified;
  std::string reason;  // why it is no pass; may have several lines
  std::chrono::milliseconds took{0};
};

struct Request {
  Subject subject;
  // Globs over ids, with * and ?. No include: all. exclude goes over include.
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::vector<std::filesystem::path> case_files;   // cases beside those of the suite
  std::optional<std::uint64_t> seed;               // of the random parts; absent: another each time
  unsigned jobs = 0;                               // cases at once; 0: one for each processor
  std::optional<std::chrono::milliseconds> bound;  // of each case; absent: what the case says
  // sandforge-guest, for plugins that use the process service. Empty: the one that is installed
  // with the program.
  std::filesystem::path guest_program;
  // The program whose main calls case_process(). Empty: this one.
  std::filesystem::path program;
  // A request ends the cases that run and starts no more: they are unverified.
  std::stop_token stop;
  // Called after each case, in the order in which they end, one at a time.
  std::function<void(const CaseResult&)> on_result;
};

struct CaseInfo {
  std::string id;     // "cases.A01", "contract.C12"; stable
  std::string about;  // one line
  std::vector<std::string> needs;
};

struct Report {
  std::filesystem::path plugin;
  std::string provider;
  std::uint64_t seed = 0;
  std::vector<CaseResult> cases;  // in the order of the suite
  // The case that failed because the provider cannot be opened; those that need it are then
  // unverified, and were not run. Else empty.
  std::string unopened;
  std::size_t count(Verdict verdict) const noexcept;
};

// The cases that a request selects. Throws Exception: invalid, for a file of cases with mistakes or
// a glob that fits nothing.
std::vector<CaseInfo> list(const Request& request);

// Runs them, each in a process of its own: this program, or `program`, started with `--case ID`.
// Throws Exception when nothing can be run: the plugin is no plugin, the request has mistakes. What
// a case leaves behind is ended and removed. Blocks.
Report run(const Request& request);

// To be called first in main(): in the process of a case this runs it and answers the exit code to
// return; else nothing.
std::optional<int> case_process(int argc, const char* const* argv);

std::string to_text(const Report& report);   // the summary, after what is no pass
std::string to_line(const CaseResult& one);  // one case, with its reason
json::Value to_json(const Report& report);
std::string to_junit(const Report& report);  // XML

// 0: all pass or not applicable. 1: a failure. 3: no failure, but something is unverified, or there
// was no case at all.
int exit_code(const Report& report) noexcept;

}  // namespace sandforge::conformance

// Runs the cases that a request selects, several at once.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <random>
#include <system_error>
#include <thread>

#include "case_process.hpp"
#include "sandforge/plugin_loader.hpp"
#include "steps.hpp"

namespace sandforge::conformance {
namespace {

// The providers of the plugin by its manifest; none of its code runs in this process.
std::string find_provider(const Subject& subject) {
  std::error_code absent;  // what is not there the scan tells
  if (std::filesystem::is_directory(subject.plugin, absent))
    throw_error(Error(Status::invalid,
                      subject.plugin.string() + " is a folder: the suite judges one plugin's file",
                      "conformance.plugin"));
  PluginSearchPath search;
  search.add(subject.plugin, "conformance");
  const auto scan = PluginLoader(PluginLoader::Options()).scan(search);
  if (scan.report.refused() != 0 || scan.files.size() != 1)
    throw_error(Error(Status::invalid, scan.report.to_text(), "conformance.plugin"));
  std::vector<std::string> names;
  for (const auto& provider : scan.files.front().manifest.providers)
    names.push_back(provider.name);
  if (subject.provider.empty() && names.size() == 1) return names.front();
  if (std::find(names.begin(), names.end(), subject.provider) != names.end())
    return subject.provider;
  std::string all;
  for (const auto& name : names)
    all += (all.empty() ? "" : ", ") + name;
  throw_error(Error(Status::invalid,
                    subject.provider.empty()
                        ? "the plugin has several providers, name one of: " + all
                        : "the plugin has no provider " + subject.provider + ", only: " + all,
                    "conformance.provider"));
}

std::uint64_t any_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

unsigned jobs_of(const Request& request, std::size_t cases) {
  const unsigned wanted =
      request.jobs != 0 ? request.jobs : std::max(1U, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::min<std::size_t>(wanted, std::max<std::size_t>(cases, 1)));
}

CaseResult not_run(const Case& one, const std::string& failed) {
  CaseResult out;
  out.id = one.id;
  out.about = one.about;
  out.reason = "was not run: the provider cannot be opened, see " + failed;
  return out;
}

}  // namespace

Report run(const Request& given) {
  Request request = given;
  const auto cases = select_cases(request);
  for (const auto& one : cases)
    check_steps(one);
  request.subject.provider = find_provider(request.subject);
  if (request.guest_program.empty())
    if (const auto folder = PluginSearchPath::install_folder(); !folder.empty())
      request.guest_program = folder / "sandforge-guest";
  if (request.subject.options_directory.empty())
    request.subject.options_directory = std::filesystem::current_path();

  Report report;
  report.plugin = request.subject.plugin;
  report.provider = request.subject.provider;
  report.seed = request.seed.value_or(any_seed());
  report.cases.resize(cases.size());

  const SuiteFolder folder;
  write_request(request, report.seed, folder.path());
  std::mutex telling;
  const auto tell = [&](const CaseResult& one) {
    const std::lock_guard lock(telling);
    if (request.on_result) request.on_result(one);
  };
  // The first case that opens the provider goes ahead: where that fails, it says so for all.
  const auto ahead = static_cast<std::size_t>(
      std::find_if(cases.begin(), cases.end(), [](const Case& one) { return !one.of_core; }) -
      cases.begin());
  if (ahead < cases.size()) {
    auto ran = run_case(request, cases[ahead], ahead, folder.path());
    if (ran.unopened) report.unopened = cases[ahead].id;
    tell(report.cases[ahead] = std::move(ran.result));
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < cases.size();) {
      if (i == ahead) continue;
      if (!report.unopened.empty() && !cases[i].of_core) {
        report.cases[i] = not_run(cases[i], report.unopened);
      } else {
        auto ran = run_case(request, cases[i], i, folder.path());
        report.cases[i] = ran.unopened && !report.unopened.empty()
                              ? not_run(cases[i], report.unopened)
                              : std::move(ran.result);
      }
      tell(report.cases[i]);
    }
  };
  std::vector<std::thread> threads;
  try {
    for (unsigned i = 0; i < jobs_of(request, cases.size()); ++i)
      threads.emplace_back(work);
  } catch (const std::system_error&) {
    if (threads.empty()) work();  // else the others do it
  }
  for (auto& thread : threads)
    thread.join();
  return report;
}

}  // namespace sandforge::conformance

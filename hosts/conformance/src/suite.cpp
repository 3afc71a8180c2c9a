// Runs the cases that a request selects, several at once.
#include <algorithm>
#include <atomic>
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
  std::atomic<std::size_t> next{0};
  std::mutex telling;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < cases.size();) {
      report.cases[i] = run_case(request, cases[i], i, folder.path());
      const std::lock_guard lock(telling);
      if (request.on_result) request.on_result(report.cases[i]);
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

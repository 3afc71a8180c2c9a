#include "sandforge/conformance.hpp"

#include <fstream>
#include <sstream>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "sandforge/yaml.hpp"

namespace sandforge::cli {
namespace {

json::Object read_options(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw_error(Error(Status::not_found, file + ": cannot be read", "conformance.options"));
  auto parsed = parse_yaml(text.str());
  if (!parsed)
    throw_error(Error(Status::invalid,
                      format_diagnostic(file, text.str(), parsed.error.at, parsed.error.message),
                      "conformance.options"));
  if (!parsed.value.is_object())
    throw_error(Error(Status::invalid, file + ": options are an object", "conformance.options"));
  return std::move(parsed.value.as_object());
}

conformance::Request request_of(App& app, const ConformanceArguments& arguments) {
  conformance::Request request;
  request.subject.plugin = arguments.plugin;
  request.subject.provider = arguments.provider;
  if (!arguments.options.empty()) {
    request.subject.options = read_options(arguments.options);
    request.subject.options_directory = std::filesystem::absolute(arguments.options).parent_path();
  }
  request.include = arguments.include;
  request.exclude = arguments.exclude;
  request.case_files.assign(arguments.case_files.begin(), arguments.case_files.end());
  request.seed = arguments.seed;
  request.jobs = arguments.jobs;
  request.bound = arguments.bound;
  request.stop = app.interrupts().token();
  if (app.terminal().stderr_is_terminal())
    request.on_result = [&app](const conformance::CaseResult& one) {
      app.terminal().progress(std::string(to_string(one.verdict)) + ": " + one.id);
    };
  return request;
}

int list_cases(App& app, const conformance::Request& request) {
  const auto cases = conformance::list(request);
  if (app.terminal().json()) {
    json::Array list;
    for (const auto& one : cases) {
      json::Object entry;
      entry.set("id", one.id);
      entry.set("about", one.about);
      json::Array needs;
      for (const auto& need : one.needs)
        needs.emplace_back(need);
      entry.set("needs", std::move(needs));
      list.emplace_back(std::move(entry));
    }
    json::Object answer;
    answer.set("cases", std::move(list));
    return app.terminal().exit_code_after(app.terminal().print_json(answer));
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& one : cases)
    rows.push_back({one.id, one.about});
  return app.terminal().exit_code_after(app.terminal().print_table({"CASE", "ABOUT"}, rows));
}

int answer(App& app, const conformance::Report& report) {
  const bool shown = app.terminal().json()
                         ? app.terminal().print_json(conformance::to_json(report))
                         : app.terminal().print_text(conformance::to_text(report));
  if (!shown) return app.terminal().exit_code_after(false);
  if (const int signal = app.interrupts().caught(); signal != 0) return kSignalBase + signal;
  return conformance::exit_code(report);
}

int run_cases(App& app, const ConformanceArguments& arguments,
              const conformance::Request& request) {
  const auto report = conformance::run(request);
  if (!arguments.junit.empty()) {
    std::ofstream out(arguments.junit, std::ios::binary);
    out << conformance::to_junit(report);
    if (!out.flush())
      throw_error(Error(Status::unavailable, arguments.junit + ": cannot be written", "cli.junit"));
  }
  return answer(app, report);
}

}  // namespace

int conformance_command(App& app, const ConformanceArguments& arguments) {
  try {
    const auto request = request_of(app, arguments);
    return arguments.list ? list_cases(app, request) : run_cases(app, arguments, request);
  } catch (const Exception& failure) {
    if (failure.error().reason.rfind("conformance.", 0) != 0) throw;
    app.terminal().error(failure.error());  // what was asked for cannot be run: wrong usage
    return kUsage;
  }
}

}  // namespace sandforge::cli

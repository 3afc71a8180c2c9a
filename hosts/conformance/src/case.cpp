#include "case.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "suite_data.hpp"

namespace sandforge::conformance {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& where, const char* why) {
  throw_error(Error(Status::invalid, file + ": " + where + ": " + why, "conformance.bad_case"));
}

const std::string& text_of(const json::Value* value, const std::string& file,
                           const std::string& where) {
  if (value == nullptr || !value->is_string() || value->as_string().empty())
    refuse(file, where, "must be a text");
  return value->as_string();
}

Case read_case(const json::Value& value, const std::string& file, const std::string& where) {
  static const std::set<std::string> kKeys = {"id",       "about", "subject", "needs",
                                              "programs", "bound", "steps"};
  if (!value.is_object()) refuse(file, where, "must be an object");
  for (const auto& [key, ignored] : value.as_object())
    if (kKeys.count(key) == 0) refuse(file, where + "/" + key, "unknown key");
  Case out;
  out.id = text_of(value.find("id"), file, where + "/id");
  out.about = text_of(value.find("about"), file, out.id + "/about");
  if (out.about.find('\n') != std::string::npos) refuse(file, out.id + "/about", "is one line");
  if (const auto* subject = value.find("subject")) {
    const auto& name = text_of(subject, file, out.id + "/subject");
    if (name != "plugin" && name != "core")
      refuse(file, out.id + "/subject", "is none of plugin and core");
    out.of_core = name == "core";
  }
  if (const auto* needs = value.find("needs")) {
    if (!needs->is_array()) refuse(file, out.id + "/needs", "must be a list");
    for (const auto& need : needs->as_array())
      out.needs.push_back(text_of(&need, file, out.id + "/needs"));
  }
  if (const auto* programs = value.find("programs")) {
    if (!programs->is_bool()) refuse(file, out.id + "/programs", "must be true or false");
    out.runs_programs = programs->as_bool();
  }
  if (const auto* bound = value.find("bound")) {
    if (!bound->is_integer() || bound->as_integer() < 1 || bound->as_integer() > 3600)
      refuse(file, out.id + "/bound", "must be seconds from 1 to 3600");
    out.bound = std::chrono::seconds(bound->as_integer());
  }
  const auto* steps = value.find("steps");
  if (steps == nullptr || !steps->is_array() || steps->as_array().empty())
    refuse(file, out.id + "/steps", "must be a list of steps");
  out.steps = steps->as_array();
  return out;
}

std::vector<Case> read_case_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    throw_error(Error(Status::not_found, path.string() + ": cannot be read", "conformance.file"));
  return read_cases(text.str(), path.string());
}

bool fits_any(const std::vector<std::string>& globs, const std::string& id) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return fits_glob(glob, id); });
}

void refuse_idle_globs(const std::vector<std::string>& globs, const std::vector<Case>& all) {
  for (const auto& glob : globs)
    if (std::none_of(all.begin(), all.end(),
                     [&](const Case& one) { return fits_glob(glob, one.id); }))
      throw_error(Error(Status::invalid, "'" + glob + "' fits no case", "conformance.no_case"));
}

}  // namespace

bool fits_glob(std::string_view glob, std::string_view text) noexcept {
  std::size_t g = 0, t = 0;
  std::size_t star = std::string_view::npos, retry = 0;
  while (t < text.size()) {
    if (g < glob.size() && (glob[g] == '?' || (glob[g] == text[t] && glob[g] != '*'))) {
      ++g;
      ++t;
    } else if (g < glob.size() && glob[g] == '*') {
      star = g++;
      retry = t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*')
    ++g;
  return g == glob.size();
}

std::vector<Case> read_cases(std::string_view text, const std::string& file) {
  const auto parsed = json::parse(text);
  if (!parsed)
    throw_error(Error(Status::invalid,
                      file + ":" + std::to_string(parsed.error.line) + ":" +
                          std::to_string(parsed.error.column) + ": " + parsed.error.message,
                      "conformance.bad_case"));
  const auto* cases = parsed.value.find("cases");
  if (cases == nullptr || !cases->is_array()) refuse(file, "/cases", "must be a list");
  std::vector<Case> out;
  std::set<std::string> ids;
  for (const auto& value : cases->as_array()) {
    out.push_back(read_case(value, file, "/cases/" + std::to_string(out.size())));
    if (!ids.insert(out.back().id).second) refuse(file, out.back().id, "is there twice");
  }
  return out;
}

const std::vector<Case>& suite_cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> out;
    for (const auto& file : kSuiteFiles)
      for (auto& one : read_cases(file.text, file.name))
        out.push_back(std::move(one));
    return out;
  }();
  return all;
}

std::vector<Case> all_cases(const Request& request) {
  std::vector<Case> all = suite_cases();
  std::set<std::string> ids;
  for (const auto& one : all)
    ids.insert(one.id);
  for (const auto& path : request.case_files)
    for (auto& one : read_case_file(path)) {
      if (!ids.insert(one.id).second) refuse(path.string(), one.id, "is there twice");
      all.push_back(std::move(one));
    }
  return all;
}

std::vector<Case> select_cases(const Request& request) {
  auto all = all_cases(request);
  refuse_idle_globs(request.include, all);
  refuse_idle_globs(request.exclude, all);
  std::vector<Case> out;
  for (auto& one : all)
    if ((request.include.empty() || fits_any(request.include, one.id)) &&
        !fits_any(request.exclude, one.id))
      out.push_back(std::move(one));
  return out;
}

std::vector<CaseInfo> list(const Request& request) {
  std::vector<CaseInfo> out;
  for (auto& one : select_cases(request))
    out.push_back(std::move(static_cast<CaseInfo&>(one)));
  return out;
}

}  // namespace sandforge::conformance

#include "app.hpp"

namespace sandforge::cli {

ConfigPtr Configurations::load(const std::string& file) {
  const auto path = std::filesystem::absolute(file).lexically_normal().native();
  const std::lock_guard lock(mutex_);
  if (const auto known = loaded_.find(path); known != loaded_.end()) return known->second;
  auto result = load_host_config(path);
  if (!result) {
    std::string report = result.report;
    while (!report.empty() && report.back() == '\n')
      report.pop_back();
    Error error(Status::invalid, report, "config.invalid");
    error.details.set("file", path);
    throw_error(std::move(error));
  }
  loaded_[path] = result.config;
  return result.config;
}

ConfigPtr Configurations::find(const std::string& file) const {
  const std::lock_guard lock(mutex_);
  const auto known = loaded_.find(file);
  return known == loaded_.end() ? nullptr : known->second;
}

}  // namespace sandforge::cli

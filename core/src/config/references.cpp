#include <algorithm>
#include <cstdlib>

#include "regular_file.hpp"
#include "sandforge/host_config.hpp"

namespace sandforge {
namespace {

constexpr std::size_t max_file_bytes = 64U << 10;
constexpr std::string_view file_prefix = "file:";

bool is_name(std::string_view name) noexcept {
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::optional<std::string> read_secret_file(const std::filesystem::path& path, std::string& error) {
  auto read = config_detail::read_regular_file(path, max_file_bytes + 1, error);
  if (!read) return std::nullopt;
  std::string& content = *read;
  if (content.size() > max_file_bytes) {
    error = "larger than 64 KiB";
    return std::nullopt;
  }
  if (content.find('\0') != std::string::npos) {
    error = "contains NUL";
    return std::nullopt;
  }
  if (!content.empty() && content.back() == '\n') content.pop_back();
  if (!content.empty() && content.back() == '\r') content.pop_back();
  return read;
}

// "$file:", and with more dollars in front: one of them is the escape.
bool is_escaped_file(std::string_view text) noexcept {
  const std::size_t dollars = std::min(text.find_first_not_of('$'), text.size());
  return dollars != 0 && text.substr(dollars, file_prefix.size()) == file_prefix;
}

ResolvedText resolve_file(std::string_view path, const std::filesystem::path& directory,
                          const ReferenceSource& source) {
  if (path.empty()) return {{}, "the reference \"file:\" names no file"};
  const std::filesystem::path full = directory / std::filesystem::path(path);
  std::string reason;
  auto content = source.file(full, reason);
  if (!content) {
    return {{},
            "the file " + full.string() + " cannot be read: " + reason +
                "; write $file: if the text itself is meant"};
  }
  return {std::move(*content), {}};
}

ResolvedText resolve_variables(std::string_view text, const ReferenceSource& source) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar);
    if (text.substr(0, 3) == "$${") {
      out += "${";
      text.remove_prefix(3);
      continue;
    }
    if (text.substr(0, 2) != "${") {
      out += '$';
      text.remove_prefix(1);
      continue;
    }
    const std::size_t close = text.find('}');
    const std::string name(text.substr(2, close == std::string_view::npos ? close : close - 2));
    if (close == std::string_view::npos || !is_name(name)) {
      return {{},
              "\"${\" is not followed by the name of a variable and \"}\"; write $${ for the text"};
    }
    auto value = source.variable(name);
    if (!value) return {{}, "the variable " + name + " is not set"};
    out += *value;
    text.remove_prefix(close + 1);
  }
  return {std::move(out), {}};
}

}  // namespace

ReferenceSource host_references() {
  ReferenceSource source;
  source.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  source.file = read_secret_file;
  return source;
}

bool has_reference(std::string_view text) noexcept {
  return text.substr(0, file_prefix.size()) == file_prefix || text.find("${") != text.npos ||
         is_escaped_file(text);
}

bool is_one_reference(std::string_view text) noexcept {
  if (text.substr(0, file_prefix.size()) == file_prefix) return text.size() > file_prefix.size();
  return text.size() > 3 && text.substr(0, 2) == "${" && text.back() == '}' &&
         is_name(text.substr(2, text.size() - 3));
}

ResolvedText resolve_reference(std::string_view text, const std::filesystem::path& directory,
                               const ReferenceSource& source) {
  if (text.substr(0, file_prefix.size()) == file_prefix) {
    return resolve_file(text.substr(file_prefix.size()), directory, source);
  }
  if (is_escaped_file(text)) text.remove_prefix(1);
  return resolve_variables(text, source);
}

}  // namespace sandforge

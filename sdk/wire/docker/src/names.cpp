#include "sandforge/wire/docker/names.hpp"

#include "sandforge/support/encoding.hpp"
#include "sandforge/support/hash.hpp"

namespace sandforge::wire::docker {
namespace {

constexpr std::size_t kLongestId = 64;  // of a name; an engine takes more, people do not

bool is_alphanumeric(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string sanitised(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += is_alphanumeric(c) || c == '_' || c == '.' || c == '-' ? c : '-';
  return out;
}

std::string suffix_of(std::string_view id) {
  return '-' + sha256_hex(id).substr(0, 8);
}

}  // namespace

std::string container_name(std::string_view prefix, std::string_view id) {
  std::string name = sanitised(prefix);
  if (!name.empty()) name += '-';
  name += sanitised(id.substr(0, kLongestId));
  if (name.empty() || !is_alphanumeric(name.front())) name.insert(0, "s-");
  return name + suffix_of(id);
}

bool is_container_name(std::string_view name, std::string_view id) {
  const std::string suffix = suffix_of(id);
  return name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
}

std::string checkpoint_image(std::string_view name) {
  std::string tag = sanitised(name.substr(0, kLongestId));
  if (tag.empty() || !is_alphanumeric(tag.front())) tag.insert(0, "s-");
  return std::string(kCheckpointRepository) + ':' + tag + '-' + sha256_hex(name).substr(0, 16);
}

ImageReference split_image(std::string_view reference) {
  if (reference.find('@') != std::string_view::npos) return {std::string(reference), ""};
  const auto colon = reference.rfind(':');
  if (colon == std::string_view::npos || reference.find('/', colon) != std::string_view::npos)
    return {std::string(reference), "latest"};
  return {std::string(reference.substr(0, colon)), std::string(reference.substr(colon + 1))};
}

std::string registry_of(std::string_view reference) {
  const auto slash = reference.find('/');
  const std::string_view first = reference.substr(0, slash);
  const bool named = slash != std::string_view::npos &&
                     (first == "localhost" || first.find_first_of(".:") != std::string_view::npos);
  return named ? std::string(first) : std::string(kDefaultRegistry);
}

Query& Query::add(std::string_view name, std::string_view value) {
  text_ += text_.empty() ? '?' : '&';
  text_ += percent_encode(name) + '=' + percent_encode(value);
  return *this;
}

}  // namespace sandforge::wire::docker

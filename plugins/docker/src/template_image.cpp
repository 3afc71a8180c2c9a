#include "template_image.hpp"

#include <algorithm>
#include <charconv>

namespace sandforge::docker {
namespace {

constexpr std::string_view kTemplateRepository = "sandforge-template:";
constexpr std::size_t kTagDigits = 40;

}  // namespace

std::string template_reference(const std::string& identity) {
  return std::string(kTemplateRepository) + identity.substr(0, kTagDigits);
}

std::optional<TemplateImage> told_template(const wire::ImageInfo& image) {
  TemplateImage out;
  out.identity = image.label(kTemplateLabel);
  if (out.identity.empty()) return std::nullopt;
  out.reference = template_reference(out.identity);
  // What was built on it has its labels, too, and not its name.
  if (std::find(image.tags.begin(), image.tags.end(), out.reference) == image.tags.end())
    return std::nullopt;
  out.family = image.label(kTemplateFamilyLabel);
  const std::string time = image.label(kTemplateTimeLabel);
  std::from_chars(time.data(), time.data() + time.size(), out.created_at);
  return out;
}

}  // namespace sandforge::docker

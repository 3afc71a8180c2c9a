// How an engine's images tell what they are of a template.
#pragma once

#include <sandforge/wire/docker/messages.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace sandforge::docker {

namespace wire = sandforge::wire::docker;

// Of an image that a template was built as, and of one that an operation left behind.
inline constexpr std::string_view kTemplateLabel = "sandforge.template";  // its identity
inline constexpr std::string_view kTemplateFamilyLabel = "sandforge.template.family";
inline constexpr std::string_view kTemplateTimeLabel = "sandforge.template.created";
inline constexpr std::string_view kLayerLabel = "sandforge.layer";
class TemplateImage {
 public:
  TemplateImage() {}
  std::string identity;
  std::string reference;
  std::string family;
  std::int64_t created_at = 0;
};

// "sandforge-template:" and the beginning of the identity.
std::string template_reference(const std::string& identity);
// Of what an engine says of an image; nothing: it is none of a whole template.
std::optional<TemplateImage> told_template(const wire::ImageInfo& image);

}  // namespace sandforge::docker

// Which images of templates and of their steps are old. Nothing here asks an engine.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "template_image.hpp"

namespace sandforge::docker {

class KeepPolicy {
 public:
  KeepPolicy() {}
  std::size_t newest = 3;         // of each family
  std::chrono::hours young{168};  // whatever their number
};

class OldImage {
 public:
  OldImage() {}
  wire::ImageInfo image;
  bool is_template = false;  // else what a step left
  std::string reason;
};

/*
 * all: of the engine, intermediate ones too. used: ids of images that containers were made from.
 * now: nanoseconds since the Unix epoch. steps: also what steps left; while something is built that
 * is left alone. What is based on another one comes before it, and keeps it where it stays.
 */
std::vector<OldImage> old_images(const std::vector<wire::ImageInfo>& all,
                                 const std::set<std::string>& used, const KeepPolicy& policy,
                                 std::int64_t now, bool steps);

}  // namespace sandforge::docker

#include "old_images.hpp"

#include <algorithm>
#include <map>

namespace sandforge::docker {
namespace {

class Candidate {
 public:
  const wire::ImageInfo* image = nullptr;
  bool is_template = false;
  std::string family;
  std::int64_t created_at = 0;
};

std::vector<Candidate> old_templates(const std::vector<wire::ImageInfo>& all,
                                     const KeepPolicy& policy, std::int64_t oldest) {
  std::vector<Candidate> found;
  for (const wire::ImageInfo& image : all) {
    const std::optional<TemplateImage> one = told_template(image);
    // With more names somebody else holds on to it.
    if (!one || image.tags.size() != 1) continue;
    Candidate next;
    next.image = &image;
    next.is_template = true;
    // Without a family each is one of its own.
    next.family = one->family.empty() ? image.id : one->family;
    next.created_at = one->created_at;
    found.push_back(std::move(next));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.created_at > b.created_at; });
  std::map<std::string, std::size_t> seen;
  std::vector<Candidate> out;
  for (Candidate& one : found)
    if (seen[one.family]++ >= policy.newest && one.created_at <= oldest)
      out.push_back(std::move(one));
  return out;
}

std::vector<Candidate> old_steps(const std::vector<wire::ImageInfo>& all, std::int64_t oldest) {
  std::vector<Candidate> out;
  for (const wire::ImageInfo& image : all) {
    if (image.label(kLayerLabel).empty() || !image.label(kTemplateLabel).empty()) continue;
    const bool named = std::any_of(image.tags.begin(), image.tags.end(),
                                   [](const auto& tag) { return tag != "<none>:<none>"; });
    Candidate next;
    next.image = &image;
    next.created_at = image.created * 1'000'000'000;
    if (!named && next.created_at <= oldest) out.push_back(std::move(next));
  }
  return out;
}

}  // namespace

std::vector<OldImage> old_images(const std::vector<wire::ImageInfo>& all,
                                 const std::set<std::string>& used, const KeepPolicy& policy,
                                 std::int64_t now, bool steps) {
  const std::int64_t oldest = now - std::chrono::nanoseconds(policy.young).count();
  std::map<std::string, std::size_t> children;
  for (const wire::ImageInfo& image : all)
    if (!image.parent.empty()) ++children[image.parent];
  std::vector<Candidate> left = old_templates(all, policy, oldest);
  if (steps)
    for (Candidate& one : old_steps(all, oldest))
      left.push_back(std::move(one));
  const std::string age = std::to_string(policy.young.count()) + "h";
  std::vector<OldImage> out;
  for (bool more = true; more;) {
    more = false;
    for (auto at = left.begin(); at != left.end();) {
      const wire::ImageInfo& image = *at->image;
      if (used.count(image.id) != 0 || children[image.id] > 0) {
        ++at;
        continue;
      }
      OldImage next;
      next.image = image;
      next.is_template = at->is_template;
      next.reason = at->is_template ? "older than " + age + ", and " +
                                          std::to_string(policy.newest) + " of its family are newer"
                                    : "older than " + age + ", and no image is based on it";
      out.push_back(std::move(next));
      if (!image.parent.empty()) --children[image.parent];
      at = left.erase(at);
      more = true;
    }
  }
  return out;
}

}  // namespace sandforge::docker

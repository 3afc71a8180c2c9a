// Which images a clean-up takes, by what an engine's list says.
#include "old_images.hpp"

#include <catch2/catch.hpp>

using namespace sandforge;
using namespace sandforge::docker;
using sandforge::wire::docker::ImageInfo;

namespace {

constexpr std::int64_t kHour = 3600LL * 1'000'000'000;
constexpr std::int64_t kNow = 1'000'000 * kHour;
const std::string kNothing;

// Images of an engine; ages in hours. Their ids are what tests call them.
class Images {
 public:
  std::vector<ImageInfo> all;
  std::set<std::string> used;
  KeepPolicy policy;

  ImageInfo& add(const std::string& id, const std::string& parent, std::int64_t age) {
    ImageInfo one;
    one.id = id;
    one.parent = parent;
    one.created = (kNow - age * kHour) / 1'000'000'000;
    all.push_back(std::move(one));
    return all.back();
  }
  ImageInfo& add_template(const std::string& id, const std::string& parent, std::int64_t age,
                          const std::string& family) {
    ImageInfo& one = add(id, parent, age);
    one.labels.set(std::string(kTemplateLabel), id);
    one.labels.set(std::string(kTemplateFamilyLabel), family);
    one.labels.set(std::string(kTemplateTimeLabel), std::to_string(kNow - age * kHour));
    one.tags.push_back(template_reference(id));
    return one;
  }
  ImageInfo& add_step(const std::string& id, const std::string& parent, std::int64_t age) {
    ImageInfo& one = add(id, parent, age);
    one.labels.set(std::string(kLayerLabel), "hash-of-" + id);
    one.labels.set(std::string(kTemplateLabel), "");
    return one;
  }
  std::string old(bool steps = true) const {
    std::string out;
    for (const OldImage& one : old_images(all, used, policy, kNow, steps))
      out += one.image.id + (one.is_template ? "! " : " ");
    return out;
  }
};

}  // namespace

TEST_CASE("of each family the newest stay, and what is young") {
  Images images;
  for (int i = 1; i <= 5; ++i)
    images.add_template("a" + std::to_string(i), "", i * 100, "a");
  images.add_template("b1", "", 10'000, "b");
  images.add_template("n1", "", 10'000, "");
  CHECK(images.old() == "a4! a5! ");
  images.policy.newest = 1;
  CHECK(images.old() == "a2! a3! a4! a5! ");
  images.policy.young = std::chrono::hours(350);
  CHECK(images.old() == "a4! a5! ");
  images.policy.newest = 0;
  images.policy.young = std::chrono::hours(0);
  CHECK(images.old() == "a1! a2! a3! a4! a5! b1! n1! ");
}

TEST_CASE("what a container uses stays, with all that it is based on") {
  Images images;
  images.policy.newest = 0;
  images.add_step("s1", "base", 1000);
  images.add_step("s2", "s1", 1000);
  images.add_template("t1", "s2", 1000, "f");
  images.used = {"t1"};
  CHECK(images.old() == kNothing);
  images.used = {"s1"};
  CHECK(images.old() == "t1! s2 ");
  images.used.clear();
  CHECK(images.old() == "t1! s2 s1 ");
}

TEST_CASE("a step that something is based on stays") {
  Images images;
  images.add_step("s1", "base", 1000);
  images.add_step("s2", "s1", 1000);
  images.add_step("s3", "s1", 10);
  images.add_template("t1", "s2", 1000, "f");
  CHECK(images.old() == kNothing);
  images.policy.newest = 0;
  CHECK(images.old() == "t1! s2 ");
  images.all[2].created = 0;  // s3 is old as well
  CHECK(images.old() == "t1! s2 s3 s1 ");
}

TEST_CASE("steps are left alone while something is built") {
  Images images;
  images.policy.newest = 0;
  images.add_step("s1", "base", 1000);
  images.add_template("t1", "", 1000, "f");
  CHECK(images.old(false) == "t1! ");
}

TEST_CASE("images that others named or made stay") {
  Images images;
  images.policy.newest = 0;
  images.add_template("t1", "", 1000, "f").tags.push_back("mine:latest");
  images.add_template("t2", "", 1000, "f").tags = {"mine:latest"};
  images.add_step("s1", "", 1000).tags = {"mine:step"};
  images.add("x", "", 1000);
  CHECK(images.old() == kNothing);
  // What older engines say of one without a name.
  images.add_step("s2", "", 1000).tags = {"<none>:<none>"};
  CHECK(images.old() == "s2 ");
}

TEST_CASE("the reason names the numbers") {
  Images images;
  images.policy.newest = 2;
  images.policy.young = std::chrono::hours(24);
  images.add_step("s1", "base", 1000);
  for (int i = 1; i <= 3; ++i)
    images.add_template("t" + std::to_string(i), "", i * 100, "f");
  const auto old = old_images(images.all, {}, images.policy, kNow, true);
  REQUIRE(old.size() == 2);
  CHECK(old[0].reason == "older than 24h, and 2 of its family are newer");
  CHECK(old[1].reason == "older than 24h, and no image is based on it");
}

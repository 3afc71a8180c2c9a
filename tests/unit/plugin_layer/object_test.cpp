// What providers and sandboxes have in common.
#include <sandforge/plugin/object.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"

using namespace sandforge::plugin;
using namespace sandforge::test;

namespace {

// Says where it was destroyed.
class Thing : public detail::Object {
 public:
  Thing(const Lane& lane, std::string& end) : end_(end) { lane_ = lane; }
  ~Thing() override { end_ += !lane_ ? "without a lane" : lane_.is_current() ? "on" : "off"; }
  void* part(Part which) override { return which == Part::files ? this : nullptr; }

 private:
  std::string& end_;
};

}  // namespace

TEST_CASE("an object lives as long as the handle and every reference, and ends on its lane") {
  Ground ground;
  std::string end;
  auto* thing = new Thing(ground.lane, end);
  {
    detail::Ref<Thing> first(*thing);
    const detail::Ref<Thing> copy = first;
    detail::Ref<Thing> moved = std::move(first);
    first = moved;
    CHECK(&*first == thing);
    CHECK(first->part(Part::files) == thing);
    CHECK(first->part(Part::health) == nullptr);
    thing->drop();  // the handle of the host
    ground.host.loop.drain();
    CHECK(end.empty());
  }
  CHECK(end.empty());
  ground.host.loop.drain();
  CHECK(end == "on");
}

TEST_CASE("on its lane an object ends at once, and one that has none yet ends where it is") {
  Ground ground;
  std::string end;
  auto* thing = new Thing(ground.lane, end);
  ground.on_lane([&] {
    thing->drop();
    end += ", ";
  });
  (new Thing(Lane(), end))->drop();
  CHECK(end == "on, without a lane");
}

TEST_CASE("texts become an array of JSON, and none becomes nothing") {
  CHECK(detail::string_array({}).empty());
  CHECK(detail::string_array({"a", "\""}) == R"(["a","\""])");
}

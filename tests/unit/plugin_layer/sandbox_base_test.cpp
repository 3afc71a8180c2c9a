// A sandbox as the host holds it, whatever the style of its author.
#include <sandforge/plugin/sandbox_base.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

namespace {

// The least that a style must give. It notes its end.
class Bare : public SandboxBase {
 public:
  explicit Bare(std::string& log) : log_(log) {}
  ~Bare() override { log_ += lane().is_current() ? "sandbox on its lane;" : "sandbox elsewhere;"; }
  const sf_sandbox_vtbl& table() const noexcept override {
    static constexpr sf_sandbox_vtbl none{};
    return none;
  }
  const void* extension(std::string_view) override { return nullptr; }
  void* part(Part which) override { return which == Part::ports ? &port_ : nullptr; }

 private:
  std::string& log_;
  int port_ = 80;
};

class Provider : public detail::Object {
 public:
  explicit Provider(std::string& log) : log_(log) {}
  ~Provider() override { log_ += "provider;"; }
  void* part(Part) override { return nullptr; }

 private:
  std::string& log_;
};

}  // namespace

TEST_CASE("a sandbox that was handed out is found again, and keeps its provider") {
  Ground ground;
  std::string log;
  auto* box = new Bare(log);
  auto* provider = new Provider(log);
  CHECK_FALSE(box->lane());
  sf_sandbox* face = box->attach(ground.lane, detail::Ref<detail::Object>(*provider));
  provider->drop();  // the host gives it up first
  CHECK(log.empty());
  CHECK(&SandboxBase::of(face) == box);
  CHECK(face->vtbl == &box->table());
  CHECK(box->lane().get() == ground.lane.get());
  ground.host.loop.set_time(testing::Time::by_hand);
  CHECK(box->host().now() == ground.host.now());
  ground.on_lane([&] { box->drop(); });
  CHECK(log == "sandbox on its lane;provider;");
}

TEST_CASE("a running call keeps its sandbox, and a part that is not there is a typed error") {
  Ground ground;
  std::string log;
  auto* box = new Bare(log);
  sf_sandbox* face = box->attach(ground.lane, {});
  {
    const detail::SandboxPart<int> part(face, Part::ports);
    CHECK(*part.operator->() == 80);
    CHECK(part.lane().get() == ground.lane.get());
    const detail::SandboxPart<int> none(face, Part::files);
    CHECK(thrown_by([&] { none.operator->(); }) == "12 this sandbox lacks the capability");
    box->drop();
    ground.host.loop.drain();
    CHECK(log.empty());
  }
  ground.host.loop.drain();
  CHECK(log == "sandbox on its lane;");
}

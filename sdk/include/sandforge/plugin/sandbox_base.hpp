// A sandbox as the host holds it, whatever the style of its author.
#pragma once

#include "context.hpp"
#include "sandbox_values.hpp"

namespace sandforge::plugin {

class SandboxBase : public detail::Object {
 public:
  // The host's services and this sandbox's lane. Not yet in the constructor: there the lane is
  // that of the context.
  Host host() const noexcept { return {}; }
  const Lane& lane() const noexcept { return lane_; }

  // For the layer: the object that is handed out, its tables, and what it keeps alive.
  struct Face : sf_sandbox {
    SandboxBase* box;
  };
  static SandboxBase& of(sf_sandbox* s) noexcept { return *static_cast<Face*>(s)->box; }
  sf_sandbox* attach(Lane lane, detail::Ref<detail::Object> provider) {
    lane_ = std::move(lane);
    provider_ = std::move(provider);
    face_.vtbl = &table();
    face_.box = this;
    return &face_;
  }
  virtual const sf_sandbox_vtbl& table() const noexcept = 0;
  virtual const void* extension(std::string_view id) = 0;

 private:
  Face face_{};
  detail::Ref<detail::Object> provider_;
};

namespace detail {

template <class Interface>
class SandboxPart : public PartRef<Interface> {
 public:
  SandboxPart(sf_sandbox* self, Part which)
      : PartRef<Interface>(SandboxBase::of(self), which, "this sandbox lacks the capability") {}
};

}  // namespace detail
}  // namespace sandforge::plugin

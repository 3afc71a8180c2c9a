// What has a guest: a sandbox, on its lane.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "sandforge/guest_link/guest_link.hpp"

namespace sandforge::guest_link {

// A failure, or a link, or neither: no guest runs.
using GuestFn = std::function<void(const Failure*, const std::shared_ptr<GuestLink>&)>;

class GuestOwner {
 public:
  virtual ~GuestOwner() = default;
  // Null: no connection was made.
  virtual const std::shared_ptr<GuestLink>& guest() const noexcept = 0;
  // Why nothing can be asked of it now; nothing: its connection is up.
  virtual std::optional<Failure> unable() const = 0;
  // The guest, where one runs; none is started.
  virtual void with_guest(GuestFn then) = 0;
  // Tells at an error whether the sandbox itself is gone. Outlives this object.
  virtual std::function<bool()> missing_root() const = 0;
};

// The owner of a handle that the host holds.
using OwnerOf = GuestOwner& (*)(sf_sandbox*);

}  // namespace sandforge::guest_link

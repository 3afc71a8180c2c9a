// A function of the store on the pool for that, its answer on a lane.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "sandforge/runtime.hpp"

namespace sandforge {

template <class T, class Work>
void store_call(Runtime& runtime, const Lane& lane, Work work, Handler<T> done) {
  auto slot = std::make_shared<std::optional<Result<T>>>();
  runtime.post_store(
      lane, [slot, work = std::move(work)]() mutable { slot->emplace(work()); },
      [slot, done = std::move(done)](Result<void> ran) mutable {
        if (!ran) {
          std::move(done)(std::move(ran).error());
        } else {
          std::move(done)(std::move(**slot));
        }
      });
}

}  // namespace sandforge

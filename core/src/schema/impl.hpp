// What a CompiledSchema holds.
#pragma once

#include "engine.hpp"
#include "model.hpp"
#include "sandforge/schema.hpp"

namespace sandforge {

struct CompiledSchema::Impl {
  schema_detail::Program program;
  std::unique_ptr<const schema_detail::Engine> engine;
};

}  // namespace sandforge

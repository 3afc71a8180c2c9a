// Whether a schema of a plugin is one that core takes, as an error that names its issues.
#pragma once

#include "sandforge/error.hpp"
#include "sandforge/schema.hpp"

namespace sandforge {

Result<void> check_schema(const json::Value& schema, SchemaProfile profile);

}  // namespace sandforge

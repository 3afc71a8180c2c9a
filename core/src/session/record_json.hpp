// Parts of a session record as JSON text, for the store.
#pragma once

#include <string>
#include <string_view>

#include "sandforge/session_store.hpp"

namespace sandforge {

// internal "store.corrupt" when the text is no JSON object.
Result<json::Object> parse_stored_object(std::string_view text, std::string_view what);
Result<SetupPlan> parse_stored_plan(std::string_view text);

}  // namespace sandforge

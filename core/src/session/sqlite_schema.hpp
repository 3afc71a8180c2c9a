// The versions of the session database.
#pragma once

#include "session/sqlite.hpp"

namespace sandforge::sqlite {

inline constexpr std::int64_t kApplicationId = 0x53466730;  // "SFg0"

// Brings the database to the newest version known here, each step in a transaction of its own.
// Throws Failure: unsupported "store.newer_schema" when it is newer than that, internal
// "store.foreign" when it belongs to another program.
// `path` is for the messages.
void migrate(Connection& db, const std::string& path);

}  // namespace sandforge::sqlite

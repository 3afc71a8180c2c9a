// What a log says of records that it has not got.
#pragma once

#include <cstdint>
#include <string>

namespace sandforge {

inline std::string lost_records(std::uint64_t count) {
  return count == 1 ? "1 record was lost" : std::to_string(count) + " records were lost";
}

}  // namespace sandforge

// Values made from a schema, the same for the same seed.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "sandforge/support/json.hpp"

namespace sandforge::conformance {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool coin() { return between(0, 1) == 1; }

 private:
  std::mt19937_64 engine_;
};

std::int64_t limit_of(const json::Value& field, const char* keyword, std::int64_t otherwise);
// A value that the field takes; nothing where that is not plain, such as by a pattern.
std::optional<json::Value> fitting(const json::Value& field, Random& random);
// A value that the field does not take.
json::Value unfitting(const json::Value& field, Random& random);
// A document that the schema of settings takes, with some of its fields.
json::Object fitting_document(const json::Object& fields, Random& random);

}  // namespace sandforge::conformance

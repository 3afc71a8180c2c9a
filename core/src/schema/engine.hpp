// The validator behind a small door. Only engine.cpp includes valijson.
#pragma once

#include <cstdint>
#include <memory>

#include "model.hpp"

namespace sandforge::schema_detail {

enum class Verdict : std::uint8_t { valid, invalid, too_much_work };

class Engine {
 public:
  // The program must outlive the engine. Throws std::runtime_error if valijson refuses what the
  // lint accepted.
  explicit Engine(const Program& program);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Threads: any at once; every call has a validator of its own.
  Verdict check(const json::Value& document) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The schema as valijson gets it: every subschema in one list "d", references by number, and all
// assertions on single values replaced by one constraint of ours.
json::Value rewrite_for_engine(const Program& program);

constexpr const char* leaf_keyword = "x-vj-leaf";

}  // namespace sandforge::schema_detail

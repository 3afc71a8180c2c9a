// One line of the result: a subject, its peer of the same run, and the goal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sandforge/support/json.hpp"

namespace sandforge::bench {

// What a goal bounds: the subject itself, or the subject against its peer.
enum class Figure { subject, ratio, difference };

struct Goal {
  static Goal at_most(double limit, Figure figure) { return {limit, figure, true}; }
  static Goal at_least(double limit, Figure figure) { return {limit, figure, false}; }

  double limit = 0;
  Figure figure = Figure::ratio;
  bool upper = true;
};

struct Row {
  std::string id;    // "local.warm"
  std::string what;  // for a person, peer included
  std::string unit;  // of subject and peer: "ms", "MiB/s", …
  double subject = 0;
  double peer = 0;
  Goal goal;

  double ratio() const noexcept { return subject / peer; }
  double figure() const noexcept;
  // False also where a number is missing.
  bool met() const noexcept;
};

// Where and when the numbers were taken: they mean nothing without it.
struct Conditions {
  bool quick = false;
  unsigned cores = 0;
  double load_before = 0;  // of one minute
  double load_after = 0;
};

json::Value to_json(const Conditions& conditions, const std::vector<Row>& rows);
std::string to_table(const Conditions& conditions, const std::vector<Row>& rows);

// What is wrong with a document of to_json, one line each; empty when it has exactly the wanted
// rows, each with finite numbers above 0 where a ratio is made of them.
std::vector<std::string> faults_of(const json::Value& document,
                                   const std::vector<std::string_view>& wanted);

}  // namespace sandforge::bench

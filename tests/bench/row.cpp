#include "row.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sandforge::bench {
namespace {

// Three significant digits, without an exponent.
std::string number(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::fabs(value);
  if (size >= 100 || value == 0) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string goal_text(const Row& row) {
  const char* sign = row.goal.upper ? "<=" : ">=";
  switch (row.goal.figure) {
    case Figure::ratio:
      return fmt::format("{} {} x", sign, number(row.goal.limit));
    case Figure::difference:
      return fmt::format("{} {} {} more", sign, number(row.goal.limit), row.unit);
    case Figure::subject:
      break;
  }
  return fmt::format("{} {} {}", sign, number(row.goal.limit), row.unit);
}

const char* name_of(Figure figure) {
  switch (figure) {
    case Figure::ratio:
      return "ratio";
    case Figure::difference:
      return "difference";
    case Figure::subject:
      break;
  }
  return "subject";
}

json::Value to_json(const Row& row) {
  json::Object goal;
  goal.set("of", name_of(row.goal.figure));
  goal.set(row.goal.upper ? "atMost" : "atLeast", row.goal.limit);
  json::Object out;
  out.set("row", row.id);
  out.set("what", row.what);
  out.set("unit", row.unit);
  out.set("subject", row.subject);
  out.set("peer", row.peer);
  out.set("ratio", row.ratio());
  out.set("figure", row.figure());
  out.set("goal", std::move(goal));
  out.set("met", row.met());
  return out;
}

bool is_finite(const json::Value* value) {
  return value != nullptr && value->is_number() && std::isfinite(value->as_number());
}

// A number that is not finite is written as null.
void find_faults(const json::Value& row, const std::string& id, std::vector<std::string>& out) {
  for (const char* name : {"subject", "peer", "ratio", "figure"})
    if (!is_finite(row.find(name))) out.push_back(id + ": " + name + " is no finite number");
  const json::Value* peer = row.find("peer");
  if (is_finite(peer) && peer->as_number() <= 0) out.push_back(id + ": there is no peer");
  const json::Value* met = row.find("met");
  if (met == nullptr || !met->is_bool()) out.push_back(id + ": met is neither true nor false");
}

}  // namespace

double Row::figure() const noexcept {
  switch (goal.figure) {
    case Figure::ratio:
      return ratio();
    case Figure::difference:
      return subject - peer;
    case Figure::subject:
      break;
  }
  return subject;
}

bool Row::met() const noexcept {
  return goal.upper ? figure() <= goal.limit : figure() >= goal.limit;
}

json::Value to_json(const Conditions& conditions, const std::vector<Row>& rows) {
  json::Array list;
  for (const Row& row : rows)
    list.push_back(to_json(row));
  json::Object out;
  out.set("quick", conditions.quick);
  out.set("cores", conditions.cores);
  out.set("loadBefore", conditions.load_before);
  out.set("loadAfter", conditions.load_after);
  out.set("rows", std::move(list));
  return out;
}

std::string to_table(const Conditions& conditions, const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells = {
      {"row", "subject", "peer", "ratio", "goal", "met", "what"}};
  for (const Row& row : rows)
    cells.push_back({row.id, number(row.subject) + " " + row.unit,
                     number(row.peer) + " " + row.unit, number(row.ratio()), goal_text(row),
                     row.met() ? "yes" : "no", row.what});
  std::vector<std::size_t> widths(cells.front().size(), 0);
  for (const auto& line : cells)
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], line[i].size());
  std::string out;
  for (const auto& line : cells) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      out += fmt::format("{:<{}}  ", line[i], widths[i]);
    out += line.back() + "\n";
  }
  out += fmt::format("{} cores, load {:.2f} before and {:.2f} after{}\n", conditions.cores,
                     conditions.load_before, conditions.load_after,
                     conditions.quick ? ", quick: for a look only" : "");
  return out;
}

std::vector<std::string> faults_of(const json::Value& document,
                                   const std::vector<std::string_view>& wanted) {
  std::vector<std::string> out;
  const json::Value* rows = document.find("rows");
  if (rows == nullptr || !rows->is_array()) return {"there are no rows"};
  std::vector<std::string> seen;
  for (const json::Value& row : rows->as_array()) {
    const json::Value* id = row.find("row");
    seen.push_back(id != nullptr && id->is_string() ? id->as_string() : "(no name)");
    find_faults(row, seen.back(), out);
  }
  for (const std::string_view id : wanted)
    if (std::count(seen.begin(), seen.end(), id) != 1)
      out.push_back(std::string(id) + ": is not there once");
  if (seen.size() != wanted.size()) out.push_back("there are other rows than those wanted");
  return out;
}

}  // namespace sandforge::bench

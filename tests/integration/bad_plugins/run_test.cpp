// Plugins that break a rule while they run: each fault is contained, named, and no business of
// others, in line and in a process of its own. What differs from a life that keeps the rules is in
// golden/.
#include <algorithm>

#include <catch2/catch.hpp>

#include "life.hpp"
#include "test_paths.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

bool starts(const std::string& name, const char* with) {
  return name.rfind(with, 0) == 0;
}

// Whether its command ends by itself, in the spawn or, of the C++ layer, right after it.
bool ends_alone(const std::filesystem::path& plugin, const std::string& fault) {
  const Lines spawn = {"throw-spawn",  "throw-stream", "null-process", "null-stream",
                       "vtbl-process", "vtbl-stream",  "kill-spawn"};
  return plugin == LAYER_PLUGIN || starts(fault, "end-") ||
         std::find(spawn.begin(), spawn.end(), fault) != spawn.end();
}

Lines run(Isolation isolation, const std::filesystem::path& plugin, Fault fault) {
  fault.hands_off = ends_alone(plugin, fault.name);
  const TempDir dir;
  Limits limits;
  // Long enough for the calls that come back.
  if (starts(fault.name, "loop-")) limits.call = std::chrono::milliseconds(1000);
  World world(isolation, dir.copy(plugin, "bad.so"), {}, limits);
  const Captured printed;
  Lines lines = Life(world, fault).take();
  if (starts(fault.name, "loop-") || starts(fault.name, "kill-") || starts(fault.name, "end-")) {
    world.drain_lost();
  } else if (plugin == BAD_PLUGIN) {
    world.drain(!fault.endless);
  }
  for (std::string& line : world.told())
    lines.push_back(std::move(line));
  if (const auto text = printed.text(); !text.empty()) lines.push_back("printed here: " + text);
  return lines;
}

std::string indented(const Lines& lines, const std::string& by) {
  std::string out;
  for (const std::string& line : lines)
    out += by + line + "\n";
  return lines.empty() ? by + "as if nothing were wrong\n" : out;
}

class Table {
 public:
  Table(std::string golden, std::filesystem::path plugin, std::vector<Isolation> isolations)
      : golden_(std::move(golden)), plugin_(std::move(plugin)), isolations_(isolations) {
    for (const Isolation isolation : isolations)
      good_.push_back(run(isolation, plugin_, {}));
  }
  ~Table() { check_golden(golden_, text_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void add(const Fault& fault) {
    CAPTURE(fault.name);
    std::vector<Lines> each;
    for (std::size_t i = 0; i < isolations_.size(); ++i) {
      Lines lines = run(isolations_[i], plugin_, fault);
      std::erase_if(lines, [&](const std::string& line) {
        return std::find(good_[i].begin(), good_[i].end(), line) != good_[i].end();
      });
      each.push_back(std::move(lines));
    }
    text_ += fault.name + "\n";
    if (each.front() == each.back()) {
      text_ += indented(each.front(), "  ") + "\n";
    } else {
      text_ += "  in line:\n" + indented(each.front(), "    ");
      text_ += "  in a process:\n" + indented(each.back(), "    ") + "\n";
    }
  }
  void add(const std::string& kind, const std::vector<std::string>& where) {
    for (const std::string& name : where)
      add({kind + name});
  }

 private:
  const std::string golden_;
  const std::filesystem::path plugin_;
  const std::vector<Isolation> isolations_;
  std::vector<Lines> good_;
  std::string text_;
};

const std::vector<Isolation> everywhere = {Isolation::in_line, Isolation::process};
const std::vector<Isolation> in_a_process = {Isolation::process};

}  // namespace

TEST_CASE("bad plugins: a life that keeps the rules", "[cases.F08]") {
  const Lines in_line = run(Isolation::in_line, BAD_PLUGIN, {});
  CHECK(in_line == run(Isolation::process, BAD_PLUGIN, {}));
  check_golden("good", indented(in_line, ""));
}

TEST_CASE("bad plugins: an exception out of each function", "[cases.F08]") {
  Table table("throws", BAD_PLUGIN, everywhere);
  table.add("throw-", {"open",
                       "describe",
                       "provider-extension",
                       "create",
                       "extension",
                       "start",
                       "spawn",
                       "stream",
                       "grant",
                       "write",
                       "shutdown",
                       "signal",
                       "stream-cancel",
                       "process-release",
                       "info",
                       "instructions",
                       "stop",
                       "destroy",
                       "op-release",
                       "sandbox-release",
                       "provider-release",
                       "post"});
  table.add({"throw-op-cancel", true});
  table.add("throw-odd-", {"create", "start", "grant"});
}

TEST_CASE("bad plugins: an exception out of each function of the C++ layer", "[cases.F08]") {
  Table table("throws_in_layer", LAYER_PLUGIN, everywhere);
  table.add("throw-", {"open", "describe", "create", "start", "spawn", "run", "running", "info",
                       "instructions", "stop", "destroy", "extension"});
  table.add("throw-odd-", {"create", "start", "run"});
}

TEST_CASE("bad plugins: ends twice, never, too early, too late, and contradictions",
          "[cases.F08]") {
  Table table("ends", BAD_PLUGIN, everywhere);
  table.add("twice-", {"start", "identity", "stop", "started", "exit", "done"});
  table.add({"never-start", true});
  table.add({"never-done", true});
  table.add({"late-start", true});
  table.add({"block-cancel", true});
  table.add("", {"after-done", "after-release", "inside-start", "both-start", "wrong-count",
                 "over-credit", "over-accepted", "wrong-ctx", "invented-ctx"});
}

TEST_CASE("bad plugins: nothing where there must be something", "[cases.F08]") {
  Table table("missing", BAD_PLUGIN, everywhere);
  table.add("null-", {"provider", "describe", "sandbox", "op", "start", "info", "process", "stream",
                      "started", "data", "end"});
  table.add("vtbl-", {"provider", "sandbox", "op", "process", "stream"});
}

TEST_CASE("bad plugins: sizes and values that the header does not know", "[cases.F08]") {
  Table table("values", BAD_PLUGIN, everywhere);
  table.add("size-",
            {"describe", "sandbox", "op", "start", "info", "started", "exit", "end", "done-error"});
  table.add("values-",
            {"status", "negative", "error", "write", "start", "info", "exit", "channel"});
  table.add("", {"wordless-start", "other-name", "schema-typo", "schema-default"});
}

TEST_CASE("bad plugins: text that is none, or too much", "[cases.F08]") {
  Table table("text", BAD_PLUGIN, everywhere);
  table.add("text-", {"describe", "start", "id", "instructions", "error"});
  table.add("json-", {"start", "info"});
  table.add("huge-", {"describe", "start", "id", "error"});
}

TEST_CASE("bad plugins: bad manners", "[cases.F08]") {
  Table table("manners", BAD_PLUGIN, everywhere);
  table.add("", {"print", "leak", "variable"});
}

TEST_CASE("bad plugins: calls that never return", "[cases.F08]") {
  Table table("loops", BAD_PLUGIN, in_a_process);
  table.add("loop-", {"open", "create", "start", "spawn", "sandbox-release"});
}

TEST_CASE("bad plugins: the end of their process", "[cases.F08]") {
  Table table("deaths", BAD_PLUGIN, in_a_process);
  table.add("kill-", {"open", "describe", "create", "start", "spawn", "signal", "info",
                      "instructions", "stop", "destroy", "sandbox-release"});
  table.add("end-",
            {"kill", "abort", "exit", "quick-exit", "terminate", "thread-exit", "close-all"});
}

TEST_CASE("bad plugins: memory that is not there", "[cases.F08]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("SKIPPED: a sanitizer ends these in its own way");
#else
  Table table("memory", BAD_PLUGIN, in_a_process);
  table.add("end-", {"segfault", "overflow", "eat"});
#endif
}

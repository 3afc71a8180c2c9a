// The options of `sandforge conformance`; a part of arguments.cpp, which includes CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include "arguments.hpp"

namespace sandforge::cli {

inline void add_conformance_options(CLI::App& sub, ConformanceArguments& to) {
  sub.footer(
      "Each case runs in a process of its own. Verdicts: pass, fail, not applicable (what it "
      "needs\n"
      "is declared absent) and unverified (could not be decided).\n\n"
      "Exit codes:\n"
      "  0            all cases pass or are not applicable\n"
      "  1            a case fails\n"
      "  2            wrong command line, or the file is no plugin\n"
      "  3            no case fails, but some are unverified\n");
  sub.add_option("PLUGIN", to.plugin, "The plugin's file")->type_name("");
  sub.add_option("--provider", to.provider, "Which of its providers, where it has several")
      ->type_name("NAME");
  sub.add_option("--options", to.options,
                 "Options of the provider, YAML or JSON; ${SANDFORGE_CASE_DIR} in\n"
                 "them is a folder of each case")
      ->type_name("FILE");
  sub.add_option("--include", to.include,
                 "Only these cases, by their whole id: * stands for any text, ? for one\n"
                 "character, as in 'cases.A*'; repeatable. --list shows the ids")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  sub.add_option("--exclude", to.exclude,
                 "Not these cases, in the same form; goes over --include; repeatable")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  sub.add_option("--cases", to.case_files, "Cases of your own beside the suite's; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub.add_option("--junit", to.junit, "Write a report for CI systems (JUnit XML)")
      ->type_name("FILE");
  sub.add_option("--seed", to.seed, "Of the random parts, to repeat a run")->type_name("NUMBER");
  sub.add_option("--jobs", to.jobs, "Cases at once; else one for each processor")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 256).description(""));
  sub.add_option_function<std::string>(
         "--bound",
         [&to](const std::string& text) {
           auto bound = parse_duration(text);
           if (!bound) throw CLI::ValidationError("--bound", bound.error().message);
           to.bound = *bound;
         },
         "Longest time of a case; else what each says")
      ->type_name("DURATION");
  sub.add_flag("--list", to.list, "List the cases and run none");
}

}  // namespace sandforge::cli

// `sandforge providers` as an operator runs it: a new process, four plugins installed.
#include <stdexcept>

#include "measure.hpp"
#include "rows.hpp"
#include "test_paths.hpp"

namespace sandforge::bench {
namespace {

namespace fs = std::filesystem;

// A prefix as an installation makes it.
fs::path install(const fs::path& prefix) {
  const fs::path plugins = prefix / "lib/sandforge/plugins";
  fs::create_directories(prefix / "bin");
  fs::create_directories(plugins);
  const fs::path program = prefix / "bin/sandforge";
  fs::copy_file(SANDFORGE_PROGRAM, program);
  for (const fs::path file : {SANDFORGE_LOCAL_PLUGIN, SANDFORGE_BENCH_C_PLUGIN,
                              SANDFORGE_BENCH_CPP_PLUGIN, SANDFORGE_BENCH_PLAIN_PLUGIN}) {
    fs::copy_file(file, plugins / file.filename());
    fs::permissions(plugins / file.filename(), fs::perms::owner_all);
  }
  return program;
}

}  // namespace

std::vector<Row> cold_rows(const Scale& scale) {
  const Folder folder;
  const std::string program = install(folder.path()).string();
  const std::string state = (folder.path() / "state").string();
  const std::string output = (folder.path() / "output").string();
  // Through a file, and once: what is measured must have found all four.
  run_bare(program + " --state " + state + " providers >" + output +
           " && test $(grep -c '\\.so ' " + output + ") -eq 4");
  const auto ours = [&] {
    return 1e3 * timed([&] {
             wait_bare(start_bare({program, "--state", state, "providers"}, true));
           });
  };
  const auto theirs = [] {
    return 1e3 * timed([] { wait_bare(start_bare({"/bin/true"}, true)); });
  };
  const Pair pair = interleave(scale.of(60, 10), ours, theirs);
  return {{"cold.providers", "sandforge providers, four plugins, against /bin/true", "ms",
           pair.subject, pair.peer, Goal::at_most(30, Figure::subject)}};
}

}  // namespace sandforge::bench

#include "micro.hpp"

#include <stdexcept>

namespace sandforge::bench {
namespace {

constexpr const char* kSubject = "subject";
constexpr const char* kPeer = "peer";

// Keeps the runs and prints nothing.
class Collector final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) throw std::runtime_error(run.error_message);
      if (run.run_type != Run::RT_Iteration) continue;
      const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
      (run.run_name.function_name == kSubject ? subject : peer).push_back(1e9 * seconds);
    }
  }
  std::vector<double> subject;
  std::vector<double> peer;
};

void initialise() {
  static const bool once = [] {
    char name[] = "sandforge_bench";
    char interleaving[] = "--benchmark_enable_random_interleaving=true";
    char* words[] = {name, interleaving, nullptr};
    int count = 2;
    benchmark::Initialize(&count, words);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

Pair compare(const Scale& scale, const Loop& subject, const Loop& peer) {
  initialise();
  for (const auto& [name, loop] : {std::pair(kSubject, &subject), std::pair(kPeer, &peer)})
    benchmark::RegisterBenchmark(name, *loop)
        ->Repetitions(scale.of(15, 3))
        ->MinTime(scale.quick ? 0.005 : 0.05);
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  benchmark::ClearRegisteredBenchmarks();
  return {median(collector.subject), median(collector.peer)};
}

}  // namespace sandforge::bench

// Measuring: interleaved rounds, quantiles, bare processes, and what /proc says of memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace sandforge::bench {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin);
double quantile(std::vector<double> values, double part);
double median(const std::vector<double>& values);

struct Pair {
  double subject = 0;
  double peer = 0;
};

// Medians of `rounds` turns of each, in alternating order, so that what disturbs the machine
// disturbs both. Each function answers its own measure.
Pair interleave(int rounds, const std::function<double()>& subject,
                const std::function<double()>& peer);

// Seconds that the work takes.
double timed(const std::function<void()>& work);

// A program through posix_spawn, with the environment that the sandboxes here get. Throws when it
// cannot start. silent: without standard output.
pid_t start_bare(const std::vector<std::string>& argv, bool silent = false);
void wait_bare(pid_t pid);
// `sh -c TEXT`, to its end.
void run_bare(const std::string& text);
// The PATH of commands and of bare processes.
const std::string& command_path();

std::size_t threads_of_this_process();
// Resident memory, in KiB, exact and not from the kernel's per-thread caches.
double resident_kib(pid_t pid);

// Peak of this process's resident memory from here on, above what it has now.
class PeakMemory {
 public:
  PeakMemory();
  double growth_mib() const;

 private:
  double before_kib_ = 0;
};

// A folder of its own, gone afterwards.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sandforge::bench

// Work of nanoseconds, measured by Google benchmark: repetitions of both in random order, medians.
#pragma once

#include <functional>

#include <benchmark/benchmark.h>

#include "measure.hpp"
#include "rows.hpp"

namespace sandforge::bench {

using Loop = std::function<void(benchmark::State&)>;

// Nanoseconds of one turn of each loop. On the calling thread.
Pair compare(const Scale& scale, const Loop& subject, const Loop& peer);

}  // namespace sandforge::bench

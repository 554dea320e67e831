// SPDX-License-Identifier: Apache-2.0
// core_use: how much of the machine others had while something was measured.
//
// Idea: ratios of a run mean something while its own processes alone compete
// for the cores. The kernel tells how long cores were idle, and what this
// process and those of its children that it has waited for have used; what is
// left went to others on this machine, or to those on its host (steal).
//
// Invariants:
//   CU1. A child counts as one of the others until it has been waited for: so
//        the two readings are taken where no child is alive.
//
// Thread safety: functions of the kernel's counters; any thread.
// References: proc_stat(5), getrusage(2).
#ifndef ALPHEUS_BENCH_HARNESS_CORE_USE_H_
#define ALPHEUS_BENCH_HARNESS_CORE_USE_H_

#include <string_view>

#include "absl/status/statusor.h"

namespace alpheus::bench {

// Seconds since some moment in the past, summed over the cores.
struct CoreTimes {
  double passed = 0;
  double idle = 0;
  double own = 0;  // this process and children that it has waited for
};

// Errors: Unavailable (system error, or /proc/stat is none).
absl::StatusOr<CoreTimes> ReadCoreTimes();

// Idle seconds, waiting for a medium included, of the text of /proc/stat at so
// many ticks a second. Errors: Unavailable (it has no line of all cores).
absl::StatusOr<double> IdleSeconds(std::string_view proc_stat, double ticks);

// The share of the cores' time between two readings that others had: 0 to 1.
double ShareOfOthers(const CoreTimes& before, const CoreTimes& after);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_CORE_USE_H_

// SPDX-License-Identifier: Apache-2.0
// machine: what this run is done on, and its preparation.
#ifndef ALPHEUS_BENCH_HARNESS_MACHINE_H_
#define ALPHEUS_BENCH_HARNESS_MACHINE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench {

struct Machine {
  std::string cpu_model;
  std::string kernel;
  std::string build_type;
  std::string compiler;
  uint64_t memory_bytes = 0;
  double load_average = 0;  // of the last minute, when the run began
  std::vector<int> cores;   // that threads may run on
};

// libpmem decides what is persistent memory before main runs, from the
// environment. Starts this program again with PMEM_IS_PMEM_FORCE=1 if that is
// not set; returns if it is. Errors: Unavailable (system error).
absl::Status RestartWithPmemForced(char** argv);

// Errors: Unavailable (system error).
absl::StatusOr<Machine> DescribeMachine();

// Lets the calling thread run on these cores only.
// Errors: Unavailable (system error).
absl::Status PinTo(std::span<const int> cores);
absl::Status PinTo(int core);

// The core for thread `worker`: from the last one down, since interrupts tend
// to go to the first.
int CoreFor(const std::vector<int>& cores, int worker);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_MACHINE_H_

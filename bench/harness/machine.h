// SPDX-License-Identifier: Apache-2.0
// machine: describes the machine of a run, and prepares it.
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

// Describes this machine. Errors: Unavailable (system error).
absl::StatusOr<Machine> DescribeMachine();

// Pins the calling thread to these cores.
// Errors: Unavailable (system error).
absl::Status PinTo(std::span<const int> cores);
absl::Status PinTo(int core);

// Returns the core for thread `worker`: from the last one down, since
// interrupts tend to go to the first.
int CoreFor(const std::vector<int>& cores, int worker);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_MACHINE_H_

// SPDX-License-Identifier: Apache-2.0
// machine: what this run is done on, and its preparation.
#ifndef ALPHEUS_BENCH_LOCAL_MACHINE_H_
#define ALPHEUS_BENCH_LOCAL_MACHINE_H_

#include <string>

#include "absl/status/statusor.h"

namespace alpheus::bench {

struct Machine {
  std::string cpu_model;
  std::string kernel;
  std::string build_type;
  int cpu = 0;  // the core that everything runs on
};

// libpmem decides what is persistent memory before main runs, from the
// environment. Starts this program again with PMEM_IS_PMEM_FORCE=1 if that is
// not set; returns if it is. Errors: Unavailable (system error).
absl::Status RestartWithPmemForced(char** argv);

// Pins this thread to the last core that it may run on and describes the
// machine. Errors: Unavailable (system error).
absl::StatusOr<Machine> PinAndDescribe();

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_MACHINE_H_

// SPDX-License-Identifier: Apache-2.0
// sim_command: what `alpheus-sim` does: runs the seeds that it was told, says
// which fail and how to run them again, and counts. Results go to standard
// output, everything else to standard error.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_RUN_SIM_COMMAND_H_
#define ALPHEUS_TOOLS_SIM_RUN_SIM_COMMAND_H_

#include "absl/status/status.h"
#include "tools/sim/run/sim_arguments.h"

namespace alpheus::sim {

// Errors: InvalidArgument; Internal (a seed failed); what writing gives.
absl::Status RunSim(const SimArguments& arguments);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_RUN_SIM_COMMAND_H_

// SPDX-License-Identifier: Apache-2.0
// workload: what a client of the log does, call after call, until its log fails
// or closes.
//
// Thread safety: a thread of the primary's process (threads.h).
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_WORKLOAD_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_WORKLOAD_H_

namespace alpheus::sim {

class PrimaryProcess;

// A client that uses all calls, in an order drawn by lot.
void RunMixedClient(PrimaryProcess& primary);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_WORKLOAD_H_

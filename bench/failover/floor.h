// SPDX-License-Identifier: Apache-2.0
// floor: the least that a fail-over must cost, by messages over sockets alone.
//
// Idea: a floor has the processes, the hops and the way of waiting of the work
// that it judges. So there are a primary that writes under the same load, two
// nodes, and a candidate beside one of them. The candidate must
//
//   learn that the primary has gone   its node tells it: the connection of the
//                                     primary ends, or is silent for as long as
//                                     candidates bear. An operator's word goes
//                                     by a node to the primary, which then ends
//   ask another node                  a round trip: else a cut link of its own
//                                     would depose a primary that others hear
//   open the log                      three round trips: what was promised, the
//                                     promise, the epoch
//   make one record durable           a round trip
//
// The question, the opening and an operator each have a connection of their
// own, which takes a round trip to begin. All other work of the log comes on
// top of this: it reads and chooses records, repairs replicas, and changes
// media.
//
// Thread safety: one thread.
// References: floor_processes.h.
#ifndef ALPHEUS_BENCH_FAILOVER_FLOOR_H_
#define ALPHEUS_BENCH_FAILOVER_FLOOR_H_

#include <memory>

#include "bench/failover/contestant.h"

namespace alpheus::bench::failover {

inline constexpr const char* kFloorName = "floor";

// Its parts: detection (with the question), promises, repair (the epoch) and
// open, as those of the log.
std::unique_ptr<Contestant> Floor();

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_FLOOR_H_

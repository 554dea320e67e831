// SPDX-License-Identifier: Apache-2.0
// floor: what a fail-over must cost at least, by messages over sockets alone.
//
// Idea: whoever takes over must
//
//   learn that the primary has gone   its connection ends, or it is silent for
//                                     as long as candidates bear; an operator's
//                                     word is one round trip
//   ask one other node                a connection and a round trip: else a cut
//                                     link of its own would depose a primary
//                                     that others hear
//   open the log                      a connection and three round trips: what
//                                     was promised, the promise, the epoch
//   make one record durable           a round trip
//
// All that the log does beside it, it does above this: it reads and chooses
// records, repairs replicas, and changes media.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_FAILOVER_FLOOR_H_
#define ALPHEUS_BENCH_FAILOVER_FLOOR_H_

#include <memory>

#include "absl/status/status.h"
#include "bench/failover/contestant.h"

namespace alpheus::bench::failover {

inline constexpr const char* kFloorName = "floor";
inline constexpr const char* kEchoKind = "echo";

// Its parts: detection (with the question), promises, repair (the epoch) and
// open, as those of the log.
std::unique_ptr<Contestant> Floor();

// Sends back what comes, until it is killed. Says its port. Errors:
// Unavailable.
absl::Status ServeEcho();

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_FLOOR_H_

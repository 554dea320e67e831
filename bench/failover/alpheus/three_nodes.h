// SPDX-License-Identifier: Apache-2.0
// three_nodes: nodes of alpheusd, and at each a program that stands; the log's
// primary is lost under load, and one of the others takes its place.
#ifndef ALPHEUS_BENCH_FAILOVER_ALPHEUS_THREE_NODES_H_
#define ALPHEUS_BENCH_FAILOVER_ALPHEUS_THREE_NODES_H_

#include <memory>
#include <string>

#include "bench/failover/contestant.h"

namespace alpheus::bench::failover {

inline constexpr const char* kAlpheusName = "alpheus";

// Its parts of a fail-over, beside the total:
//   detection  until the next primary begins to open the log, openings that
//              failed before it included
//   promises   until enough members have promised and reported
//   choice     until it is chosen which records the log has; here it waits for
//              the third member, too
//   repair     until enough members have these records, and the epoch
//   open       until the first record is durable
// and how many openings failed.
std::unique_ptr<Contestant> Alpheus(std::string folder);

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_ALPHEUS_THREE_NODES_H_

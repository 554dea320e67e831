// SPDX-License-Identifier: Apache-2.0
// bare_fabric: the same work as the floor's over the TCP fabric, without a log:
// what lies between the two is the fabric's, what lies between this and the log
// is the log's.
//
// Idea: the operations of a session of the log: a record is one write with
// immediate into the backup's registered memory, an answer one send of 40
// bytes. The immediate says where the record landed.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_BARE_FABRIC_H_
#define ALPHEUS_BENCH_REPLICATED_BARE_FABRIC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "bench/replicated/candidate.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kBareFabricName = "fabric";

MakeCandidate BareFabric();

// A backup's process; returns when the primary has gone.
absl::Status ServeBareFabric(const std::string& folder, uint64_t ring_bytes);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_BARE_FABRIC_H_

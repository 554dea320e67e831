// SPDX-License-Identifier: Apache-2.0
// bare_fabric: the same work as the floor's over a fabric, without a log: what
// lies between the two is the fabric's, what lies between this and the log is
// the log's.
//
// Idea: the operations of a session of the log: a record is one write with
// immediate into the backup's registered memory, an answer one send of 40
// bytes. The immediate says where the record landed.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_BARE_FABRIC_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_BARE_FABRIC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "bench/replicated/candidates/candidate.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kBareFabricName = "fabric";

// Of a backup's process whose fabric is verbs.
inline constexpr const char* kBareVerbsKind = "fabric-verbs";

// Over TCP or, where the work names hosts, over their adapters.
MakeCandidate BareFabric();

// A backup's process; returns when the primary has gone. `host`: of its
// adapter; empty: TCP.
absl::Status ServeBareFabric(const std::string& host, const std::string& folder,
                             uint64_t ring_bytes);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_BARE_FABRIC_H_

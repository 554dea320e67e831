// SPDX-License-Identifier: Apache-2.0
// bare_fabric: the floor's work over a fabric, without a log. Its difference to
// the floor is the fabric's cost; the log's difference to it is the log's cost.
//
// Idea: it uses the operations of a session of the log: a record is one write
// with immediate into the backup's registered memory, an answer one send of 40
// bytes. The immediate names the place of the record.
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

// Kind of a backup's process whose fabric is verbs.
inline constexpr const char* kBareVerbsKind = "fabric-verbs";

// Makes a candidate over TCP or, where the work names hosts, over their
// adapters.
MakeCandidate BareFabric();

// Runs a backup's process; returns when the primary has gone. `host`: its
// adapter's; empty: TCP.
absl::Status ServeBareFabric(const std::string& host, const std::string& folder,
                             uint64_t ring_bytes);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_BARE_FABRIC_H_

// SPDX-License-Identifier: Apache-2.0
// alpheus_candidate: the log through its public header alone, under each force
// policy.
//
// A full log is cleaned as an application does it that has checkpointed: up to
// the last durable record, when an append is refused for want of room.
#ifndef ALPHEUS_BENCH_LOCAL_CANDIDATES_ALPHEUS_CANDIDATE_H_
#define ALPHEUS_BENCH_LOCAL_CANDIDATES_ALPHEUS_CANDIDATE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "bench/harness/candidate.h"
#include "bench/harness/force_policy.h"

namespace alpheus::bench {

// Creates a region at `path` whose ring has exactly workload.ring_bytes, and
// opens it. The file stays.
absl::StatusOr<std::unique_ptr<Log>> MakeLog(const std::string& path,
                                             const Workload& workload);

// The same in a file that is removed already.
absl::StatusOr<std::unique_ptr<Log>> MakeScratchLog(const Workload& workload);

MakeCandidate AlpheusWith(const ForcePolicy& policy);

// On a log that others append to as well, by turns.
MakeCandidate AlpheusOn(const std::shared_ptr<Log>& log,
                        const ForcePolicy& policy);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_CANDIDATES_ALPHEUS_CANDIDATE_H_

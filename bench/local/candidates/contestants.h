// SPDX-License-Identifier: Apache-2.0
// contestants: who takes part in comparisons of append.
#ifndef ALPHEUS_BENCH_LOCAL_CANDIDATES_CONTESTANTS_H_
#define ALPHEUS_BENCH_LOCAL_CANDIDATES_CONTESTANTS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/candidate.h"

namespace alpheus::bench {

using Candidates = std::vector<std::unique_ptr<Candidate>>;

// Alpheus forcing each record, libpmemlog, flex and zero-init.
std::vector<MakeCandidate> Logs();

// The floors, all logs, and Alpheus with force frequencies 8 and 16, for
// workloads with this folder and this ring. All floors share a region, and the
// policies of Alpheus a log: which pages of the machine a region got moves its
// times by up to a third (those of the machine's host are not all alike), and
// would else be taken for a difference between them.
absl::StatusOr<std::vector<MakeCandidate>> FloorsLogsAndFrequencies(
    const Workload& workload);

absl::StatusOr<Candidates> MakeAll(const std::vector<MakeCandidate>& makers,
                                   const Workload& workload);

// Lets each worker of each candidate append, one after the other, so that all
// pages are mapped before anything is timed.
absl::Status WarmUp(const Candidates& candidates, int workers,
                    uint64_t ops_per_worker);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_CANDIDATES_CONTESTANTS_H_

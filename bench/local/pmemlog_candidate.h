// SPDX-License-Identifier: Apache-2.0
// pmemlog_candidate: the peer, pmemlog_append of libpmemlog.
//
// libpmemlog is an append-only file without records: no header, no checksum,
// no LSN; an append is a copy and a store of the tail, each persisted. A full
// pool is rewound, which forgets everything.
#ifndef ALPHEUS_BENCH_LOCAL_PMEMLOG_CANDIDATE_H_
#define ALPHEUS_BENCH_LOCAL_PMEMLOG_CANDIDATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/local/candidate.h"

namespace alpheus::bench {

// A fresh pool with at least workload.ring_bytes for records.
absl::StatusOr<std::unique_ptr<Candidate>> MakePmemlogCandidate(
    const Workload& workload);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_PMEMLOG_CANDIDATE_H_

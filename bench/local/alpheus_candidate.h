// SPDX-License-Identifier: Apache-2.0
// alpheus_candidate: Log::Append with a force per record, through the public
// header alone.
//
// A full log is cleaned as an application does it that has checkpointed: up to
// the last durable record, when an append is refused for want of room.
#ifndef ALPHEUS_BENCH_LOCAL_ALPHEUS_CANDIDATE_H_
#define ALPHEUS_BENCH_LOCAL_ALPHEUS_CANDIDATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/local/candidate.h"

namespace alpheus::bench {

// A fresh log whose ring has exactly workload.ring_bytes.
absl::StatusOr<std::unique_ptr<Candidate>> MakeAlpheusCandidate(
    const Workload& workload);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_ALPHEUS_CANDIDATE_H_

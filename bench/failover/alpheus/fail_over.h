// SPDX-License-Identifier: Apache-2.0
// fail_over: one fail-over of the log, judged by what its programs have told
// (notes.h).
//
// Idea: a stall of the machine looks like the loss of a primary. If candidates
// have taken a stall for a loss before the fault, the fault meets another
// primary, or a lengthened silence. Such a round measures something else, and
// is void.
//
// Invariants:
//   FOV1. A round counts only if, when the fault comes, no program but the
//         first one was ever primary, no other one has begun to open the log,
//         and none has suspected the primary wrongly.
//   FOV2. The next primary is the program whose first record was durable first
//         after the fault.
//   FOV3. The parts add up to the total, and none is negative.
// Thread safety: one thread, while the programs write their notes.
#ifndef ALPHEUS_BENCH_FAILOVER_ALPHEUS_FAIL_OVER_H_
#define ALPHEUS_BENCH_FAILOVER_ALPHEUS_FAIL_OVER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/failover/alpheus/notes.h"
#include "bench/failover/contestant.h"

namespace alpheus::bench::failover {

class FailOver {
 public:
  // `programs[node - 1]` are the notes of that node's program, and outlive the
  // object; the first program has the log. Takes note of the openings that have
  // failed so far: they are not part of the fail-over.
  explicit FailOver(std::vector<const Notes*> programs);

  // Call right before the fault. Errors: Aborted (the round is void, FOV1).
  absl::Status CheckBegin() const;
  // Returns the next primary; nullptr: there is none yet (FOV2).
  const Notes* Next(int64_t fault_ns) const;
  // Requires: Next returned it. Errors: Aborted (void: it had begun to open the
  // log before the fault).
  absl::StatusOr<Parts> PartsOf(const Notes& next, int64_t fault_ns) const;

 private:
  uint64_t FailedOpenings() const;

  const std::vector<const Notes*> programs_;
  const uint64_t failed_before_;
};

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_ALPHEUS_FAIL_OVER_H_

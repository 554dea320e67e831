// SPDX-License-Identifier: Apache-2.0
// answer_scan: reads a replica's ring for its answer, in slices.
//
// Idea: a scan of several GiB takes seconds, and its thread has other logs to
// serve. The state of the scan is in the object, so that the caller may stop
// and continue it anywhere.
//
// Invariants:
//   AS1. The answer does not depend on the slices.
// Thread safety: one thread.
// References: protocol P-A4.3, P-H9, P-H10; answer.h.
#ifndef ALPHEUS_RECOVERY_REPLICA_ANSWER_SCAN_H_
#define ALPHEUS_RECOVERY_REPLICA_ANSWER_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "log/core/read/record_cursor.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "recovery/protocol/answer.h"

namespace alpheus {

struct AnswerOptions {
  // The medium may have lost what was fenced: its unsafe-shutdown count grew.
  bool suspect = false;
};

class AnswerScan {
 public:
  // `state` is that of the region. Requires: everything visible was persisted
  // before (P-H7), and the region is fenced (P-H6). The answer then stays true
  // until a session of the ballot writes.
  AnswerScan(std::span<std::byte> region, const RegionState& state,
             const AnswerOptions& options);
  AnswerScan(const AnswerScan&) = delete;
  AnswerScan& operator=(const AnswerScan&) = delete;

  // Reads `bytes_max` more bytes of the ring, and at least one whole record or
  // line. Returns true once the answer is complete.
  bool Continue(uint64_t bytes_max);
  // Returns the answer. Call it once, after Continue returned true.
  Answer Take() { return std::move(answer_); }

 private:
  bool WalkRecords(RingOffset until);
  bool SkipHole(RingOffset until);
  bool LooksTorn() const;

  const RegionState state_;
  const ScanInput input_;
  const RingOffset limit_;
  RecordCursor cursor_;
  Answer answer_;
  bool is_done_ = false;
  // Set while the scan searches for the next valid header.
  bool in_hole_ = false;
  RingOffset hole_at_;
};

// Scans the whole ring at once.
Answer AnswerOfRegion(std::span<std::byte> region, const RegionState& state,
                      const AnswerOptions& options);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REPLICA_ANSWER_SCAN_H_

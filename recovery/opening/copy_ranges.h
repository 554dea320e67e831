// SPDX-License-Identifier: Apache-2.0
// copy_ranges: the bytes of the ring in which the records of a repair lie.
//
// Idea: every replica has a record at the same place of its ring, so copying
// records means copying ranges. A PAD goes with the record after it, but only
// its header's line. Records before the place where choosing began are copied
// with all bytes between them.
//
// Thread safety: pure.
// References: protocol P-A4.5; repair_plan.h.
#ifndef ALPHEUS_RECOVERY_OPENING_COPY_RANGES_H_
#define ALPHEUS_RECOVERY_OPENING_COPY_RANGES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "recovery/opening/chooser.h"
#include "recovery/opening/repair_plan.h"
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

// Bytes that do not wrap at the end of the ring.
struct CopyRange {
  uint64_t place = 0;  // bytes from the start of the ring
  uint64_t bytes = 0;
  ReportSet sources = 0;

  bool operator==(const CopyRange&) const = default;
};

// Adds bytes that do not wrap. Extends the last range if they follow it and
// have its sources.
void AddRange(RingOffset offset, uint64_t bytes, ReportSet sources,
              uint64_t ring_capacity, std::vector<CopyRange>* ranges);

// Returns the ranges of `copies`, in the order of the log. Requires: `decision`
// was chosen from the reports; `copies` are of it, sorted.
std::vector<CopyRange> RangesOf(const Decision& decision,
                                std::span<const StateReport> reports,
                                std::span<const CopyRun> copies,
                                uint64_t ring_capacity);

// Returns runs of all kept records.
std::vector<CopyRun> CopiesOfAll(const Decision& decision);

// Returns the number of records in `copies`.
uint64_t RecordCount(std::span<const CopyRun> copies);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_COPY_RANGES_H_

// SPDX-License-Identifier: Apache-2.0
// scrub_counts: the findings and repairs of scrubbing one replica.
//
// Thread safety: a value.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_SCRUB_COUNTS_H_
#define ALPHEUS_RECOVERY_PROTOCOL_SCRUB_COUNTS_H_

#include <cstdint>

namespace alpheus::recovery {

// Damage is counted once its fate is known, by records. A PAD, a CLEANED word,
// and a copy of superline or epoch table count as one each.
struct ScrubCounts {
  uint64_t records = 0;  // verified
  uint64_t bytes = 0;    // their bytes in the ring
  uint64_t damaged = 0;  // repaired or not
  uint64_t repaired = 0;
  uint64_t unrepairable = 0;  // by any peer that was reached

  bool operator==(const ScrubCounts&) const = default;
};

inline void Add(const ScrubCounts& more, ScrubCounts* to) {
  to->records += more.records;
  to->bytes += more.bytes;
  to->damaged += more.damaged;
  to->repaired += more.repaired;
  to->unrepairable += more.unrepairable;
}

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_SCRUB_COUNTS_H_
